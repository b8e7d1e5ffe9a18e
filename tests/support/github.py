"""A small GitHub on loopback: its sign-in page, its token address and its check of tokens, with their rules."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import msgspec

#: Where an own GitHub server has its API.
API = "/api/v3"
CLIENT_ID = "test-app"
CLIENT_SECRET = "test-app-secret"


class FakeGitHub:
    """What it was told, and what it answers."""

    def __init__(self) -> None:
        self.user = {"id": 583231, "login": "Octo-Cat"}
        #: Codes that were given out, with their challenge.
        self.codes: dict[str, str] = {}
        self.tokens: set[str] = set()
        #: What the person was last asked for.
        self.scope = ""
        #: The state of each membership, by the path that asks for it.
        self.memberships: dict[str, str] = {}
        self.broken = False
        self.raw: bytes | None = None
        self.asked: list[str] = []
        self.address = ""

    def authorize(self, url: str) -> tuple[str, str, str]:
        """The person says yes: where the browser is sent back to, the code and the state."""
        query = {
            name: values[0] for name, values in parse_qs(urlsplit(url).query, keep_blank_values=True).items()
        }
        assert query["client_id"] == CLIENT_ID
        assert query["code_challenge_method"] == "S256"
        assert query["scope"] in {"", "read:org"}
        self.scope = query["scope"]
        code = f"code-{len(self.codes)}"
        self.codes[code] = query["code_challenge"]
        return query["redirect_uri"], code, query["state"]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *headers = head.split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in headers)}
        body = await reader.readexactly(int(fields.get("content-length", "0")))
        self.asked.append(line)
        status, answer = self._decide(line, fields, body)
        writer.write(
            f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(answer)}\r\n"
            "connection: close\r\n\r\n".encode()
            + answer
        )
        await writer.drain()
        writer.close()

    def _decide(self, line: str, fields: dict[str, str], body: bytes) -> tuple[int, bytes]:
        if self.broken:
            return 502, b"bad gateway"
        if self.raw is not None:
            return 200, self.raw
        if line.startswith("POST /login/oauth/access_token "):
            return 200, msgspec.json.encode(self._exchange(parse_qs(body.decode())))
        if line.startswith(f"POST {API}/applications/{CLIENT_ID}/token "):
            basic = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
            known = msgspec.json.decode(body).get("access_token") in self.tokens
            if fields.get("authorization") == f"Basic {basic}" and known:
                return 200, msgspec.json.encode({"user": self.user})
        if "/memberships/" in line:
            return self._membership(line.split(" ")[1].removeprefix(API), fields.get("authorization", ""))
        return 404, b"{}"

    def _membership(self, path: str, authorization: str) -> tuple[int, bytes]:
        if authorization.removeprefix("Bearer ") not in self.tokens:
            return 401, b"{}"
        if self.scope != "read:org":
            return 403, b"{}"
        state = self.memberships.get(path)
        return (404, b"{}") if state is None else (200, msgspec.json.encode({"state": state}))

    def _exchange(self, form: dict[str, list[str]]) -> dict[str, str]:
        challenge = self.codes.pop(form["code"][0], None)
        proved = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"][0].encode()).digest())
        if challenge != proved.decode().rstrip("=") or form["client_secret"] != [CLIENT_SECRET]:
            return {"error": "bad_verification_code"}
        token = f"gho_{len(self.tokens)}"
        self.tokens.add(token)
        return {"access_token": token, "token_type": "bearer"}


@asynccontextmanager
async def fake_github() -> AsyncIterator[FakeGitHub]:
    github = FakeGitHub()
    server = await asyncio.start_server(github.answer, "127.0.0.1", 0)
    github.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield github
