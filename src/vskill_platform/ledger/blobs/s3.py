"""Blobs as objects in a bucket of S3, or of a server that speaks its protocol: `content/{address}` is in its place,
`aside/{address}` was set aside.

Only requests that every such server has are used: PUT, GET, HEAD, COPY, DELETE and LIST, without conditions. So nothing
can be moved in one step. Each step below leaves one copy or two and never none, wherever a process dies, and whoever
else puts, reads or collects at the same time (docs/adr/0033-content-in-s3.md).
"""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from vskill_core.errors import BlobFull, BlobUnavailable, InvalidSettings
from vskill_platform.ledger.blobs.contract import Blobs, StoredPiece, check_address, is_address
from vskill_platform.ledger.clock import Clock
from vskill_platform.observing.metrics import Metrics

T = TypeVar("T")

_PLACE, _ASIDE = "content", "aside"
#: An object that is written to learn the server's time, and whether it can be written.
_PROBE = "probe"
#: As large as a small skill.
_PROBE_DATA = b"ready?\n" * 9_000

#: One attempt at a request, all attempts, and whatever else the client does for one, such as asking for credentials.
_ATTEMPT = timedelta(seconds=10)
_RETRY_WITHIN = timedelta(seconds=8)
ANSWER_WITHIN_S = 25.0
#: What was seen of two copies counts for this long: later, nothing is deleted on the strength of it.
_SEEN_FOR_S = 600.0
#: The server's time is asked for again after this long; in between, the own clock counts on.
_TIME_FOR_S = 600.0
#: Readiness is asked for more often than this, and each request is paid for; after a failure it is probed at once.
_READY_FOR_S = 30.0
#: A copy in place of this age was there before any deletion that is under way began, and none may delete it.
_SETTLED = timedelta(hours=1), timedelta(days=6)
#: Objects that one listing names at most.
_PAGE = 1_000

#: What servers call a store without room, beside the status 507.
_FULL = ("507 Insufficient", "StorageFull", "QuotaExceeded", "XMinioStorageFull")
#: In the body of a 404: S3 itself says that there is no such object, and not whoever stands before it.
_NO_OBJECT = "<Code>NoSuchKey</Code>"
_HINTS = {
    "/latest/api/token": "no credentials were found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "NoSuchBucket": "there is no such bucket: create it, or correct its name",
    "without LOCATION": "the bucket is in another region: set AWS_REGION",
    "404 Not Found": "this is not what an S3 server answers: check AWS_ENDPOINT_URL and what stands before the server",
}


class Bucket(Protocol):
    """The part of `obstore.store.S3Store` that is used here."""

    async def put_async(self, path: str, file: bytes, *, use_multipart: bool) -> Any: ...

    async def get_async(self, path: str) -> Any: ...

    async def get_range_async(self, path: str, *, start: int, length: int) -> Any: ...

    async def head_async(self, path: str) -> Any: ...

    async def copy_async(self, from_: str, to: str) -> Any: ...

    async def delete_async(self, paths: str) -> Any: ...

    def list(self, prefix: str, *, chunk_size: int) -> AsyncIterable[Sequence[Any]]: ...


