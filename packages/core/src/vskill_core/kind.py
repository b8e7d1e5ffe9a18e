"""What a folder is published as: a skill, or a plugin, which clients install whole.

A root with a SKILL.md is a skill, although many have a plugin's manifest as well; one without is a plugin where it has
a manifest. A maintainer may say otherwise.
"""

import enum
from collections.abc import Iterable

from vskill_core.content import SkillFile, skill_file_of
from vskill_core.identity import SKILL_FILE

#: Where the manifest of a plugin stands, by Agent Plugins 1.0.0 and by the form before it.
STANDARD, OLDER = "plugin.json", ".claude-plugin/plugin.json"
#: What a manifest by the standard holds, however its slashes are written. Many other tools have a `plugin.json` too.
STANDARD_SIGN = b"agent-plugins.org"
PLUGIN_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
#: Where there is no SKILL.md and a `plugin.json` that may be somebody else's.
UNSIGNED = f'{STANDARD} would make it a plugin if it said "$schema": "{PLUGIN_SCHEMA}"'
#: The last line of a SKILL.md that a registry made.
MADE_HERE = "This file was made by the registry: the plugin has none of its own."


class Kind(enum.StrEnum):
    """What a folder is published as."""

    SKILL = "skill"
    PLUGIN = "plugin"


def is_manifest(path: str, data: bytes) -> bool:
    """Whether a file at this path in a folder makes that folder a plugin."""
    return path == OLDER or (path == STANDARD and STANDARD_SIGN in data)


def has_manifest(files: Iterable[SkillFile]) -> bool:
    return any(is_manifest(file.path, file.data) for file in files)


def is_made_here(file: SkillFile) -> bool:
    """Whether this is the SKILL.md that a registry makes of a plugin."""
    return file.path == SKILL_FILE and file.data.rstrip().endswith(MADE_HERE.encode())


def require_content(files: Iterable[SkillFile], where: str = "at this address") -> None:
    """NoSkillFound for files that are neither a skill nor a plugin."""
    files = tuple(files)
    if not has_manifest(files):
        more = f". Its {UNSIGNED}" if any(file.path == STANDARD for file in files) else ""
        skill_file_of(files, where + more)


def kind_of(files: Iterable[SkillFile]) -> Kind:
    """Without a word of its maintainer."""
    files = tuple(files)
    has_own = any(file.path == SKILL_FILE and not is_made_here(file) for file in files)
    return Kind.PLUGIN if has_manifest(files) and not has_own else Kind.SKILL
