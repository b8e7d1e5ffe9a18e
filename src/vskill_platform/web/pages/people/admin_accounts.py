"""Accounts and tokens, for admins: make one, change its role, lock it out, give it a new password, revoke a token. A
password that is made here is shown once, by the answer to the form."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import iso_time
from vskill_platform.actions.people.accounts import (
    CHANGE_ROLE,
    CREATE_ACCOUNT,
    DISABLE_ACCOUNT,
    ENABLE_ACCOUNT,
    LIST_ACCOUNTS,
    RESET_PASSWORD,
    SIGN_OUT_ACCOUNT,
    AccountPassword,
    ListAccounts,
)
from vskill_platform.actions.people.tokens import LIST_ALL_TOKENS, REVOKE_TOKEN_OF, ListAllTokens
from vskill_platform.actions.wire import Asked
from vskill_platform.web.pages.acting import act_by_form, admin_page, form, require_confirmed
from vskill_platform.web.principal import principal_of, services_of
from vskill_platform.web.routing import page, query_of

LIST = "/admin/accounts"
TOKENS = "/admin/tokens"


class AccountsQuery(Asked, frozen=True):
    """Which page of the list."""

    after: str | None = None


async def accounts(request: Request) -> Response:
    return await _page(request, after=query_of(request, AccountsQuery).after)


async def _page(
    request: Request, made: AccountPassword | None = None, *, after: str | None = None
) -> Response:
    """The list; after a form, with the password that was generated."""
    found = await LIST_ACCOUNTS(services_of(request), principal_of(request), ListAccounts(after=after))
    return admin_page(
        request, "accounts.html", 201 if made else 200, found=found, is_first=after is None, made=made
    )


async def create(request: Request) -> Response:
    made = await act_by_form(request, CREATE_ACCOUNT)
    return await _page(request, made)


async def reset_password(request: Request) -> Response:
    await require_confirmed(request)
    made = await act_by_form(request, RESET_PASSWORD)
    return await _page(request, made)


async def tokens(request: Request) -> Response:
    found = await LIST_ALL_TOKENS(services_of(request), principal_of(request), ListAllTokens())
    return admin_page(
        request, "tokens.html", tokens=found.tokens, now=iso_time(services_of(request).kv.now())
    )


_ONE = LIST + "/{name}"

ENDPOINTS = (
    page(LIST, accounts, action=LIST_ACCOUNTS, query=AccountsQuery),
    form(LIST, CREATE_ACCOUNT, at=LIST, view=create),
    form(
        f"{_ONE}/role",
        CHANGE_ROLE,
        lambda account, _: f"{account.name} is now {account.role.value}.",
        at=LIST,
    ),
    form(
        f"{_ONE}/disable",
        DISABLE_ACCOUNT,
        lambda account, _: f"{account.name} is locked out; its tokens are revoked.",
        at=LIST,
        confirm=True,
    ),
    form(
        f"{_ONE}/enable",
        ENABLE_ACCOUNT,
        lambda account, _: f"{account.name} may sign in again; it needs new tokens.",
        at=LIST,
    ),
    form(f"{_ONE}/password", RESET_PASSWORD, at=LIST, view=reset_password),
    form(
        f"{_ONE}/sign-out",
        SIGN_OUT_ACCOUNT,
        lambda account, _: f"{account.name} is signed out everywhere; its tokens are revoked.",
        at=LIST,
        confirm=True,
    ),
    page(TOKENS, tokens, action=LIST_ALL_TOKENS),
    form(
        f"{TOKENS}/revoke",
        REVOKE_TOKEN_OF,
        lambda gone, _: f"The token “{gone.details.name}” of {gone.account} is revoked.",
        at=TOKENS,
    ),
)
