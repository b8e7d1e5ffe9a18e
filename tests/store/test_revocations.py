"""Every commit that withdraws or restores a version has its event, whichever way it goes; the events and the records
say the same; lifting a block restores what it took down, and nothing else."""

import ast
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vskill_platform
from tests.support.acting import approve, delete, restore, take_down, unyank, yank
from tests.support.envs import active_env, open_test_env, run_until_quiet, submit_skill
from tests.support.faults import HookedKV
from tests.support.people import make_account
from vskill_core.findings import Severity
from vskill_core.revocation_list import RevokedStatus
from vskill_platform.actions.people.namespace_policy import CHANGE_VISIBILITY, ChangeVisibility
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.recall.blocklist import BLOCK, LIFT, BlockSomething, LiftBlock
from vskill_platform.actions.skills.versions import NARROW_SKILL, NarrowSkill, SkillVisibility
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import TargetKind
from vskill_platform.domain.people.namespace import Visibility
from vskill_platform.domain.skills.skill import (
    PublishedSkill,
    Revocation,
    VersionStatus,
    revoked_versions,
    status_of,
)
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.verdicts.rescan_decision import RescanDecision, RescanOutcome
from vskill_platform.ledger.kv.entries import Add, Put
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.recall.blocklist import list_blocks
from vskill_platform.store.revocations import list_revocations, read_serial
from vskill_platform.store.skills.skills import get_skill, update_skill
from vskill_platform.store.verdicts.rescans import apply_rescan

pytestmark = pytest.mark.anyio

DEMO = "upload~ann/skills/demo"
EVE = Principal("eve", Role.ADMIN)


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        yield opened


async def publish(env, *bodies: str, name: str = "demo") -> PublishedSkill:
    for body in bodies:
        await submit_skill(name, body, namespace="ann")
        await run_until_quiet(env)
    return await get_skill(f"upload~ann/skills/{name}")


async def statuses(canonical: str = DEMO) -> dict[str, str | None]:
    found = {ref.number: status_of(ref) for ref in (await get_skill(canonical)).versions}
    return {number: None if status is None else status.value for number, status in found.items()}


async def block(env, kind: TargetKind, target: str, **more) -> None:
    await BLOCK(env, EVE, BlockSomething(kind=kind, target=target, reason="steals keys", **more))


async def lift(env, kind: TargetKind, target: str) -> None:
    await LIFT(env, EVE, LiftBlock(kind=kind, target=target, reason="a mistake"))


async def digest_of(number: str) -> str:
    return next(ref.digest for ref in (await get_skill(DEMO)).versions if ref.number == number)


def watch_commits(env) -> HookedKV:
    """A store that refuses a commit which changes a version's status without its event."""
    kv = HookedKV(env.kv)

    async def check(operations) -> None:
        puts = {one.key: one.value for one in operations if isinstance(one, Put)}
        for key, value in puts.items():
            if not key.startswith(keys.skill.prefix) or keys.is_alias(key):
                continue
            old = await env.kv.get(key)
            before = () if old is None else msgspec.json.decode(old.value, type=PublishedSkill).versions
            known = {ref.number: status_of(ref) for ref in before}
            after = msgspec.json.decode(value, type=PublishedSkill)
            changed = {
                ref.number: status_of(ref)
                for ref in after.versions
                if status_of(ref) is not known.get(ref.number)
            }
            events = [
                msgspec.json.decode(value, type=Revocation)
                for key, value in puts.items()
                if key.startswith(keys.revocation.prefix)
            ]
            said = {step.version: step.status for one in events for step in one.steps}
            assert said == changed
            if changed:
                assert [one.skill for one in events] == [after.canonical]
                assert Add(keys.CONTROL_REVOCATIONS) in operations

    kv.before_commit = check
    return kv


async def follow() -> dict[tuple[str, str], RevokedStatus]:
    """What somebody knows who has followed the events from the first."""
    events = await list_revocations(0)
    assert [one.serial for one in events] == list(range(1, len(events) + 1))
    assert await read_serial() == len(events)
    known = {(one.skill, step.version): step.status for one in events for step in one.steps}
    return {key: status for key, status in known.items() if status is not None}


