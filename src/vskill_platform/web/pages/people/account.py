"""One's own account: submissions, tokens, the password and repositories; and what owners do on the pages of their
skills. A token is shown once, by the answer to the form that made it."""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Asked, NoParameters, iso_time
from vskill_core.errors import SourceUnavailable
from vskill_core.identity import MAX_URL
from vskill_platform.actions.people import account, tokens
from vskill_platform.actions.people.owners import CHECK, CLAIM, TRANSFER, read_owned
from vskill_platform.actions.skills.versions import DELETE, UNYANK, YANK
from vskill_platform.actions.submissions.submission_lists import own_submissions
from vskill_platform.domain.people.token import SCOPES_OF
from vskill_platform.sign_in.providers import list_providers
from vskill_platform.web.auth import form_of
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.pages.acting import act_by_form, form, private_page
from vskill_platform.web.pages.people.signin import same, sign_in_again
from vskill_platform.web.pages.skills.admin_skills import SKILL_PAGE, told_state
from vskill_platform.web.routing import page, query_of

ACCOUNT = "/account"


class AccountQuery(Asked, frozen=True):
    """Which page of one's submissions, and the address of a repository to claim."""

    after: str | None = None
    claim: Annotated[str, msgspec.Meta(max_length=MAX_URL)] = ""


async def show(request: Request) -> Response:
    """The page; after a form, with the token that the form made, which is shown once."""
    services, reader, asked = services_of(request), principal_of(request), query_of(request, AccountQuery)
    submissions = await own_submissions(reader, asked.after)
    user, now = await account.read_own_account(reader), services.kv.now()
    return private_page(
        request,
        "account.html",
        user=user,
        tokens=(await tokens.LIST_OWN_TOKENS(services, reader, NoParameters())).tokens,
        submissions=submissions.items,
        after=submissions.after,
        owned=await read_owned(services, reader.name),
        claim_url=asked.claim,
        providers=list_providers(services.settings),
        scopes=SCOPES_OF[user.role],
        days=tokens.DEFAULT_DAYS,
        now=now,
        now_text=iso_time(now),
    )


async def change_password(request: Request) -> Response:
    """Needs the old one; every session and every token ends, and a new session begins here."""
    sent = await form_of(request)
    same(sent.get("password"), sent.get("again"))
    await act_by_form(request, account.CHANGE_PASSWORD)
    return await sign_in_again(request, principal_of(request).name, ACCOUNT)


PAGE = page(
    ACCOUNT,
    show,
    action=account.WHO_AM_I,
    shows=("owner.list", "token.list", "identity.list"),
    query=AccountQuery,
)


ENDPOINTS = (
    PAGE,
    form("/account/tokens", tokens.CREATE_OWN_TOKEN, at=ACCOUNT, shown_by=PAGE),
    form("/account/tokens/revoke", tokens.REVOKE_OWN_TOKEN, "The token is revoked.", at=ACCOUNT),
    form("/account/password", account.CHANGE_PASSWORD, at=ACCOUNT, view=change_password),
    form("/account/sign-out-all", account.SIGN_OUT_EVERYWHERE, at=ACCOUNT, to="/signin"),
    form(
        "/account/identities/{identity}/unlink",
        account.UNLINK_OWN_IDENTITY,
        "The identity is unlinked; the sessions that began there have ended.",
        at=ACCOUNT,
        confirm=True,
    ),
    form("/account/claim", CLAIM, at=ACCOUNT, shown_by=PAGE),
    form(
        "/account/check",
        CHECK,
        lambda proved, _: f"{proved.url} is yours now. You may withdraw versions and delete skills.",
        at=ACCOUNT,
        tells=(SourceUnavailable,),
    ),
    form(
        "/account/transfer",
        TRANSFER,
        lambda moved, asked: f"{moved.url} now belongs to {asked.to}.",
        at=ACCOUNT,
        confirm=True,
    ),
    form(
        f"{SKILL_PAGE}/yank",
        YANK,
        lambda state, asked: told_state(state, f"Version {asked.version} is withdrawn."),
        at=SKILL_PAGE,
    ),
    form(
        f"{SKILL_PAGE}/unyank",
        UNYANK,
        lambda _, asked: f"Version {asked.version} can be installed again.",
        at=SKILL_PAGE,
    ),
    form(
        f"{SKILL_PAGE}/delete",
        DELETE,
        "The skill is deleted. Submit it again to publish a new version.",
        at=SKILL_PAGE,
        confirm=True,
    ),
)
