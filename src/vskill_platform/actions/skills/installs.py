"""What an install needs: the archive of a version, its signed attestation, the registry's public keys, and lock files.
Afterwards the install is counted, by skill and day; nothing about who installed it is kept.
"""

import asyncio
from collections.abc import Sequence

import msgspec

from vskill_client.wire import skills as skills_calls
from vskill_client.wire.base import NoParameters
from vskill_client.wire.skills import (
    AttestedVersion,
    DownloadVersion,
    InstallAnswer,
    KeySet,
    LeftOut,
    LockedSkill,
    LockFile,
    LockSkills,
    SkillRequest,
)
from vskill_core.archives import tar_archive
from vskill_core.dsse import ENVELOPE_TYPE, seal
from vskill_core.errors import Ambiguous, Blocked, InvalidInput, NotFound, RecordMalformed, Withdrawn
from vskill_platform.actions.action import Allowance, Services, action_for
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.actions.skills import skill_names
from vskill_platform.actions.skills.collections import read_collection
from vskill_platform.domain.downloads import TAR_TYPE, zip_archive
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.skills.skill_changes import with_installs
from vskill_platform.machine.slots import some_at_a_time
from vskill_platform.store.recall.attestations import get_attestation, public_keys, remember_signer
from vskill_platform.store.skills import installs

#: Names that are looked up at the same time.
AT_ONCE = 16


async def count_install_of(reader: Principal, name: str, repo_url: str | None = None) -> PublishedSkill:
    """Count one more install of the skill that a client names; an address of no repository has no skills."""
    try:
        skill = await skill_names.find_skill(reader, name, repo_url)
    except InvalidInput as error:
        raise NotFound(f"There is no skill {name[:200]} there: {error.message}", skill=name[:200]) from error
    await count_download(skill)
    return skill


async def count_installs_of(
    reader: Principal, wanted: Sequence[tuple[str, str | None]]
) -> tuple[str | None, ...]:
    """Count one more install of each skill that a client names, by name and repository. The canonical name of each, or
    None where there is no such skill: one unknown name loses none of the others."""

    async def look(one: tuple[str, str | None]) -> str | None:
        try:
            return (await skill_names.find_skill(reader, *one)).canonical
        except (NotFound, Ambiguous, InvalidInput):
            return None

    found = tuple(await some_at_a_time(look, wanted, AT_ONCE))
    await installs.count_installs(name for name in found if name is not None)
    return found


async def with_current_installs(services: Services, skill: PublishedSkill) -> PublishedSkill:
    """The skill with its installs counted now. Its record, which lists are made of, follows within a minute."""
    try:
        return with_installs(skill, await installs.count_installs_until_now(skill.canonical))
    except RecordMalformed as error:
        services.log.warning("installs not counted", skill=skill.canonical, error=error.message)
        return skill


async def count_download(skill: PublishedSkill) -> None:
    await installs.count_installs([skill.canonical])


async def download(services: Services, reader: Principal, request: DownloadVersion) -> bytes:
    skill = await skill_names.find_skill(reader, request.skill)
    files = await skill_names.read_files(
        (await skill_names.find_installable(services, skill, request.version)).digest
    )
    return await asyncio.to_thread(zip_archive if request.format == "zip" else tar_archive, files)


async def show_attestation(reader: Principal, request: AttestedVersion) -> bytes:
    return await skill_names.read_attestation(reader, request.skill, request.version)


async def show_keys(_request: NoParameters) -> KeySet:
    return KeySet(tuple(key.jwk for key in await public_keys()))


async def sign(services: Services, statement: bytes) -> bytes:
    if services.signing is None:
        raise NotFound("This process has no key to sign with.")
    key = await services.signing.current()
    await remember_signer(key.public)
    return seal(statement, key)


async def count_install(reader: Principal, request: SkillRequest) -> InstallAnswer:
    skill = await count_install_of(reader, request.skill)
    return InstallAnswer(ok=True, name=skill.canonical)


# The first four routes are older than the table and known to other clients, so `web` declares them by hand.


DOWNLOAD = action_for(
    download,
    skills_calls.DOWNLOAD,
    route_by_hand=True,
    right=Right.READER,
    errors=(Ambiguous, Blocked, NotFound, Withdrawn),
    media=TAR_TYPE,
    summary="Download a version as an archive",
    command="install",
)
ATTESTATION = action_for(
    show_attestation,
    skills_calls.ATTESTATION,
    route_by_hand=True,
    right=Right.READER,
    errors=(Blocked, NotFound),
    media=ENVELOPE_TYPE,
    summary="Read the signed attestation of a version",
    command="verify",
)
KEYS = action_for(
    show_keys,
    skills_calls.KEYS,
    route_by_hand=True,
    right=Right.ANYONE,
    summary="Read the public signing keys as a key set",
    command="verify",
)
COUNT_INSTALL = action_for(
    count_install,
    skills_calls.COUNT_INSTALL,
    route_by_hand=True,
    right=Right.READER,
    errors=(Ambiguous, NotFound),
    allowance=Allowance.INSTALLS,
    status=201,
    summary="Count an install of this skill",
    command="install",
)


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
    skill = await skill_names.find_skill(reader, name)
    ref = await skill_names.find_installable(services, skill, number or None)
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
