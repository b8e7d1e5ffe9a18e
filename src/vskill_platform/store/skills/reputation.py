"""A skill's standing: its age, installs, open reports and whose it is, kept in its record so that lists can sort and
filter by it. A job compares every listed skill with the facts and writes only where they changed."""

import contextlib
from collections import Counter

import msgspec

from vskill_core.errors import Conflict, CursorGone, NotFound
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Directory
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.skills.skill_changes import with_installs, with_trust
from vskill_platform.domain.skills.trust import AGE_STEP_MS, FULL_AGE_MS, Provenance, TrustFacts
from vskill_platform.records import iter_entries
from vskill_platform.store.people.namespaces import read_directory
from vskill_platform.store.people.owners import ownership_in
from vskill_platform.store.skills.installs import count_installs_until_now, installs_by_skill
from vskill_platform.store.skills.skills import iter_skills, update_skill
from vskill_platform.submission_store import read_submission
from vskill_platform.worker_context import require_env


class Known(msgspec.Struct, frozen=True):
    """What is read once for all skills."""

    installs: dict[str, int]
    open_reports: dict[str, int]
    #: Who proved control of which repository.
    directory: Directory


async def refresh_standing() -> int:
    """Write the changed skills; return their number."""
    reported = Counter(
        [keys.parse(entry.key).parts[0] async for entry in iter_entries(keys.open_report.prefix)]
    )
    known = Known(await installs_by_skill(), reported, await read_directory())
    changed = 0
    async for skill in iter_skills():
        trust = await _trust_of(skill, known)
        # This release may compute another figure from the same facts.
        if skill.listing is None or with_trust(skill, trust) == skill:
            continue
        changed += await _write(skill.canonical, trust)
    return changed


async def follow_installs(after: str | None) -> str:
    """Copy counters that changed after a cursor into their skills' records; returns the next cursor. Changes that the
    cursor no longer reaches are copied by `refresh_standing`."""
    kv = require_env("kv").kv
    after = after or await kv.change_cursor()
    counted: set[str] = set()
    while True:
        try:
            page = await kv.changes(keys.installs.prefix, after=after)
        except CursorGone:
            return await kv.change_cursor()
        counted |= {keys.parse(change.key).parts[0] for change in page.items}
        after = page.after or after
        if not page.items:
            break
    for canonical in sorted(counted):
        await _write_installs(canonical, await count_installs_until_now(canonical))
    return after


async def _write_installs(canonical: str, installs: int) -> None:
    """A skill that is gone, or whose write keeps conflicting, is left to `refresh_standing`."""
    with contextlib.suppress(NotFound, Conflict):
        await update_skill(canonical, lambda skill: with_installs(skill, installs))


async def _write(canonical: str, facts: TrustFacts) -> bool:
    """Write only age, installs, reports and provenance; keep the scan results that the record has at that moment."""

    def changed(skill: PublishedSkill) -> PublishedSkill:
        standing = {
            name: getattr(facts, name) for name in ("age_ms", "installs", "open_reports", "provenance")
        }
        return with_trust(skill, msgspec.structs.replace(skill.trust, **standing))

    try:
        await update_skill(canonical, changed)
    except Conflict:
        # Writing this skill keeps conflicting; the next run tries again.
        require_env("log").log.info("standing not written", skill=canonical)
        return False
    return True


async def _trust_of(skill: PublishedSkill, known: Known) -> TrustFacts:
    age = require_env("kv").kv.now() - skill.created_at
    return msgspec.structs.replace(
        skill.trust,
        # Rounded to the steps that count, so that a record does not change every day.
        age_ms=min(max(0, age), FULL_AGE_MS) // AGE_STEP_MS * AGE_STEP_MS,
        installs=known.installs.get(skill.canonical, 0),
        open_reports=known.open_reports.get(skill.canonical, 0),
        provenance=await _provenance(skill, known),
    )


async def _provenance(skill: PublishedSkill, known: Known) -> Provenance:
    """Whether the submitter has proved control of the repository."""
    ownership = ownership_in(known.directory, skill.identity)
    if not ownership.owners or skill.submission is None:
        return Provenance.UNKNOWN
    found = await read_submission(skill.submission)
    submitter = found[0].submitter if found else None
    return Provenance.VERIFIED if submitter and ownership.has(submitter) else Provenance.UNKNOWN
