"""API tokens, at `token:{hash}`: programs send one instead of signing in; `actions.people.tokens` makes and revokes
them. The store keeps only the SHA-256 of a token. The account's record lists its tokens, so one write revokes them."""

import hashlib
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from vskill_core.errors import Conflict, NotFound, StoreUnavailable
from vskill_platform.domain import keys
from vskill_platform.domain.people.token import Token
from vskill_platform.ledger.kv.entries import Entry, Put
from vskill_platform.records import decode, decode_readable, iter_entries, read_entries
from vskill_platform.store.people.accounts import User, get_user, read_user
from vskill_platform.store.people.sign_in_rule import is_let_in
from vskill_platform.worker_context import require_env

PREFIX = "vsk_"
#: The last use is recorded to the hour only: a write per request would cost too much.
USED_EVERY_MS = 3_600_000


async def list_tokens(account: str) -> tuple[Token, ...]:
    """The tokens of one account, the latest first, expired ones too."""
    stored = await _read_tokens(account)
    return _latest_first(stored.values())


async def list_all_tokens() -> tuple[Token, ...]:
    """All accounts' tokens, the latest first."""
    return _latest_first([entry async for entry in iter_entries(keys.token.prefix)])


def _latest_first(entries: Iterable[Entry]) -> tuple[Token, ...]:
    tokens = decode_readable(entries, Token, "list_tokens")
    return tuple(sorted(tokens, key=lambda token: token.id, reverse=True))


async def _read_tokens(account: str) -> dict[str, Entry]:
    user = await get_user(account)
    return await read_entries(keys.token(token_hash) for token_hash in user.tokens)


async def find_token_hash(account: str, token_id: str) -> tuple[str, Token]:
    """The hash of an account's token, and the token; NotFound if the account has none of that id."""
    for key, entry in (await _read_tokens(account)).items():
        token = decode(entry, Token)
        if token.id == token_id:
            return key.removeprefix(keys.token.prefix), token
    raise NotFound(f"{account} has no token {token_id[:40]!r}.", token=token_id[:40])


async def find_token(secret: str) -> tuple[Token, User] | None:
    """The token and its account, if both are valid."""
    if not secret.startswith(PREFIX) or len(secret) > 200:
        return None
    kv = require_env("kv").kv
    token_hash = hash_secret(secret)
    entry = await kv.get(keys.token(token_hash))
    if entry is None:
        return None
    token = decode(entry, Token)
    user, _ = await read_user(token.account)
    now = kv.now()
    if user is None or token_hash not in user.tokens or not token.is_good(now) or not await is_let_in(user):
        return None
    if token.last_used_at is None or abs(now - token.last_used_at) >= USED_EVERY_MS:
        await _note_use(keys.token(token_hash), entry.version, token, now)
    return token, user


async def _note_use(key: str, version: int, token: Token, now: int) -> None:
    """Record the use; errors are ignored."""
    used = msgspec.json.encode(msgspec.structs.replace(token, last_used_at=now))
    with suppress(Conflict, StoreUnavailable):
        await require_env("kv").kv.commit([Put(key, used, version, quiet=True)])


def hash_secret(secret: str) -> str:
    """What the store keeps of a token's secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
