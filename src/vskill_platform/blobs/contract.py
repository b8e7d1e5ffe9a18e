"""The blob contract: bytes under the hash that names them, written before any record refers to them.

Which bytes hash to an address is the caller's rule (a skill's digest covers more than one file), so the store
does not compute it. Missing and failed are different: `get` gives None for the one and raises for the other.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator

from vskill_platform.domain.errors import InvalidInput, Unsupported

_HEX = frozenset("0123456789abcdef")


class Blobs(ABC):
    """Immutable content. Writing the same address twice, even at once, is harmless."""

    #: The engine's name in messages and metrics.
    engine: str

    @abstractmethod
    async def put(self, address: str, data: bytes) -> None:
        """Keep the bytes; what is there already stays, and counts as written now.

        Raises BlobUnavailable, and then nothing half-written is left behind.
        """

    @abstractmethod
    async def get(self, address: str) -> bytes | None:
        """The bytes, or None where there are none. Raises BlobUnavailable where the store cannot tell."""

    @abstractmethod
    async def has(self, address: str) -> bool:
        """Whether there is such content. Raises BlobUnavailable where the store cannot tell."""

    @abstractmethod
    async def delete(self, address: str) -> bool:
        """Remove it; whether it was there."""

    def addresses(self) -> AsyncIterator[str]:
        """The addresses of all content, each once, in any order; what is written or removed meanwhile may be among
        them or not. Raises Unsupported where the engine cannot tell."""
        raise Unsupported(capability="listing content", engine=self.engine)

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
