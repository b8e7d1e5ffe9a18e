"""Publishing from CI: the ID token of a job in exchange for a token of the registry."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire, call_for


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
        """Leaves out the token."""
        return f"CiTokenAnswer({self.repo_url!r}, {self.commit!r})"


EXCHANGE = call_for(
    "publisher.exchange", "/api/v1/publishers/exchange", ExchangeIdToken, CiTokenAnswer, "POST"
)
