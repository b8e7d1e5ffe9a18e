"""The versions of published skills and their files. A content never changes, and every byte is verified when it is
read. Whether a version may be handed out is decided in `skill_names`."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from vskill_client.wire.base import Wire
from vskill_client.wire.skills import SkillRequest
from vskill_core.content import SkillFile, skill_file_of
from vskill_core.errors import Ambiguous, Blocked, NotFound, Withdrawn
from vskill_platform.actions.action import Keep, Services, action
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.skills.skill_names import current_blocklist, find_installable, find_skill
from vskill_platform.actions.skills.skill_views import VersionsAnswer, version_views
from vskill_platform.domain.skills.skill import PublishedSkill, SkillVersion, VersionRef
from vskill_platform.store.recall.attestations import get_attestation
from vskill_platform.store.skills import skills
from vskill_platform.store.stored_content import read_content
from vskill_scan.reading.manifest import read_front_matter

#: A version's number as reads take it.
ReadNumber = Annotated[str, msgspec.Meta(min_length=1, max_length=80)]


class ReadVersion(SkillRequest, frozen=True, kw_only=True):
    """One version of a skill."""

    #: the current one where none is named
    version: ReadNumber | None = None


class FileView(Wire, frozen=True):
    """One file, without its bytes."""

    path: str
    #: as git writes it: 100644 or 100755
    mode: str
    size: int
    sha256: str


class FilesAnswer(Wire, frozen=True):
    """The files of a version, by path."""

    name: str
    version: str
    digest: str
    files: tuple[FileView, ...]


async def list_files(services: Services, reader: Principal, request: ReadVersion) -> FilesAnswer:
    skill = await find_skill(reader, request.skill)
    ref = await find_installable(services, skill, request.version)
    record = await read_version(skill, ref)
    shown = tuple(FileView.of(one) for one in record.manifest)
    return FilesAnswer(skill.canonical, ref.number, ref.digest, shown)


async def list_versions(services: Services, reader: Principal, request: SkillRequest) -> VersionsAnswer:
    skill = await find_skill(reader, request.skill)
    records = await read_versions(skill)
    return VersionsAnswer(skill.canonical, version_views(skill, records, await current_blocklist(services)))


async def read_files(digest: str) -> tuple[SkillFile, ...]:
    """The files of a content."""
    return await read_content(digest)


async def read_file(skill: PublishedSkill, ref: VersionRef, path: str) -> SkillFile:
    """One file of a version; NotFound where it has none of that name."""
    found = next((one for one in await read_files(ref.digest) if one.path == path), None)
    if found is None:
        raise NotFound(f"{skill.canonical} {ref.number} has no file {path[:200]!r}.", path=path[:200])
    return found


async def read_skill_text(services: Services, digest: str) -> str:
    """The SKILL.md of a content; the process keeps it."""
    text = services.kept.texts.get(digest)
    if text is None:
        file = skill_file_of(await read_files(digest))
        text = file.data.decode("utf-8", "replace")
        services.kept.texts.put(digest, text, len(file.data))
    return text


async def read_fields(services: Services, digest: str) -> dict[str, Any] | None:
    """Every field of the front matter of a content; None where it is not plain YAML."""
    return read_front_matter((await read_skill_text(services, digest)).encode())


async def read_version(skill: PublishedSkill, ref: VersionRef) -> SkillVersion:
    """The immutable record of one version, with the manifest of its files."""
    return await skills.get_version(skill.canonical, ref.number)


async def read_versions(skill: PublishedSkill) -> dict[str, SkillVersion]:
    """The immutable records by number; what cannot be read is left out, counted and logged."""
    return await skills.read_versions(skill)


async def read_current_versions(numbers: Mapping[str, str]) -> dict[str, SkillVersion]:
    """The same of one version each of several skills, by canonical name."""
    return await skills.read_current_versions(numbers)


async def read_attestation(reader: Principal, canonical: str, number: str) -> bytes:
    """The signed statement about one version, byte for byte as it was signed."""
    skill, _ = await skills.find_by_full_name(canonical, audiences=audiences_of(reader))
    return await get_attestation(skill, number)


_SKILL = "/api/v1/skills/{skill}"

LIST_FILES = action(
    list_files,
    "skill.files",
    f"{_SKILL}/files",
    method="GET",
    right=Right.READER,
    errors=(NotFound, Ambiguous, Blocked, Withdrawn),
    keep=Keep.BY_TAG,
    summary="List the files of a version",
)
LIST_VERSIONS = action(
    list_versions,
    "skill.versions",
    f"{_SKILL}/versions",
    method="GET",
    right=Right.READER,
    errors=(NotFound, Ambiguous),
    keep=Keep.BY_TAG,
    summary="List the versions of a skill, newest first",
    command="",
)

ACTIONS = (LIST_FILES, LIST_VERSIONS)
