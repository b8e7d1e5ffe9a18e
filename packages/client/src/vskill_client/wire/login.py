"""Signing in on a machine without a browser, with the names of RFC 8628 on the wire; and publishing from CI: a job's ID
token in exchange for a token of the registry."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire, call_for

GRANT = "urn:ietf:params:oauth:grant-type:device_code"


class AskForCode(msgspec.Struct, frozen=True):
    """A code, please."""

    #: what the machine calls itself; the person who decides sees it
    label: Annotated[str, msgspec.Meta(max_length=80)] = ""


class CodeAnswer(msgspec.Struct, frozen=True):
    """A code, and where to type it."""

    #: what the machine asks for its token with
    device_code: str
    #: what a person types
    user_code: str
    verification_uri: str
    #: seconds
    expires_in: int
    #: seconds between two questions
    interval: int


class AskForToken(msgspec.Struct, frozen=True):
    """The token that somebody allowed."""

    device_code: Annotated[str, msgspec.Meta(max_length=200)]
    grant_type: str = GRANT


class DeviceToken(msgspec.Struct, frozen=True):
    """The only answer that holds the token."""

    access_token: str
    token_type: str
    scope: str

    def __repr__(self) -> str:
        return f"DeviceToken({self.token_type!r}, {self.scope!r})"


ASK_FOR_CODE = call_for("login.begin", "/api/cli/device/code", AskForCode, CodeAnswer, "POST")
ASK_FOR_TOKEN = call_for("login.finish", "/api/cli/device/token", AskForToken, DeviceToken, "POST")


class ExchangeIdToken(ActionRequest, frozen=True, kw_only=True):
    """What the job's forge signed."""

    SECRETS = frozenset({"id_token"})
    #: the ID token, made for this registry's address as its audience
    id_token: Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]


class CiTokenAnswer(Wire, frozen=True):
    """The only answer that holds the token. It submits one repository at one commit, for minutes."""

    token: str
    expires_at: str
    repo_url: str
    commit: str

    def __repr__(self) -> str:
        return f"CiTokenAnswer({self.repo_url!r}, {self.commit!r})"


EXCHANGE = call_for(
    "publisher.exchange", "/api/v1/publishers/exchange", ExchangeIdToken, CiTokenAnswer, "POST"
)
