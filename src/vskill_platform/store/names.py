"""Records of short names, at `name:{flat}`: read, claimed and released. What a claim leads to is decided by the pure
functions of `domain.names`; each record is changed by compare-and-swap together with the skill that claims, so of two
skills that want one name at once, one gets it and the other tries the next.

Skills that were published before names were held have none until they are settled: all of one slug together, in one
commit, from what they were listed under. `settle_all` does it for the whole store when it is first opened, and may run
in any number of processes; publishing settles the names that it is about to claim; a job finds what a process of an
earlier release published or wrote again.
"""

from collections.abc import AsyncIterator, Iterable, Mapping

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.errors import CursorGone, NotFound, RecordMalformed
from vskill_platform.domain.names import (
    HeldName,
    NamedSkill,
    claim_names,
    first_names,
    form_for,
    forms_from,
    names_of,
    recover_names,
    release,
)
from vskill_platform.domain.namespace import Namespace, Visibility, namespace_in
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.gate import some_at_a_time
from vskill_platform.kv.collections import SKILLS
from vskill_platform.kv.contract import iterate_pages
from vskill_platform.kv.entries import ABSENT, Entry, Operation, Put
from vskill_platform.records import Skips, decode, persist
from vskill_platform.store.audit import record_audit, was_audited
from vskill_platform.store.namespaces import read_directory, read_namespace
from vskill_platform.worker_context import require_env

#: Slugs that are settled in one commit.
AT_ONCE = 50
#: How often the job looks at all skills, and not only at what changed.
WALK_EVERY_MS = 3_600_000


class NameState(msgspec.Struct, frozen=True):
    """Records of names with their versions."""

    held: dict[str, HeldName]
    versions: dict[str, int]

    def writes(self, changed: Mapping[str, HeldName]) -> list[Operation]:
        return [
            Put(keys.name(flat), msgspec.json.encode(one), self.versions.get(flat, ABSENT))
            for flat, one in changed.items()
        ]


# Reading.


async def read_names(flats: Iterable[str]) -> NameState:
    """The records of these names that there are."""
    wanted = keys.names([*flats])
    settled = await require_env("kv").kv.get_many(wanted)
    for error in settled.failed.values():
        raise error
    held = {wanted[key]: decode(entry, HeldName) for key, entry in settled.found.items()}
    return NameState(held, {wanted[key]: entry.version for key, entry in settled.found.items()})


async def read_name(flat: str) -> HeldName:
    """Who holds a name; empty where nobody does."""
    entry = await require_env("kv").kv.get(keys.name(flat))
    return HeldName() if entry is None else decode(entry, HeldName)


# Claiming.


async def claim_writes(
    skill: PublishedSkill, namespace: Namespace
) -> tuple[PublishedSkill, tuple[Operation, ...]]:
    """The skill with the names that it needs in its namespace as that is, and what must be committed with it."""
    form = form_for(skill.canonical, namespace.visibility, skill.narrowed)
    settled: set[str] = set()
    while True:
        state = await read_names(names_of(skill.canonical))
        listed = skill.listed_as or recover_names(skill.canonical, state.held)
        claimed = claim_names(skill.canonical, form, listed, state.held, require_env("kv").kv.now())
        # A name that nobody holds may still be what a skill is listed under that has no names yet.
        new = [flat for flat in claimed.held if flat not in state.held and flat not in settled]
        owed = [flat for flat in new if await _is_slug_of_others(flat, skill.canonical)]
        if not owed:
            named = msgspec.structs.replace(skill, listed_as=claimed.listed_as[skill.canonical])
            return named, tuple(state.writes(claimed.held))
        await settle_slugs(owed)
        settled.update(owed)


async def _is_slug_of_others(flat: str, canonical: str) -> bool:
    return any([name != canonical async for name in _published_as(flat)])


def _slug_in(canonical: str) -> str:
    return canonical.rpartition("/")[2].lower()


async def name_namespace(name: str) -> None:
    """Claim what the skills of a namespace lack since more people may read them."""
    kv = require_env("kv").kv
    after: str | None = None
    while True:
        page = await kv.list(keys.skill(f"{name}/"), after=after)
        for key in page.items:
            await name_skill_record(keys.parse(key).parts[0])
        after = page.after
        if after is None:
            return


