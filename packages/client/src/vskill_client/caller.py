"""How commands call a registry at an address: over its JSON API, with a token. What a registry refuses is raised as the
error that the registry raised itself."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import quote

# Loaded here, because httpx2 would load it at its first use, on the event loop.
import httpcore2  # noqa: F401
import httpx2
import msgspec

from vskill_client.wire.base import Ans, RegistryCall, Req
from vskill_core.errors import PlatformError, RegistryUnavailable
from vskill_core.foreign_json import read_json
from vskill_core.release import __version__

TIMEOUT_S = 60.0
#: What one answer may hold at most, in bytes: more than the largest archive that a registry hands out.
MOST_ANSWER = 32 * 1024 * 1024
#: What stands in the path of a skill's address besides its parts' separators.
_SAFE = "~"


class RemoteCaller:
    """Acts on a registry over its JSON API, with a token."""

    def __init__(self, client: httpx2.AsyncClient, registry: str) -> None:
        self._client = client
        self.registry = self.pages = registry

    async def call(self, call: RegistryCall[Req, Ans], request: Req) -> Ans:
        path, rest = fill_path(call, request)
        sent: dict[str, Any] = {"json": rest}
        if call.method == "GET":
            sent = {"params": _query(rest)}
        elif call.body_field:
            sent = {"params": _query(rest), "content": getattr(request, call.body_field)}
            sent["headers"] = {"content-type": call.body_media}
        try:
            async with self._client.stream(call.method, self.registry + path, **sent) as answer:
                body = await self._read(answer)
        except httpx2.HTTPError as error:
            message = f"{self.registry} cannot be reached: {str(error) or type(error).__name__}"
            raise RegistryUnavailable(message, registry=self.registry) from error
        whole = httpx2.Response(answer.status_code, content=body, request=answer.request)
        if whole.status_code >= httpx2.codes.BAD_REQUEST:
            raise error_of(whole)
        return cast("Ans", None if call.answer is None else _decode(whole, call.answer))

    async def _read(self, answer: httpx2.Response) -> bytes:
        """The body, within limits. A redirect is not followed: the token is for this address alone."""
        if answer.has_redirect_location:
            place = answer.headers["location"][:200]
            raise self._unreadable(f"sends on to {place!r}; give that address if you trust it")
        # Bytes that are unpacked on arrival could be any number.
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise self._unreadable("answered in an unexpected encoding")
        parts, size = [], 0
        async for part in answer.aiter_raw():
            size += len(part)
            if size > MOST_ANSWER:
                raise self._unreadable(f"answered with more than {MOST_ANSWER:,} bytes")
            parts.append(part)
        return b"".join(parts)

    def _unreadable(self, problem: str) -> RegistryUnavailable:
        return RegistryUnavailable(f"{self.registry} {problem}.", registry=self.registry)


def _decode(answer: httpx2.Response, kind: Any) -> Any:
    if kind is bytes:
        return answer.content
    try:
        return read_json(answer.content, kind)
    except msgspec.DecodeError as error:
        message = f"{answer.url} did not answer as a registry of this release does: {error}"
        raise RegistryUnavailable(message, registry=str(answer.url)) from error


@asynccontextmanager
async def remote_caller(
    registry: str, token: str | None, program: str = "vskill-client"
) -> AsyncIterator[RemoteCaller]:
    headers = {
        "user-agent": f"{program}/{__version__}",
        "accept": "application/json, */*;q=0.5",
        "accept-encoding": "identity",
    }
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    trust: ssl.SSLContext | bool = ssl.create_default_context() if registry.startswith("https:") else False
    async with httpx2.AsyncClient(verify=trust, timeout=TIMEOUT_S, headers=headers) as client:
        yield RemoteCaller(client, registry.rstrip("/"))


def fill_path(call: RegistryCall[Any, Any], request: msgspec.Struct) -> tuple[str, dict[str, Any]]:
    """The call's path with the request's parts in it, and the other members as they go over the wire."""
    wire = dict(zip(request.__struct_fields__, request.__struct_encode_fields__, strict=True))
    rest: dict[str, Any] = msgspec.to_builtins(request, builtin_types=(bytes,))
    path = call.path
    if call.body_field:
        rest.pop(wire[call.body_field])
    for field in call.path_fields:
        value = str(rest.pop(wire[field]))
        # A full name keeps its three parts; everything else is one part of the address.
        safe = "/" + _SAFE if field == "skill" and value.count("/") == 2 else _SAFE
        path = path.replace(f"{{{field}}}", quote(value, safe=safe))
    return path, rest


def _query(rest: Mapping[str, Any]) -> dict[str, str]:
    """Absent is how a query says null; false and true are 0 and 1."""
    return {
        name: str(int(value)) if isinstance(value, bool) else str(value)
        for name, value in rest.items()
        if value is not None and value != ""
    }


def error_of(answer: httpx2.Response) -> PlatformError:
    """The error that a problem document tells of, as the type that this release raises for it."""
    try:
        told = read_json(answer.content, dict[str, Any])
    except msgspec.DecodeError:
        told = {}
    kind = _by_code().get(str(told.get("code")))
    message = str(told.get("detail") or f"{answer.url} answered {answer.status_code}")
    if kind is None:
        return RegistryUnavailable(message, registry=str(answer.url))
    details = {name: value for name, value in told.items() if name not in _STANDARD}
    return kind(message, **details)


_STANDARD = frozenset({"type", "title", "status", "detail", "error", "code", "message"})


def _by_code(kind: type[PlatformError] = PlatformError) -> dict[str, type[PlatformError]]:
    """Every error below this one that has a code of its own."""
    codes = {kind.code: kind} if "code" in kind.__dict__ else {}
    for special in kind.__subclasses__():
        codes |= _by_code(special)
    return codes
