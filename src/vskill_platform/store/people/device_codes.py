"""Signing in on a machine without a browser (RFC 8628), at `device:{code}`. The machine shows a short code, a person
types it on a page of this registry and decides, and the machine asks for its token.

The store keeps only the hash of the machine's secret. The token is made when the machine asks, so none ever waits here.
"""

import secrets
from contextlib import suppress

import msgspec

from vskill_core.errors import Conflict, NotFound
from vskill_platform.domain import keys
from vskill_platform.ledger.kv.entries import ABSENT, Delete, Put
from vskill_platform.records import decode, persist
from vskill_platform.store.people.audit import record_audit
from vskill_platform.store.people.credentials import hash_secret
from vskill_platform.worker_context import require_env

LIFE_MS = 10 * 60_000
#: How often a machine may ask.
INTERVAL_S = 5
#: Consonants: no words, and nothing that looks like something else.
LETTERS, LENGTH = "BCDFGHJKLMNPQRSTVWXZ", 8


class DeviceCode(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `device:{code}`, gone ten minutes after it was made."""

    secret_hash: str
    #: What the machine calls itself, and where it asked from.
    label: str
    address: str
    created_at: int
    #: Who answered; empty until somebody did.
    account: str = ""
    answered_at: int = 0
    #: What the token may do; nothing: the answer was no.
    scopes: tuple[str, ...] = ()


async def make_code(label: str, address: str) -> tuple[str, str]:
    """A code for a person to type, and the secret with which the machine asks for its token."""
    kv = require_env("kv").kv
    code, secret = "".join(secrets.choice(LETTERS) for _ in range(LENGTH)), secrets.token_urlsafe(32)
    record = DeviceCode(hash_secret(secret), label, address, kv.now())
    put = Put(keys.device(code), msgspec.json.encode(record), ABSENT, ttl_ms=LIFE_MS)

    async def write() -> None:
        # A conflict means that a try with an unknown outcome was applied: no two codes are alike.
        with suppress(Conflict):
            await kv.commit([put])

    await persist(write)
    return code, f"{code}.{secret}"


async def read_code(typed: str) -> DeviceCode:
    """What asks under the code that somebody typed, and waits for an answer; NotFound where nothing does."""
    found = await _read(typed)
    if found is None or found[0].account:
        raise _no_such_code()
    return found[0]


async def answer_code(typed: str, account: str, scopes: tuple[str, ...]) -> DeviceCode:
    """Let the machine in as this account, or refuse it where there are no scopes; once only."""
    kv = require_env("kv").kv
    verb, why = "machine let in" if scopes else "machine refused", "somebody typed its code"
    does = {"scopes": " ".join(scopes)}

    async def write() -> DeviceCode:
        found = await _read(typed)
        if found is None or found[0].account:
            raise _no_such_code()
        record, version = found
        answered = msgspec.structs.replace(record, account=account, answered_at=kv.now(), scopes=scopes)
        left = max(record.created_at + LIFE_MS - kv.now(), 1)
        put = Put(keys.device(plain(typed)), msgspec.json.encode(answered), version, ttl_ms=left)
        await kv.commit(
            [put, *record_audit(verb, record.label, by=f"user:{account}", reason=why, details=does)]
        )
        return answered

    return await persist(write)


async def take_code(device_code: str) -> DeviceCode | None:
    """What was answered to the machine with this secret, once: afterwards the code is gone. NotFound where there is
    none, or no longer; None where nobody has answered yet."""
    code, _, secret = device_code.partition(".")
    found = await _read(code)
    if found is None or not secrets.compare_digest(found[0].secret_hash, hash_secret(secret)):
        raise _no_such_code()
    record, version = found
    if not record.account:
        return None
    try:
        await require_env("kv").kv.commit([Delete(keys.device(plain(code)), version)])
    except Conflict:
        raise _no_such_code() from None
    return record


def plain(typed: str) -> str:
    """The code as the store knows it; people type it in small letters, with spaces and hyphens."""
    return "".join(letter for letter in typed.upper() if letter in LETTERS)[: LENGTH + 1]


async def _read(typed: str) -> tuple[DeviceCode, int] | None:
    if len(plain(typed)) != LENGTH:
        return None
    entry = await require_env("kv").kv.get(keys.device(plain(typed)))
    return None if entry is None else (decode(entry, DeviceCode), entry.version)


def _no_such_code() -> NotFound:
    return NotFound(
        "There is no such code, or it has expired.", field="code", fix="start again on the machine"
    )
