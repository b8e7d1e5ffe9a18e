"""One's own account: submissions, tokens and the password; `ownership` has what is done with repositories. A token is
shown once, by the answer to the form that made it."""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import iso_time
from vskill_core.identity import MAX_URL
from vskill_platform.actions.people.account import (
    CHANGE_PASSWORD,
    SIGN_OUT_EVERYWHERE,
    WHO_AM_I,
    read_own_account,
)
from vskill_platform.actions.people.owners import ClaimStarted, read_owned
from vskill_platform.actions.people.tokens import (
    CREATE_OWN_TOKEN,
    DEFAULT_DAYS,
    LIST_OWN_TOKENS,
    REVOKE_OWN_TOKEN,
    CreatedToken,
    OwnTokens,
)
from vskill_platform.actions.submissions.submission_lists import own_submissions
from vskill_platform.actions.wire import Asked
from vskill_platform.domain.people.token import SCOPES_OF
from vskill_platform.web.auth import form_of
from vskill_platform.web.flash import clear_flash, flash_of
from vskill_platform.web.pages.acting import act_by_form, form
from vskill_platform.web.pages.people.signin import same, sign_in_again
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import page, query_of

ACCOUNT = "/account"


class AccountQuery(Asked, frozen=True):
    """Which page of one's submissions, and the address of a repository to claim."""

    after: str | None = None
    claim: Annotated[str, msgspec.Meta(max_length=MAX_URL)] = ""


async def show(request: Request) -> Response:
    return await account_page(request)


async def account_page(
    request: Request, *, made: CreatedToken | None = None, claimed: ClaimStarted | None = None
) -> Response:
    """The page; after a form, with the token that the form made."""
    name = principal_of(request).name
    asked = query_of(request, AccountQuery) if request.method == "GET" else AccountQuery()
    submissions = await own_submissions(principal_of(request), asked.after)
    user = await read_own_account(principal_of(request))
    now = services_of(request).kv.now()
    shown = render(
        request,
        "account.html",
        201 if made or claimed else 200,
        user=user,
        tokens=(await LIST_OWN_TOKENS(services_of(request), principal_of(request), OwnTokens())).tokens,
        submissions=submissions.items,
        after=submissions.after,
        owned=await read_owned(services_of(request), name),
        claim_url=asked.claim,
        claimed=claimed,
        made=made,
        scopes=SCOPES_OF[user.role],
        days=DEFAULT_DAYS,
        now=now,
        now_text=iso_time(now),
        flash=flash_of(request),
    )
    shown.headers["cache-control"] = "no-store"
    return clear_flash(request, shown)


async def make_token(request: Request) -> Response:
    made = await act_by_form(request, CREATE_OWN_TOKEN)
    return await account_page(request, made=made)


async def change_password(request: Request) -> Response:
    """Whoever changes it must know the old one; every session and every token ends, and a new session begins here."""
    sent = await form_of(request)
    same(sent.get("password"), sent.get("again"))
    await act_by_form(request, CHANGE_PASSWORD)
    return await sign_in_again(request, principal_of(request).name, ACCOUNT)


ENDPOINTS = (
    page(ACCOUNT, show, action=WHO_AM_I, shows=("owner.list", "token.list"), query=AccountQuery),
    form("/account/tokens", CREATE_OWN_TOKEN, at=ACCOUNT, view=make_token),
    form("/account/tokens/revoke", REVOKE_OWN_TOKEN, "The token is revoked.", at=ACCOUNT),
    form("/account/password", CHANGE_PASSWORD, at=ACCOUNT, view=change_password),
    form("/account/sign-out-all", SIGN_OUT_EVERYWHERE, at=ACCOUNT, to="/signin"),
)
