"""The caller's account for clients: its namespaces, and a token in exchange for one of GitHub's, or for the ID token of
a CI job."""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Sent, Wire
from vskill_client.wire.login import EXCHANGE, CiTokenAnswer, ExchangeIdToken
from vskill_core.errors import PlatformError
from vskill_platform.actions.action import Allowance
from vskill_platform.actions.people.account import WHO_AM_I
from vskill_platform.actions.people.publishers import exchange as exchange_for_ci
from vskill_platform.actions.people.tokens import CREATE_OWN_TOKEN, CreateOwnToken
from vskill_platform.actions.principal import Principal
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.sign_in.github import GitHub
from vskill_platform.store.people.attempts import count_attempt
from vskill_platform.store.people.refusals import note_refusal
from vskill_platform.web.door.limits import client_of
from vskill_platform.web.exchange import json_response, principal_of, services_of
from vskill_platform.web.routing import body_of, get, post

#: What the token of a client may do.
CLIENT_SCOPES = (TokenScope.READ, TokenScope.SUBMIT)


class Tenant(Wire, frozen=True):
    """A namespace that the account may act for."""

    tenant_id: str
    slug: str
    name: str
    role: str
    #: always null: there are no installations here
    installation_id: str | None = None


class Tenants(Wire, frozen=True):
    """The account's own namespace; there are no others."""

    tenants: tuple[Tenant, ...]


class GitHubToken(Sent, frozen=True):
    """What a client got from GitHub, for the app of this registry."""

    github_token: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]


class ClientToken(Wire, frozen=True):
    """A token of ours; it is shown once."""

    token: str
    expires_at: str
    scopes: tuple[str, ...]
    user_id: str


async def tenants(request: Request) -> Response:
    name = principal_of(request).name
    return json_response(Tenants((Tenant(name, name, name, "owner"),)))


async def exchange(request: Request) -> Response:
    """Attempts are counted as those of a sign-in, since that is what it is."""
    wanted = await body_of(request, GitHubToken)
    github = GitHub(services_of(request).settings)
    address = client_of(request)
    # A name that no account can have, so that nobody is locked out by it.
    await count_attempt(f"github exchange {address}", address)
    try:
        user = await github.sign_in_with_token(wanted.github_token)
    except PlatformError as error:
        await note_refusal("sign-in", f"GitHub: {error.message}")
        raise
    made = await CREATE_OWN_TOKEN(
        services_of(request),
        Principal(user.name, user.role),
        CreateOwnToken(name="client", scopes=CLIENT_SCOPES),
    )
    return json_response(ClientToken(made.token, made.details.expires_at, made.details.scopes, user.name))


async def exchange_id_token(request: Request) -> Response:
    wanted = await body_of(request, ExchangeIdToken)
    try:
        return json_response(await exchange_for_ci(services_of(request), wanted))
    except PlatformError as error:
        await note_refusal("sign-in", f"CI: {error.message}")
        raise


ENDPOINTS = (
    post(
        EXCHANGE.path,
        exchange_id_token,
        no_scope="the word of the job's forge lets in",
        signs_in=True,
        stays_open=True,
        body=ExchangeIdToken,
        answer=CiTokenAnswer,
        tag="publishers",
        summary="Exchange the ID token of a CI job for a token that submits its repository",
        about="A maintainer has added the job's workflow as a publisher. Each ID token serves once. The refusal says "
        "which check failed.",
        problems=(400, 403, 429, 503),
        allowance=Allowance.LOGINS,
    ),
    get(
        "/api/v1/account/tenants",
        tenants,
        action=WHO_AM_I,
        answer=Tenants,
        tag="account",
        summary="The namespaces of the account",
    ),
    post(
        "/api/v1/auth/github/exchange-for-vsk-token",
        exchange,
        no_scope="GitHub's word lets in",
        signs_in=True,
        stays_open=True,
        body=GitHubToken,
        answer=ClientToken,
        tag="account",
        summary="Exchange a token of this registry's GitHub app for a token of the registry",
        problems=(401, 403, 404, 409, 429),
    ),
)
