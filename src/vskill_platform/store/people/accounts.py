"""Accounts, at `user:{name}`: who may sign in, and in which role. `actions.people.accounts` decides what is done to
them.

Each change is one commit with its audit entry. Sessions and tokens are records of their own (`sessions`, `tokens`); the
account's record says since when sessions are good and which tokens are, so ending them is one write.
"""

import enum
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import msgspec

from vskill_core.errors import Conflict, InvalidInput, NotFound, NotPermitted
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import upload_namespace
from vskill_platform.domain.people.scim import ScimUser
from vskill_platform.ledger.kv.entries import ABSENT, Assert, Delete, Operation, Put
from vskill_platform.records import decode, decode_readable, entries_of, iter_entries, read_record
from vskill_platform.setting_issuers import MOST_IDENTITIES
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.store.people.passwords import check_password, hash_password
from vskill_platform.submission_store import require_reason
from vskill_platform.worker_context import require_env

MOST_NAME = 50
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
#: Names that could be mistaken for the system.
_RESERVED = frozenset({"anonymous", "system", "local", "worker", "command-line"})


class Role(enum.StrEnum):
    """What an account may do, the least first."""

    AUTHOR = "author"
    REVIEWER = "reviewer"
    ADMIN = "admin"


class NameTaken(InvalidInput):
    """An account, a team or an upload namespace has this name."""


class DirectoryEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the issuer's directory says about an identity by SCIM."""

    user: ScimUser
    #: Since when the directory had its token as it said this; once it has lost that one, this counts no more.
    since: int
    #: Its groups; None: the directory has put it into none yet, so those of the last sign-in count.
    groups: tuple[str, ...] | None = None
    #: SCIM made the account.
    made: bool = False
    #: SCIM locked the account, and may unlock it: no admin did.
    locked: bool = False
    #: The directory has deleted it.
    deleted: bool = False


class LinkedIdentity(msgspec.Struct, frozen=True, omit_defaults=True):
    """Somebody at an issuer who signs in as this account."""

    #: The issuer's name for them, which never changes: GitHub's number, or OpenID Connect's subject.
    id: str
    #: The name that they had when they last signed in.
    login: str
    verified_at: int
    #: A host that gives out GitHub's numbers, or the address of an issuer of OpenID Connect.
    issuer: str = "github.com"
    #: Who among those whom the operator named let it in at its last sign-in, such as `organisation acme`.
    let_in_by: str = ""
    #: The groups that the issuer named at the last sign-in.
    groups: tuple[str, ...] = ()
    #: None: only a sign-in says who it is.
    directory: DirectoryEntry | None = None
    #: Since when it signs in as this account; None: since before that was kept.
    linked_at: int | None = None

    @property
    def is_github(self) -> bool:
        return "://" not in self.issuer

    def said_by(self, directories: Mapping[str, int]) -> DirectoryEntry | None:
        """What the issuer's directory has said about it since it has its token."""
        said = self.directory
        return said if said is not None and directories.get(self.issuer) == said.since else None


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
    github: LinkedIdentity | None = None
    #: Those at issuers of OpenID Connect.
    identities: tuple[LinkedIdentity, ...] = ()
    #: By the name of a provider, when an identity there was unlinked: its sessions from before are worthless.
    unlinked: dict[str, int] = {}

    @property
    def linked(self) -> tuple[LinkedIdentity, ...]:
        return self.identities if self.github is None else (self.github, *self.identities)

    @property
    def reads_all(self) -> bool:
        """Reviewers and admins decide about everything, so they read everything."""
        return self.role in {Role.REVIEWER, Role.ADMIN}

    @property
    def vouched_for(self) -> bool:
        """Whether an admin made the account, or gave it a password or a role: its sign-in alone says too little."""
        return not self.linked or self.password is not None or self.role is not Role.AUTHOR

    def kept_by(self, directories: Mapping[str, int]) -> bool:
        """Whether a directory says when it ends, so that nothing that it said has an age."""
        entries = (one.said_by(directories) for one in self.identities)
        return any(one is not None and one.user.active and not one.deleted for one in entries)

    @property
    def needs_claims(self) -> bool:
        """Whether an issuer of OpenID Connect says who it is, so that it signs in there again and again, unless GitHub
        admits it."""
        return bool(self.identities) and self.password is None

    @property
    def operates(self) -> bool:
        """Admins look after the installation, so they hear of its alerts."""
        return self.role is Role.ADMIN

    def ended_at(self, how: str) -> int:
        """Sessions that were opened so are worthless if they began by this time."""
        return max(self.signed_out_at, self.unlinked.get(how, 0))

    def __repr__(self) -> str:
        """Without the hash, because records get into messages and logs."""
        return f"User(name={self.name!r}, role={self.role.value!r}, disabled={self.disabled})"


