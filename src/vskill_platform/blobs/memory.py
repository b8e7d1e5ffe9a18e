"""Blobs in memory: the engine of tests, demos and the simulator."""

from collections.abc import AsyncIterator

from vskill_platform.blobs.contract import Blobs, check_address


class MemoryBlobs(Blobs):
    """A dict by address."""

    engine = "memory"

    def __init__(self) -> None:
        self._content: dict[str, bytes] = {}

    async def put(self, address: str, data: bytes) -> None:
        self._content[check_address(address)] = data

    async def get(self, address: str) -> bytes | None:
        return self._content.get(check_address(address))

    async def has(self, address: str) -> bool:
        return check_address(address) in self._content

    async def delete(self, address: str) -> bool:
        return self._content.pop(check_address(address), None) is not None

    async def addresses(self) -> AsyncIterator[str]:
        for address in tuple(self._content):
            yield address

    async def close(self) -> None:
        """Nothing to let go of."""
