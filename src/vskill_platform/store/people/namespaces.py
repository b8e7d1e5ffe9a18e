"""Records of namespaces, teams and access, at `namespace:{name}`, `team:{name}` and `control:namespaces`. Who may
change them is decided in `actions.people.namespaces` and `actions.people.teams`; what they mean, in
`domain.people.namespace`.

Every change writes `control:namespaces` in the same commit, so one read of that key tells whether a process's cache is
still valid. Writing a record into a namespace asserts, in the same commit, that the namespace has not changed.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import (
    PUBLIC,
    Access,
    Directory,
    Namespace,
    Team,
    Visibility,
    audience_for,
    check_namespace_name,
    namespace_of,
    shared_form,
    uploader_of,
)
from vskill_platform.ledger.kv.entries import ABSENT, Assert, Delete, Operation, Put
from vskill_platform.records import decode, iter_entries, read_record
from vskill_platform.sources.contract import no_repository
from vskill_platform.store.people.accounts import read_user
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.store.revocations import reader_writes
from vskill_platform.worker_context import require_env

N = TypeVar("N", Namespace, Team)
T = TypeVar("T")


class NamespaceChange(msgspec.Struct, frozen=True):
    """A namespace's next form, and what must be committed together with it."""

    namespace: Namespace
    operations: tuple[Operation, ...] = ()


class Belonging(msgspec.Struct, frozen=True):
    """Where a record about a place belongs."""

    namespace: Namespace
    audience: str
    #: To commit with the record.
    asserted: Assert


# Reading.


async def read_directory() -> Directory:
    """Everything that decides who may read; from the process's cache if the store's version is still the same."""
    env = require_env("kv")
    while True:
        access, version = await read_access()
        kept = env.kept.directory
        if kept is not None and kept[0] == version:
            return kept[1]
        if version == ABSENT:
            # Nothing was ever written, so there is nothing to read.
            env.kept.directory = (version, Directory())
            return Directory()
        directory = Directory(
            access, await _all(keys.namespace.prefix, Namespace), await _all(keys.team.prefix, Team)
        )
        # Parts of two versions together could allow what neither of them allows.
        if (await read_access())[1] == version:
            env.kept.directory = (version, directory)
            return directory


async def assert_directory() -> tuple[Directory, Assert]:
    """The directory, and the assertion that it is still the same in a commit that rests on it."""
    _, version = await read_access()
    return await read_directory(), Assert(keys.CONTROL_NAMESPACES, version)


async def read_access() -> tuple[Access, int]:
    access, version = await read_record(keys.CONTROL_NAMESPACES, Access)
    return access or Access(), version


async def read_namespace(name: str) -> tuple[Namespace, int]:
    """The record and its version; if there is none, an unmanaged namespace without members."""
    namespace, version = await read_record(keys.namespace(name), Namespace)
    return namespace or Namespace(name), version


async def read_team(name: str) -> tuple[Team | None, int]:
    return await read_record(keys.team(name), Team)


async def belonging_of(identity: Identity, narrowed: Visibility | None = None) -> Belonging:
    name = namespace_of(identity)
    namespace, version = await read_namespace(name)
    return Belonging(
        namespace, audience_for(namespace, name, narrowed), Assert(keys.namespace(name), version)
    )


async def require_as_open(asked: Identity, found: Identity) -> None:
    """Raise SourceGone if a redirect leads to what fewer people may read: the others would learn what is there."""
    if found.repo_key == asked.repo_key:
        return
    shared = {PUBLIC, (await belonging_of(asked)).audience, *shared_form(await read_directory())}
    if (await belonging_of(found)).audience not in shared:
        raise no_repository(asked.host)


async def _all(prefix: str, kind: type[N]) -> dict[str, N]:
    """Every record. An unreadable one raises: it must not look like a namespace that hides nothing."""
    records = [decode(entry, kind) async for entry in iter_entries(prefix)]
    return {record.name: record for record in records}


# Writing.


async def change_namespace(
    name: str, decide: Callable[[Namespace], Awaitable[NamespaceChange | None]], note: AuditNote
) -> Namespace:
    """One commit: the record, the version of all namespaces, the audit entry, and further operations. `decide` is
    called again after a conflict; None leaves everything as it is."""

    async def write() -> tuple[Namespace, list[Operation]]:
        known, version = await read_namespace(name)
        if version == ABSENT:
            check_namespace_name(name)
        change = await decide(known)
        if change is None:
            return known, []
        put = Put(keys.namespace(name), msgspec.json.encode(change.namespace), version)
        hides = change.namespace.visibility is not known.visibility
        free = await _assert_no_account(uploader_of(name)) if version == ABSENT else ()
        return change.namespace, [put, *free, *change.operations, *(await reader_writes() if hides else ())]

    return await _commit(write, note)


async def _assert_no_account(name: str | None) -> tuple[Assert, ...]:
    """An upload namespace is made for the account of its name, or for others while there is no such account."""
    if name is None or (await read_user(name))[0] is not None:
        return ()
    return (Assert(keys.user(name), ABSENT),)


async def change_team(
    name: str, decide: Callable[[Team | None], Awaitable[Team | None]], note: AuditNote
) -> Team | None:
    """The same for a team; None is a team that does not exist, before or after."""

    async def write() -> tuple[Team | None, list[Operation]]:
        known, version = await read_team(name)
        changed = await decide(known)
        if changed is None:
            return None, [Delete(keys.team(name), version)]
        put = Put(keys.team(name), msgspec.json.encode(changed), version)
        return changed, [put, Assert(keys.user(name), ABSENT)] if known is None else [put]

    return await _commit(write, note)


async def change_access(
    change: Callable[[Access], Access], note: AuditNote, *operations: Operation
) -> Access:
    """Change the registry's mode, who may submit or whose directories speak, in one commit with its audit entry and
    further operations."""

    async def write() -> tuple[Access, list[Operation]]:
        access, version = await read_access()
        changed = change(access)
        readers = await reader_writes() if changed.mode is not access.mode else ()
        return changed, [_put_access(changed, version), *readers, *operations]

    return await commit_audited(note, write)


async def _commit(write: Callable[[], Awaitable[tuple[T, list[Operation]]]], note: AuditNote) -> T:
    async def with_version() -> tuple[T, list[Operation]]:
        access, version = await read_access()
        changed, operations = await write()
        return changed, [*operations, _put_access(access, version)] if operations else []

    return await commit_audited(note, with_version)


def _put_access(access: Access, version: int) -> Put:
    return Put(keys.CONTROL_NAMESPACES, msgspec.json.encode(access), version)
