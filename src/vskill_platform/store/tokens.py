"""API tokens, at `token:{hash}`: what programs show instead of signing in. The token itself is shown once, when it is
made; the store keeps only its SHA-256. The account's own record lists its tokens, so revoking one or all is final."""

import hashlib
import secrets
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.errors import Conflict, InvalidInput, NotFound, NotPermitted, StoreUnavailable
from vskill_platform.domain.identity import has_control_characters
from vskill_platform.domain.token import SCOPES, SCOPES_OF, Token, with_included
from vskill_platform.kv.contract import iterate_pages
from vskill_platform.kv.entries import ABSENT, Put
from vskill_platform.records import Skips, decode
from vskill_platform.store.accounts import User, change_user, get_user, read_user
from vskill_platform.worker_context import require_env

PREFIX = "vsk_"
DAY_MS = 86_400_000
MOST_DAYS = 366
DEFAULT_DAYS = 90
MOST_TOKENS = 50
MOST_NAME = 80
#: When it was last used is known to the hour: a write per request would cost more than it tells.
USED_EVERY_MS = 3_600_000


class NewToken(msgspec.Struct, frozen=True):
    """A token at the only moment when it is known."""

    secret: str
    token: Token

    def __repr__(self) -> str:
        return f"NewToken({self.token!r})"


async def create_token(
    account: str,
    name: str,
    scopes: Iterable[str],
    *,
    by: str,
    days: int = DEFAULT_DAYS,
    made_with: Token | None = None,
) -> NewToken:
    """A new token, with scopes that the account's role may hold. One that is made with another can do no more, and
    lives no longer, than that."""
    env = require_env("kv")
    wanted = _check_scopes(scopes)
    _check_name(name)
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInput(
            f"A token lives 1 to {MOST_DAYS} days.", field="days", fix=f"give a number up to {MOST_DAYS}"
        )
    now = env.kv.now()
    expires_at = now + days * DAY_MS
    if made_with is not None:
        if not set(wanted) <= with_included(made_with.scopes):
            message = f"A token with the scopes {', '.join(made_with.scopes)} cannot make one with more."
            raise NotPermitted(message)
        expires_at = min(expires_at, made_with.expires_at)
    secret = PREFIX + secrets.token_urlsafe(32)
    token = Token(env.clock.new_id(), account, name.strip(), wanted, now, expires_at)
    token_hash = _hash(secret)

    def listed(user: User) -> User:
        if len(user.tokens) >= MOST_TOKENS:
            raise InvalidInput(
                f"{account} has {MOST_TOKENS} tokens already.", field="name", fix="revoke one first"
            )
        excess = [scope for scope in wanted if scope not in SCOPES_OF[user.role]]
        if excess:
            message = f"{account} is {user.role.value}: its tokens cannot have the scope {excess[0]!r}."
            fix = f"choose from {', '.join(SCOPES_OF[user.role])}"
            raise NotPermitted(message, field="scopes", fix=fix)
        return msgspec.structs.replace(user, tokens=(*user.tokens, token_hash))

    put = Put(keys.token(token_hash), msgspec.json.encode(token), ABSENT)
    details = {"token": token.id, "name": token.name, "scopes": " ".join(wanted)}
    await change_user(
        account,
        listed,
        action="token created",
        by=by,
        reason="asked for it",
        details=details,
        operations=(put,),
    )
    return NewToken(secret, token)


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


async def revoke_token(account: str, token_id: str, *, by: str, reason: str = "asked for it") -> Token:
    """It is worthless from now on; NotFound where the account has none of that id."""
    user = await get_user(account)
    settled = await require_env("kv").kv.get_many(keys.token(token_hash) for token_hash in user.tokens)
    for error in settled.failed.values():
        raise error
    found = {key: decode(entry, Token) for key, entry in settled.found.items()}
    key = next((key for key, token in found.items() if token.id == token_id), None)
    if key is None:
        raise NotFound(f"{account} has no token {token_id[:40]!r}.", token=token_id[:40])
    token_hash = key.removeprefix(keys.TOKEN)

    def without(known: User) -> User:
        left = tuple(one for one in known.tokens if one != token_hash)
        return msgspec.structs.replace(known, tokens=left)

    await change_user(
        account,
        without,
        action="token revoked",
        by=by,
        reason=reason,
        details={"token": token_id, "name": found[key].name},
    )
    return found[key]


async def find_token(secret: str) -> tuple[Token, User] | None:
    """The token and its account, if both are good."""
    if not secret.startswith(PREFIX) or len(secret) > 200:
        return None
    kv = require_env("kv").kv
    token_hash = _hash(secret)
    entry = await kv.get(keys.token(token_hash))
    if entry is None:
        return None
    token = decode(entry, Token)
    user, _ = await read_user(token.account)
    now = kv.now()
    if user is None or user.disabled or token_hash not in user.tokens or not token.is_good(now):
        return None
    if token.last_used_at is None or abs(now - token.last_used_at) >= USED_EVERY_MS:
        await _note_use(keys.token(token_hash), entry.version, token, now)
    return token, user


async def _note_use(key: str, version: int, token: Token, now: int) -> None:
    """Failing to note it is no reason to refuse it."""
    used = msgspec.json.encode(msgspec.structs.replace(token, last_used_at=now))
    with suppress(Conflict, StoreUnavailable):
        await require_env("kv").kv.commit([Put(key, used, version, quiet=True)])


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _check_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    given = set(scopes)
    unknown = sorted(given - set(SCOPES))
    if unknown or not given:
        fix = f"choose from {', '.join(SCOPES)}"
        what = f"There is no scope {unknown[0][:40]!r}" if unknown else "A token needs a scope"
        raise InvalidInput(f"{what}; {fix}.", field="scopes", fix=fix)
    return tuple(scope for scope in SCOPES if scope in given)


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > MOST_NAME or has_control_characters(name):
        fix = f"use 1 to {MOST_NAME} characters, such as where it is used"
        raise InvalidInput(f"The token's name is not valid; {fix}.", field="name", fix=fix)
