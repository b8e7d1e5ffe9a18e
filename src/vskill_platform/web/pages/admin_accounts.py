"""Accounts and tokens, for admins: make one, change its role, lock it out, give it a new password, revoke a token. A
password that is made here is shown once, by the answer to the form."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.wire import Asked
from vskill_platform.domain.errors import NotPermitted
from vskill_platform.store.accounts import (
    Role,
    create_user,
    list_users,
    set_disabled,
    set_password,
    set_role,
    sign_out_everywhere,
)
from vskill_platform.store.passwords import new_password
from vskill_platform.store.tokens import list_all_tokens, revoke_token
from vskill_platform.web.auth import text_of
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import acting, admin_page, choice_of, reason_of, require_confirmed
from vskill_platform.web.principal import Guard, principal_of
from vskill_platform.web.routing import form, page, query_of
from vskill_platform.worker_context import require_env

LIST = "/admin/accounts"
TOKENS = "/admin/tokens"
ROLES = tuple(role.value for role in Role)


class AccountsQuery(Asked, frozen=True):
    """Which page of the list."""

    after: str | None = None


async def accounts(request: Request) -> Response:
    return await _page(request, query_of(request, AccountsQuery).after)


async def _page(
    request: Request, after: str | None = None, *, name: str = "", password: str = ""
) -> Response:
    found = await list_users(after=after)
    return admin_page(
        request,
        "accounts.html",
        201 if password else 200,
        found=found,
        roles=ROLES,
        is_first=after is None,
        made_for=name,
        password=password,
    )


@acting(LIST)
async def create(request: Request) -> Response:
    """With a generated password, which whoever gets it can change."""
    name = (await text_of(request, "name", 200)).lower()
    role = Role(await choice_of(request, "role", ROLES))
    password = new_password()
    await create_user(
        name, role, by=principal_of(request).actor, reason=await reason_of(request), password=password
    )
    return await _page(request, name=name, password=password)


@acting(LIST)
async def change_role(request: Request) -> Response:
    name = request.path_params["name"]
    role = Role(await choice_of(request, "role", ROLES))
    await set_role(name, role, by=principal_of(request).actor, reason=await reason_of(request))
    return see_other(request, LIST, f"{name} is now {role.value}.")


@acting(LIST)
async def disable(request: Request) -> Response:
    name = request.path_params["name"]
    reason = await reason_of(request)
    await require_confirmed(request)
    if name == principal_of(request).account:
        raise NotPermitted("Nobody locks themselves out; another admin can.")
    await set_disabled(name, disabled=True, by=principal_of(request).actor, reason=reason)
    return see_other(request, LIST, f"{name} is locked out; its tokens are revoked.")


@acting(LIST)
async def enable(request: Request) -> Response:
    name = request.path_params["name"]
    reason = await reason_of(request)
    await set_disabled(name, disabled=False, by=principal_of(request).actor, reason=reason)
    return see_other(request, LIST, f"{name} may sign in again; it needs new tokens.")


@acting(LIST)
async def reset_password(request: Request) -> Response:
    """A generated one; every session and token of the account ends."""
    name = request.path_params["name"]
    reason = await reason_of(request)
    await require_confirmed(request)
    password = new_password()
    await set_password(name, password, by=principal_of(request).actor, reason=reason)
    return await _page(request, name=name, password=password)


@acting(LIST)
async def sign_out(request: Request) -> Response:
    name = request.path_params["name"]
    await require_confirmed(request)
    await sign_out_everywhere(name, by=principal_of(request).actor)
    return see_other(request, LIST, f"{name} is signed out everywhere; its tokens are revoked.")


async def tokens(request: Request) -> Response:
    found = await list_all_tokens()
    return admin_page(request, "tokens.html", tokens=found, now=require_env("kv").kv.now())


@acting(TOKENS)
async def revoke(request: Request) -> Response:
    account, token_id = await text_of(request, "account", 100), await text_of(request, "token", 100)
    reason = await reason_of(request)
    token = await revoke_token(account, token_id, by=principal_of(request).actor, reason=reason)
    return see_other(request, TOKENS, f"The token “{token.name}” of {account} is revoked.")


_ONE = LIST + "/{name}"

ENDPOINTS = (
    page(LIST, accounts, guard=Guard.ADMIN, query=AccountsQuery),
    form(LIST, create, guard=Guard.ADMIN, scope="admin"),
    form(f"{_ONE}/role", change_role, guard=Guard.ADMIN, scope="admin"),
    form(f"{_ONE}/disable", disable, guard=Guard.ADMIN, scope="admin"),
    form(f"{_ONE}/enable", enable, guard=Guard.ADMIN, scope="admin"),
    form(f"{_ONE}/password", reset_password, guard=Guard.ADMIN, scope="admin"),
    form(f"{_ONE}/sign-out", sign_out, guard=Guard.ADMIN, scope="admin"),
    page(TOKENS, tokens, guard=Guard.ADMIN),
    form(f"{TOKENS}/revoke", revoke, guard=Guard.ADMIN, scope="admin"),
)
