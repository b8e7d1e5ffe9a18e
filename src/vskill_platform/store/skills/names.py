"""Records of short names, at `name:{flat}`: read, claimed and released. The pure functions of `domain.skills.names`
decide a claim; each record is changed by compare-and-swap together with the claiming skill, so if two skills want one
name at once, one gets it and the other tries the next.
"""

from collections.abc import Iterable, Mapping

import msgspec

from vskill_core.errors import NotFound
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Namespace, Visibility, namespace_in
from vskill_platform.domain.skills.names import HeldName, claim_names, form_for, forms_from, names_of, release
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.ledger.kv.entries import ABSENT, Operation, Put
from vskill_platform.records import decode, iter_readable_records, persist, read_entries, read_record
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.store.people.namespaces import read_directory, read_namespace
from vskill_platform.worker_context import require_env


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
    wanted = keys.names([*flats])
    stored = await read_entries(wanted)
    held = {wanted[key]: decode(entry, HeldName) for key, entry in stored.items()}
    return NameState(held, {wanted[key]: entry.version for key, entry in stored.items()})


async def read_name(flat: str) -> HeldName:
    return (await read_record(keys.name(flat), HeldName))[0] or HeldName()


# Claiming.


async def claim_writes(
    skill: PublishedSkill, namespace: Namespace
) -> tuple[PublishedSkill, tuple[Operation, ...]]:
    """The skill with the names that it needs for its namespace's readers, and the operations to commit with it."""
    form = form_for(skill.canonical, namespace.visibility, skill.narrowed)
    state = await read_names(names_of(skill.canonical))
    claimed = claim_names(skill.canonical, form, skill.listed_as, state.held, require_env("kv").kv.now())
    named = msgspec.structs.replace(skill, listed_as=claimed.listed_as[skill.canonical])
    return named, tuple(state.writes(claimed.held))


async def name_namespace(name: str) -> None:
    """Claim names that the skills of a namespace lack after it was opened to more readers."""
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
    """Claim the names that one published skill lacks."""
    kv, key = require_env("kv").kv, keys.skill(canonical)

    async def write() -> None:
        skill, version = await read_record(key, PublishedSkill)
        if skill is None:
            return
        namespace, _ = await read_namespace(namespace_in(canonical))
        named, operations = await claim_writes(skill, namespace)
        if named != skill:
            put = Put(key, msgspec.json.encode(named), version)
            await kv.commit([put, *operations])

    await persist(write)


class _Names(msgspec.Struct, frozen=True):
    """All that a walk looks at."""

    canonical: str = ""
    listed_as: dict[str, str] = {}
    narrowed: Visibility | None = None


async def name_shown_skills() -> int:
    """Name every skill that lacks a name for its readers; how many there were. A process that dies between opening a
    namespace and naming its skills leaves some."""
    namespaces = (await read_directory()).namespaces
    count = 0
    async for skill in iter_readable_records(SKILLS, _Names, "name_skills"):
        if not skill.canonical:
            continue
        name = namespace_in(skill.canonical)
        visibility = namespaces.get(name, Namespace(name)).visibility
        forms = forms_from(form_for(skill.canonical, visibility, skill.narrowed))
        if not skill.listed_as.keys() & set(forms):
            await name_skill_record(skill.canonical)
            count += 1
    return count


# Releasing.


async def release_name(canonical: str, flat: str, *, by: str, reason: str) -> PublishedSkill:
    """Take a name from the skill that holds it; the skill claims its next best one."""
    now, key = require_env("kv").kv.now(), keys.skill(canonical)

    async def write() -> tuple[PublishedSkill, list[Operation]]:
        skill, version = await read_record(key, PublishedSkill)
        if skill is None:
            raise NotFound(f"There is no skill {canonical}.", skill=canonical)
        state = await read_names(dict.fromkeys((*names_of(canonical), flat)))
        if all(one.canonical != canonical for one in state.held.get(flat, HeldName()).holders.values()):
            raise NotFound(f"{canonical} does not hold the name {flat[:100]!r}.", skill=canonical)
        namespace, _ = await read_namespace(namespace_in(canonical))
        form = form_for(canonical, namespace.visibility, skill.narrowed)
        released = release(canonical, flat, form, skill.listed_as, state.held, now)
        changed = msgspec.structs.replace(skill, listed_as=released.listed_as[canonical])
        put = Put(key, msgspec.json.encode(changed), version)
        return changed, [put, *state.writes(released.held)]

    return await commit_audited(AuditNote("release name", flat, by, reason, {"skill": canonical}), write)