class UserPage(msgspec.Struct, frozen=True):
    """Some accounts by name; `after` asks for the next page. `skipped` ones are in the log by key."""

    items: tuple[User, ...]
    after: str | None = None
    skipped: int = 0


class UserChange(msgspec.Struct, frozen=True):
    """What an account's record becomes, and what is written in the same commit."""

    record: User
    operations: tuple[Operation, ...] = ()


# Reading.


def check_name(name: str) -> str:
    """Require lower-case letters, digits and single hyphens: the name appears in histories, keys and URLs."""
    edges = name[:1] + name[-1:]
    if (
        not 1 <= len(name) <= MOST_NAME
        or not _NAME_CHARACTERS.issuperset(name)
        or "-" in edges
        or "--" in name
        or name in _RESERVED
    ):
        fix = f"use 1 to {MOST_NAME} of a-z, 0-9 and single hyphens"
        raise InvalidInput(f"{name[:80]!r} is not a valid account name; {fix}.", field="name", fix=fix)
    return name


async def read_user(name: str) -> tuple[User | None, int]:
    """The record and its version; an invalid name has none."""
    try:
        key = keys.user(name)
    except InvalidInput:
        return None, ABSENT
    return await read_record(key, User)


async def find_enabled(name: str) -> User | None:
    user, _ = await read_user(name)
    return None if user is None or user.disabled else user


async def get_user(name: str) -> User:
    user, _ = await read_user(name)
    if user is None:
        raise _no_account(name)
    return user


def _no_account(name: str) -> NotFound:
    return NotFound(f"There is no account {name[:80]!r}.", account=name[:80])


async def list_users(*, after: str | None = None, limit: int = 100) -> UserPage:
    """Accounts by name. A read that fails raises."""
    env = require_env("kv")
    page = await env.kv.scan(keys.user.prefix, after=None if after is None else keys.user(after), limit=limit)
    entries = entries_of(page)
    users = decode_readable(entries, User, "list_users")
    last = entries[-1].key.removeprefix(keys.user.prefix) if page.after is not None else None
    return UserPage(tuple(users), last, len(entries) - len(users))


async def find_admins() -> list[tuple[User, int]]:
    users = [(decode(entry, User), entry.version) async for entry in iter_entries(keys.user.prefix)]
    return [(user, version) for user, version in users if user.role is Role.ADMIN]


# Changing.


async def create_user(
    name: str,
    role: Role,
    *,
    by: str,
    reason: str,
    password: str | None = None,
    identity: LinkedIdentity | None = None,
    operations: Callable[[], Awaitable[tuple[Operation, ...]]] | None = None,
    setup_version: int | None = None,
) -> User:
    """Create an account; NameTaken if an account, a team or an upload namespace has the name. A new admin ends the
    one-time setup link, whose record must have `setup_version` if that is given."""
    check_name(name)
    require_reason(reason)
    encoded = None if password is None else await hash_password(check_password(password, name))
    now = require_env("kv").kv.now()
    user = User(name, role, now, now, password=encoded)
    if identity is not None:
        user = with_identity(user, identity)
    put = Put(keys.user(name), msgspec.json.encode(user), ABSENT)
    ended = (Delete(keys.CONTROL_SETUP, setup_version),) if role is Role.ADMIN else ()

    async def create() -> tuple[User, list[Operation]]:
        free = await _assert_free(name)
        brought = () if operations is None else await operations()
        return user, [put, *free, *brought, *ended]

    note = AuditNote("account created", name, by, reason, {"role": role.value})
    return await commit_audited(note, create)


