"""Whatever a server of S3 answers, and where there is none: the content store is unavailable, with a sentence that says
why. Nothing is ever called missing because a server failed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.buckets import Answer, MemoryBucket
from tests.support.manual_clock import ManualClock
from vskill_core.errors import BlobFull, BlobUnavailable, InvalidSettings
from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.ledger.blobs.s3 import S3Blobs, connect
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.observing.metrics import Metrics
from vskill_platform.settings import Settings, check_settings, load_settings

pytestmark = pytest.mark.anyio

ADDRESS = "ab" * 32
LOCATION = "s3://content/registry"


def page(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def xml(status: str, code: str) -> bytes:
    return page(status, f"<Error><Code>{code}</Code><Message>told by a test</Message></Error>".encode())


DATED = b"HTTP/1.1 200 OK\r\nLast-Modified: Wed, 18 Nov 2026 19:52:13 GMT\r\n"
#: What a server answers to everything, and what is said of it.
ANSWERS = {
    "no rights": (xml("403 Forbidden", "AccessDenied"), "check the AWS credentials and what they may do"),
    "wrong key": (xml("403 Forbidden", "InvalidAccessKeyId"), "check the AWS credentials"),
    "no bucket": (xml("404 Not Found", "NoSuchBucket"), "there is no such bucket: create it"),
    "a page of its own": (
        page("404 Not Found", b"<h1>default backend</h1>"),
        "not what an S3 server answers: check",
    ),
    "an empty 404": (page("404 Not Found", b""), "not what an S3 server answers: check"),
    "fails": (xml("500 Internal Server Error", "InternalError"), "500 Internal Server Error"),
    "busy": (xml("503 Service Unavailable", "SlowDown"), "SlowDown"),
    "full": (xml("507 Insufficient Storage", "StorageFull"), "there is no room"),
    "over a quota": (xml("403 Forbidden", "QuotaExceeded"), "there is no room"),
    "elsewhere": (b"HTTP/1.1 301 Moved\r\nContent-Length: 0\r\n\r\n", "another region: set AWS_REGION"),
    "cut": (DATED + b"Content-Length: 30\r\n\r\nabc", "failed"),
    "no HTTP": (b"220 mail.example.org ready\r\n", "failed"),
}


NO_OBJECT = xml("404 Not Found", "NoSuchKey")


@asynccontextmanager
async def answering(answer: bytes | None) -> AsyncIterator[int]:
    """A server that says this to every request, or nothing. As HTTP has it, its answer to HEAD has no body."""
    open_ones: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.add(writer)
        try:
            asked = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return
        if answer is not None:
            head, _, body = answer.partition(b"\r\n\r\n")
            writer.write(head + b"\r\n\r\n" + (b"" if asked.startswith(b"HEAD ") else body))
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in open_ones:
            writer.transport.abort()


@pytest.fixture
def at(monkeypatch):
    """The engine before a server at this port."""

    def connected(port: int, answer_within_s: float = 20.0) -> Blobs:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "never-shown")
        return S3Blobs(connect(LOCATION), LOCATION, SystemClock(), Metrics(), answer_within_s)

    return connected


@pytest.mark.parametrize("kind", ANSWERS)
async def test_whatever_a_server_answers_it_is_unavailable_and_says_why(at, kind):
    answer, said = ANSWERS[kind]
    async with answering(answer) as port:
        blobs = at(port)
        with pytest.raises(BlobUnavailable) as caught:
            await blobs.get(ADDRESS)
        assert said in str(caught.value) and LOCATION in str(caught.value)
        assert "never-shown" not in repr(caught.value.details) + str(caught.value)
        assert "Debug" not in str(caught.value) and "\n" not in str(caught.value)
        assert LOCATION not in caught.value.public_message
        assert isinstance(caught.value, BlobFull) == ("full" in kind or "quota" in kind)


@pytest.mark.parametrize(
    "kind", ["no rights", "no bucket", "a page of its own", "an empty 404", "fails", "busy"]
)
async def test_no_call_mistakes_a_failure_for_an_answer(at, kind):
    async with answering(ANSWERS[kind][0]) as port:
        blobs = at(port)
        calls = (blobs.get(ADDRESS), blobs.put(ADDRESS, b"one"), blobs.check())
        for call in (*calls, blobs.set_aside(ADDRESS, 0), blobs.delete_aside(ADDRESS, 0)):
            with pytest.raises(BlobUnavailable):
                await call
        with pytest.raises(BlobUnavailable):
            assert [piece async for piece in blobs.pieces()]
        with pytest.raises(BlobUnavailable):
            await blobs.has(ADDRESS)


async def test_only_what_is_read_can_be_missing(at):
    """And only where S3 itself says so. No answer to a write, a deletion or a listing is taken for one."""
    async with answering(NO_OBJECT) as port:
        blobs = at(port)
        assert await blobs.get(ADDRESS) is None
        assert await blobs.has(ADDRESS) is False
        for call in (blobs.put(ADDRESS, b"one"), blobs.check()):
            with pytest.raises(BlobUnavailable):
                await call
        with pytest.raises(BlobUnavailable):
            assert [piece async for piece in blobs.pieces()]


async def test_a_deletion_that_is_not_found_has_not_been_made():
    class Lost(MemoryBucket):
        async def delete_async(self, paths: str) -> None:
            raise FileNotFoundError(f"{paths}: 404 Not Found")

    blobs = S3Blobs(Lost(ManualClock()), LOCATION, ManualClock(), Metrics())
    await blobs.put(ADDRESS, b"one")
    with pytest.raises(BlobUnavailable):
        await blobs.set_aside(ADDRESS, 0)


async def test_a_head_is_not_believed_alone():
    """Its 404 has no body, so it may be anybody's."""

    class Shy(MemoryBucket):
        async def head_async(self, path: str) -> Any:
            if path.startswith("content/"):
                raise FileNotFoundError(f"{path}: 404 Not Found")
            return await super().head_async(path)

    blobs = S3Blobs(Shy(ManualClock()), LOCATION, ManualClock(), Metrics())
    await blobs.put(ADDRESS, b"one")
    for call in (blobs.has(ADDRESS), blobs.set_aside(ADDRESS, 0), blobs.delete_aside(ADDRESS, 0)):
        with pytest.raises(BlobUnavailable, match="HEAD does not find"):
            await call


