"""Accounts and tokens, for admins: make one, change its role, lock it out, give it a new password, revoke a token. A
password that is made here is shown once, by the answer to the form."""

from vskill_platform.actions.people import accounts
from vskill_platform.actions.people.account import UNLINK_IDENTITY_OF
from vskill_platform.actions.people.tokens import LIST_ALL_TOKENS, REVOKE_TOKEN_OF
from vskill_platform.web.pages.acting import answer_page, form

LIST = "/admin/accounts"
TOKENS = "/admin/tokens"


_ONE = LIST + "/{name}"
_PAGE = answer_page(LIST, "accounts.html", ("after",), found=accounts.LIST_ACCOUNTS)

ENDPOINTS = (
    _PAGE,
    form(LIST, accounts.CREATE_ACCOUNT, at=LIST, shown_by=_PAGE),
    form(
        f"{_ONE}/role",
        accounts.CHANGE_ROLE,
        lambda account, _: f"{account.name} is now {account.role.value}.",
        at=LIST,
    ),
    form(
        f"{_ONE}/disable",
        accounts.DISABLE_ACCOUNT,
        lambda account, _: f"{account.name} is locked out; its tokens are revoked.",
        at=LIST,
        confirm=True,
    ),
    form(
        f"{_ONE}/enable",
        accounts.ENABLE_ACCOUNT,
        lambda account, _: f"{account.name} may sign in again; it needs new tokens.",
        at=LIST,
    ),
    form(f"{_ONE}/password", accounts.RESET_PASSWORD, at=LIST, shown_by=_PAGE, confirm=True),
    form(
        f"{_ONE}/sign-out",
        accounts.SIGN_OUT_ACCOUNT,
        lambda account, _: f"{account.name} is signed out everywhere; its tokens are revoked.",
        at=LIST,
        confirm=True,
    ),
    form(
        f"{_ONE}/identities/{{identity}}/unlink",
        UNLINK_IDENTITY_OF,
        lambda account, _: f"The identity is unlinked from {account.name}.",
        at=LIST,
        confirm=True,
    ),
    answer_page(TOKENS, "tokens.html", found=LIST_ALL_TOKENS),
    form(
        f"{TOKENS}/revoke",
        REVOKE_TOKEN_OF,
        lambda gone, _: f"The token “{gone.details.name}” of {gone.account} is revoked.",
        at=TOKENS,
    ),
)
