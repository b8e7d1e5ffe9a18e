"""API tokens, which programs send instead of signing in. An account creates and revokes its own; admins and the
operator list and revoke all tokens, and create tokens for an account.

Only the answer that creates a token contains its secret. A token that was created with another token has at most its
rights and its lifetime.
"""

import secrets
from collections.abc import Iterable
from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, Wire
from vskill_core.errors import InvalidInput, NotFound, NotPermitted
from vskill_core.identity import has_control_characters
from vskill_platform.actions.action import AccountName, NamespaceName, Reason, Services, action
from vskill_platform.actions.people.account import own_name
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain import keys
from vskill_platform.domain.people.token import (
    SCOPES,
    SCOPES_OF,
    SCOPES_OF_BOUND,
    Token,
    TokenScope,
    with_included,
)
from vskill_platform.ledger.kv.entries import ABSENT, Put
from vskill_platform.store.people import credentials
from vskill_platform.store.people.accounts import User, UserChange, change_user

TOKENS = "/api/v1/tokens"
ALL_TOKENS = "/api/v1/admin/tokens"
DAY_MS = 86_400_000
MOST_DAYS = 366
DEFAULT_DAYS = 90
MOST_TOKENS = 50
MOST_NAME = 80
ASKED_FOR_IT = "asked for it"

TokenName = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_NAME)]
TokenId = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
TokenScopes = Annotated[tuple[TokenScope, ...], msgspec.Meta(min_length=1, max_length=10)]
TokenDays = Annotated[int, msgspec.Meta(ge=1, le=MOST_DAYS)]
DEFAULT_SCOPES = (TokenScope.READ, TokenScope.SUBMIT)


class TokenView(Wire, frozen=True):
    """A token, as its owner sees it."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created_at: str
    expires_at: str
    #: to the hour
    last_used_at: str | None
    #: the one namespace that it is bound to; null where it has no such limit
    namespace: str | None


class TokenList(Wire, frozen=True):
    """The latest first."""

    tokens: tuple[TokenView, ...]


class CreatedToken(Wire, frozen=True):
    """The only answer that ever holds the secret."""

    #: the secret, for `Authorization: Bearer …` or as the password of `Basic`
    token: str
    details: TokenView

    def __repr__(self) -> str:
        return f"CreatedToken({self.details!r})"


class RevokedToken(Wire, frozen=True):
    """It is worthless now."""

    id: str
    revoked: bool


class AccountToken(Wire, frozen=True):
    """A token, and whose it is."""

    account: str
    details: TokenView


class AllTokens(Wire, frozen=True):
    """Tokens of every account, the latest first."""

    tokens: tuple[AccountToken, ...]


class CreateOwnToken(ActionRequest, frozen=True, kw_only=True):
    """A token to be made."""

    #: what it is for
    name: TokenName
    #: what it may do
    scopes: TokenScopes = DEFAULT_SCOPES
    #: how many days it is valid
    days: TokenDays = DEFAULT_DAYS
    #: the one namespace whose private skills it may read, and where it may change something; every namespace of the
    #: account if left out
    namespace: NamespaceName | None = None


class CreateTokenFor(CreateOwnToken, frozen=True, kw_only=True):
    """A token to be made for an account."""

    account: AccountName


class RevokeOwnToken(ActionRequest, frozen=True, kw_only=True):
    """One of the tokens of the account that asks."""

    token_id: TokenId


class ListAllTokens(ActionRequest, frozen=True, kw_only=True):
    """Whose tokens."""

    #: only those of this account
    account: AccountName | None = None


class RevokeTokenOf(ActionRequest, frozen=True, kw_only=True):
    """A token of an account, and why it ends."""

    account: AccountName
    token_id: TokenId
    #: why; kept in the audit
    reason: Reason


async def list_own(actor: Principal, _request: NoParameters) -> TokenList:
    return TokenList(tuple(TokenView.of(token) for token in await credentials.list_tokens(own_name(actor))))


async def create_own(services: Services, actor: Principal, request: CreateOwnToken) -> CreatedToken:
    return await _create(services, actor, own_name(actor), request)


async def revoke_own(actor: Principal, request: RevokeOwnToken) -> RevokedToken:
    await _revoke(own_name(actor), request.token_id, by=actor.actor, reason=ASKED_FOR_IT)
    return RevokedToken(request.token_id, revoked=True)


async def list_all(request: ListAllTokens) -> AllTokens:
    account = request.account
    found = await credentials.list_all_tokens() if account is None else await credentials.list_tokens(account)
    return AllTokens(tuple(AccountToken(token.account, TokenView.of(token)) for token in found))


async def create_for(services: Services, actor: Principal, request: CreateTokenFor) -> CreatedToken:
    return await _create(services, actor, request.account, request)


async def revoke_of(actor: Principal, request: RevokeTokenOf) -> AccountToken:
    token = await _revoke(request.account, request.token_id, by=actor.actor, reason=request.reason)
    return AccountToken(request.account, TokenView.of(token))


async def _create(
    services: Services, actor: Principal, account: str, request: CreateOwnToken
) -> CreatedToken:
    expires_at, namespace = services.kv.now() + request.days * DAY_MS, request.namespace
    if actor.token is not None:
        shown = next(one for one in await credentials.list_tokens(actor.name) if one.id == actor.token.id)
        if not with_included(shown.scopes).issuperset(request.scopes):
            message = f"A token with the scopes {', '.join(shown.scopes)} cannot make one with more."
            raise NotPermitted(message, field="scopes", fix=f"choose from {', '.join(shown.scopes)}")
        expires_at = min(expires_at, shown.expires_at)
        if shown.namespace not in (None, namespace or shown.namespace):
            message = f"A token of the namespace {shown.namespace} cannot make one of another."
            raise NotPermitted(message, field="namespace", fix=f"give {shown.namespace}, or leave it out")
        namespace = namespace or shown.namespace
    return await issue_token(
        services,
        account,
        request.name,
        request.scopes,
        by=actor.actor,
        expires_at=expires_at,
        namespace=namespace,
    )


async def issue_token(
    services: Services,
    account: str,
    name: str,
    scopes: Iterable[TokenScope],
    *,
    by: str,
    expires_at: int,
    namespace: str | None = None,
) -> CreatedToken:
    """Create a token, with scopes that the account's role may hold, and that a token of one namespace may hold."""
    if has_control_characters(name):
        raise InvalidInput("The token's name has control characters.", field="name", fix="remove them")
    secret = credentials.PREFIX + secrets.token_urlsafe(32)
    token_hash, chosen = credentials.hash_secret(secret), set(scopes)
    wanted = tuple(scope for scope in SCOPES if scope in chosen)
    token = Token(
        services.clock.new_id(), account, name, wanted, services.kv.now(), expires_at, namespace=namespace
    )
    put = Put(keys.token(token_hash), msgspec.json.encode(token), ABSENT)

    async def decide(user: User) -> UserChange:
        _require_allowed(user, token)
        return UserChange(msgspec.structs.replace(user, tokens=(*user.tokens, token_hash)), (put,))

    details = {"token": token.id, "name": token.name, "scopes": " ".join(wanted)}
    if namespace is not None:
        details["namespace"] = namespace
    await change_user(account, decide, action="token created", by=by, reason=ASKED_FOR_IT, details=details)
    return CreatedToken(secret, TokenView.of(token))


