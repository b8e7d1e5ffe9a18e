"""The blob contract: bytes under the hash that names them, written before any record refers to them.

Which bytes hash to an address is the caller's rule (a skill's digest covers more than one file), so the store
does not compute it. Missing and failed are different: `get` gives None for the one and raises for the other.
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
    #: It is out of the way, on its way to be deleted.
    is_aside: bool = False


class Blobs(ABC):
    """Immutable content. Writing the same address twice, even at once, is harmless."""

    #: The engine's name in messages and metrics.
    engine: str

    @abstractmethod
    async def put(self, address: str, data: bytes, *, replace: bool = False) -> None:
        """Keep the bytes. What is there already is compared with them: it stays if it is equal and counts as written
        now; otherwise it is damaged, and these bytes take its place at once. `replace` writes without looking.

        Raises BlobUnavailable, and then nothing half-written is left behind.
        """

    @abstractmethod
    async def get(self, address: str) -> bytes | None:
        """The bytes, or None where there are none. Raises BlobUnavailable where the store cannot tell."""

    @abstractmethod
    async def has(self, address: str) -> bool:
        """Whether there is such content. Raises BlobUnavailable where the store cannot tell."""

    # What the collector needs. Content that was set aside is brought back by `put` and `get`.

    async def check(self) -> None:
        """Raise the error that writing content would meet now (readiness)."""
        await self.has("0" * 64)

    def pieces(self) -> AsyncIterator[StoredPiece]:
        """All content, in any order; what is written or removed meanwhile may be among it or not. Raises Unsupported
        where the engine cannot tell."""
        raise Unsupported(capability="listing content", engine=self.engine)

    @abstractmethod
    async def set_aside(self, address: str, untouched_ms: int) -> bool:
        """Move it out of the way, unless somebody put it within this time; whether it was moved."""

    @abstractmethod
    async def delete_aside(self, address: str, untouched_ms: int) -> bool:
        """Delete what was set aside at least this long ago; whether it was. What is in its place stays."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of files and connections."""


def is_address(text: str) -> bool:
    return len(text) == 64 and _HEX.issuperset(text)


def check_address(address: str) -> str:
    """The address, if it is one: nothing else may become part of a path."""
    if is_address(address):
        return address
    raise InvalidInput(
        f"{address!r} is not a content address: give 64 lower-case hexadecimal digits", field="address"
    )
