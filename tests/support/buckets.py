"""A bucket in memory with the requests of `S3Blobs`, each of which is one step: what no server shows, such as who comes
between two requests, a test decides here."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from vskill_platform.ledger.clock import Clock


class Answer:
    """The body of an object."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def bytes_async(self) -> bytes:
        return self._data


async def at_once(_request: str) -> None:
    """Nothing comes between."""


class MemoryBucket:
    """Objects by path, with the time of their last write by the server's clock."""

    def __init__(self, clock: Clock, before_each: Callable[[str], Awaitable[None]] = at_once) -> None:
        self._clock = clock
        self._before_each = before_each
        self.objects: dict[str, tuple[bytes, datetime]] = {}

    async def put_async(self, path: str, file: bytes, *, use_multipart: bool) -> None:
        await self._before_each("put")
        self._write(path, file)

    async def get_async(self, path: str) -> Answer:
        await self._before_each("get")
        return Answer(self._at(path)[0])

    async def get_range_async(self, path: str, *, start: int, length: int) -> bytes:
        await self._before_each("get")
        return self._at(path)[0][start : start + length]

    async def head_async(self, path: str) -> dict[str, Any]:
        await self._before_each("head")
        return self._meta(path)

    async def copy_async(self, from_: str, to: str) -> None:
        await self._before_each("copy")
        self._write(to, self._at(from_)[0])

    async def delete_async(self, paths: str) -> None:
        await self._before_each("delete")
        self.objects.pop(paths, None)

    async def list(self, prefix: str, *, chunk_size: int) -> AsyncIterator[list[dict[str, Any]]]:
        paths = sorted(path for path in self.objects if path.startswith(f"{prefix}/"))
        for start in range(0, len(paths), chunk_size):
            await self._before_each("list")
            yield [self._meta(path) for path in paths[start : start + chunk_size] if path in self.objects]

    def _write(self, path: str, data: bytes) -> None:
        self.objects[path] = data, datetime.fromtimestamp(self._clock.now() / 1000, UTC)

    def _at(self, path: str) -> tuple[bytes, datetime]:
        if path not in self.objects:
            raise FileNotFoundError(f"{path}: <Code>NoSuchKey</Code>")
        return self.objects[path]

    def _meta(self, path: str) -> dict[str, Any]:
        data, written = self._at(path)
        return {"path": path, "size": len(data), "last_modified": written}
