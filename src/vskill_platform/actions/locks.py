"""Lock files: which version of each skill of a list or a collection is current, with its digest and its attestation.
`install --frozen` installs exactly that, and `verify --lock` compares folders with it."""

from typing import Annotated, Any, Literal

import msgspec

from vskill_platform.actions.action import Action, Missing, Services
from vskill_platform.actions.checks import ActionRequest
from vskill_platform.actions.collections import CollectionName, read_collection
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import Right
from vskill_platform.actions.skill_names import find_installable, find_skill
from vskill_platform.actions.wire import PLAIN, Wire
from vskill_platform.domain.errors import Ambiguous, Blocked, InvalidInput, NotFound, Withdrawn
from vskill_platform.domain.token import TokenScope
from vskill_platform.store.attestations import get_attestation

MOST_LOCKED = 500


class LockSkills(ActionRequest, frozen=True, kw_only=True):
    """Which skills: by name, or a whole collection."""

    #: names, separated by commas; `NAME@VERSION` locks that version instead of the current one
    skills: Annotated[str, msgspec.Meta(max_length=40_000, pattern=PLAIN)] = ""
    #: every skill of this collection that can be installed
    collection: CollectionName | None = None


class LockedSkill(Wire, frozen=True):
    """One version of a skill."""

    #: its full name
    skill: str
    version: str
    #: names exactly its content
    digest: str
    #: the signed envelope
    attestation: dict[str, Any]


class LeftOut(Wire, frozen=True):
    """A skill of the collection that cannot be installed now."""

    skill: str
    reason: str


class LockFile(Wire, frozen=True):
    """What `install --frozen` installs."""

    lock_version: Literal[1]
    #: the registry's name
    registry: str
    #: by full name
    skills: tuple[LockedSkill, ...]
    left_out: tuple[LeftOut, ...]


async def lock(services: Services, reader: Principal, request: LockSkills) -> LockFile:
    """What is named must be installable. A collection leaves out what is not, and says so."""
    named = tuple(dict.fromkeys(part.strip() for part in request.skills.split(",") if part.strip()))
    if bool(named) == (request.collection is not None):
        fix = "name skills, or one collection"
        raise InvalidInput("A lock is of skills or of a collection.", field="skills", fix=fix)
    if len(named) > MOST_LOCKED:
        fix = f"name at most {MOST_LOCKED}, or make a collection"
        raise InvalidInput(f"{len(named)} skills are too many.", field="skills", fix=fix)
    found = {one.skill: one for one in [await _lock_one(services, reader, name) for name in named]}
    left_out: list[LeftOut] = []
    if request.collection is not None:
        for name in (await read_collection(services, reader, request.collection)).skills:
            try:
                found[name] = await _lock_one(services, reader, name)
            except (Blocked, NotFound, Withdrawn) as error:
                left_out.append(LeftOut(name, error.message))
    skills = tuple(found[name] for name in sorted(found))
    return LockFile(1, services.settings.registry_name, skills, tuple(left_out))


async def _lock_one(services: Services, reader: Principal, named: str) -> LockedSkill:
    name, _, number = named.partition("@")
    skill = await find_skill(services, reader, name)
    ref = await find_installable(services, skill, number or None)
    envelope = msgspec.json.decode(await get_attestation(skill, ref.number))
    return LockedSkill(skill.canonical, ref.number, ref.digest, envelope)


LOCK = Action(
    name="skill.lock",
    run=lock,
    request=LockSkills,
    answer=LockFile,
    method="GET",
    path="/api/v1/lock",
    right=Right.READER,
    scope=TokenScope.READ,
    errors=(Ambiguous, Blocked, NotFound, Withdrawn),
    summary="Lock skills to their versions, digests and attestations",
    tag="skills",
    page="/admin/collections",
    command="lock",
    mcp=Missing("an agent that installs uses a client"),
)

ACTIONS = (LOCK,)
