"""What an install needs: the archive of a version, its signed attestation, and the registry's public keys. Afterwards
the install is counted.

These routes are older than the table and known to other clients, so `web` declares them by hand.
"""

import asyncio

from vskill_client.wire import skills as skills_calls
from vskill_client.wire.skills import (
    AttestedVersion,
    DownloadVersion,
    InstallAnswer,
    KeySet,
    KeysRequest,
    SkillRequest,
)
from vskill_core.archives import TAR_TYPE, tar_archive, zip_archive
from vskill_core.dsse import ENVELOPE_TYPE, seal
from vskill_core.errors import Ambiguous, Blocked, NotFound, Withdrawn
from vskill_platform.actions.action import Allowance, Services, action_for
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.actions.skills.installs import count_install_of
from vskill_platform.actions.skills.skill_contents import read_attestation, read_files
from vskill_platform.actions.skills.skill_names import find_installable, find_skill
from vskill_platform.store.recall.attestations import public_keys, remember_signer


async def download(services: Services, reader: Principal, request: DownloadVersion) -> bytes:
    skill = await find_skill(reader, request.skill)
    files = await read_files((await find_installable(services, skill, request.version)).digest)
    return await asyncio.to_thread(zip_archive if request.format == "zip" else tar_archive, files)


async def show_attestation(reader: Principal, request: AttestedVersion) -> bytes:
    return await read_attestation(reader, request.skill, request.version)


async def show_keys(_request: KeysRequest) -> KeySet:
    """Every public key, the one that signs now first."""
    return KeySet(tuple(key.jwk for key in await public_keys()))


async def sign(services: Services, statement: bytes) -> bytes:
    """An envelope around a statement, by the key that signs now."""
    if services.signing is None:
        raise NotFound("This process has no key to sign with.")
    key = await services.signing.current()
    await remember_signer(key.public)
    return seal(statement, key)


async def count_install(reader: Principal, request: SkillRequest) -> InstallAnswer:
    skill = await count_install_of(reader, request.skill)
    return InstallAnswer(ok=True, name=skill.canonical)


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

ACTIONS = (DOWNLOAD, ATTESTATION, KEYS, COUNT_INSTALL)
