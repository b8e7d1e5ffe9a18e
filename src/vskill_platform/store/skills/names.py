"""Records of short names, at `name:{flat}`: read, claimed and released. What a claim leads to is decided by the pure
functions of `domain.skills.names`; each record is changed by compare-and-swap together with the skill that claims, so
of two skills that want one name at once, one gets it and the other tries the next.
"""

from collections.abc import Iterable, Mapping

import msgspec

from vskill_core.errors import NotFound
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Namespace, Visibility, namespace_in
from vskill_platform.domain.skills.names import HeldName, claim_names, form_for, forms_from, names_of, release
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.ledger.kv.entries import ABSENT, Operation, Put
from vskill_platform.records import Skips, decode, persist
from vskill_platform.store.people.audit import record_audit, was_audited
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
    state = await read_names(names_of(skill.canonical))
    claimed = claim_names(skill.canonical, form, skill.listed_as, state.held, require_env("kv").kv.now())
    named = msgspec.structs.replace(skill, listed_as=claimed.listed_as[skill.canonical])
    return named, tuple(state.writes(claimed.held))


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
        namespace, _ = await read_namespace(namespace_in(canonical))
        named, operations = await claim_writes(skill, namespace)
        if named != skill:
            put = Put(entry.key, msgspec.json.encode(named), entry.version)
            await kv.commit([put, *operations])

    await persist(write)


class _Names(msgspec.Struct, frozen=True):
    """All that a walk looks at."""

    canonical: str = ""
    listed_as: dict[str, str] = {}
    narrowed: Visibility | None = None


async def name_shown_skills() -> int:
    """Name every skill that lacks a name for all who may read it; how many there were. A process that ends between
    opening a namespace and naming its skills leaves some."""
    env = require_env("kv")
    skips = Skips("name_skills")
    namespaces = (await read_directory()).namespaces
    count = 0
    async for page in iterate_pages(env.kv, SKILLS.prefix, exclude=SKILLS.exclude):
        skips.failed(page.failed)
        for entry in page.items:
            skill = skips.decode(entry, _Names)
            if skill is None or not skill.canonical:
                continue
            name = namespace_in(skill.canonical)
            visibility = namespaces.get(name, Namespace(name)).visibility
            forms = forms_from(form_for(skill.canonical, visibility, skill.narrowed))
            if not skill.listed_as.keys() & set(forms):
                await name_skill_record(skill.canonical)
                count += 1
    skips.report(env)
    return count


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
