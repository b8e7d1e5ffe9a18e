"""Collections: named lists of skills that an admin curates and that clients add as one marketplace."""

from typing import Annotated

import msgspec

from vskill_platform.actions.action import Action, Missing, Services
from vskill_platform.actions.checks import ActionRequest, Reason, SkillName
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import Right
from vskill_platform.actions.skill_names import find_skill
from vskill_platform.actions.wire import Wire, iso_time
from vskill_platform.domain.errors import Conflict, InvalidInput, NotFound
from vskill_platform.domain.token import TokenScope
from vskill_platform.store.collections import (
    MOST_DESCRIPTION,
    MOST_NAME,
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

COLLECTIONS = "/api/v1/collections"
_ONE = f"{COLLECTIONS}/{{name}}"

CollectionName = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_NAME)]
SkillNames = Annotated[tuple[SkillName, ...], msgspec.Meta(min_length=1, max_length=MOST_SKILLS)]


class CollectionView(Wire, frozen=True):
    """A collection."""

    name: str
    title: str
    description: str
    #: canonical names, in the order in which they were added
    skills: tuple[str, ...]
    created_at: str
    updated_at: str


class CollectionsAnswer(Wire, frozen=True):
    """All collections by name."""

    collections: tuple[CollectionView, ...]
    #: records that could not be read and are missing here
    unreadable: int


class ListCollections(ActionRequest, frozen=True, kw_only=True):
    """All collections."""


class CreateCollection(ActionRequest, frozen=True, kw_only=True):
    """A new, empty collection."""

    #: part of its address: lower-case words with single hyphens
    name: CollectionName
    #: what people read instead of the name
    title: Annotated[str, msgspec.Meta(max_length=MOST_TITLE)] = ""
    #: what it is for
    description: Annotated[str, msgspec.Meta(max_length=MOST_DESCRIPTION)] = ""
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


async def list_all(services: Services, reader: Principal, _request: ListCollections) -> CollectionsAnswer:
    found = await read_collections(services, reader)
    return CollectionsAnswer(tuple(map(_view, found.items)), found.skipped)


async def create(_services: Services, actor: Principal, request: CreateCollection) -> CollectionView:
    made = await create_collection(
        request.name,
        title=request.title,
        description=request.description,
        by=actor.actor,
        reason=request.reason,
    )
    return _view(made)


async def add(services: Services, actor: Principal, request: ChangeCollection) -> CollectionView:
    """Each must be a skill that can be installed now."""
    names = [await _require_installable(services, actor, name) for name in request.skills]
    return _view(await add_skills(request.name, names, by=actor.actor, reason=request.reason))


async def _require_installable(services: Services, actor: Principal, name: str) -> str:
    skill = await find_skill(services, actor, name)
    if skill.current_version is None:
        raise InvalidInput(
            f"{skill.canonical} cannot be installed.", field="skills", fix="choose skills that are live"
        )
    return skill.canonical


async def remove(_services: Services, actor: Principal, request: ChangeCollection) -> CollectionView:
    return _view(await remove_skills(request.name, request.skills, by=actor.actor, reason=request.reason))


async def delete(_services: Services, actor: Principal, request: DeleteCollection) -> None:
    await delete_collection(request.name, by=actor.actor, reason=request.reason)


async def read_collections(_services: Services, _reader: Principal) -> CollectionsPage:
    """All collections by name, as records."""
    return await list_collections()


async def read_collection(_services: Services, _reader: Principal, name: str) -> Collection:
    """One collection, or NotFound."""
    return await get_collection(name)


def _view(found: Collection) -> CollectionView:
    return CollectionView(
        found.name,
        found.title,
        found.description,
        found.skills,
        iso_time(found.created_at),
        iso_time(found.updated_at),
    )


_NO_TOOL = Missing("what an organisation is offered is for an admin to choose, not for an agent")

LIST_COLLECTIONS = Action(
    name="collection.list",
    run=list_all,
    request=ListCollections,
    answer=CollectionsAnswer,
    method="GET",
    path=COLLECTIONS,
    right=Right.ANYONE,
    scope=TokenScope.READ,
    summary="List collections with their skills",
    tag="collections",
    page="/docs/clients",
    command="collection list",
    mcp=_NO_TOOL,
)
CREATE_COLLECTION = Action(
    name="collection.create",
    run=create,
    request=CreateCollection,
    answer=CollectionView,
    path=COLLECTIONS,
    right=Right.ADMIN,
    scope=TokenScope.ADMIN,
    errors=(Conflict,),
    status=201,
    summary="Make an empty collection",
    about="Its marketplace is at `/collections/NAME/marketplace.json`.",
    tag="collections",
    page="/admin/collections/create",
    command="collection create",
    mcp=_NO_TOOL,
)
ADD_SKILLS = Action(
    name="collection.add",
    run=add,
    request=ChangeCollection,
    answer=CollectionView,
    path=f"{_ONE}/add",
    right=Right.ADMIN,
    scope=TokenScope.ADMIN,
    errors=(NotFound, Conflict),
    summary="Add skills to a collection",
    tag="collections",
    page="/admin/collections/add",
    command="collection add",
    mcp=_NO_TOOL,
)
REMOVE_SKILLS = msgspec.structs.replace(
    ADD_SKILLS,
    name="collection.remove",
    run=remove,
    path=f"{_ONE}/remove",
    summary="Remove skills from a collection",
    page="/admin/collections/remove",
    command="collection remove",
)
DELETE_COLLECTION = Action(
    name="collection.delete",
    run=delete,
    request=DeleteCollection,
    answer=None,
    path=f"{_ONE}/delete",
    right=Right.ADMIN,
    scope=TokenScope.ADMIN,
    errors=(NotFound, Conflict),
    status=204,
    summary="Delete a collection; its skills stay as they are",
    tag="collections",
    page="/admin/collections/delete",
    command="collection delete",
    mcp=_NO_TOOL,
)

ACTIONS = (LIST_COLLECTIONS, CREATE_COLLECTION, ADD_SKILLS, REMOVE_SKILLS, DELETE_COLLECTION)