async def name_skill_record(canonical: str) -> None:
    """Claim what one published skill lacks."""
    kv = require_env("kv").kv

    async def write() -> None:
        entry = await kv.get(keys.skill(canonical))
        if entry is None:
            return
        skill = decode(entry, PublishedSkill)
        if not skill.listed_as and await _is_owed_first_names(skill):
            await settle_slugs([_slug_in(canonical)])
            return
        namespace, _ = await read_namespace(namespace_in(canonical))
        named, operations = await claim_writes(skill, namespace)
        if named != skill:
            put = Put(entry.key, msgspec.json.encode(named), entry.version)
            await kv.commit([put, *operations])

    await persist(write)


# Names from before names were held.


async def settle_skill(skill: PublishedSkill) -> None:
    """Give a published skill that has no names those that it was listed under, together with all others of its slug."""
    if not skill.listed_as and await _is_owed_first_names(skill):
        await settle_slugs([_slug_in(skill.canonical)])


async def _is_owed_first_names(skill: PublishedSkill) -> bool:
    """Whether no name was ever given to any skill of its slug."""
    slug = _slug_in(skill.canonical)
    state = await read_names(names_of(skill.canonical))
    return slug not in state.held and not recover_names(skill.canonical, state.held)


async def settle_slugs(slugs: Iterable[str]) -> None:
    """Give all skills of these slugs their first names, in one commit. A slug that somebody holds is left alone."""
    slugs = tuple(dict.fromkeys(slugs))

    async def write() -> None:
        namespaces = (await read_directory()).namespaces
        held = (await read_names(slugs)).held
        unheld = [slug for slug in slugs if slug not in held]
        found = await some_at_a_time(lambda slug: _first_writes(slug, namespaces), unheld, AT_ONCE)
        operations = [one for writes in found for one in writes]
        if operations:
            await require_env("kv").kv.commit(operations)

    await persist(write)


async def _first_writes(slug: str, namespaces: Mapping[str, Namespace]) -> list[Operation]:
    env = require_env("kv")
    settled = await env.kv.get_many([keys.skill(name) async for name in _published_as(slug)])
    skips = Skips("settle_names")
    skips.failed(settled.failed)
    read = {entry.key: skips.decode(entry, PublishedSkill) for entry in settled.found.values()}
    skips.report(env)
    skills = {key: skill for key, skill in read.items() if skill is not None}
    first = first_names(
        NamedSkill(one.canonical, _form_in(namespaces, one), one.created_at) for one in skills.values()
    )
    state = await read_names(first.held)
    # What somebody holds stays with its holder; who was listed so claims another name, like a newcomer.
    operations = state.writes({flat: one for flat, one in first.held.items() if flat not in state.held})
    for key, skill in skills.items():
        names = {
            form: flat for form, flat in first.listed_as[skill.canonical].items() if flat not in state.held
        }
        named = msgspec.structs.replace(skill, listed_as=names)
        operations.append(Put(key, msgspec.json.encode(named), settled.found[key].version))
    return operations


async def _published_as(slug: str) -> AsyncIterator[str]:
    async for page in iterate_pages(require_env("kv").kv, keys.aliases_of(slug)):
        for error in page.failed.values():
            raise error
        for entry in page.items:
            canonical = keys.parse(entry.key).parts[1]
            if _slug_in(canonical) == slug:
                yield canonical


def _form_in(namespaces: Mapping[str, Namespace], skill: "PublishedSkill | _Names") -> str:
    name = namespace_in(skill.canonical)
    return form_for(skill.canonical, namespaces.get(name, Namespace(name)).visibility, skill.narrowed)


class _Names(msgspec.Struct, frozen=True):
    """All that a walk looks at."""

    canonical: str = ""
    listed_as: dict[str, str] = {}
    narrowed: Visibility | None = None


def _is_named(entry: Entry) -> bool:
    """A record that cannot be read needs no name."""
    try:
        return bool(decode(entry, _Names).listed_as)
    except RecordMalformed:
        return True


