"""Damage on purpose, as disks and people do it: content is lost, cut, or flipped at equal length."""

import asyncio
from collections.abc import Awaitable, Callable

from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.ledger.blobs.files import FilesBlobs
from vskill_platform.ledger.blobs.memory import MemoryBlobs
from vskill_platform.ledger.blobs.s3 import S3Blobs

Break = Callable[[Blobs, str], Awaitable[None]]


async def lose(blobs: Blobs, digest: str) -> None:
    await _rewrite(blobs, digest, None)


async def cut(blobs: Blobs, digest: str) -> None:
    whole = await _read(blobs, digest)
    await _rewrite(blobs, digest, whole[: len(whole) // 2])


async def flip(blobs: Blobs, digest: str) -> None:
    """One byte, at equal length."""
    whole = await _read(blobs, digest)
    await _rewrite(blobs, digest, whole[:-1] + bytes((whole[-1] ^ 1,)))


#: Each way, by the kind of damage that it makes.
BREAKS: dict[str, Break] = {"missing": lose, "cut": cut, "changed": flip}


async def _read(blobs: Blobs, digest: str) -> bytes:
    whole = await blobs.get(digest)
    assert whole is not None
    return whole


async def _rewrite(blobs: Blobs, digest: str, data: bytes | None) -> None:
    """Behind the store's back."""
    if isinstance(blobs, FilesBlobs):
        path = blobs._path(digest)
        await asyncio.to_thread(path.unlink if data is None else lambda: path.write_bytes(data or b""))
        return
    if isinstance(blobs, S3Blobs):
        key, bucket = f"content/{digest}", blobs._bucket
        await (bucket.delete_async(key) if data is None else bucket.put_async(key, data, use_multipart=False))
        return
    assert isinstance(blobs, MemoryBlobs)
    if data is None:
        del blobs.content[digest]
    else:
        blobs.content[digest] = data, blobs.content[digest][1]
