"""Nothing runs again against the blocklist, and nothing is BLOCKED that no entry of it hits."""

import pytest

from tests.support.acting import principal_for, run_again
from tests.support.dead_letters import list_dead_letters
from tests.support.envs import active_env, open_test_env, run_until_quiet, submit_skill
from tests.support.faults import HookedKV
from tests.support.system_reads import get_submission
from vskill_core.errors import Blocked, StoreUnavailable, TransitionError
from vskill_core.findings import Severity
from vskill_platform.actions.operation.dead_letters import REPLAY, LetterRequest
from vskill_platform.domain.blocklist import BlockEntry, digest_target, name_target, place_target
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.verdicts.decision import BlockScope
from vskill_platform.domain.verdicts.rescan_decision import RescanDecision, RescanOutcome
from vskill_platform.intake.submit import IntakeOutcome
from vskill_platform.store.claims import HeldClaim, claim_submission
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.recall.blocklist import add_block, remove_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.store.verdicts.rescans import apply_rescan
from vskill_platform.worker_context import require_env

pytestmark = pytest.mark.anyio

DEMO = "upload~tests/skills/demo"
TARGETS = {
    "place": lambda record: place_target(record.identity),
    "name": lambda record: name_target(record.skill_name),
    "digest": lambda record: digest_target(record.upload),
}


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        yield opened


async def published(env):
    record = (await submit_skill("demo")).submission
    assert record is not None
    await run_until_quiet(env)
    return await get_submission(record.id)


async def block(env, target) -> None:
    await add_block(BlockEntry(target, Severity.HIGH, "steals keys", "admin:eve", env.kv.now()))


async def audited() -> list[tuple[str, str, str]]:
    entries = reversed((await list_audit()).items)
    return [(one.action, one.by, one.reason) for one in entries if one.action == "run again"]


# Running again.


@pytest.mark.parametrize("kind", TARGETS)
async def test_a_blocked_place_does_not_run_again_as_it_could_not_be_submitted(env, kind):
    record = await published(env)
    target = TARGETS[kind](record)
    await block(env, target)
    for _ in range(2):
        with pytest.raises(Blocked, match=r"cannot run again: .*steals keys.* Lift the block first"):
            await run_again(record.id, by="admin:bob", reason="please")
        await reapply_blocklist()
    assert (await submit_skill("demo")).outcome is IntakeOutcome.BLOCKED
    assert (await get_submission(record.id)).run == 1
    assert await audited() == []
    await remove_block(target)
    assert (await run_again(record.id, by="admin:bob", reason="please")).run == 2


async def test_what_waits_is_refused_too(env):
    record = (await submit_skill("demo")).submission
    assert record is not None
    await block(env, place_target(record.identity))
    with pytest.raises(Blocked):
        await run_again(record.id, by="admin:bob", reason="now")


async def test_a_block_between_the_look_and_the_commit_wins(env):
    record = await published(env)
    hooked = HookedKV(env.kv)

    async def go_first(_operations):
        hooked.before_commit = None
        with active_env(env):
            await block(env, place_target(record.identity))

    hooked.before_commit = go_first
    with active_env(env, kv=hooked), pytest.raises(Blocked):
        await run_again(record.id, by="admin:bob", reason="please")
    assert (await get_submission(record.id)).run == 1


async def test_running_again_is_accounted_for_once_whether_it_is_over_or_waits(env):
    record = await published(env)
    await run_again(record.id, by="admin:bob", reason="new rules")
    await run_again(record.id, by="admin:bob", reason="now")
    assert await audited() == [
        ("run again", "admin:bob", "new rules"),
        ("run again", "admin:bob", "now"),
    ]


async def test_an_unknown_outcome_is_recognised_and_accounted_for_once(env):
    record = (await submit_skill("demo")).submission
    assert record is not None
    hooked = HookedKV(env.kv)

    async def dies(_operations):
        hooked.after_commit = None
        raise StoreUnavailable("the connection died")

    hooked.after_commit = dies
    with active_env(env, kv=hooked):
        await run_again(record.id, by="admin:bob", reason="now")
    assert await audited() == [("run again", "admin:bob", "now")]


async def test_the_dead_letter_of_a_blocked_place_is_kept(env):
    record = (await submit_skill("demo")).submission
    assert record is not None
    (batch,) = await env.broker.receive(1, 0)
    await batch.messages[0].dead_letter("on purpose")
    await block(env, place_target(record.identity))
    (letter,) = await list_dead_letters()
    with pytest.raises(Blocked):
        await REPLAY(require_env(), principal_for("admin:bob"), LetterRequest(letter_id=letter.id))
    assert await list_dead_letters() == [letter]


async def test_what_a_worker_holds_is_left_to_it_and_runs_again_afterwards(env):
    record = (await submit_skill("demo")).submission
    assert record is not None
    assert isinstance(await claim_submission(record.id, 1), HeldClaim)
    asked = await run_again(record.id, by="admin:bob", reason="now")
    assert (asked.run, asked.claim is not None, asked.rerun_requested is not None) == (1, True, True)
    assert await audited() == [("run again", "admin:bob", "now")]


# Rescans that end in BLOCKED.

HIT = RescanDecision(RescanOutcome.TAKE_DOWN, "on the blocklist", next_state=State.BLOCKED)


async def test_a_rescan_that_goes_by_an_entry_needs_that_entry(env):
    """It was lifted between the rescan's look and its commit: BLOCKED by nothing, nobody could ever lift it."""
    record = await published(env)
    with pytest.raises(TransitionError, match="judged again"):
        await apply_rescan(DEMO, record.digest, HIT)
    assert (await get_submission(record.id)).state is State.PUBLISHED
    assert not (await get_skill(DEMO)).withdrawn


async def test_an_entry_that_is_lifted_in_the_moment_of_the_commit_blocks_nothing(env):
    record = await published(env)
    target = place_target(record.identity)
    await block(env, target)
    hooked = HookedKV(env.kv)

    async def lift(_operations):
        hooked.before_commit = None
        with active_env(env):
            await remove_block(target)

    hooked.before_commit = lift
    with active_env(env, kv=hooked), pytest.raises(TransitionError):
        await apply_rescan(DEMO, record.digest, HIT)
    assert (await get_submission(record.id)).state is State.PUBLISHED


async def test_with_the_entry_it_is_blocked_and_stays_so(env):
    record = await published(env)
    await block(env, digest_target(record.digest))
    await apply_rescan(DEMO, record.digest, HIT)
    await reapply_blocklist()
    assert (await get_submission(record.id)).state is State.BLOCKED
    assert (await get_skill(DEMO)).withdrawn


@pytest.mark.parametrize("kind", [BlockScope.PLACE, BlockScope.DIGEST])
async def test_a_decision_that_brings_its_entry_needs_no_other(env, kind):
    record = await published(env)
    decision = RescanDecision(RescanOutcome.TAKE_DOWN, "malicious", next_state=State.BLOCKED, block=kind)
    await apply_rescan(DEMO, record.digest, decision)
    await reapply_blocklist()
    assert (await get_submission(record.id)).state is State.BLOCKED
