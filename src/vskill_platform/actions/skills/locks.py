"""Lock files: which version of each skill of a list or a collection is current, with its digest and its attestation.
`install --frozen` installs exactly that, and `verify --lock` compares folders with it."""

import msgspec

from vskill_client.wire import skills as skills_calls
from vskill_client.wire.skills import LeftOut, LockedSkill, LockFile, LockSkills
from vskill_core.errors import Ambiguous, Blocked, InvalidInput, NotFound, Withdrawn
from vskill_platform.actions.action import Services, action_for
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.actions.skills.collections import read_collection
from vskill_platform.actions.skills.skill_names import find_installable, find_skill
from vskill_platform.store.recall.attestations import get_attestation

MOST_LOCKED = 500


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
    skill = await find_skill(reader, name)
    ref = await find_installable(services, skill, number or None)
    envelope = msgspec.json.decode(await get_attestation(skill, ref.number))
    return LockedSkill(skill.canonical, ref.number, ref.digest, envelope)


LOCK = action_for(
    lock,
    skills_calls.LOCK,
    right=Right.READER,
    errors=(Ambiguous, Blocked, NotFound, Withdrawn),
    summary="Lock skills to their versions, digests and attestations",
    command="lock",
)

ACTIONS = (LOCK,)
