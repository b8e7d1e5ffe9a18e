"""The blob contract: bytes under the hash that names them, written before any record refers to them.

The caller decides how bytes hash to an address (a skill's digest covers more than one file), so the store does not
compute it. Missing and failed are different: `get` returns None for missing content and raises if the read failed.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

import msgspec

from vskill_core.errors import InvalidInput, Unsupported

_HEX = frozenset("0123456789abcdef")


class StoredPiece(msgspec.Struct, frozen=True):
    """One piece of content, as a listing shows it."""

    address: str
    #: Since it was last put, or since it was set aside.
    untouched_ms: int
    #: It was set aside, and will be deleted.
    is_aside: bool = False


class Blobs(ABC):
    """Immutable content. Writing the same address twice, even at once, is harmless."""

    #: The engine's name in messages and metrics.
    engine: str
    #: Each read is a request that somebody counts, so the scrub keeps to a number of them.
    is_paid_by_request = False

    @abstractmethod
    async def put(self, address: str, data: bytes, *, replace: bool = False) -> None:
        """Keep the bytes. Equal content that is already there stays and counts as written now; other content is damaged
        and is replaced at once. `replace` writes without comparing.

        Raises BlobUnavailable; then nothing half-written is left behind.
        """

    @abstractmethod
    async def get(self, address: str) -> bytes | None:
        """The bytes, or None where there are none. Raises BlobUnavailable where the store cannot tell."""

    @abstractmethod
    async def has(self, address: str) -> bool:
        """Whether there is such content. Raises BlobUnavailable where the store cannot tell."""

    # What the collector needs. `put` and `get` bring back content that was set aside.

    async def check(self) -> None:
        """Raise the error that writing content would meet now (readiness)."""
        await self.has("0" * 64)

    def pieces(self) -> AsyncIterator[StoredPiece]:
        """All content, in any order; content written or removed meanwhile may be missing. Raises Unsupported where the
        engine cannot list it."""
        raise Unsupported(capability="listing content", engine=self.engine)

    @abstractmethod
    async def set_aside(self, address: str, untouched_ms: int) -> bool:
        """Set it aside, unless it was put within this time; whether it was moved."""

    @abstractmethod
    async def delete_aside(self, address: str, untouched_ms: int) -> bool:
        """Delete it if it was set aside at least this long ago; whether it was. A copy in its normal place stays."""

    @abstractmethod
    async def close(self) -> None:
        """Close files and connections."""


def is_address(text: str) -> bool:
    return len(text) == 64 and _HEX.issuperset(text)


def check_address(address: str) -> str:
    """The address, if it is one: nothing else may become part of a path."""
    if is_address(address):
        return address
    raise InvalidInput(
        f"{address!r} is not a content address: give 64 lower-case hexadecimal digits", field="address"
    )
