"""What an install needs: the archive of a version, its signed attestation, and the registry's public keys. Afterwards
the install is counted.

These routes are older than the table and known to other clients, so `web` declares them by hand.
"""

import asyncio

from vskill_platform.actions.action import Action, Allowance, Missing, Services
from vskill_platform.actions.installs import count_install_of
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import Right
from vskill_platform.actions.skill_contents import read_attestation, read_files
from vskill_platform.actions.skill_names import find_installable, find_skill
from vskill_platform.client.wire.skills import (
    AttestedVersion,
    DownloadVersion,
    InstallAnswer,
    KeySet,
    KeysRequest,
    SkillRequest,
)
from vskill_platform.domain.archives import TAR_TYPE, tar_archive, zip_archive
from vskill_platform.domain.errors import Ambiguous, Blocked, NotFound, Withdrawn
from vskill_platform.domain.token import TokenScope
from vskill_platform.signing.dsse import ENVELOPE_TYPE
from vskill_platform.store.attestations import public_keys


async def download(services: Services, reader: Principal, request: DownloadVersion) -> bytes:
    skill = await find_skill(services, reader, request.skill)
    files = await read_files(services, (await find_installable(services, skill, request.version)).digest)
    return await asyncio.to_thread(zip_archive if request.format == "zip" else tar_archive, files)


async def show_attestation(services: Services, reader: Principal, request: AttestedVersion) -> bytes:
    return await read_attestation(services, reader, request.skill, request.version)


async def show_keys(_services: Services, _reader: Principal, _request: KeysRequest) -> KeySet:
    """Every public key, the one that signs now first."""
    return KeySet(tuple(key.jwk for key in await public_keys()))


async def count_install(services: Services, reader: Principal, request: SkillRequest) -> InstallAnswer:
    skill = await count_install_of(services, reader, request.skill)
    return InstallAnswer(ok=True, name=skill.canonical)


_NO_TOOL = Missing("an agent reads files as resources")

DOWNLOAD = Action(
    name="skill.download",
    run=download,
    request=DownloadVersion,
    answer=bytes,
    method="GET",
    path="/api/v1/skills/{skill}/archive",
    route_by_hand=True,
    right=Right.READER,
    scope=TokenScope.READ,
    errors=(Ambiguous, Blocked, NotFound, Withdrawn),
    media=TAR_TYPE,
    summary="Download a version as an archive",
    tag="skills",
    page="/skills/{owner}/{repo}/{slug}",
    command="install",
    mcp=_NO_TOOL,
)
ATTESTATION = Action(
    name="skill.attestation",
    run=show_attestation,
    request=AttestedVersion,
    answer=bytes,
    method="GET",
    path="/api/v1/skills/{skill}/versions/{version}/attestation",
    route_by_hand=True,
    right=Right.READER,
    scope=TokenScope.READ,
    errors=(Blocked, NotFound),
    media=ENVELOPE_TYPE,
    summary="Read the signed attestation of a version",
    tag="skills",
    page="/skills/{owner}/{repo}/{slug}",
    command="verify",
    mcp=_NO_TOOL,
)
KEYS = Action(
    name="keys.list",
    run=show_keys,
    request=KeysRequest,
    answer=KeySet,
    method="GET",
    path="/.well-known/vskill-keys.json",
    route_by_hand=True,
    right=Right.ANYONE,
    scope=TokenScope.READ,
    summary="Read the public signing keys as a key set",
    tag="keys",
    page=Missing("keys are for programs"),
    command="verify",
    mcp=Missing("keys are for programs that check signatures"),
)
COUNT_INSTALL = Action(
    name="skill.count_install",
    run=count_install,
    request=SkillRequest,
    answer=InstallAnswer,
    path="/api/v1/skills/{skill}/installs",
    route_by_hand=True,
    right=Right.READER,
    scope=TokenScope.READ,
    errors=(Ambiguous, NotFound),
    allowance=Allowance.INSTALLS,
    status=201,
    summary="Count an install of this skill",
    tag="skills",
    page=Missing("clients count what they install"),
    command="install",
    mcp=Missing("an agent that installs uses a client that counts"),
)

ACTIONS = (DOWNLOAD, ATTESTATION, KEYS, COUNT_INSTALL)