class S3Blobs(Blobs):
    """Content in a bucket."""

    engine = "s3"
    is_paid_by_request = True

    def __init__(
        self,
        bucket: Bucket,
        location: str,
        clock: Clock,
        metrics: Metrics,
        answer_within_s: float = ANSWER_WITHIN_S,
    ) -> None:
        self._bucket = bucket
        self._location = location
        self._clock = clock
        self._requests = metrics.content_requests
        self._answer_within_s = answer_within_s
        #: The server's time, and when it was asked for.
        self._time: tuple[datetime, float] | None = None
        self._ready_at: float | None = None

    @classmethod
    async def open(cls, location: str, clock: Clock, metrics: Metrics) -> "S3Blobs":
        """The bucket and folder that `s3://BUCKET/FOLDER` names, once they can be written. Endpoint, region and
        credentials are what the AWS variables say, which the library reads."""
        blobs = cls(connect(location), location, clock, metrics)
        await blobs.check()
        return blobs

    async def put(self, address: str, data: bytes, *, replace: bool = False) -> None:
        """Always written: that renews its time, and mends it."""
        path = _place(address)
        await self._ask("put", self._bucket.put_async(path, data, use_multipart=False))

    async def get(self, address: str) -> bytes | None:
        data = await self._read(_place(address))
        if data is None:
            await self._copy(_aside(address), _place(address))
            # Also where nothing was aside: somebody else may have put it or brought it back.
            data = await self._read(_place(address))
            if data is None:
                await self._check_not_aside(address)
        return data

    async def has(self, address: str) -> bool:
        if await self._look(_place(address)) is not None:
            return True
        await self._copy(_aside(address), _place(address))
        if await self._look(_place(address)) is not None:
            return True
        await self._check_not_aside(address)
        return False

    async def check(self) -> None:
        now = self._clock.monotonic()
        if self._ready_at is None or now - self._ready_at >= _READY_FOR_S:
            await self._write_probe()
            self._ready_at = now

    async def pieces(self) -> AsyncIterator[StoredPiece]:
        """What is in its place first: what is being set aside meanwhile is then listed twice, and not missed."""
        now = await self._now()
        for folder in (_PLACE, _ASIDE):
            async for found in self._list(folder):
                address = found["path"].rpartition("/")[2]
                if is_address(address):
                    untouched_ms = _milliseconds(now - found["last_modified"])
                    yield StoredPiece(address, max(untouched_ms, 0), folder == _ASIDE)

    async def set_aside(self, address: str, untouched_ms: int) -> bool:
        """A put between the look and the deletion loses its place and nothing else: its bytes are aside, and the next
        read or round of the collector brings them back."""
        now, began = await self._now(), self._stamp()
        found = await self._look(_place(address))
        if found is None or max(_milliseconds(now - found["last_modified"]), 0) < untouched_ms:
            return False
        await self._copy(_place(address), _aside(address))
        copied = await self._look(_aside(address))
        if copied is None or copied["size"] != found["size"] or self._is_late(began):
            return False
        await self._ask("delete", self._bucket.delete_async(_place(address)))
        return True

    async def delete_aside(self, address: str, untouched_ms: int) -> bool:
        """Nothing is deleted beside a copy that another collector may be about to set aside: it could be the last."""
        now, began = await self._now(), self._stamp()
        placed = await self._look(_place(address))
        aside = await self._look(_aside(address))
        if placed is not None and not _SETTLED[0] <= now - placed["last_modified"] < _SETTLED[1]:
            return False
        if aside is None or max(_milliseconds(now - aside["last_modified"]), 0) < untouched_ms:
            return False
        if self._is_late(began):
            return False
        await self._ask("delete", self._bucket.delete_async(_aside(address)))
        return True

    async def close(self) -> None:
        """The library ends its connections with the process."""

    # Requests.

    async def _read(self, path: str) -> bytes | None:
        async def read() -> bytes:
            answer = await self._bucket.get_async(path)
            return bytes(await answer.bytes_async())

        return await self._ask("get", read())

    async def _look(self, path: str) -> Any:
        """Size and time of an object, or None. The 404 of a HEAD has no body that says whose it is: a GET confirms."""
        found = await self._ask("head", self._bucket.head_async(path))
        if found is not None:
            return found
        if await self._ask("get", self._bucket.get_range_async(path, start=0, length=1)) is None:
            return None
        # Somebody else may have written it in between.
        found = await self._ask("head", self._bucket.head_async(path))
        if found is None:
            raise self._failed("GET finds an object that HEAD does not find")
        return found

    async def _copy(self, source: str, target: str) -> None:
        await self._ask("copy", self._bucket.copy_async(source, target))

    async def _check_not_aside(self, address: str) -> None:
        """What is aside is not missing, even where it could not be brought back."""
        if await self._look(_aside(address)) is not None:
            raise self._failed(f"{address} was set aside and could not be brought back")

    async def _list(self, folder: str) -> AsyncIterator[Any]:
        pages = self._bucket.list(folder, chunk_size=_PAGE)

        async def read() -> Sequence[Any]:
            async for page in pages:
                return page
            return ()

        page: Sequence[Any] | None = None
        while page is None or len(page) == _PAGE:
            page = await self._ask("list", read()) or ()
            for found in page:
                yield found

    async def _now(self) -> datetime:
        known = self._time
        if known is None or self._clock.monotonic() - known[1] >= _TIME_FOR_S:
            known = await self._write_probe()
        return known[0] + timedelta(seconds=self._clock.monotonic() - known[1])

    async def _write_probe(self) -> tuple[datetime, float]:
        await self._ask("put", self._bucket.put_async(_PROBE, _PROBE_DATA, use_multipart=False))
        found = await self._look(_PROBE)
        if found is None:
            raise self._failed("what was written is not there")
        self._time = found["last_modified"].astimezone(UTC), self._clock.monotonic()
        return self._time

    def _stamp(self) -> tuple[float, float]:
        """Two clocks in seconds: one does not go back, the other counts while the machine sleeps."""
        return self._clock.monotonic(), self._clock.now() / 1000

    def _is_late(self, began: tuple[float, float]) -> bool:
        passed = (now - then for now, then in zip(self._stamp(), began, strict=True))
        return not all(0 <= one < _SEEN_FOR_S for one in passed)

    async def _ask(self, kind: str, request: Awaitable[T]) -> T | None:
        """The answer to one request; None where there is no such object, and where a HEAD is answered by any 404."""
        self._requests.labels(kind).inc()
        try:
            async with asyncio.timeout(self._answer_within_s):
                return await request
        except TimeoutError as error:
            raise self._failed(f"no answer to {kind} within {self._answer_within_s:g} s") from error
        except FileNotFoundError as error:
            if kind == "head" or (kind in ("get", "copy") and _NO_OBJECT in str(error)):
                return None
            raise self._failed(_reason(error)) from error
        except (BaseError, OSError, ValueError) as error:
            if any(mark in str(error) for mark in _FULL):
                raise self._failed(f"there is no room. {_reason(error)}", BlobFull) from error
            if isinstance(error, (PermissionDeniedError, UnauthenticatedError)):
                fix = "check the AWS credentials and what they may do in this bucket"
                raise self._failed(f"{kind} was refused: {fix}. {_reason(error)}") from error
            raise self._failed(_reason(error)) from error

    def _failed(self, reason: str, kind: type[BlobUnavailable] = BlobUnavailable) -> BlobUnavailable:
        self._ready_at = None
        message = f"the blob store in {self._location} failed: {reason}"
        return kind(message, reason=reason, path=self._location)


