"""Credentials of namespaces, at `credentials:{namespace}`: kept sealed, and opened for one fetch at a time."""

from collections.abc import Callable, Sequence

import msgspec

from vskill_core.errors import Conflict, InvalidSettings, PlatformError, SourceUnavailable
from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import namespace_of
from vskill_platform.domain.people.source_credential import (
    NamespaceCredentials,
    SourceCredential,
    address_of,
)
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.records import decode, iter_entries, read_record
from vskill_platform.signing.sealing import HOW_TO, SealingKey, seal, unseal
from vskill_platform.sources.contract import OpensPrivate, Sources, Watchable
from vskill_platform.sources.credential import GitCredential
from vskill_platform.sources.ssh import SshServer
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.store.people.namespaces import read_directory
from vskill_platform.worker_context import require_env


class ExaminedCredential(msgspec.Struct, frozen=True):
    """A credential, and how this process stands to it."""

    namespace: str
    credential: SourceCredential
    #: Why it cannot be opened here; empty where it can.
    problem: str
    #: Sealed with another key than the one that seals now.
    outdated: bool


async def read_credentials(name: str) -> NamespaceCredentials:
    found, _ = await read_record(keys.credentials(name), NamespaceCredentials)
    return found or NamespaceCredentials(name)


async def change_credentials(
    name: str, change: Callable[[NamespaceCredentials], NamespaceCredentials], note: AuditNote
) -> NamespaceCredentials:
    """One commit: the record and the audit entry. `change` is called again after a conflict."""
    key = keys.credentials(name)

    async def write() -> tuple[NamespaceCredentials, list[Put]]:
        known, version = await read_record(key, NamespaceCredentials)
        changed = change(known or NamespaceCredentials(name))
        return changed, [Put(key, msgspec.json.encode(changed), version)]

    return await commit_audited(note, write)


async def sealing_keys() -> tuple[SealingKey, ...]:
    """The one that seals first; none if the operator gave none."""
    sealing = require_env("sealing").sealing
    return () if sealing is None else await sealing.keys()


def seal_credential(
    key: SealingKey, name: str, credential: SourceCredential, secret: bytes
) -> SourceCredential:
    sealed = seal(key, secret, credential.context(keys.credentials(name)))
    return msgspec.structs.replace(credential, sealed=sealed)


async def sources_for(place: Identity, *, with_credential: bool) -> Sources:
    """Where the files of a place come from. `with_credential` is whether somebody who may act for its namespace has
    submitted it: for others nothing is even looked up, so that they learn nothing from the time that it takes."""
    sources = require_env("sources").sources
    found = await find_credential(place) if with_credential else None
    if found is None or not isinstance(sources, OpensPrivate):
        return sources
    keys_here = await sealing_keys()
    if not keys_here:
        raise SourceUnavailable(f"The namespace's credential cannot be opened: {HOW_TO}.", host="sealing key")
    name = namespace_of(place)
    secret = unseal(keys_here, found.sealed, found.context(keys.credentials(name)))
    server = SshServer(found.port, found.host_keys) if found.public_key else None
    return sources.using(GitCredential(found.id, name, found.address, found.user, secret, server))


async def ask_host_key(place: Identity, user: str, port: int) -> str:
    """The fingerprint of the host key that the server of a place shows. It learns nothing of us but that we asked."""
    sources = require_env("sources").sources
    asking = GitCredential("", namespace_of(place), address_of(place), user, b"", SshServer(port, ()))
    bound = sources.using(asking) if isinstance(sources, OpensPrivate) else sources
    if isinstance(bound, Watchable):
        try:
            await bound.head(place)
        except SourceUnavailable as error:
            if shown := error.text("host_key"):
                return shown
            raise
    raise SourceUnavailable(f"{place.host} shows no SSH host key.", host=place.host)


def seal_with_host_keys(
    known_keys: Sequence[SealingKey], name: str, credential: SourceCredential, host_keys: tuple[str, ...]
) -> SourceCredential:
    """The same deploy key for a server with other host keys."""
    secret = unseal(known_keys, credential.sealed, credential.context(keys.credentials(name)))
    changed = msgspec.structs.replace(credential, host_keys=host_keys)
    return seal_credential(known_keys[0], name, changed, secret)


async def find_credential(place: Identity) -> SourceCredential | None:
    """The credential for a place; none while its namespace is readable by everybody because nobody set who may."""
    name = namespace_of(place)
    namespace = (await read_directory()).namespaces.get(name)
    if place.is_upload or namespace is None or not namespace.managed:
        return None
    return (await read_credentials(name)).for_place(place)


async def examine_credentials() -> list[ExaminedCredential]:
    keys_here = await sealing_keys()
    current = keys_here[0].key_id if keys_here else ""
    found = []
    async for entry in iter_entries(keys.credentials.prefix):
        record = decode(entry, NamespaceCredentials)
        for one in record.credentials:
            problem = ""
            try:
                unseal(keys_here, one.sealed, one.context(entry.key))
            except PlatformError as error:
                problem = error.message
            found.append(ExaminedCredential(record.name, one, problem, one.sealed.key_id != current))
    return found


async def seal_again() -> None:
    """Seal with the first key what was sealed with another one; InvalidSettings names what cannot be opened."""
    keys_here = await sealing_keys()
    examined = await examine_credentials() if keys_here else []
    for name in {one.namespace for one in examined if one.outdated and not one.problem}:
        await _seal_again(name, keys_here)
    if closed := [one for one in examined if one.problem]:
        named = ", ".join(f"{one.credential.address} of {one.namespace}" for one in closed[:5])
        message = f"{len(closed)} credentials cannot be opened, such as {named}: {closed[0].problem}"
        raise InvalidSettings(message, fix="give the old sealing key too, or add these credentials again")


async def _seal_again(name: str, keys_here: tuple[SealingKey, ...]) -> None:
    key = keys.credentials(name)
    known, version = await read_record(key, NamespaceCredentials)
    if known is None:
        return
    sealed = []
    for one in known.credentials:
        try:
            secret = unseal(keys_here, one.sealed, one.context(key))
        except SourceUnavailable:
            sealed.append(one)  # the caller names it
        else:
            sealed.append(seal_credential(keys_here[0], name, one, secret))
    changed = msgspec.structs.replace(known, credentials=tuple(sealed))
    try:
        await require_env("kv").kv.put(key, msgspec.json.encode(changed), if_version=version, quiet=True)
    except Conflict:
        return  # an owner changed it: the next run seals it
