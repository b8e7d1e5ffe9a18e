"""Whether what somebody has was withdrawn since, by a signed revocation list. The highest serial that was seen is
remembered on this machine, so that nobody can pass off an old list as the present one.

A registry is known by its keys: files have no address, and names of registries are not unique.
"""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vskill_client.registries import read_own_file, remote_variables, replace_file
from vskill_core.errors import AttestationInvalid, Blocked
from vskill_core.revocation_list import DAY_MS, OLD_MS, RevokedStatus

if TYPE_CHECKING:
    from vskill_core.revocation_list import ListedRevocation, RevocationDocument
    from vskill_core.signing_keys import PublicKey

#: In the folder of the person's own files: the highest serial by key id and list.
SERIALS = "revocations.json"


def open_list(data: bytes, trusted: "Iterable[PublicKey]", *, offline_ok: bool) -> "RevocationDocument":
    """A genuine list that is no older than those seen before. One of more than three days is warned of; one that has
    expired is refused unless `offline_ok`."""
    from vskill_core.verification import open_revocation_list

    keys = tuple(trusted)
    document, key = open_revocation_list(data, keys)
    folder = remote_variables().folder
    serials = read_own_file(folder / SERIALS, dict[str, int]) or {}
    highest = max((serials.get(_name(one.key_id, document.scope), 0) for one in keys), default=0)
    if document.serial < highest:
        message = (
            f"The revocation list has serial {document.serial}, and this machine has seen {highest}: it is an old one. "
            f"If the registry was restored from a backup, remove {folder / SERIALS}."
        )
        raise AttestationInvalid(message, serial=document.serial, seen=highest)
    now = time.time_ns() // 1_000_000
    age = document.age_ms(now)
    days = f"{age // DAY_MS} days old (issued {document.issued_at})"
    if document.has_expired(now) and not offline_ok:
        message = f"The revocation list is {days} and has expired: get a new one, or use --offline-ok."
        raise AttestationInvalid(message, issued=document.issued_at)
    if age >= OLD_MS:
        _warn(f"the revocation list is {days}: what was withdrawn since is not known")
    _remember(folder, serials, _name(key.key_id, document.scope), document.serial)
    return document


def require_not_revoked(document: "RevocationDocument", skill: str, version: str, digest: str) -> None:
    """Raise Blocked where the version was withdrawn; a yanked one is warned of."""
    entry = document.find(skill, version, digest)
    if entry is None:
        return
    said = describe(entry)
    if entry.status is RevokedStatus.YANKED:
        _warn(said)
    else:
        raise Blocked(said, skill=skill, version=version, status=entry.status.value, reason=entry.reason)


def describe(entry: "ListedRevocation") -> str:
    instead = f" Install {entry.replacement.version} instead." if entry.replacement else ""
    status = entry.status.value.replace("-", " ")
    return f"{entry.skill} {entry.version} is {status} since {entry.since}: {entry.reason}.{instead}"


def _warn(text: str) -> None:
    click.echo(f"Warning: {text}", err=True)


def _name(key_id: str, scope: str) -> str:
    """What a serial is remembered by: each list of a registry has serials of its own."""
    return f"{key_id} {scope}"


def _remember(folder: Path, serials: dict[str, int], name: str, serial: int) -> None:
    if serials.get(name, -1) >= serial:
        return
    try:
        replace_file(folder / SERIALS, {**serials, name: serial})
    except OSError as error:
        _warn(f"the serial {serial} cannot be remembered: {error.strerror}")
