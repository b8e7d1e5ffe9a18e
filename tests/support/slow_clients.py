"""Clients that take their time, from several addresses of this machine: real sockets, each of which keeps what it got."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from urllib.parse import urlsplit

from tests.support.patience import PATIENCE_S

#: What half a request looks like: a head without its end, and a head whose body never comes.
HALF_HEAD = b"GET /healthz HTTP/1.1\r\nhost: registry\r\nx-slow: "
HALF_BODY = (
    b"POST /api/v1/submissions HTTP/1.1\r\nhost: registry\r\n"
    b"content-type: application/json\r\ncontent-length: 500\r\n\r\n{"
)
NOTHING = b""
ADDRESSES = tuple(f"127.0.0.{number}" for number in range(2, 10))


class SlowClient:
    """One connection; `got` grows by what the server says, `closed` is set when it hangs up."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.got = b""
        self.closed = asyncio.Event()
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while part := await reader.read(65_536):
                self.got += part
                self._news.set()
        self.closed.set()
        self._news.set()

    async def hears(self, words: bytes, times: int = 1) -> None:
        """Wait until the server has said so."""
        async with asyncio.timeout(PATIENCE_S):
            while self.got.count(words) < times and not self.closed.is_set():
                self._news.clear()
                await self._news.wait()
        assert self.got.count(words) >= times, self.got

    @property
    def status(self) -> int | None:
        return int(self.got.split(b" ", 2)[1]) if self.got else None

    async def end(self) -> None:
        self._reading.cancel()
        await asyncio.wait({self._reading})
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


async def connect(address: str, sent: bytes = NOTHING, source: str = "127.0.0.1") -> SlowClient:
    place = urlsplit(address)
    reader, writer = await asyncio.open_connection(place.hostname, place.port, local_addr=(source, 0))
    client = SlowClient(reader, writer)
    if sent:
        writer.write(sent)
    return client


@contextlib.asynccontextmanager
async def slow_clients(
    address: str, count: int, sent: Sequence[bytes], sources: Iterable[str] = ADDRESSES
) -> AsyncIterator[list[SlowClient]]:
    """So many connections, which send each of these in turn and nothing more."""
    places = tuple(sources)
    clients: list[SlowClient] = []
    try:
        for number in range(count):
            one = await connect(address, sent[number % len(sent)], places[number % len(places)])
            clients.append(one)
        yield clients
    finally:
        await asyncio.gather(*(client.end() for client in clients))
