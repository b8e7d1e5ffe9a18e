"""A stretch of network between two of a run (clients and web, workers and their store) that a test can cut, stall or
half-close."""

import asyncio
import contextlib


class Proxy:
    """Forwards connections from a port of its own to another one, while it is whole."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self.refusing = False
        #: The end of a connection stays on the way: one side has gone, and the other does not hear of it.
        self.lingering = False
        #: Once these bytes have passed, it stalls.
        self.stalls_after = b""
        self.port = 0

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._open.set()
        self.lingering = False
        if self._server is not None:
            self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # What can go wrong.

    def cut(self) -> None:
        """Every connection breaks at once."""
        for writer in list(self._writers):
            writer.transport.abort()

    def stall(self) -> None:
        """Bytes stay on the way until `flow`; nobody is told."""
        self._open.clear()

    def flow(self) -> None:
        self._open.set()

    def half_close(self) -> None:
        """One direction ends; the other side may still speak."""
        for writer in list(self._writers):
            with contextlib.suppress(OSError, RuntimeError):
                writer.write_eof()

    # Forwarding.

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        for source, sink in ((reader, back), (there, writer)):
            self._writers.add(sink)
            task = asyncio.ensure_future(self._forward(source, sink, is_answer=source is there))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: the half was closed meanwhile
            while data := await source.read(65_536):
                await self._open.wait()
                if not await self._pass_on(data, sink, is_answer=is_answer):
                    break
                if self.stalls_after and self.stalls_after in data:
                    self.stall()
        while self.lingering:  # noqa: ASYNC110 - a test's switch
            await asyncio.sleep(0.01)
        self._writers.discard(sink)
        sink.close()

    async def _pass_on(self, data: bytes, sink: asyncio.StreamWriter, *, is_answer: bool) -> bool:
        """Whether the connection goes on."""
        sink.write(data)
        await sink.drain()
        return True
