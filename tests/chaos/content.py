"""A stretch of network before an S3 server at which it can fail as such servers do: refuse, break, be full or slow, and end
an answer in the middle of its body."""

import asyncio
import contextlib

from tests.chaos.proxy import Proxy


def _told(status: str, code: str) -> bytes:
    body = f"<Error><Code>{code}</Code><Message>told by a test</Message></Error>".encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


#: What a server may answer to everything.
ANSWERS = {
    "refuses": _told("403 Forbidden", "AccessDenied"),
    "fails": _told("500 Internal Server Error", "InternalError"),
    "full": _told("507 Insufficient Storage", "StorageFull"),
}
_END = b"\r\n\r\n"


class ContentWay(Proxy):
    """Forwards requests, while it is whole."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        #: Said to every request, in the server's stead.
        self.answer: bytes | None = None
        #: Answers end in the middle of their bodies.
        self.cuts = False
        #: How long every piece of an answer takes.
        self.slow_s = 0.0
        #: Answers that were given in its stead, were slow or were cut.
        self.spoiled = 0

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.answer is None:
            await super()._accept(reader, writer)
            return
        self._writers.add(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            # The body too: an answer before it has been read could be lost.
            head = await reader.readuntil(_END)
            lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            await reader.readexactly(int(lengths[0].partition(b":")[2]) if lengths else 0)
            before, _, body = self.answer.partition(_END)
            self.spoiled += 1
            writer.write(before + _END + (b"" if head.startswith(b"HEAD ") else body))
            await writer.drain()
        self._writers.discard(writer)
        writer.close()

    async def _pass_on(self, data: bytes, sink: asyncio.StreamWriter, *, is_answer: bool) -> bool:
        """Whether the connection goes on."""
        if is_answer and self.slow_s:
            self.spoiled += 1
            await asyncio.sleep(self.slow_s)
        head, end, body = data.partition(_END)
        if not (is_answer and self.cuts and end and body):
            return await super()._pass_on(data, sink, is_answer=is_answer)
        self.spoiled += 1
        sink.write(head + end + body[: len(body) // 2])
        await sink.drain()
        return False
