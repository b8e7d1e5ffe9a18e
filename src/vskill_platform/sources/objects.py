"""Objects of a fetched repository, read by their ids from one `git cat-file` that runs for as long as that takes."""

import asyncio
from collections.abc import Sequence

from vskill_platform.machine.child_processes import RunningProcess


class ObjectReader:
    """Objects of one repository: their sizes first, then the bytes of those that are wanted."""

    def __init__(self, process: RunningProcess) -> None:
        self._out = process.reader
        self._in = process.writer

    async def sizes(self, ids: Sequence[str], wanted_kind: bytes = b"blob") -> dict[str, int | None]:
        """The size of each blob; None for an object that was not fetched, or that is of another kind."""
        found: dict[str, int | None] = {}

        async def read() -> None:
            for wanted in ids:
                kind, size = _header(await self._out.readuntil(b"\n"))
                found[wanted] = size if kind == wanted_kind else None

        await asyncio.gather(self._ask("info", ids), read())
        return found

    async def contents(self, ids: Sequence[str]) -> dict[str, bytes]:
        """The bytes of blobs whose sizes were looked at before."""
        found: dict[str, bytes] = {}

        async def read() -> None:
            for wanted in ids:
                _, size = _header(await self._out.readuntil(b"\n"))
                found[wanted] = await self._out.readexactly(size)
                await self._out.readexactly(1)

        await asyncio.gather(self._ask("contents", ids), read())
        return found

    async def _ask(self, command: str, ids: Sequence[str]) -> None:
        lines = "".join(f"{command} {one}\n" for one in ids)
        self._in.write(f"{lines}flush\n".encode("ascii"))
        await self._in.drain()


def _header(line: bytes) -> tuple[bytes, int]:
    """`<id> <kind> <size>`, or `<id> missing`."""
    fields = line.rstrip(b"\n").split(b" ")
    return (fields[1], int(fields[2])) if len(fields) == 3 else (b"missing", 0)
