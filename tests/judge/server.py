"""A server on this machine that speaks as much of the chat completions protocol as a judge needs, and misbehaves in
every way that a test asks for."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Answer = Callable[["Asked"], Awaitable["Reply | None"]]


class Reply:
    """What is sent back; `headers` replace the usual ones."""

    def __init__(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.body = body
        self.status = status
        self.headers = {"content-type": "application/json", **headers}

    def encoded(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} Whatever", f"content-length: {len(self.body)}", "connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in self.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + self.body


class Asked:
    """One request as it arrived."""

    def __init__(self, head: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        self.line, *lines = head.split("\r\n")
        self.headers = {
            line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in lines if line
        }
        self.body: dict[str, Any] = json.loads(body)
        self.writer = writer

    @property
    def system(self) -> str:
        return str(self.body["messages"][0]["content"])

    @property
    def user(self) -> str:
        return str(self.body["messages"][1]["content"])

    @property
    def marker(self) -> str:
        return self.user.partition("BEGIN ")[2].split()[0]

    @property
    def findings(self) -> list[str]:
        schema = self.body["response_format"].get("json_schema", {}).get("schema")
        return (
            schema["properties"]["findings"]["items"]["properties"]["finding"].get("enum", [])
            if schema
            else []
        )


class JudgeServer:
    """Keeps what it was asked; answers with `answer`, which a test may change at any time."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answer: Answer = passes
        self.url = ""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(
                next(line for line in head.lower().split("\r\n") if "content-length" in line).split(":")[1]
            )
            asked = Asked(head.strip(), await reader.readexactly(length), writer)
            self.asked.append(asked)
            reply = await self.answer(asked)
            if reply is not None:
                writer.write(reply.encoded())
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def judge_server() -> AsyncIterator[JudgeServer]:
    server = JudgeServer()
    listening = await asyncio.start_server(server._serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listening.close()


def completion(content: object, finish_reason: str = "stop", *, usage: object = None) -> Reply:
    """What a model says, as a server wraps it; anything but a string is written as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    message = {"role": "assistant", "content": text}
    body = {
        "id": "x",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": usage or {"total_tokens": 1},
    }
    return Reply(json.dumps(body).encode())


def says(usage: object = None, **changes: object) -> Answer:
    """A server whose model answers properly, but for these members; `usage` is what it says of tokens."""

    async def answer(asked: Asked) -> Reply:
        words = [{"finding": name, "confirmed": False, "why": "Only an example."} for name in asked.findings]
        usual = {"score": 90, "verdict": "PASS", "reason": "Does what it says.", "findings": words}
        return completion({**usual, **changes}, usage=usage)

    return answer


def replies(reply: Reply | None) -> Answer:
    async def answer(asked: Asked) -> Reply | None:
        return reply

    return answer


async def passes(asked: Asked) -> Reply | None:
    return await says()(asked)
