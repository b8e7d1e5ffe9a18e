"""The API for tokens of one's own: list, create, revoke. The secret is in the answer that creates it, and nowhere
else ever."""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.principal import Principal
from vskill_platform.actions.wire import Sent, Wire, iso_time, maybe_time
from vskill_platform.domain.token import Token
from vskill_platform.store.tokens import (
    DEFAULT_DAYS,
    MOST_DAYS,
    MOST_NAME,
    create_token,
    list_tokens,
    revoke_token,
)
from vskill_platform.web.principal import Guard, principal_of
from vskill_platform.web.responses import json_response
from vskill_platform.web.routing import body_of, delete, get, post


class TokenView(Wire, frozen=True):
    """A token, as its owner sees it."""

    id: str
    name: str
    scopes: tuple[str, ...]
    created_at: str
    expires_at: str
    #: to the hour
    last_used_at: str | None


class TokenList(Wire, frozen=True):
    """The latest first."""

    tokens: tuple[TokenView, ...]


class CreatedToken(Wire, frozen=True):
    """The only answer that ever holds the secret."""

    #: the secret, for `Authorization: Bearer …`
    token: str
    details: TokenView


class RevokedToken(Wire, frozen=True):
    """It is worthless now."""

    id: str
    revoked: bool


class TokenRequest(Sent, frozen=True):
    """A token to be made."""

    #: what it is for
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_NAME)]
    #: `read`, `submit`, `admin`
    scopes: Annotated[tuple[str, ...], msgspec.Meta(max_length=10)] = ("read", "submit")
    days: Annotated[int, msgspec.Meta(ge=1, le=MOST_DAYS)] = DEFAULT_DAYS


async def own_tokens(request: Request) -> Response:
    found = await list_tokens(principal_of(request).name)
    return json_response(TokenList(tuple(map(token_view, found))))


async def create(request: Request) -> Response:
    """One that is made with a token can do no more, and lives no longer, than that."""
    principal = principal_of(request)
    wanted = await body_of(request, TokenRequest)
    made = await create_token(
        principal.name,
        wanted.name,
        wanted.scopes,
        by=principal.actor,
        days=wanted.days,
        made_with=await shown_token(principal),
    )
    return json_response(CreatedToken(made.secret, token_view(made.token)), 201)


async def revoke(request: Request) -> Response:
    principal = principal_of(request)
    token_id: str = request.path_params["token_id"]
    await revoke_token(principal.name, token_id, by=principal.actor)
    return json_response(RevokedToken(token_id, revoked=True))


async def shown_token(principal: Principal) -> Token | None:
    """The token that the request was made with, if it was."""
    if principal.token is None:
        return None
    return next(one for one in await list_tokens(principal.name) if one.id == principal.token.id)


def token_view(token: Token) -> TokenView:
    return TokenView(
        token.id,
        token.name,
        token.scopes,
        iso_time(token.created_at),
        iso_time(token.expires_at),
        maybe_time(token.last_used_at),
    )


ENDPOINTS = (
    get(
        "/api/v1/tokens",
        own_tokens,
        guard=Guard.AUTHOR,
        scope="read",
        answer=TokenList,
        tag="account",
        summary="One's own tokens",
    ),
    post(
        "/api/v1/tokens",
        create,
        guard=Guard.AUTHOR,
        scope="own",
        body=TokenRequest,
        answer=CreatedToken,
        status=201,
        tag="account",
        summary="Make a token; it is shown once",
        problems=(409,),
    ),
    delete(
        "/api/v1/tokens/{token_id}",
        revoke,
        guard=Guard.AUTHOR,
        scope="own",
        answer=RevokedToken,
        tag="account",
        summary="Revoke a token",
        problems=(404, 409),
    ),
)