def with_identity(user: User, identity: LinkedIdentity) -> User:
    """The record with this identity, in place of an earlier sign-in of the same one."""
    same, others = split_identities(user, identity.issuer, identity.id)
    linked_at = identity.verified_at if same is None else same.linked_at
    said = same.directory if same is not None and identity.directory is None else identity.directory
    identity = msgspec.structs.replace(identity, linked_at=linked_at, directory=said)
    if identity.is_github:
        if user.github not in (None, same):
            raise NotPermitted(f"Another GitHub account signs in as {user.name} already.", account=user.name)
        return msgspec.structs.replace(user, github=identity)
    if len(others) >= MOST_IDENTITIES:
        message = f"{user.name} has {MOST_IDENTITIES} identities, which is the limit."
        raise NotPermitted(message, account=user.name)
    return msgspec.structs.replace(user, identities=(*others, identity))


def split_identities(
    user: User, issuer: str, subject: str
) -> tuple[LinkedIdentity | None, tuple[LinkedIdentity, ...]]:
    """This identity, and the others of OpenID Connect."""
    same = next((one for one in user.linked if (one.issuer, one.id) == (issuer, subject)), None)
    return same, tuple(one for one in user.identities if one != same)


async def _assert_free(name: str) -> list[Assert]:
    """Assertions that no team and no upload namespace has the name; NameTaken if one, or an account, has it."""
    kv = require_env("kv").kv
    others = {
        keys.user(name): f"account {name!r}",
        keys.team(name): f"team {name!r}",
        keys.namespace(upload_namespace(name)): f"namespace {upload_namespace(name)!r}",
    }
    for key, holder in others.items():
        if await kv.get(key) is not None:
            raise NameTaken(f"The {holder} already exists.", field="name", fix="choose another name")
    # A namespace that holds skills need not have a record.
    uploads = await kv.scan(f"{keys.skill.prefix}{upload_namespace(name)}/", limit=1)
    if uploads.items or uploads.failed:
        message = f"Skills were uploaded into the namespace {upload_namespace(name)!r}."
        raise NameTaken(message, field="name", fix="choose another name")
    return [Assert(key, ABSENT) for key in others if key != keys.user(name)]


async def renew_hash(user: User, version: int, password: str) -> None:
    """Store the same password hashed with today's cost; this signs nobody out. If the account was changed meanwhile, do
    nothing: the next sign-in tries again."""
    renewed = msgspec.structs.replace(user, password=await hash_password(password))
    put = Put(keys.user(user.name), msgspec.json.encode(renewed), version, quiet=True)
    with suppress(Conflict):
        await require_env("kv").kv.commit([put])


async def change_user(
    name: str,
    decide: Callable[[User], Awaitable[UserChange]],
    *,
    action: str,
    by: str,
    reason: str,
    details: Mapping[str, str] | None = None,
) -> User:
    """One commit: the record by compare-and-swap, its audit entry, and the change's further operations. Tokens that the
    change removes from the record's list are deleted with it. Nothing is written for the same record without
    operations. `decide` is called again after a conflict."""

    async def write() -> tuple[User, list[Operation]]:
        known, version = await read_user(name)
        if known is None:
            raise _no_account(name)
        change = await decide(known)
        if change.record is known and not change.operations:
            return known, []
        changed = msgspec.structs.replace(change.record, updated_at=require_env("kv").kv.now())
        put = Put(keys.user(name), msgspec.json.encode(changed), version)
        ended = [Delete(keys.token(one)) for one in known.tokens if one not in changed.tokens]
        return changed, [put, *ended, *change.operations]

    return await commit_audited(AuditNote(action, name, by, reason, details or {}), write)
