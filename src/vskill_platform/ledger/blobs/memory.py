"""Blobs in memory: the engine of tests, demos and the simulator."""

from collections.abc import AsyncIterator

from vskill_platform.ledger.blobs.contract import Blobs, StoredPiece, check_address
from vskill_platform.ledger.clock import Clock, SystemClock


class MemoryBlobs(Blobs):
    """Two dicts by address, each with the time of the last touch: what is in its place, and what was set aside."""

    engine = "memory"

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self.content: dict[str, tuple[bytes, int]] = {}
        self._aside: dict[str, tuple[bytes, int]] = {}

    async def put(self, address: str, data: bytes, *, replace: bool = False) -> None:
        del replace  # writing costs no more than looking
        self.content[check_address(address)] = data, self._clock.now()

    async def get(self, address: str) -> bytes | None:
        if check_address(address) not in self.content and address in self._aside:
            self.content[address] = self._aside.pop(address)[0], self._clock.now()
        data, _ = self.content.get(address, (None, 0))
        return data

    async def has(self, address: str) -> bool:
        return check_address(address) in self.content or address in self._aside

    async def pieces(self) -> AsyncIterator[StoredPiece]:
        now = self._clock.now()
        for where in (self.content, self._aside):
            for address, (_, touched) in tuple(where.items()):
                yield StoredPiece(address, now - touched, where is self._aside)

    async def set_aside(self, address: str, untouched_ms: int) -> bool:
        data, touched = self.content.get(check_address(address), (None, 0))
        now = self._clock.now()
        if data is None or now - touched < untouched_ms:
            return False
        del self.content[address]
        self._aside[address] = data, now
        return True

    async def delete_aside(self, address: str, untouched_ms: int) -> bool:
        data, touched = self._aside.get(check_address(address), (None, 0))
        if data is None or self._clock.now() - touched < untouched_ms:
            return False
        del self._aside[address]
        return True

    async def close(self) -> None:
        """Nothing to close."""