async def test_every_way_to_withdraw_and_to_restore_has_its_event(env):
    """Yank, unyank, take-down, restore, block, lift, rescan, approval of the same content, deletion."""
    with active_env(env, kv=watch_commits(env)) as watched:
        await publish(watched, "one", "two")
        await yank(DEMO, "1.0.0", account="ann", reason="broken")
        await unyank(DEMO, "1.0.0", account="ann", reason="fixed")
        await take_down(DEMO, "1.0.1", by="admin:eve", reason="complaints")
        await restore(DEMO, "1.0.1", by="admin:eve", reason="a mistake")
        await run_until_quiet(watched)
        await block(watched, TargetKind.DIGEST, await digest_of("1.0.0"))
        await lift(watched, TargetKind.DIGEST, await digest_of("1.0.0"))
        await run_until_quiet(watched)
        worse = RescanDecision(RescanOutcome.TAKE_DOWN, "new rule", next_state=State.NEEDS_REVIEW)
        await apply_rescan(DEMO, await digest_of("1.0.1"), worse)
        await approve(str((await get_skill(DEMO)).submission), by="admin:eve", reason="it is fine")
        await run_until_quiet(watched)
        await delete(DEMO, account="ann", reason="no time")
        steps = [
            (step.version, step.status and step.status.value)
            for one in await list_revocations(0)
            for step in one.steps
        ]
        assert steps == [
            ("1.0.0", "yanked"),
            ("1.0.0", None),
            ("1.0.1", "taken-down"),
            ("1.0.1", None),
            ("1.0.0", "blocked"),
            ("1.0.0", None),
            ("1.0.1", "taken-down"),
            ("1.0.1", None),
            ("1.0.0", "deleted"),
            ("1.0.1", "deleted"),
        ]
        assert set(await follow()) == {(DEMO, "1.0.0"), (DEMO, "1.0.1")}


@pytest.mark.slow
def test_a_skill_is_stored_by_the_one_function_that_adds_the_event():
    """Also by `preparing`, which changes nothing but the audience of whatever record it meets."""
    root = Path(vskill_platform.__file__).parent
    writers = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "Put"
        and "keys.skill(" in ast.unparse(node)
    }
    assert writers == {"store/skills/skills.py"}


async def test_what_a_revocation_says_is_kept_with_it(env):
    await publish(env, "one", "two")
    await block(
        env, TargetKind.DIGEST, await digest_of("1.0.0"), severity=Severity.CRITICAL, threat_type="theft"
    )
    (one,) = revoked_versions(await get_skill(DEMO))
    assert (one.status, one.severity, one.threat_type) == (RevokedStatus.BLOCKED, Severity.CRITICAL, "theft")
    assert one.since == env.kv.now() and "steals keys" in one.reason
    assert one.replacement is not None and one.replacement.version == "1.0.1"
    (step,) = (await list_revocations(0))[-1].steps
    assert (step.content_hash, step.digest) == (one.content_hash, one.digest)


async def test_a_new_replacement_raises_the_serial_without_a_step(env):
    """The list names what to install instead, so it changes with a publication."""
    await publish(env, "one", "two")
    await yank(DEMO, "1.0.0", account="ann", reason="broken")
    serial = await read_serial()
    await publish(env, "three")
    assert await read_serial() == serial + 1
    event = (await list_revocations(serial))[0]
    assert (event.skill, event.steps) == (DEMO, ())


async def test_no_two_events_have_one_moment(env):
    """Whoever follows them by their moment misses none of two that come together, or under a clock that went back."""
    await publish(env, "one", "two", "three")
    serial = await read_serial()
    for number in ("1.0.0", "1.0.1"):
        await yank(DEMO, number, account="ann", reason="broken")
    moments = [one.at for one in await list_revocations(serial)]
    assert len(set(moments)) == len(moments) == 2


async def test_a_change_of_readers_raises_the_serial(env):
    """Hiding a skill withdraws nothing, but a list holds other entries afterwards."""
    await make_account(env, "ann", Role.AUTHOR)
    await publish(env, "one", "two")
    await yank(DEMO, "1.0.0", account="ann", reason="broken")
    serial = await read_serial()
    hide = ChangeVisibility(name="upload~ann", to=Visibility.INTERNAL, reason="not ready")
    await CHANGE_VISIBILITY(env, EVE, hide)
    hidden = await read_serial()
    assert hidden > serial and (await list_revocations(serial))[-1].skill == ""
    narrow = NarrowSkill(skill=DEMO, to=SkillVisibility.TEAM, reason="not ready")
    await NARROW_SKILL(env, Principal("ann", Role.AUTHOR), narrow)
    assert await read_serial() == hidden + 1
    assert [step for one in await list_revocations(serial) for step in one.steps] == []


