"""Accounts, at `user:{name}`: who may sign in, in which role, and everything that is done to an account.

Each change is one commit with its audit entry. Sessions and tokens are records of their own (`sessions`,
`tokens`). Disabling an account, giving it a new password and signing out everywhere end them all, for good, in its
own record, so there is nothing to hunt for. Another role ends the tokens that go beyond it. The last admin can neither
be disabled nor demoted.
"""

import enum
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.errors import Conflict, InvalidInput, NotFound, NotPermitted
from vskill_platform.domain.token import SCOPES_OF, Token
from vskill_platform.kv.contract import iterate_pages
from vskill_platform.kv.entries import ABSENT, Assert, Delete, Operation, Put
from vskill_platform.records import Skips, decode, persist
from vskill_platform.store.audit import record_audit, was_audited
from vskill_platform.store.passwords import check_password, hash_password
from vskill_platform.submission_store import require_reason
from vskill_platform.worker_context import require_env

MOST_NAME = 50
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
#: Names that would look like somebody they are not.
_RESERVED = frozenset({"anonymous", "system", "local", "worker", "command-line"})


class Role(enum.StrEnum):
    """What an account may do, the least first."""

    AUTHOR = "author"
    REVIEWER = "reviewer"
    ADMIN = "admin"


class GitHubLink(msgspec.Struct, frozen=True):
    """The GitHub account that signs in as this one."""

    #: GitHub's number of it, which never changes.
    id: str
    #: The login that it had when it last signed in.
    login: str
    verified_at: int


