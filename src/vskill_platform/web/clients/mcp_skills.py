"""The extension for skills of MCP (SEP-2640): `skills/list` and `skills/get`, with the SHA-256 of every file, and
`resources/directory/read`.

The digests are those of the version's manifest, and so those of its attestation. The last part of an entry's address
before the file must be the name in the front matter: where that is not the slug, `/-/NAME` stands between. A skill
whose front matter is not what the Agent Skills specification asks for, or that is larger than every host must take, is
in no list and has no entry; its files are resources all the same.
"""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, unquote

from vskill_core.errors import BlobUnavailable
from vskill_core.identity import SKILL_FILE
from vskill_core.naming import is_plain_name
from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import Principal, reads_as_public
from vskill_platform.actions.skills.skill_contents import read_current_versions, read_fields
from vskill_platform.domain.skills.skill import PublishedSkill, SkillVersion

EXTENSION = "io.modelcontextprotocol/skills"
FOLDER_TYPE = "inode/directory"
SCHEME = "skill://"
#: Entries in one answer: each needs a look at its SKILL.md.
PAGE = 50
#: What every host must accept; larger skills are not offered.
MOST_FILES = 512
MOST_BYTES = 16 * 1024 * 1024
#: How long a host may rely on an answer: a recall must not wait longer.
TTL_MS = 10_000
#: Stands between a slug and a name that differs from it.
_BY_NAME = "-"


def file_uri(canonical: str, path: str, name: str = "") -> str:
    """The address of one file; `name` is that in the front matter, where it matters."""
    slug = canonical.rpartition("/")[2]
    parts = [*canonical.split("/"), *((_BY_NAME, name) if name not in ("", slug) else ()), *path.split("/")]
    return SCHEME + "/".join(quote(part, safe="~") for part in parts if part)


def skill_uri(canonical: str, name: str) -> str:
    """The address of a SKILL.md; a name that the Agent Skills specification does not allow is left out."""
    return file_uri(canonical, SKILL_FILE, name if is_plain_name(name) else "")


def split_uri(uri: str) -> tuple[str, str] | None:
    """The canonical name and the path, empty for the skill's own folder; None where it is not the address of a
    skill."""
    parts = [unquote(part) for part in uri.removeprefix(SCHEME).split("/")]
    if not uri.startswith(SCHEME) or len(parts) < 3:
        return None
    rest = parts[5:] if parts[3:4] == [_BY_NAME] else parts[3:]
    return "/".join(parts[:3]), "/".join(rest)


async def folder_children(uri: str, canonical: str, number: str, folder: str) -> list[dict[str, Any]]:
    """What lies directly in a folder of a version, by name; nothing where there is no such folder. A skill has no empty
    ones."""
    versions = await read_current_versions({canonical: number})
    above = f"{folder}/" if folder else ""
    found: dict[str, dict[str, Any]] = {}
    for file in versions[canonical].manifest if canonical in versions else ():
        name, deeper, _ = file.path.removeprefix(above).partition("/")
        if not file.path.startswith(above) or name in found:
            continue
        child: dict[str, Any] = {"uri": f"{uri}/{quote(name, safe='~')}", "name": name}
        if deeper:
            child["mimeType"] = FOLDER_TYPE
        else:
            child |= {"size": file.size} | ({"mimeType": "text/markdown"} if name.endswith(".md") else {})
        found[name] = child
    return [found[name] for name in sorted(found)]


async def skill_entries(services: Services, skills: Sequence[PublishedSkill]) -> list[dict[str, Any]]:
    """The entries of those that conform, in their order."""
    numbers = {one.canonical: one.current_version or "" for one in skills}
    versions = await read_current_versions(numbers)
    found = [
        await _entry(services, one.canonical, versions[one.canonical])
        for one in skills
        if one.canonical in versions
    ]
    return [one for one in found if one is not None]


async def _entry(services: Services, canonical: str, version: SkillVersion) -> dict[str, Any] | None:
    try:
        fields = await read_fields(services, version.digest) or {}
    except BlobUnavailable as error:
        # One skill must not hide the others.
        services.log.warning("left out of skills/list", skill=canonical, error=error.message)
        return None
    name, about = fields.get("name"), fields.get("description")
    is_named = isinstance(name, str) and is_plain_name(name) and isinstance(about, str) and about.strip()
    size = sum(file.size for file in version.manifest)
    if not is_named or len(version.manifest) > MOST_FILES or size > MOST_BYTES:
        return None
    return {
        "uri": file_uri(canonical, SKILL_FILE, str(name)),
        "frontmatter": fields,
        "resources": [
            {
                "uri": file_uri(canonical, file.path, str(name)),
                "digest": f"sha256:{file.sha256}",
                "size": file.size,
            }
            for file in version.manifest
        ],
    }


def cacheable(services: Services, reader: Principal, **result: Any) -> dict[str, Any]:
    """A result with what a host may do with it."""
    scope = "public" if reads_as_public(services, reader) else "private"
    kept = {name: value for name, value in result.items() if value is not None}
    return {"resultType": "complete", **kept, "ttlMs": TTL_MS, "cacheScope": scope}