async def test_what_changes_no_list_raises_no_serial(env):
    await publish(env, "one", "two")
    await update_skill(DEMO, lambda skill: msgspec.structs.replace(skill, description="other words"))
    assert await read_serial() == 0


async def test_lifting_restores_all_that_the_block_took_down_and_nothing_else(env):
    await publish(env, "one", "two", "three", "four")
    await take_down(DEMO, "1.0.0", by="admin:eve", reason="complaints")
    await yank(DEMO, "1.0.1", account="ann", reason="broken")
    before = await statuses()
    await block(env, TargetKind.NAME, "demo")
    assert set((await statuses()).values()) == {"taken-down", "blocked"}
    await lift(env, TargetKind.NAME, "demo")
    assert (
        await statuses()
        == before
        == {
            "1.0.0": "taken-down",
            "1.0.1": "yanked",
            "1.0.2": None,
            "1.0.3": None,
        }
    )


async def test_what_a_second_entry_hits_stays_down(env):
    await publish(env, "one", "two")
    await block(env, TargetKind.NAME, "demo")
    await block(env, TargetKind.DIGEST, await digest_of("1.0.0"))
    await lift(env, TargetKind.NAME, "demo")
    assert await statuses() == {"1.0.0": "blocked", "1.0.1": None}


async def test_what_its_owner_deleted_while_it_was_blocked_does_not_come_back(env):
    await publish(env, "one")
    await block(env, TargetKind.NAME, "demo")
    await delete(DEMO, account="ann", reason="no time")
    assert await statuses() == {"1.0.0": "blocked"}
    await lift(env, TargetKind.NAME, "demo")
    assert await statuses() == {"1.0.0": "deleted"}
    await unyank(DEMO, "1.0.0", account="ann", reason="here again")
    assert await statuses() == {"1.0.0": None}


async def test_an_entry_tells_what_it_hits(env):
    """Content hash, digest and address, as clients match them."""
    skill = await publish(env, "one", "two")
    first = skill.versions[0]
    await block(env, TargetKind.DIGEST, first.digest)
    (entry,) = await list_blocks()
    assert (entry.digest, entry.content_hash) == (first.digest, first.content_hash)
    assert (entry.skill_name, entry.source_url) == ("demo", skill.repo_url)
    await lift(env, TargetKind.DIGEST, first.digest)
    await block(env, TargetKind.NAME, "demo")
    (entry,) = await list_blocks()
    newest = skill.versions[-1]
    # An address would say that only the skill there is meant.
    assert (entry.digest, entry.content_hash, entry.source_url) == (newest.digest, newest.content_hash, "")


WAYS = ("yank", "unyank", "take down", "restore", "block", "lift", "publish", "delete")


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(WAYS), max_size=10))
async def test_the_serial_only_grows_and_the_events_say_what_the_records_say(tmp_path_factory, ways):
    async with open_test_env("memory", tmp_path_factory.mktemp("walk")) as env:
        await publish(env, "0", "1")
        serial = 0
        for number, way in enumerate(ways):
            await walk(env, way, number)
            assert await read_serial() >= serial
            serial = await read_serial()
            skill = await get_skill(DEMO)
            assert await follow() == {(DEMO, one.version): one.status for one in revoked_versions(skill)}


async def walk(env, way: str, number: int) -> None:
    skill = await get_skill(DEMO)
    first = skill.versions[number % len(skill.versions)]
    match way, first.status:
        case "yank", VersionStatus.LIVE:
            await yank(DEMO, first.number, account="ann", reason="broken")
        case "unyank", VersionStatus.YANKED if not await list_blocks():
            await unyank(DEMO, first.number, account="ann", reason="fixed")
        case "take down", _:
            await take_down(DEMO, first.number, by="admin:eve", reason="complaints")
        case "restore", VersionStatus.TAKEN_DOWN if not await list_blocks():
            await restore(DEMO, first.number, by="admin:eve", reason="a mistake")
        case "block", _:
            await block(env, TargetKind.NAME, "demo")
        case "lift", _:
            for entry in await list_blocks():
                await lift(env, entry.target.kind, entry.target.value)
        case "publish", _:
            await submit_skill("demo", f"{number} again", namespace="ann")
        case "delete", _:
            await delete(DEMO, account="ann", reason="no time")
        case _:
            pass
    await run_until_quiet(env)