class User(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `user:{name}`."""

    name: str
    role: Role
    created_at: int
    updated_at: int
    #: The argon2id hash; None: it signs in some other way, or not at all.
    password: str | None = None
    disabled: bool = False
    #: Sessions from before this time are worthless.
    signed_out_at: int = 0
    #: The hashes of its API tokens, oldest first; a token that is not here is worth nothing.
    tokens: tuple[str, ...] = ()
    github: GitHubLink | None = None

    def __repr__(self) -> str:
        """Without the hash: records find their way into messages."""
        return f"User(name={self.name!r}, role={self.role.value!r}, disabled={self.disabled})"


class UserPage(msgspec.Struct, frozen=True):
    """Some accounts by name; `after` asks for the next page. `skipped` ones are in the log by key."""

    items: tuple[User, ...]
    after: str | None = None
    skipped: int = 0


# Reading.


def check_name(name: str) -> str:
    """A name of lower-case letters, digits and single hyphens: it stands in histories, keys and addresses."""
    edges = name[:1] + name[-1:]
    if (
        not 1 <= len(name) <= MOST_NAME
        or not _NAME_CHARACTERS.issuperset(name)
        or "-" in edges
        or "--" in name
        or name in _RESERVED
    ):
        fix = f"use 1 to {MOST_NAME} of a-z, 0-9 and single hyphens"
        raise InvalidInput(f"{name[:80]!r} is no name for an account; {fix}.", field="name", fix=fix)
    return name


async def read_user(name: str) -> tuple[User | None, int]:
    """The record and its version; what cannot be a name has none."""
    try:
        key = keys.user(name)
    except InvalidInput:
        return None, ABSENT
    entry = await require_env("kv").kv.get(key)
    return (None, ABSENT) if entry is None else (decode(entry, User), entry.version)


async def get_user(name: str) -> User:
    """The record, or NotFound."""
    user, _ = await read_user(name)
    if user is None:
        raise NotFound(f"There is no account {name[:80]!r}.", account=name[:80])
    return user


async def list_users(*, after: str | None = None, limit: int = 100) -> UserPage:
    """Accounts by name. A read that fails raises."""
    env = require_env("kv")
    page = await env.kv.scan(keys.USER, after=None if after is None else keys.user(after), limit=limit)
    for error in page.failed.values():
        raise error
    skips = Skips("list_users")
    found = [skips.decode(entry, User) for entry in page.items]
    skips.report(env)
    last = page.items[-1].key.removeprefix(keys.USER) if page.after is not None else None
    return UserPage(tuple(user for user in found if user is not None), last, skips.count)


async def find_admins() -> list[tuple[User, int]]:
    """Every admin, disabled or not, with its version."""
    found: list[tuple[User, int]] = []
    async for page in iterate_pages(require_env("kv").kv, keys.USER):
        for error in page.failed.values():
            raise error
        users = ((decode(entry, User), entry.version) for entry in page.items)
        found += [(user, version) for user, version in users if user.role is Role.ADMIN]
    return found


# Changing.


async def create_user(
    name: str,
    role: Role,
    *,
    by: str,
    reason: str,
    password: str | None = None,
    github: GitHubLink | None = None,
    operations: tuple[Operation, ...] = (),
    setup_version: int | None = None,
) -> User:
    """A new account; InvalidInput where the name is taken. An admin ends the one-time link, which is asserted to be
    at `setup_version` where that is given."""
    check_name(name)
    require_reason(reason)
    env = require_env("kv")
    encoded = None if password is None else await hash_password(check_password(password, name))
    now = env.kv.now()
    user = User(name, role, now, now, password=encoded, github=github)
    entry_id = env.clock.new_id()
    audit = record_audit(
        "account created", name, by=by, reason=reason, details={"role": role.value}, entry_id=entry_id
    )
    ended = (Delete(keys.CONTROL_SETUP, setup_version),) if role is Role.ADMIN else ()

    async def write() -> User:
        if await was_audited(entry_id):
            return user
        if (await read_user(name))[0] is not None:
            raise InvalidInput(
                f"There is an account {name!r} already.", field="name", fix="choose another name"
            )
        put = Put(keys.user(name), msgspec.json.encode(user), ABSENT)
        await env.kv.commit([put, audit, *operations, *ended])
        return user

    return await persist(write)


async def set_role(name: str, role: Role, *, by: str, reason: str) -> User:
    """Give it another role; what it may do changes with its next request. A token that goes beyond either role ends."""
    return await change_user(
        name,
        lambda user: msgspec.structs.replace(user, role=role),
        action="account role",
        by=by,
        reason=reason,
        details={"role": role.value},
        ends=_tokens_beyond,
    )


async def _tokens_beyond(before: User, after: User) -> frozenset[str]:
    """The tokens with a scope that one of both roles may not hold. They end with a demotion, and do not come to power
    with a promotion. One that cannot be read is among them, so that it holds up neither."""
    env = require_env("kv")
    allowed = set(SCOPES_OF[before.role]) & set(SCOPES_OF[after.role])
    settled = await env.kv.get_many(keys.token(token_hash) for token_hash in before.tokens)
    for error in settled.failed.values():
        raise error
    skips = Skips("set_role")
    found = {key: skips.decode(entry, Token) for key, entry in settled.found.items()}
    skips.report(env)
    kept = {key for key, token in found.items() if token is not None and allowed.issuperset(token.scopes)}
    return frozenset(token_hash for token_hash in before.tokens if keys.token(token_hash) not in kept)


async def set_disabled(name: str, *, disabled: bool, by: str, reason: str) -> User:
    """Lock it out, or let it in again; its sessions and tokens end and do not come back."""
    now = require_env("kv").kv.now()

    def change(user: User) -> User:
        # Records that were disabled before tokens ended with that still list them.
        ended = _sign_out(user, now) if disabled or user.disabled else user
        return msgspec.structs.replace(ended, disabled=disabled)

    action = "account disabled" if disabled else "account enabled"
    return await change_user(name, change, action=action, by=by, reason=reason)


async def set_password(name: str, password: str, *, by: str, reason: str) -> User:
    """A new password; every session and token from before ends."""
    encoded = await hash_password(check_password(password, name))
    now = require_env("kv").kv.now()
    return await change_user(
        name,
        lambda user: msgspec.structs.replace(_sign_out(user, now), password=encoded),
        action="account password",
        by=by,
        reason=reason,
    )


async def renew_hash(user: User, version: int, password: str) -> None:
    """The same password under today's cost; nobody is signed out, and nothing that people see changes. An account that
    was changed meanwhile is left as it is: the next sign-in renews it."""
    renewed = msgspec.structs.replace(user, password=await hash_password(password))
    put = Put(keys.user(user.name), msgspec.json.encode(renewed), version, quiet=True)
    with suppress(Conflict):
        await require_env("kv").kv.commit([put])


async def sign_out_everywhere(name: str, *, by: str) -> User:
    """End every session and revoke every token of an account."""
    now = require_env("kv").kv.now()
    return await change_user(
        name, lambda user: _sign_out(user, now), action="signed out everywhere", by=by, reason="asked for it"
    )


def _sign_out(user: User, now: int) -> User:
    return msgspec.structs.replace(user, signed_out_at=now, tokens=())


async def change_user(
    name: str,
    change: Callable[[User], User],
    *,
    action: str,
    by: str,
    reason: str,
    details: Mapping[str, str] | None = None,
    operations: tuple[Operation, ...] = (),
    ends: Callable[[User, User], Awaitable[frozenset[str]]] | None = None,
) -> User:
    """One commit: the record by compare-and-swap, its audit entry, and what goes with them. A token that the change
    takes from the record's list, or that `ends` names, is deleted with it."""
    require_reason(reason)
    env = require_env("kv")
    entry_id = env.clock.new_id()

    async def write() -> User:
        known, version = await read_user(name)
        if known is None:
            raise NotFound(f"There is no account {name[:80]!r}.", account=name[:80])
        if await was_audited(entry_id):
            return known
        changed = msgspec.structs.replace(change(known), updated_at=env.kv.now())
        if ends is not None:
            gone = await ends(known, changed)
            left = tuple(one for one in changed.tokens if one not in gone)
            changed = msgspec.structs.replace(changed, tokens=left)
        kept = await _other_admin(known) if _loses_admin(known, changed) else ()
        audit = record_audit(action, name, by=by, reason=reason, details=details, entry_id=entry_id)
        put = Put(keys.user(name), msgspec.json.encode(changed), version)
        ended = [Delete(keys.token(one)) for one in known.tokens if one not in changed.tokens]
        await env.kv.commit([put, audit, *kept, *ended, *operations])
        return changed

    return await persist(write)


def _loses_admin(before: User, after: User) -> bool:
    was, stays = (user.role is Role.ADMIN and not user.disabled for user in (before, after))
    return was and not stays


async def _other_admin(leaving: User) -> tuple[Assert, ...]:
    """That another admin is there is part of the commit: two who disable each other do not both succeed."""
    for other, version in await find_admins():
        if other.name != leaving.name and not other.disabled:
            return (Assert(keys.user(other.name), version),)
    raise NotPermitted(f"{leaving.name} is the only admin; make another one first.", account=leaving.name)