async def test_what_is_aside_and_cannot_be_brought_back_is_not_missing():
    class Uncopied(MemoryBucket):
        async def copy_async(self, from_: str, to: str) -> None:
            """Answers 200, and copies nothing."""

    clock = ManualClock()
    bucket = Uncopied(clock)
    blobs = S3Blobs(bucket, LOCATION, clock, Metrics())
    await bucket.put_async(f"aside/{ADDRESS}", b"one", use_multipart=False)
    for call in (blobs.get(ADDRESS), blobs.has(ADDRESS)):
        with pytest.raises(BlobUnavailable, match="could not be brought back"):
            await call
    assert await blobs.get("cd" * 32) is None
    assert await blobs.has("cd" * 32) is False


async def test_a_server_that_does_not_answer_is_given_up(at):
    async with answering(None) as port:
        with pytest.raises(BlobUnavailable, match=r"no answer to get within 0\.2 s"):
            await at(port, 0.2).get(ADDRESS)


async def test_no_server_is_unavailable(at):
    async with answering(None) as port:
        pass
    with pytest.raises(BlobUnavailable, match="failed"):
        await at(port).get(ADDRESS)


async def test_a_copy_that_failed_after_200_deletes_nothing():
    """S3 may begin to answer before it knows how a copy ends; a server may also cut what it copies."""

    class Cutting(MemoryBucket):
        async def copy_async(self, from_: str, to: str) -> None:
            self._write(to, self._at(from_)[0][:1])

    bucket, clock = Cutting(ManualClock()), ManualClock()
    blobs = S3Blobs(bucket, LOCATION, clock, Metrics())
    await blobs.put(ADDRESS, b"whole")
    assert await blobs.set_aside(ADDRESS, 0) is False
    assert await blobs.get(ADDRESS) == b"whole"


async def test_readiness_is_probed_again_at_once_after_a_failure():
    class Away(MemoryBucket):
        async def get_async(self, path: str) -> Answer:
            raise OSError("away")

    clock, metrics = ManualClock(), Metrics()
    blobs = S3Blobs(Away(clock), LOCATION, clock, metrics)
    await blobs.check()
    with pytest.raises(BlobUnavailable):
        await blobs.get(ADDRESS)
    await blobs.check()
    assert b'vskill_content_requests_total{kind="put"} 2.0' in metrics.render()


async def test_readiness_writes_at_most_twice_a_minute():
    """Each request is paid for."""
    clock, metrics = ManualClock(), Metrics()
    blobs = S3Blobs(MemoryBucket(clock), LOCATION, clock, metrics)
    for _ in range(60):
        await blobs.check()
        clock.advance(2_000)
    assert b'vskill_content_requests_total{kind="put"} 4.0' in metrics.render()


@pytest.mark.parametrize(
    "location",
    [
        "s3:",
        "s3://",
        "s3://key:secret@content",
        "s3://Content",
        "s3://content/",
        "s3://content/a b",
        "s3://content/../x?y",
    ],
)
def test_what_is_no_place_in_a_bucket_is_refused_with_the_fix(location):
    with pytest.raises(InvalidSettings, match="VSKILL_BLOBS is no place in a bucket: write s3://BUCKET"):
        check_settings(Settings(blobs=location))


def test_a_place_in_a_bucket_is_a_setting():
    for location in ("s3://content", "s3://content/registry", "s3://my.bucket-1/a/b_c"):
        assert load_settings({"VSKILL_BLOBS": location}).blobs == location
