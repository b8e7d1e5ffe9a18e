"""The key that seals the cursors of event streams, at `control:streams`: made once, shared by every process."""

import secrets

import msgspec

from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import ABSENT
from vskill_platform.records import decode, persist
from vskill_platform.worker_context import require_env

_KEY_BYTES = 64


class StreamKey(msgspec.Struct, frozen=True):
    """The record at `control:streams`."""

    key: bytes


def make_stream_key() -> bytes:
    return secrets.token_bytes(_KEY_BYTES)


async def read_stream_key() -> bytes:
    """The installation's key; the first process that asks makes it."""
    kv = require_env("kv").kv

    async def read_or_make() -> bytes:
        entry = await kv.get(keys.CONTROL_STREAMS)
        if entry is not None:
            return decode(entry, StreamKey).key
        made = StreamKey(make_stream_key())
        await kv.put(keys.CONTROL_STREAMS, msgspec.json.encode(made), if_version=ABSENT, quiet=True)
        return made.key

    # A conflict means that another process was first: the second try reads its key.
    return await persist(read_or_make)
