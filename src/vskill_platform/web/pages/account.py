"""One's own account: submissions, tokens and the password; `ownership` has what is done with repositories. A token is
shown once, by the answer to the form that made it."""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.owners import ClaimStarted, read_owned
from vskill_platform.actions.submission_lists import own_submissions
from vskill_platform.actions.wire import Asked
from vskill_platform.domain.errors import InvalidInput
from vskill_platform.domain.identity import MAX_URL
from vskill_platform.domain.token import SCOPES_OF
from vskill_platform.store.accounts import get_user, set_password, sign_out_everywhere
from vskill_platform.store.attempts import count_attempt
from vskill_platform.store.passwords import fits
from vskill_platform.store.tokens import (
    DEFAULT_DAYS,
    NewToken,
    create_token,
    list_tokens,
    revoke_token,
)
from vskill_platform.web.api.tokens import shown_token
from vskill_platform.web.auth import form_of, text_of, values_of
from vskill_platform.web.flash import flash_of, see_other, told
from vskill_platform.web.limits import client_of
from vskill_platform.web.pages.acting import acting, number_of
from vskill_platform.web.pages.signin import same, signed_in
from vskill_platform.web.principal import Guard, principal_of
from vskill_platform.web.render import render
from vskill_platform.web.routing import form, page, query_of
from vskill_platform.worker_context import require_env


class AccountQuery(Asked, frozen=True):
    """Which page of one's submissions, and the address of a repository to claim."""

    after: str | None = None
    claim: Annotated[str, msgspec.Meta(max_length=MAX_URL)] = ""


async def show(request: Request) -> Response:
    return await account_page(request)


async def account_page(
    request: Request, *, made: NewToken | None = None, claimed: ClaimStarted | None = None
) -> Response:
    """The page; after a form, with the token that the form made."""
    name = principal_of(request).name
    asked = query_of(request, AccountQuery) if request.method == "GET" else AccountQuery()
    submissions = await own_submissions(require_env(), principal_of(request), asked.after)
    user = await get_user(name)
    shown = render(
        request,
        "account.html",
        201 if made or claimed else 200,
        user=user,
        tokens=await list_tokens(name),
        submissions=submissions.items,
        after=submissions.after,
        owned=await read_owned(require_env(), name),
        claim_url=asked.claim,
        claimed=claimed,
        made=made,
        scopes=SCOPES_OF[user.role],
        days=DEFAULT_DAYS,
        now=require_env("kv").kv.now(),
        flash=flash_of(request),
    )
    shown.headers["cache-control"] = "no-store"
    return told(request, shown)


@acting("/account")
async def make_token(request: Request) -> Response:
    principal = principal_of(request)
    made = await create_token(
        principal.name,
        await text_of(request, "name"),
        await values_of(request, "scopes"),
        by=principal.actor,
        days=await number_of(request, "days"),
        made_with=await shown_token(principal),
    )
    return await account_page(request, made=made)


@acting("/account")
async def revoke(request: Request) -> Response:
    principal = principal_of(request)
    token = await revoke_token(principal.name, await text_of(request, "token"), by=principal.actor)
    return see_other(request, "/account", f"The token “{token.name}” is revoked.")


@acting("/account")
async def change_password(request: Request) -> Response:
    """Whoever changes it must know the old one; every other session and every token ends, this session goes on."""
    principal = principal_of(request)
    user = await get_user(principal.name)
    sent = await form_of(request)
    new = same(sent.get("password"), sent.get("again"))
    await count_attempt(user.name, client_of(request))
    if user.password is None or not await fits(user.password, str(sent.get("old", ""))):
        raise InvalidInput("The present password is wrong.", field="old", fix="type it again")
    changed = await set_password(user.name, new, by=principal.actor, reason="changed by its owner")
    require_env("log").log.info("password changed", account=user.name)
    return await signed_in(request, changed, "password", "/account")


@acting("/account")
async def sign_out_all(request: Request) -> Response:
    principal = principal_of(request)
    await sign_out_everywhere(principal.name, by=principal.actor)
    return see_other(request, "/signin")


ENDPOINTS = (
    page("/account", show, guard=Guard.AUTHOR, query=AccountQuery),
    form("/account/tokens", make_token, guard=Guard.AUTHOR, scope="own"),
    form("/account/tokens/revoke", revoke, guard=Guard.AUTHOR, scope="own"),
    form("/account/password", change_password, guard=Guard.AUTHOR, scope="own"),
    form("/account/sign-out-all", sign_out_all, guard=Guard.AUTHOR, scope="submit"),
)