def _require_allowed(user: User, token: Token) -> None:
    if len(user.tokens) >= MOST_TOKENS:
        raise InvalidInput(
            f"{user.name} has {MOST_TOKENS} tokens already.", field="name", fix="revoke one first"
        )
    if token.namespace is not None and not set(token.scopes).issubset(SCOPES_OF_BOUND):
        message = f"A token of one namespace can only have the scopes {', '.join(SCOPES_OF_BOUND)}."
        raise NotPermitted(message, field="scopes", fix=f"choose from {', '.join(SCOPES_OF_BOUND)}")
    excess = [scope for scope in token.scopes if scope not in SCOPES_OF[user.role]]
    if excess:
        message = f"{user.name} is {user.role.value}: its tokens cannot have the scope {excess[0]!r}."
        fix = f"choose from {', '.join(SCOPES_OF[user.role])}"
        raise NotPermitted(message, field="scopes", fix=fix)


async def _revoke(account: str, token_id: str, *, by: str, reason: str) -> Token:
    token_hash, token = await credentials.find_token_hash(account, token_id)

    async def decide(user: User) -> UserChange:
        left = tuple(one for one in user.tokens if one != token_hash)
        return UserChange(msgspec.structs.replace(user, tokens=left))

    details = {"token": token_id, "name": token.name}
    await change_user(account, decide, action="token revoked", by=by, reason=reason, details=details)
    return token


LIST_OWN_TOKENS = action(
    list_own,
    "token.list",
    TOKENS,
    right=Right.SIGNED_IN,
    summary="List your tokens",
    command="account tokens",
)
CREATE_OWN_TOKEN = action(
    create_own,
    "token.create",
    TOKENS,
    right=Right.SIGNED_IN,
    errors=(NotPermitted,),
    status=201,
    summary="Create a token; it is shown once",
    about="A token that is created with a token has no more scopes, and is valid no longer, than that one; nor has it "
    "another namespace. One of a namespace has the scopes read, submit and own at most.",
    command="account create-token",
)
REVOKE_OWN_TOKEN = action(
    revoke_own,
    "token.revoke",
    f"{TOKENS}/{{token_id}}",
    method="DELETE",
    right=Right.SIGNED_IN,
    errors=(NotFound,),
    summary="Revoke a token",
    command="account revoke-token",
)
LIST_ALL_TOKENS = action(
    list_all,
    "token.list-all",
    ALL_TOKENS,
    right=Right.ADMIN,
    errors=(NotFound,),
    summary="List the tokens of every account",
    tag="accounts",
    command="token list",
)
CREATE_TOKEN_FOR = action(
    create_for,
    "token.create-for",
    f"{ALL_TOKENS}/{{account}}",
    right=Right.ADMIN,
    errors=(NotFound, NotPermitted),
    status=201,
    summary="Create a token for an account; it is shown once",
    about="The account sees it among its own, and the audit names the admin.",
    tag="accounts",
    command="token create",
)
REVOKE_TOKEN_OF = action(
    revoke_of,
    "token.revoke-of",
    f"{ALL_TOKENS}/{{account}}/{{token_id}}/revoke",
    right=Right.ADMIN,
    errors=(NotFound,),
    summary="Revoke a token of an account",
    tag="accounts",
    command="token revoke",
)
