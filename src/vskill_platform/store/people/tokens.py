"""API tokens, at `token:{hash}`: what programs show instead of signing in; `actions.people.tokens` makes and revokes
them. The
store keeps only the SHA-256 of a token. The account's own record lists its tokens, so revoking one or all is final."""

import hashlib
from contextlib import suppress

import msgspec

from vskill_core.errors import Conflict, NotFound, StoreUnavailable
from vskill_platform.domain import keys
from vskill_platform.domain.people.token import Token
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.records import Skips, decode
from vskill_platform.store.people.accounts import User, get_user, read_user
from vskill_platform.store.people.sign_in_rule import is_let_in
from vskill_platform.worker_context import require_env

PREFIX = "vsk_"
#: When it was last used is known to the hour: a write per request would cost more than it tells.
USED_EVERY_MS = 3_600_000


async def list_tokens(account: str) -> tuple[Token, ...]:
    """The tokens of one account, the latest first, expired ones too."""
    user = await get_user(account)
    env = require_env("kv")
    settled = await env.kv.get_many(keys.token(token_hash) for token_hash in user.tokens)
    for error in settled.failed.values():
        raise error
    skips = Skips("list_tokens")
    found = [skips.decode(entry, Token) for entry in settled.found.values()]
    skips.report(env)
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.id, reverse=True))


async def list_all_tokens() -> tuple[Token, ...]:
    """Everybody's, the latest first."""
    env = require_env("kv")
    skips = Skips("list_tokens")
    found: list[Token] = []
    async for page in iterate_pages(env.kv, keys.TOKEN):
        for error in page.failed.values():
            raise error
        found += [one for entry in page.items if (one := skips.decode(entry, Token)) is not None]
    skips.report(env)
    return tuple(sorted(found, key=lambda one: one.id, reverse=True))


async def find_token_hash(account: str, token_id: str) -> tuple[str, Token]:
    """What the store knows a token of an account by, and the token; NotFound where the account has none of that id."""
    user = await get_user(account)
    settled = await require_env("kv").kv.get_many(keys.token(token_hash) for token_hash in user.tokens)
    for error in settled.failed.values():
        raise error
    for key, entry in settled.found.items():
        token = decode(entry, Token)
        if token.id == token_id:
            return key.removeprefix(keys.TOKEN), token
    raise NotFound(f"{account} has no token {token_id[:40]!r}.", token=token_id[:40])


async def find_token(secret: str) -> tuple[Token, User] | None:
    """The token and its account, if both are good."""
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
    """Failing to note it is no reason to refuse it."""
    used = msgspec.json.encode(msgspec.structs.replace(token, last_used_at=now))
    with suppress(Conflict, StoreUnavailable):
        await require_env("kv").kv.commit([Put(key, used, version, quiet=True)])


def hash_secret(secret: str) -> str:
    """What the store keeps of a token's secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
