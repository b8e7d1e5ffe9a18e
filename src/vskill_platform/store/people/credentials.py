"""Sessions of browsers, at `session:{hash}`, and API tokens of programs, at `token:{hash}`. Browser and program hold a
random token, the store only its SHA-256.

A session ends when it was idle for too long, at its maximum age, or when the account's record says so. The account's
record lists its API tokens, so one write revokes them.
"""

import hashlib
import secrets
from collections.abc import Collection, Iterable
from contextlib import suppress

import msgspec

from vskill_core.errors import Conflict, NotFound, NotSignedIn, RateLimited, StoreUnavailable
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Access
from vskill_platform.domain.people.token import Token
from vskill_platform.ledger.kv.entries import Assert, Delete, Entry, Put
from vskill_platform.records import decode, decode_readable, iter_entries, persist, read_entries
from vskill_platform.store.people.accounts import Role, User, get_user, read_user, renew_hash
from vskill_platform.store.people.attempts import count_attempt, forget_attempts
from vskill_platform.store.people.audit import record_audit
from vskill_platform.store.people.namespaces import read_access
from vskill_platform.store.people.passwords import fits, is_outdated
from vskill_platform.store.people.refusals import note_refusal
from vskill_platform.store.people.sign_in_rule import Standing, standing_in, standing_of
from vskill_platform.worker_context import require_env

#: Maximum age, however much it is used.
LONGEST_MS = 30 * 86_400_000
#: Idle timeout. Roles that decide about others' work are signed out sooner.
IDLE_MS = {Role.AUTHOR: 14 * 86_400_000, Role.REVIEWER: 12 * 3_600_000, Role.ADMIN: 12 * 3_600_000}
_TOKEN_BYTES = 32


class Session(msgspec.Struct, frozen=True):
    """The record at `session:{hash}`."""

    account: str
    created_at: int
    expires_at: int
    #: `password`, `setup`, or the provider's name
    how: str

    def is_good(self, user: User, now: int) -> bool:
        return self.expires_at > now and self.created_at > user.ended_at(self.how)


async def sign_in(name: str, password: str, address: str) -> User:
    """The account of this name and password. Every failure gives the same error at the same cost."""
    name = name.strip().lower()[:200]
    user, version = await read_user(name)
    account = "" if user is None else user.name
    try:
        await count_attempt(name, address)
    except RateLimited:
        await note_refusal("sign-in", "password: too many attempts", account=account)
        raise
    usable = user is not None and not user.disabled
    right = await fits(user.password if user is not None and usable else None, password)
    if user is None or user.password is None or not right:
        require_env("log").log.warning("sign-in refused", address=address)
        problem = "password: wrong" if usable else "password: the account is disabled"
        await note_refusal("sign-in", problem if account else "password: no such account", account=account)
        raise NotSignedIn("The name or the password is wrong.")
    await forget_attempts(name, address)
    if is_outdated(user.password):
        await renew_hash(user, version, password)
    return user


async def open_session(user: User, how: str) -> str:
    """Open a session; the token for the browser. A token that the browser sent is never reused (session fixation)."""
    env = require_env("kv")
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    now = env.kv.now()
    # A group may give a higher role than its own.
    idle = IDLE_MS[(await standing_of(user) or user).role]
    # After the last sign-out, even within the same millisecond.
    began = max(now, user.ended_at(how) + 1)
    session = Session(user.name, began, now + idle, how)
    audit = record_audit("signed in", user.name, by=f"user:{user.name}", reason=f"by {how}")
    put = Put(session_key(token), msgspec.json.encode(session), ttl_ms=idle)

    async def write() -> None:
        known, version = await read_user(user.name)
        if known is None or known.disabled or known.ended_at(how) != user.ended_at(how):
            raise NotSignedIn("This account was signed out while you signed in; sign in again.")
        try:
            await env.kv.commit([Assert(keys.user(user.name), version), put, *audit])
        except Conflict:
            # A try with an unknown outcome may have been applied.
            if await env.kv.get(put.key) is None:
                raise

    await persist(write)
    return token


async def find_session(token: str) -> tuple[Session, Standing] | None:
    """The session of a token and its account, if both are still valid; this use extends it."""
    env = require_env("kv")
    entry = await env.kv.get(session_key(token))
    if entry is None:
        return None
    session = decode(entry, Session)
    user, _ = await read_user(session.account)
    now = env.kv.now()
    if user is None or not session.is_good(user, now):
        return None
    standing = await standing_of(user)
    if standing is None:
        return None
    await _slide(session_key(token), entry.version, session, standing.role, now)
    return session, standing


