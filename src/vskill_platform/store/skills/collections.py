"""Collections: named lists of skills that an operator has chosen, at `collection:{name}`.

A collection names skills, not versions: what it offers is always the current one, and what is blocked or withdrawn
is left out where it is served. Every change is one commit with its audit entry. A collection has an audience of its
own, and shows only those of its skills that all its readers may read.
"""

from collections.abc import Callable, Sequence

import msgspec

from vskill_core.errors import InvalidInput, NotFound
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC, Audiences
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.ledger.kv.entries import ABSENT, Delete, Operation, Put
from vskill_platform.records import Skips, decode, readable
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.worker_context import require_env

MOST_NAME = 64
MOST_SKILLS = 500
MOST_TITLE = 100
MOST_DESCRIPTION = 500
_NAME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


class Collection(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `collection:{name}`."""

    #: part of its address: lower-case words with single hyphens
    name: str
    title: str = ""
    description: str = ""
    #: canonical names, in the order in which they were added
    skills: tuple[str, ...] = ()
    created_at: int = 0
    updated_at: int = 0
    created_by: str = ""
    #: Whose readers may read it.
    audience: str = PUBLIC


class CollectionsPage(msgspec.Struct, frozen=True):
    """All collections by name; `skipped` ones are in the log by key."""

    items: tuple[Collection, ...]
    skipped: int = 0


async def create_collection(
    name: str, *, title: str = "", description: str = "", audience: str = PUBLIC, by: str, reason: str
) -> Collection:
    """A new, empty one; InvalidInput with status 409 where there is one of that name."""
    _check_name(name)
    _check_text("title", title, MOST_TITLE)
    _check_text("description", description, MOST_DESCRIPTION)
    kv = require_env("kv").kv
    made = Collection(name, title.strip(), description.strip(), (), kv.now(), kv.now(), by, audience)

    async def create() -> tuple[Collection, list[Operation]]:
        if await kv.get(keys.collection(name)) is not None:
            raise _Taken(f"The collection {name!r} already exists.", collection=name)
        return made, [Put(keys.collection(name), msgspec.json.encode(made), ABSENT)]

    return await commit_audited(AuditNote("collection created", name, by, reason), create)


class _Taken(InvalidInput):
    """The name is taken."""

    status = 409


async def add_skills(name: str, wanted: Sequence[str], *, by: str, reason: str) -> Collection:
    """Skills by canonical name."""

    def added(known: Collection) -> Collection:
        skills = tuple(dict.fromkeys((*known.skills, *wanted)))
        if len(skills) > MOST_SKILLS:
            fix = "make another collection"
            raise InvalidInput(f"A collection holds at most {MOST_SKILLS} skills.", field="skills", fix=fix)
        return msgspec.structs.replace(known, skills=skills)

    return await _change(name, added, action="collection: skills added", by=by, reason=reason, about=wanted)


async def remove_skills(name: str, unwanted: Sequence[str], *, by: str, reason: str) -> Collection:
    """By canonical name, whatever has become of the skill; NotFound where one is not in it."""

    def removed(known: Collection) -> Collection:
        for one in unwanted:
            if one not in known.skills:
                raise NotFound(f"{one[:200]} is not in the collection {name}.", skill=one[:200])
        left = tuple(one for one in known.skills if one not in unwanted)
        return msgspec.structs.replace(known, skills=left)

    action = "collection: skills removed"
    return await _change(name, removed, action=action, by=by, reason=reason, about=unwanted)


async def delete_collection(name: str, *, by: str, reason: str) -> None:
    async def delete() -> tuple[None, list[Operation]]:
        _, version = await _read(name)
        return None, [Delete(keys.collection(name), version)]

    await commit_audited(AuditNote("collection deleted", name, by, reason), delete)


async def get_collection(name: str, *, audiences: Audiences) -> Collection:
    """The record, or NotFound where there is none for a reader of these audiences."""
    return (await _read(name, audiences))[0]


async def list_collections(*, audiences: Audiences) -> CollectionsPage:
    """Those that a reader of these audiences may read."""
    env = require_env("kv")
    skips = Skips("list_collections")
    found: list[Collection] = []
    async for page in iterate_pages(env.kv, keys.collection.prefix):
        skips.failed(page.failed)
        found += skips.decode_all(filter(lambda entry: readable(entry, audiences), page.items), Collection)
    skips.report(env)
    return CollectionsPage(tuple(found), skips.count)


async def _change(
    name: str,
    change: Callable[[Collection], Collection],
    *,
    action: str,
    by: str,
    reason: str,
    about: Sequence[str],
) -> Collection:
    """Nothing is written where nothing changes."""

    async def write() -> tuple[Collection, list[Operation]]:
        known, version = await _read(name)
        changed = change(known)
        if changed == known:
            return known, []
        changed = msgspec.structs.replace(changed, updated_at=require_env("kv").kv.now())
        return changed, [Put(keys.collection(name), msgspec.json.encode(changed), version)]

    return await commit_audited(AuditNote(action, name, by, reason, {"skills": ", ".join(about)}), write)


async def _read(name: str, audiences: Audiences = EVERYTHING) -> tuple[Collection, int]:
    """Those who change one are admins, who read everything."""
    entry = readable(await require_env("kv").kv.get(keys.collection(name)) if name else None, audiences)
    if entry is None:
        raise NotFound(f"There is no collection {name[:100]!r}.", collection=name[:100])
    return decode(entry, Collection), entry.version


def _check_name(name: str) -> None:
    fits = 1 <= len(name) <= MOST_NAME and _NAME.issuperset(name)
    if not fits or name.startswith("-") or name.endswith("-") or "--" in name:
        fix = f"use 1 to {MOST_NAME} lower-case letters, digits and single hyphens"
        raise InvalidInput(f"{name[:100]!r} cannot be a collection's name.", field="name", fix=fix)


def _check_text(field: str, text: str, most: int) -> None:
    if len(text) > most:
        raise InvalidInput(f"The {field} is too long.", field=field, fix=f"use at most {most} characters")
