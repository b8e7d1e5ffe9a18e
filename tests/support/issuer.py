"""A small issuer of OpenID Connect on loopback, which can be made to lie: it signs what a test tells it to."""

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, OctKey

from vskill_platform.setting_issuers import Issuer

CLIENT_ID, CLIENT_SECRET = "the-registry", "a secret/of+two:parts and more than 32 bytes"
Claims = dict[str, Any]


class OwnIssuer:
    """What it was told, and what it answers."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self.address = ""
        self.key = ECKey.generate_key("P-256", auto_kid=True)
        #: What is said about whoever signs in.
        self.person: Claims = {"sub": "00u1", "preferred_username": "Mia.Lee@acme.example"}
        #: What the next token says instead.
        self.lies: Claims = {}
        #: Only at the address for more about a person.
        self.more: Claims = {}
        self.signs: Callable[[Claims], str] = self.sign
        self.codes: dict[str, dict[str, str]] = {}
        self.broken = False
        self.document: Claims = {}
        #: What a CI job that asks for an ID token gets, by the audience.
        self.id_token_for: Callable[[str], str] | None = None
        self.asked: list[str] = []

    def sign(self, claims: Claims) -> str:
        return jwt.encode({"alg": "ES256", "kid": self.key.kid}, claims, self.key, algorithms=["ES256"])

    def sign_with(self, key: ECKey) -> Callable[[Claims], str]:
        """With another key under the name of the one that is published."""
        return lambda claims: jwt.encode({"alg": "ES256", "kid": self.key.kid}, claims, key)

    def sign_by_secret(self, claims: Claims) -> str:
        return jwt.encode(
            {"alg": "HS256", "kid": self.key.kid}, claims, OctKey.import_key(CLIENT_SECRET), ["HS256"]
        )

    def sign_not(self, claims: Claims) -> str:
        parts = ({"alg": "none", "kid": self.key.kid}, claims)
        encoded = (base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in parts)
        return ".".join((*encoded, ""))

    def authorize(self, url: str) -> dict[str, str]:
        """The person says yes: what the browser is sent back with."""
        assert url.startswith(f"{self.address}/authorize?"), url
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert (query["client_id"], query["response_type"]) == (CLIENT_ID, "code")
        assert query["code_challenge_method"] == "S256" and "openid" in query["scope"].split()
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return {"code": code, "state": query["state"]}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *headers = head.split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in headers)}
        body = await reader.readexactly(int(fields.get("content-length", "0")))
        path = line.split(" ")[1]
        self.asked.append(path)
        found = None if self.broken else self._decide(path, fields, parse_qs(body.decode()))
        status = 502 if self.broken else 400 if found is None else 200
        answer = json.dumps(found).encode()
        writer.write(
            f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(answer)}\r\n"
            "connection: close\r\n\r\n".encode()
            + answer
        )
        await writer.drain()
        writer.close()

    def _decide(self, path: str, fields: dict[str, str], form: dict[str, list[str]]) -> Claims | None:
        if path == "/.well-known/openid-configuration":
            return {
                "issuer": self.address,
                "authorization_endpoint": f"{self.address}/authorize",
                "token_endpoint": f"{self.address}/token",
                "jwks_uri": f"{self.address}/keys",
                "userinfo_endpoint": f"{self.address}/me",
                "end_session_endpoint": f"{self.address}/end",
                **self.document,
            }
        if path.startswith("/id-token?") and self.id_token_for is not None:
            audience = parse_qs(urlsplit(path).query)["audience"][0]
            return {"value": self.id_token_for(audience)} if fields["authorization"] == "Bearer job" else None
        if path == "/keys":
            shared = {"kty": "oct", "k": "AAAA", "kid": self.key.kid}
            return {"keys": [{"kty": "unknown"}, shared, self.key.as_dict(private=False)]}
        if path == "/me":
            return {"sub": self.person["sub"], **self.more} if self.more else None
        return self._exchange(fields, form) if path == "/token" else None

    def _exchange(self, fields: dict[str, str], form: dict[str, list[str]]) -> Claims | None:
        asked = self.codes.pop(form["code"][0], None)
        proved = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"][0].encode()).digest())
        basic = base64.b64encode(b"the-registry:a+secret%2Fof%2Btwo%3Aparts+and+more+than+32+bytes").decode()
        if asked is None or fields.get("authorization") != f"Basic {basic}":
            return None
        if asked["code_challenge"] != proved.decode().rstrip("="):
            return None
        now = self._now() // 1000
        claims = {
            "iss": self.address,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            **self.person,
            **self.lies,
        }
        token = self.signs({name: value for name, value in claims.items() if value is not None})
        return {"access_token": "at", "token_type": "Bearer", "id_token": token}


@asynccontextmanager
async def own_issuer(now: Callable[[], int]) -> AsyncIterator[OwnIssuer]:
    issuer = OwnIssuer(now)
    server = await asyncio.start_server(issuer.answer, "127.0.0.1", 0)
    issuer.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield issuer


def configured(issuer: OwnIssuer, name: str, **more: Any) -> Issuer:
    return Issuer(name=name, issuer=issuer.address, client_id=CLIENT_ID, client_secret=CLIENT_SECRET, **more)
