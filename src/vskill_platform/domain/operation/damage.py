"""Stored content that is not what its digest says: missing, cut or changed. Nothing of it is ever handed out.

A read or the scrub finds it and writes the record; a repair, or the same files submitted again, removes it. That a
store cannot be asked is no damage.
"""

import enum

import msgspec

from vskill_core.content import SkillFile
from vskill_core.errors import ContentDamaged, StoreCorrupt
from vskill_platform.domain.packed_content import unpack

#: Records that one damage lists as naming its content.
MOST_NAMES = 20


class DamageKind(enum.StrEnum):
    """What is wrong with stored content."""

    MISSING = "missing"
    #: It ends early.
    CUT = "cut"
    CHANGED = "changed"


class Damage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `damage:{digest}`; it is there as long as the damage is."""

    digest: str
    kind: DamageKind
    #: When it was found.
    since: int
    #: Keys of the records that name the content, as far as they are known.
    named_by: tuple[str, ...] = ()


def verified_files(data: bytes | None, digest: str) -> tuple[SkillFile, ...]:
    """The files of a stored content, every byte verified; ContentDamaged says what is wrong with it."""
    if data is None:
        raise _damaged(digest, DamageKind.MISSING)
    try:
        return unpack(data, digest)
    except StoreCorrupt as error:
        kind = DamageKind.CUT if error.details.get("is_cut") else DamageKind.CHANGED
        raise _damaged(digest, kind) from error


def add_names(damage: Damage, kind: DamageKind, names: tuple[str, ...]) -> Damage:
    """The damage as it was seen again."""
    merged = tuple(dict.fromkeys((*damage.named_by, *names)))[:MOST_NAMES]
    return msgspec.structs.replace(damage, kind=kind, named_by=merged)


def _damaged(digest: str, kind: DamageKind) -> ContentDamaged:
    message = f"The stored files of {digest} are {kind}; they are not handed out until they are repaired."
    return ContentDamaged(message, digest=digest, kind=kind.value, host="the repair of its stored files")
