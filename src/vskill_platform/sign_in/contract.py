"""What all providers have in common: the way there and back, and how they are asked."""

import base64
import hashlib
import secrets
from collections.abc import Mapping
from typing import Protocol, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from vskill_core.errors import InvalidInput, SourceUnavailable
from vskill_core.foreign_json import read_json
from vskill_platform.notifications.post import request
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import User

T = TypeVar("T")

MOST_ANSWER = 200_000


class Journey(msgspec.Struct, frozen=True):
    """What the browser keeps while it is at a provider."""

    provider: str
    state: str
    verifier: str
    nonce: str
    next: str
    #: The account that was signed in when it left: its identity at the provider becomes one of that account.
    account: str | None = None

    @property
    def challenge(self) -> str:
        """What PKCE sends ahead of the verifier."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class Named(Protocol):
    """Somebody whose word the registry takes."""

    #: In addresses.
    name: str
    #: For people.
    title: str


class Provider(Named, Protocol):
    """Somebody whose word the registry takes for who a person is."""

    async def authorize_url(self, journey: Journey) -> str:
        """Where the browser goes."""

    async def sign_in(self, code: str, journey: Journey) -> User:
        """The account of whoever the code was given to, made at the first sign-in. NotSignedIn if the code or what it
        is exchanged for is not valid, NotPermitted if the rule does not admit the person."""

    async def sign_out_url(self) -> str:
        """Where one ends the session at the provider; empty where that is not possible."""


def new_journey(provider: str, wanted: str, account: str | None) -> Journey:
    state, nonce, verifier = (secrets.token_urlsafe(length) for length in (24, 24, 48))
    return Journey(provider, state, verifier, nonce, wanted, account)


def callback_url(settings: Settings, provider: str) -> str:
    return f"{settings.public_url.rstrip('/')}/signin/{provider}/callback"


def basic_auth(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


async def ask(
    provider: Named,
    url: str,
    kind: type[T],
    *,
    trusted: str,
    authorization: str = "",
    form: Mapping[str, str] | None = None,
    json: object = None,
) -> T | None:
    """The JSON of an answer; None if the provider refuses, SourceUnavailable if it gives no valid answer. Only the host
    of the address that the operator gave (`trusted`) may be a private one."""
    headers = {"accept": "application/json"} | ({"authorization": authorization} if authorization else {})
    body = None
    if form is not None:
        headers["content-type"], body = "application/x-www-form-urlencoded", urlencode(form).encode()
    elif json is not None:
        headers["content-type"], body = "application/json", msgspec.json.encode(json)
    try:
        status, answer = await request(
            "GET" if body is None else "POST",
            url,
            headers,
            body,
            private_hosts=(urlsplit(trusted).hostname or "",),
            most_bytes=MOST_ANSWER,
        )
    except (SourceUnavailable, InvalidInput) as error:
        raise SourceUnavailable(f"{provider.title}: {error.message}", host=provider.name) from error
    if status >= 500 or status == 429:
        raise SourceUnavailable(f"{provider.title} answered {status}.", host=provider.name)
    if status >= 300 or len(answer) > MOST_ANSWER:
        return None
    try:
        return read_json(answer, kind)
    except msgspec.DecodeError:
        return None
