"""Collections: named lists of skills that an admin curates and that clients add as one marketplace. A collection is for
everybody or for the readers of one namespace, and shows only the skills that all of them may read; admins see all."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, SkillName, Wire
from vskill_client.wire.skills import CollectionName
from vskill_core.errors import Conflict, InvalidInput, NotFound
from vskill_platform.actions.action import Actions, Reason, Services
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.skills.skill_names import find_skill, leave_out_blocked
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import (
    MOST_NAMESPACE,
    PUBLIC,
    audience_for,
    common_audiences,
    may_read,
    namespace_in,
)
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.records import read_entries, readable
from vskill_platform.store.people.namespaces import read_directory
from vskill_platform.store.skills.collections import (
    MOST_DESCRIPTION,
    MOST_SKILLS,
    MOST_TITLE,
    Collection,
    CollectionsPage,
    add_skills,
    create_collection,
    delete_collection,
    get_collection,
    list_collections,
    remove_skills,
)
from vskill_platform.store.skills.skills import read_skills

COLLECTIONS = "/api/v1/collections"
_ONE = f"{COLLECTIONS}/{{name}}"

SkillNames = Annotated[tuple[SkillName, ...], msgspec.Meta(min_length=1, max_length=MOST_SKILLS)]


class CollectionView(Wire, frozen=True):
    """A collection."""

    name: str
    title: str
    description: str
    #: canonical names, in the order in which they were added; those that every reader of the collection may read
    skills: tuple[str, ...]
    created_at: str
    updated_at: str
    #: the namespace whose readers may read it; null where everybody may
    namespace: str | None


class CollectionsAnswer(Wire, frozen=True):
    """All collections by name."""

    collections: tuple[CollectionView, ...]
    #: records that could not be read and are missing here
    unreadable: int


class CreateCollection(ActionRequest, frozen=True, kw_only=True):
    """A new, empty collection."""

    #: part of its address: lower-case words with single hyphens
    name: CollectionName
    #: what people read instead of the name
    title: Annotated[str, msgspec.Meta(max_length=MOST_TITLE)] = ""
    #: what it is for
    description: Annotated[str, msgspec.Meta(max_length=MOST_DESCRIPTION)] = ""
    #: the namespace whose readers may read it; everybody may if left out
    namespace: Annotated[str, msgspec.Meta(max_length=MOST_NAMESPACE)] = ""
    #: why; kept in the audit
    reason: Reason


class ChangeCollection(ActionRequest, frozen=True, kw_only=True):
    """Skills to add to a collection, or to remove from it."""

    name: CollectionName
    #: full or short names to add; full names to remove
    skills: SkillNames
    #: why; kept in the audit
    reason: Reason


class DeleteCollection(ActionRequest, frozen=True, kw_only=True):
    """One collection."""

    name: CollectionName
    #: why; kept in the audit
    reason: Reason


async def list_all(services: Services, reader: Principal, _request: NoParameters) -> CollectionsAnswer:
    found = await read_collections(services, reader)
    return CollectionsAnswer(tuple(map(_view, found.items)), found.skipped)


async def create(actor: Principal, request: CreateCollection) -> CollectionView:
    made = await create_collection(
        request.name,
        title=request.title,
        description=request.description,
        audience=await _audience_of(request.namespace),
        by=actor.actor,
        reason=request.reason,
    )
    return _view(made)


async def _audience_of(namespace: str) -> str:
    if not namespace:
        return PUBLIC
    known = (await read_directory()).namespaces.get(namespace)
    if known is None or not known.managed:
        message = f"The namespace {namespace!r} has no visibility of its own."
        raise InvalidInput(message, field="namespace", fix="set its visibility first, or leave it out")
    return audience_for(known, namespace)


async def add(actor: Principal, request: ChangeCollection) -> CollectionView:
    """Each must be a skill that can be installed now, by every reader of the collection."""
    known = await get_collection(request.name, audiences=audiences_of(actor))
    common = common_audiences(known.audience, await read_directory())
    names = [await _require_installable(actor, name, common) for name in request.skills]
    return _view(await add_skills(request.name, names, by=actor.actor, reason=request.reason))


async def _require_installable(actor: Principal, name: str, common: frozenset[str]) -> str:
    skill = await find_skill(actor, name)
    if not may_read(skill.audience, common):
        raise InvalidInput(
            f"Not every reader of the collection may read {skill.canonical}.",
            field="skills",
            fix="make the skill readable for them, or use a collection of its namespace",
        )
    if skill.current_version is None:
        raise InvalidInput(
            f"{skill.canonical} cannot be installed.", field="skills", fix="choose skills that are live"
        )
    return skill.canonical


async def remove(actor: Principal, request: ChangeCollection) -> CollectionView:
    return _view(await remove_skills(request.name, request.skills, by=actor.actor, reason=request.reason))


async def delete(actor: Principal, request: DeleteCollection) -> None:
    await delete_collection(request.name, by=actor.actor, reason=request.reason)


async def read_collections(services: Services, reader: Principal) -> CollectionsPage:
    """All collections that the reader may read by name, as records; to those who read everything with every skill, to
    all others with what every reader of the collection may read."""
    found = await list_collections(audiences=audiences_of(reader))
    if ADD_SKILLS.allows(reader):
        return found
    return msgspec.structs.replace(found, items=await _as_shown(services, reader, found.items))


async def measure_contexts(reader: Principal, items: Iterable[Collection]) -> dict[str, int]:
    """By collection, the characters that the names and descriptions of its skills take of an agent's context: clients
    show them to the model before any skill is used."""
    items = tuple(items)
    wanted = {name for one in items for name in one.skills}
    found = await read_skills(wanted, audiences=audiences_of(reader)) if wanted else {}
    sizes = {
        name: len(skill.slug) + len(skill.description) for name, skill in found.items() if not skill.withdrawn
    }
    return {one.name: sum(sizes.get(name, 0) for name in one.skills) for one in items}


async def read_collection(services: Services, reader: Principal, name: str) -> Collection:
    """One collection with what every reader of it may read, or NotFound."""
    known = await get_collection(name, audiences=audiences_of(reader))
    return (await _as_shown(services, reader, (known,)))[0]


async def read_collected_skills(
    services: Services, reader: Principal, collection: Collection
) -> tuple[PublishedSkill, ...]:
    """The skills of a collection that can be installed now, in its order."""
    found = await read_skills(collection.skills, audiences=audiences_of(reader))
    known = [found[name] for name in collection.skills if name in found and not found[name].withdrawn]
    return await leave_out_blocked(services, known)


async def _as_shown(
    services: Services, reader: Principal, found: Sequence[Collection]
) -> tuple[Collection, ...]:
    """Only the records of skills in managed namespaces are looked at, all at once: all others are for everybody."""
    known = services.kept.directory
    # As the process knows it from finding out what the reader may read.
    directory = known[1] if known else await read_directory()
    managed = {name for name, namespace in directory.namespaces.items() if namespace.managed}
    looked_at = {name for one in found for name in one.skills if namespace_in(name) in managed}
    entries = await read_entries(map(keys.skill, looked_at)) if looked_at else {}

    def is_shown(name: str, common: frozenset[str]) -> bool:
        entry = entries.get(keys.skill(name))
        return bool(readable(entry, common) and readable(entry, audiences_of(reader)))

    shown: list[Collection] = []
    for one in found:
        common = common_audiences(one.audience, directory)
        skills = tuple(name for name in one.skills if name not in looked_at or is_shown(name, common))
        shown.append(msgspec.structs.replace(one, skills=skills))
    return tuple(shown)


def _view(found: Collection) -> CollectionView:
    namespace = None if found.audience == PUBLIC else found.audience.removeprefix("ns:")
    return CollectionView.of(found, namespace=namespace)


_COLLECTION = Actions("collection", _ONE, {"right": Right.ADMIN, "errors": (NotFound, Conflict)})
LIST_COLLECTIONS = _COLLECTION(
    list_all,
    "list",
    "List the collections that you may read, with their skills",
    path=COLLECTIONS,
    method="GET",
    right=Right.ANYONE,
    errors=(),
)
CREATE_COLLECTION = _COLLECTION(
    create,
    "create",
    "Make an empty collection",
    path=COLLECTIONS,
    errors=(Conflict,),
    status=201,
    about="Its marketplace is at `/collections/NAME/marketplace.json`.",
)
ADD_SKILLS = _COLLECTION(add, "add", "Add skills to a collection")
REMOVE_SKILLS = _COLLECTION(remove, "remove", "Remove skills from a collection")
DELETE_COLLECTION = _COLLECTION(
    delete, "delete", "Delete a collection; its skills stay as they are", status=204
)
