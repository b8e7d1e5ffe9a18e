"""The list of every skill that clients clone, as a stranger is given it: it holds nothing that was hidden, a name's
number never goes back, and one state of the registry makes one list, whoever makes it."""

import json

import msgspec

from simulator.checks import require
from simulator.faults import Process
from simulator.world import World
from vskill_core.content import SkillFile
from vskill_platform.actions.principal import ANYBODY, resolve
from vskill_platform.actions.skills.git_lists import current_git_list, public_scope, read_git_list
from vskill_platform.domain.people.namespace import PUBLIC
from vskill_platform.domain.skills.git_list import BASE, MANIFEST, WITHDRAWN, ServedList
from vskill_platform.domain.skills.numbering import parse_semver
from vskill_platform.ledger.blobs.memory import MemoryBlobs
from vskill_platform.worker_context import Env, run_with_worker_env

#: Digits of a number that holds a time.
_DIGITS = 18
_BEFORE, _AFTER = "/marketplace/", ".git"


class ListedSkill(msgspec.Struct, frozen=True):
    """One entry of a list."""

    number: str
    #: None for one that was withdrawn.
    canonical: str | None

    def is_below(self, other: "ListedSkill") -> bool:
        mine, its = (parse_semver(one.number, _DIGITS) for one in (self, other))
        assert mine is not None
        assert its is not None
        return mine.precedence < its.precedence


class ClonedList(msgspec.Struct, frozen=True):
    """What a stranger got, by name."""

    served: ServedList
    skills: dict[str, ListedSkill]
    #: In the world's count of moments.
    begun: int
    ended: int


async def clone_list(world: World, env: Env) -> ClonedList | None:
    """As the web side answers: where the stored files cannot be read here they are made again. None where they are lost
    once more."""
    begun = world.moment()
    scope = await public_scope(env, await resolve(ANYBODY))
    served = (await current_git_list(env, scope)).served
    files = await read_git_list(served)
    if files is None:
        served = (await current_git_list(env, scope, is_lost=True)).served
        files = await read_git_list(served)
    return None if files is None else ClonedList(served, _read_entries(files), begun, world.moment())


def _read_entries(files: tuple[SkillFile, ...]) -> dict[str, ListedSkill]:
    """Every entry; one that was withdrawn has its plugin without skills, and nothing else has one."""
    (manifest,) = (one.data for one in files if one.path == MANIFEST)
    plugins = json.loads(manifest.replace(BASE, b""))["plugins"]
    tombstones = {one.path.split("/")[1] for one in files if one.path.startswith(f"{WITHDRAWN}/")}
    found = {}
    for one in plugins:
        address = one["source"]["url"] if isinstance(one["source"], dict) else ""
        canonical = address.removeprefix(_BEFORE).removesuffix(_AFTER).replace("%7E", "~") or None
        found[one["name"]] = ListedSkill(one["version"], canonical)
    gone = {name for name, skill in found.items() if skill.canonical is None}
    require(len(plugins) == len(found), "a name stands in a list once", plugins)
    require(gone == tombstones, "what was withdrawn is a plugin without skills", (gone, tombstones))
    return found


def check_order(cloned: list[ClonedList]) -> None:
    """Whoever began after another had ended is given no lower number."""
    numbers: dict[str, list[tuple[ClonedList, ListedSkill]]] = {}
    for one in sorted(cloned, key=lambda one: one.begun):
        for name, skill in one.skills.items():
            earlier = [known for cloned, known in numbers.setdefault(name, []) if cloned.ended < one.begun]
            lower = [known for known in earlier if skill.is_below(known)]
            require(not lower, "a name's number in lists never goes back", f"{name}: {skill} after {lower}")
            numbers[name].append((one, skill))


async def _make_list(world: World, name: str) -> ClonedList:
    """By a process that has no content of anybody else."""
    env = msgspec.structs.replace(world.env_for(Process(name, lambda: None)), blobs=MemoryBlobs(world.clock))
    found = await run_with_worker_env(env, lambda: clone_list(world, env))
    require(found is not None, "a list can be read by who made it", name)
    assert found is not None
    return found


async def check_lists(world: World, cloned: list[ClonedList]) -> None:
    """At the end: two processes with a content store each make the same list, and it says what the records say."""
    first, second = await _make_list(world, "cloner"), await _make_list(world, "another")
    require(first.served == second.served, "every process makes the same list", (first, second))
    check_order([*cloned, first, second])
    live = {one.canonical for one in await world.skills() if one.current_version and one.audience == PUBLIC}
    listed = {one.canonical for one in first.skills.values() if one.canonical}
    require(live <= listed, "every skill that can be installed is in the list", live - listed)
    known = {one.canonical for one in await world.skills() if one.current_version}
    require(listed <= known, "nothing in the list was withdrawn", listed - known)
    world.trace.counts["lists"] += len(cloned)
