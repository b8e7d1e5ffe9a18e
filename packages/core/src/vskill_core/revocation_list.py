"""The signed revocation list: every published version that a registry withdrew, for programs that check what they have
without asking about each.

For one serial and one day, every process gives the same bytes: its times come from the record of that serial and from
the day, and Ed25519 signatures are deterministic. docs/reference/revocations.md describes it.
"""

import enum
from datetime import UTC, datetime
from typing import Literal

import msgspec

from vskill_core.errors import AttestationInvalid
from vskill_core.foreign_json import read_json

PAYLOAD_TYPE = "application/vnd.vskill.revocations+json"
#: Enough for more than a hundred thousand revoked versions.
MAX_BYTES = 64 * 1024 * 1024
DAY_MS = 86_400_000
#: How long a list is valid; without a newer one, a client cannot know what was withdrawn since.
VALID_MS = 7 * DAY_MS
#: From this age on, clients warn.
OLD_MS = 3 * DAY_MS


class RevokedStatus(enum.StrEnum):
    """How a version was withdrawn."""

    #: by an entry of the blocklist
    BLOCKED = "blocked"
    #: by a rescan or a reviewer
    TAKEN_DOWN = "taken-down"
    #: by its owner, who may bring it back: a warning, not a danger
    YANKED = "yanked"
    #: its owner gave the whole skill up
    DELETED = "deleted"


class ListedArchives(msgspec.Struct, frozen=True, rename="camel"):
    """The SHA-256 of both archives of a version."""

    zip: str
    tar_gz: str


class ListedReplacement(msgspec.Struct, frozen=True):
    """What to install instead."""

    version: str
    digest: str


class ListedRevocation(msgspec.Struct, frozen=True, rename="camel"):
    """One version that was withdrawn."""

    skill: str
    version: str
    digest: str
    content_hash: str
    #: None where the version has no attestation
    archives: ListedArchives | None
    status: RevokedStatus
    threat_type: str | None
    severity: str | None
    reason: str
    since: str
    replacement: ListedReplacement | None


class RevocationDocument(msgspec.Struct, frozen=True, rename="camel"):
    """The payload of the signed list."""

    version: Literal[1]
    registry: str
    serial: int
    issued_at: str
    expires_at: str
    #: by digest, then by skill
    entries: tuple[ListedRevocation, ...]
    #: whose list it is; serials are compared with those of the same list
    scope: str

    def find(self, skill: str, version: str, digest: str) -> ListedRevocation | None:
        """The entry about one version."""
        wanted = (skill, version, digest)
        return next((one for one in self.entries if (one.skill, one.version, one.digest) == wanted), None)

    @property
    def issued_ms(self) -> int:
        return _ms(self.issued_at)

    def age_ms(self, now: int) -> int:
        return now - self.issued_ms

    def has_expired(self, now: int) -> bool:
        return now >= _ms(self.expires_at)


def read_revocation_list(payload: bytes) -> RevocationDocument:
    """Decode a payload whose signature was checked; `AttestationInvalid` if it is not a list."""
    try:
        document = read_json(payload, RevocationDocument)
        _ms(document.issued_at), _ms(document.expires_at)
    except ValueError as error:
        raise AttestationInvalid(f"Its payload is not a revocation list: {error}.") from error
    return document


def _ms(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
