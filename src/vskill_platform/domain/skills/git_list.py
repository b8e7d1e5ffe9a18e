"""Lists of skills as git repositories of one commit: what is stored of one, when it must be made again, and what it
says about skills that were withdrawn.

A list is made of records alone, so every process makes the same. It is made once for each change and kept by its digest
in the content store; the record at `git_list:{scope}:{form}` says which one is served.
"""

import msgspec

from vskill_core.content import SkillFile
from vskill_core.revocation_list import RevokedStatus
from vskill_platform.domain.skills.plugin_form import generated_files
from vskill_platform.domain.skills.skill import PublishedSkill, listed_version, revoked_versions

#: Stands for the registry's address in a stored list; no JSON text holds this byte.
BASE = b"\0"
MANIFEST = ".claude-plugin/marketplace.json"
#: The folder of plugins without skills, which take the place of what was withdrawn.
WITHDRAWN = "withdrawn"
_WORDS = {
    RevokedStatus.BLOCKED: "Blocked",
    RevokedStatus.TAKEN_DOWN: "Taken down",
    RevokedStatus.YANKED: "Withdrawn by its owner",
    RevokedStatus.DELETED: "Deleted by its owner",
}


class ListMarks(msgspec.Struct, frozen=True):
    """The state of the registry that a list was made at."""

    #: position of the last change that it holds; None where the engine has none
    seen: str | None
    #: versions of the blocklist, of who may read what, and of the collection
    blocklist: int
    directory: int
    collection: int = 0


class ServedList(msgspec.Struct, frozen=True):
    """What makes one commit: the content, and the commit's own words."""

    #: of the content
    digest: str
    #: of the last change that is in it, in milliseconds
    changed_at: int
    message: str


class GitList(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `git_list:{scope}:{form}`."""

    served: ServedList
    marks: ListMarks
    #: when it was last made, or found to be unchanged
    checked_at: int
    #: what was served before, for a client that is between its two requests; None where its readers were others
    before: ServedList | None = None


def must_check(known: GitList, marks: ListMarks, now: int, interval_ms: int) -> bool:
    """Whether a list must be made anew before it is served, where something has changed since it was made. A change of
    who may read counts at once; for all else there is one commit in each interval."""
    if (known.marks.directory, known.marks.collection) != (marks.directory, marks.collection):
        return True
    # A time in the future is one before the clock went back.
    return not 0 <= now - known.checked_at < interval_ms


def follow_list(known: GitList | None, served: ServedList, marks: ListMarks, now: int) -> GitList:
    """The record after a list was made."""
    if known is None or known.marks.directory != marks.directory:
        return GitList(served, marks, now)
    before = known.before if known.served == served else known.served
    return GitList(served, marks, now, before)


def tombstone(name: str, skill: PublishedSkill) -> tuple[SkillFile, ...]:
    """A plugin without skills: whoever updates to it loses the skill."""
    made = generated_files(name, withdrawn_number(skill), say_withdrawn(skill))
    return tuple(SkillFile(f"{WITHDRAWN}/{name}/{one.path}", one.mode, one.data) for one in made)


def withdrawn_number(skill: PublishedSkill) -> str:
    """The number of a plugin without skills. Clients show it when they install, update and list, and nothing else of a
    plugin, so it says what it is; it is above the number before it, and below the one after a restore."""
    return f"{listed_version(skill)}.{WITHDRAWN}"


def say_withdrawn(skill: PublishedSkill) -> str:
    """Why no version of a skill can be installed, and what to do."""
    last = revoked_versions(skill)[-1]
    reason = last.reason.strip().rstrip(".")
    danger = ", ".join(one for one in (last.threat_type, last.severity) if one)
    how = f"{_WORDS[last.status]} ({danger})" if danger else _WORDS[last.status]
    return (
        f"WITHDRAWN, this plugin is empty. {how}: {reason}. No version of {skill.canonical} is offered, and nothing "
        "replaces it: remove this plugin, and search the registry for another skill."
    )