def connect(location: str) -> S3Store:
    """Opens no connection yet."""
    bucket, _, folder = location.removeprefix("s3://").partition("/")
    try:
        return S3Store(
            bucket,
            prefix=folder or None,
            # Some servers do not delete many objects by one request.
            disable_bulk_delete=True,
            # The endpoint's scheme decides; without an endpoint, that is https.
            client_options={"allow_http": True, "connect_timeout": timedelta(seconds=3), "timeout": _ATTEMPT},
            retry_config={"max_retries": 3, "retry_timeout": _RETRY_WITHIN},
        )
    except (BaseError, ValueError) as error:
        fix = "check the variables that begin with AWS_"
        raise InvalidSettings(f"VSKILL_BLOBS cannot be used: {_reason(error)}; {fix}.", fix=fix) from error


def _place(address: str) -> str:
    return f"{_PLACE}/{check_address(address)}"


def _aside(address: str) -> str:
    return f"{_ASIDE}/{check_address(address)}"


def _milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)


def _reason(error: Exception) -> str:
    """What the library says, in one line, and what to do about it where that is known."""
    said = str(error).partition("\n\nDebug source")[0]
    hint = next((hint for mark, hint in _HINTS.items() if mark in said), "")
    line = " ".join(said.split())[:500]
    return f"{hint} ({line})" if hint else line