async def _slide(key: str, version: int, session: Session, role: Role, now: int) -> None:
    """Extend the session once half of its time is over, so that most requests write nothing, and shorten it where the
    role has risen; errors are ignored."""
    idle = IDLE_MS[role]
    expires_at = min(now + idle, session.created_at + LONGEST_MS)
    if idle // 2 < session.expires_at - now <= idle or expires_at == session.expires_at:
        return
    kept = msgspec.json.encode(msgspec.structs.replace(session, expires_at=expires_at))
    put = Put(key, kept, version, quiet=True, ttl_ms=max(expires_at - now, 1))
    with suppress(Conflict, StoreUnavailable):
        await require_env("kv").kv.commit([put])


async def close_session(token: str) -> str:
    """Sign out, and say how the session was opened; one that is over already is no error."""
    kv = require_env("kv").kv
    entry = await kv.get(session_key(token))
    if entry is None:
        return ""
    session = decode(entry, Session)
    account = session.account
    audit = record_audit("signed out", account, by=f"user:{account}", reason="asked for it")

    async def write() -> None:
        found = await kv.get(session_key(token))
        if found is not None:
            await kv.commit([Delete(session_key(token), found.version), *audit])

    await persist(write)
    return session.how


def session_key(token: str) -> str:
    return keys.session(hashlib.sha256(token.encode()).hexdigest())


PREFIX = "vsk_"
#: The last use is recorded to the hour only: a write per request would cost too much.
USED_EVERY_MS = 3_600_000


async def list_tokens(account: str) -> tuple[Token, ...]:
    """The tokens of one account, the latest first, expired ones too."""
    stored = await _read_tokens(account)
    return _latest_first(stored.values())


async def list_all_tokens() -> tuple[Token, ...]:
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


async def find_token(secret: str) -> tuple[Token, Standing] | None:
    kv, entry = require_env("kv").kv, None
    token_hash = hash_secret(secret)
    if secret.startswith(PREFIX) and len(secret) <= 200:
        entry = await kv.get(keys.token(token_hash))
    if entry is None:
        await note_refusal("token", "there is no such token")
        return None
    token = decode(entry, Token)
    user, _ = await read_user(token.account)
    now, standing, problem = kv.now(), None, "it was revoked"
    if not token.is_good(now):
        problem = "it has expired"
    elif user is not None and token_hash in user.tokens:
        standing = await standing_of(user, by_token=True)
        problem = "its account is disabled, or must sign in again"
    if standing is None:
        await note_refusal("token", problem, account=token.account, token=token.acting)
        return None
    if token.last_used_at is None or abs(now - token.last_used_at) >= USED_EVERY_MS:
        await _note_use(keys.token(token_hash), entry.version, token, now)
    return token, standing


async def _note_use(key: str, version: int, token: Token, now: int) -> None:
    """Record the use; errors are ignored."""
    used = msgspec.json.encode(msgspec.structs.replace(token, last_used_at=now))
    with suppress(Conflict, StoreUnavailable):
        await require_env("kv").kv.commit([Put(key, used, version, quiet=True)])


def hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


class Credential(msgspec.Struct, frozen=True):
    """A session or a token, and the account that showed it."""

    #: Of its record.
    key: str
    account: str


async def read_standings(credentials: Collection[Credential]) -> dict[Credential, Standing | None]:
    """What each credential's account counts for now; None if the account, session or token is no longer valid. This
    does not count as use. A failed read raises."""
    if not credentials:
        return {}
    stored = await read_entries({key for one in credentials for key in (one.key, keys.user(one.account))})
    now, (access, _) = require_env("kv").kv.now(), await read_access()
    return {
        one: _standing(one, stored.get(one.key), stored.get(keys.user(one.account)), now, access)
        for one in credentials
    }


def _standing(
    credential: Credential, shown: Entry | None, account: Entry | None, now: int, access: Access
) -> Standing | None:
    if shown is None or account is None:
        return None
    user = decode(account, User)
    by_token = credential.key.startswith(keys.token.prefix)
    if by_token:
        listed = credential.key.removeprefix(keys.token.prefix) in user.tokens
        is_good = listed and decode(shown, Token).is_good(now)
    else:
        is_good = decode(shown, Session).is_good(user, now)
    settings = require_env("kv").settings
    return standing_in(settings, access, user, now, by_token=by_token) if is_good else None