async def settle_store() -> None:
    """Give every skill its names, once in the life of a store; a process that is stopped over it leaves the rest."""
    env = require_env("kv")
    if await env.kv.get(keys.CONTROL_NAMES) is not None:
        return
    if not (await env.kv.list(SKILLS.prefix, limit=1)).items:
        # An empty store stays empty, so that a backup can be restored into it.
        return
    named = await settle_all()
    await env.kv.put(keys.CONTROL_NAMES, b"{}")
    if named:
        env.log.info("short names were given to the skills of an earlier release", skills=named)


async def settle_all() -> int:
    """Find every skill without names and give it some; how many there were. One that lacks a name for all who may read
    it by now gets that too: its namespace was opened by a process that ended over it."""
    env = require_env("kv")
    skips = Skips("settle_names")
    namespaces = (await read_directory()).namespaces
    count = 0
    async for page in iterate_pages(env.kv, SKILLS.prefix, exclude=SKILLS.exclude):
        skips.failed(page.failed)
        decoded = [skips.decode(entry, _Names) for entry in page.items]
        found = [one for one in decoded if one is not None and one.canonical]
        unnamed = [one.canonical for one in found if not one.listed_as]
        for one in found:
            if one.listed_as and not one.listed_as.keys() & set(forms_from(_form_in(namespaces, one))):
                await name_skill_record(one.canonical)
        for begin in range(0, len(unnamed), AT_ONCE):
            batch = unnamed[begin : begin + AT_ONCE]
            await settle_slugs(map(_slug_in, batch))
            settled = await env.kv.get_many(map(keys.skill, batch))
            for entry in settled.found.values():
                if not _is_named(entry):
                    await name_skill_record(keys.parse(entry.key).parts[0])
        count += len(unnamed)
    skips.report(env)
    return count


async def follow_changes(cursor: str | None, walked_at: int) -> tuple[str | None, int]:
    """Name what a process of an earlier release published or wrote again; where the next look goes on."""
    kv = require_env("kv").kv
    if cursor is None or kv.now() - walked_at > WALK_EVERY_MS:
        cursor = await kv.change_cursor()
        await settle_all()
        return cursor, kv.now()
    try:
        while True:
            page = await kv.changes(SKILLS.prefix, after=cursor)
            for key in dict.fromkeys(one.key for one in page.items if SKILLS.holds(one.key)):
                entry = await kv.get(key)
                if entry is not None and not _is_named(entry):
                    await name_skill_record(keys.parse(key).parts[0])
            if page.after in (cursor, None):
                return cursor, walked_at
            cursor = page.after
    except CursorGone:
        return None, walked_at


# Releasing.


async def release_name(canonical: str, flat: str, *, by: str, reason: str) -> PublishedSkill:
    """Take a name from the skill that holds it; the skill claims its next best one."""
    env = require_env("kv")
    entry_id = env.clock.new_id()

    async def write() -> PublishedSkill:
        entry = await env.kv.get(keys.skill(canonical))
        if entry is None:
            raise NotFound(f"There is no skill {canonical}.", skill=canonical)
        skill = decode(entry, PublishedSkill)
        if await was_audited(entry_id):
            return skill
        state = await read_names(dict.fromkeys((*names_of(canonical), flat)))
        if all(one.canonical != canonical for one in state.held.get(flat, HeldName()).holders.values()):
            raise NotFound(f"{canonical} does not hold the name {flat[:100]!r}.", skill=canonical)
        namespace, _ = await read_namespace(namespace_in(canonical))
        form = form_for(canonical, namespace.visibility, skill.narrowed)
        released = release(canonical, flat, form, skill.listed_as, state.held, env.kv.now())
        changed = msgspec.structs.replace(skill, listed_as=released.listed_as[canonical])
        audit = record_audit(
            "release name", flat, by=by, reason=reason, details={"skill": canonical}, entry_id=entry_id
        )
        put = Put(entry.key, msgspec.json.encode(changed), entry.version)
        await env.kv.commit([put, *state.writes(released.held), audit])
        return changed

    return await persist(write)
