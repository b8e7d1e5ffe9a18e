"""Withdrawing and bringing back: by owners and reviewers, each within their rights, each accounted for."""

import msgspec
import pytest

from tests.support.acting import approve, delete, restore, run_again, take_down, unyank, yank
from tests.support.envs import active_env, open_test_env, run_until_quiet, submit_skill
from tests.support.faults import HookedKV
from tests.support.system_reads import get_submission
from vskill_core.errors import (
    Blocked,
    NotFound,
    StoreUnavailable,
    VersionStatusError,
)
from vskill_core.findings import Severity
from vskill_core.identity import upload_identity
from vskill_platform.domain.blocklist import BlockEntry, digest_target, place_target
from vskill_platform.domain.skills.skill import VersionStatus
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.submit import IntakeOutcome
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.pipeline import process_submission
from vskill_platform.store.claims import HeldClaim, claim_submission
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.recall.blocklist import add_block, remove_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.recall.withdrawals import alter_skill
from vskill_platform.store.skills.skills import get_skill, update_skill
from vskill_platform.submission_store import enumerate_published_skills

pytestmark = pytest.mark.anyio

DEMO = "upload~ann/skills/demo"
PLACE = upload_identity("ann", "demo")


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        yield opened


async def publish(env, body: str = ""):
    submitted = (await submit_skill("demo", body, namespace="ann")).submission
    assert submitted is not None
    await run_until_quiet(env)
    record = await get_submission(submitted.id)
    assert record.state is State.PUBLISHED
    return record


@pytest.fixture
async def demo(env):
    """Two versions, 1.0.0 and 1.0.1."""
    await publish(env)
    return await publish(env, "more")


async def statuses() -> dict[str, str]:
    return {ref.number: ref.status.value for ref in (await get_skill(DEMO)).versions}


async def actions() -> list[str]:
    return [one.action for one in reversed((await list_audit()).items)]


async def block(env, target) -> None:
    await add_block(BlockEntry(target, Severity.HIGH, "steals keys", "admin:eve", env.kv.now()))


async def test_a_reviewer_takes_down_and_only_a_reviewer_restores(env, demo):
    await take_down(DEMO, "1.0.1", by="admin:eve", reason="complaints")
    with pytest.raises(VersionStatusError):
        await unyank(DEMO, "1.0.1", account="ann", reason="I want it")
    await take_down(DEMO, by="admin:eve", reason="all of it")
    assert (await get_skill(DEMO)).withdrawn and await enumerate_published_skills() == []
    assert (await restore(DEMO, by="admin:bob", reason="sorry")).current_version == "1.0.1"
    assert await actions() == ["take down", "take down", "restore"]


async def test_taking_down_what_is_not_there_is_refused(env):
    with pytest.raises(NotFound):
        await take_down("a/b/c", by="admin:eve", reason="x")
    assert await actions() == []


async def test_taking_down_twice_changes_and_accounts_for_nothing_more(env, demo):
    for _ in range(2):
        await take_down(DEMO, by="admin:eve", reason="complaints")
    assert await actions() == ["take down"]


@pytest.mark.parametrize("always", [False, True])
async def test_where_the_skill_stays_as_it_is_the_rest_is_written_only_if_it_counts(env, demo, always):
    async def more():
        return [Put("control:probe", b"1")]

    await alter_skill(
        DEMO, lambda skill, _: skill, "look", None, by="admin:eve", reason="x", always=always, more=more
    )
    assert await actions() == ["look"] * always
    assert (await env.kv.get("control:probe") is not None) is always


async def test_restoring_does_not_undo_an_owners_will(env, demo):
    await yank(DEMO, "1.0.1", account="ann", reason="broken")
    await take_down(DEMO, by="admin:eve", reason="complaints")
    await restore(DEMO, by="admin:eve", reason="sorry")
    assert await statuses() == {"1.0.0": "live", "1.0.1": "yanked"}


@pytest.mark.parametrize("whole", [True, False])
async def test_blocked_ones_stay_blocked(env, demo, whole):
    target = place_target(PLACE) if whole else digest_target(demo.digest)
    await yank(DEMO, "1.0.1", account="ann", reason="broken")
    await block(env, target)
    with pytest.raises(Blocked, match="steals keys"):
        await unyank(DEMO, "1.0.1", account="ann", reason="please")
    await reapply_blocklist()
    with pytest.raises(Blocked, match="stays withdrawn"):
        await restore(DEMO, "1.0.1", by="admin:eve", reason="please")
    assert (await statuses())["1.0.1"] == VersionStatus.TAKEN_DOWN
    await remove_block(target)
    await restore(DEMO, "1.0.1", by="admin:eve", reason="a mistake")
    assert (await statuses())["1.0.1"] == VersionStatus.YANKED


async def test_a_block_between_the_look_and_the_commit_wins(env, demo):
    await take_down(DEMO, by="admin:eve", reason="complaints")
    hooked = HookedKV(env.kv)

    async def go_first(_operations):
        hooked.before_commit = None
        with active_env(env):
            await block(env, place_target(PLACE))

    hooked.before_commit = go_first
    with active_env(env, kv=hooked), pytest.raises(Blocked):
        await restore(DEMO, by="admin:bob", reason="sorry")
    assert (await get_skill(DEMO)).withdrawn


@pytest.mark.parametrize("act", ["yank", "take_down", "delete"])
async def test_an_unknown_outcome_is_recognised(env, demo, act):
    """The second try must not fail over what the first one did, nor account for it twice."""
    hooked = HookedKV(env.kv)
    died: list[int] = []

    async def die(_operations):
        if not died:
            died.append(1)
            raise StoreUnavailable("the connection died")

    hooked.after_commit = die
    with active_env(env, kv=hooked):
        if act == "yank":
            await yank(DEMO, "1.0.1", account="ann", reason="broken")
        elif act == "take_down":
            await take_down(DEMO, by="admin:eve", reason="complaints")
        else:
            await delete(DEMO, account="ann", reason="broken")
    assert died and len(await actions()) == 1


# What a take-down means for the submission.


async def test_what_a_reviewer_took_down_is_not_called_verified_when_it_is_submitted_again(env, demo):
    await take_down(DEMO, "1.0.1", by="admin:eve", reason="complaints")
    record = await get_submission(demo.id)
    assert record.state is State.NEEDS_REVIEW
    last = record.history[-1]
    assert (last.actor, last.reason) == ("admin:eve", "version 1.0.1 was taken down: complaints")
    again = await submit_skill("demo", "more", namespace="ann")
    assert again.outcome is IntakeOutcome.DUPLICATE
    assert again.submission is not None
    assert again.submission.decision is not None
    assert again.submission.decision.reason == last.reason


async def test_a_skill_whose_submission_is_not_known_is_taken_down_and_restored_all_the_same(env, demo):
    await update_skill(DEMO, lambda known: msgspec.structs.replace(known, submission=None))
    await take_down(DEMO, by="admin:eve", reason="complaints")
    assert await statuses() == {"1.0.0": "taken_down", "1.0.1": "taken_down"}
    await restore(DEMO, by="admin:eve", reason="it was fine")
    assert await statuses() == {"1.0.0": "live", "1.0.1": "live"}
    assert await actions() == ["take down", "restore"]
    assert (await get_submission(demo.id)).state is State.PUBLISHED, "nobody said that it is this skill's"


async def test_taking_an_older_version_down_leaves_the_submission_as_it_is(env, demo):
    await take_down(DEMO, "1.0.0", by="admin:eve", reason="complaints")
    assert (await get_submission(demo.id)).state is State.PUBLISHED
    assert (await submit_skill("demo", "more", namespace="ann")).outcome is IntakeOutcome.ALREADY_VERIFIED


async def test_taking_down_does_not_disturb_a_run_of_other_content(env, demo):
    await submit_skill("demo", "even more", namespace="ann")
    await take_down(DEMO, by="admin:eve", reason="complaints")
    assert (await get_submission(demo.id)).state is State.RECEIVED
    await run_until_quiet(env)
    assert (await get_submission(demo.id)).state is State.PUBLISHED
    assert await statuses() == {"1.0.0": "taken_down", "1.0.1": "taken_down", "1.0.2": "live"}


async def test_what_was_taken_down_does_not_come_back_by_passing_the_checks_once_more(env, demo):
    """A new run of the same bytes, however it was started, ends where a person decides; a yes brings them back."""
    await take_down(DEMO, by="admin:eve", reason="complaints")
    await run_again(demo.id, by="admin:bob", reason="look again")
    await run_until_quiet(env)
    record = await get_submission(demo.id)
    assert record.state is State.NEEDS_REVIEW
    assert "taken down by admin:eve: complaints" in record.history[-1].reason
    assert record.evidence is not None and record.evidence.digest == record.digest, (
        "what a reviewer decides by"
    )
    assert (await get_skill(DEMO)).withdrawn
    await approve(demo.id, by="admin:bob", reason="it is fine")
    await run_until_quiet(env)
    assert (await get_submission(demo.id)).state is State.PUBLISHED
    assert await statuses() == {"1.0.0": "taken_down", "1.0.1": "live"}


async def test_what_is_taken_down_while_it_is_about_to_be_published_waits_for_a_person(env, demo):
    await submit_skill("demo", "", namespace="ann")
    claim = await claim_submission(demo.id, 3)
    assert isinstance(claim, HeldClaim)
    claim.learn(digest=(await get_skill(DEMO)).versions[0].digest)
    await claim.move(State.AUTO_APPROVED, "passed")
    await take_down(DEMO, by="admin:eve", reason="complaints")
    await process_submission(claim)
    assert (await get_submission(demo.id)).state is State.NEEDS_REVIEW
    assert (await get_skill(DEMO)).withdrawn


async def test_restoring_is_a_reviewers_yes_and_the_submission_is_published_again(env, demo):
    before = await get_skill(DEMO)
    await take_down(DEMO, by="admin:eve", reason="complaints")
    await restore(DEMO, by="admin:bob", reason="sorry")
    assert not (await get_skill(DEMO)).withdrawn
    record = await get_submission(demo.id)
    assert record.approval is not None
    assert (record.state, record.approval.by) == (State.AUTO_APPROVED, "admin:bob")
    await run_until_quiet(env)
    assert (await get_submission(demo.id)).state is State.PUBLISHED
    after = await get_skill(DEMO)
    assert [ref.number for ref in after.versions] == [ref.number for ref in before.versions]
    assert (after.current_version, after.certification) == (before.current_version, before.certification)
    assert (await submit_skill("demo", "more", namespace="ann")).outcome is IntakeOutcome.ALREADY_VERIFIED


async def test_a_take_down_and_what_follows_are_one_commit(env, demo):
    """Whoever acts on the submission meanwhile is seen, and nothing is half done."""
    hooked = HookedKV(env.kv)

    async def go_first(_operations):
        hooked.before_commit = None
        with active_env(env):
            await submit_skill("demo", "other", namespace="ann")

    hooked.before_commit = go_first
    with active_env(env, kv=hooked):
        await take_down(DEMO, by="admin:eve", reason="complaints")
    record = await get_submission(demo.id)
    assert (record.state, record.run) == (State.RECEIVED, 3)
    assert (await get_skill(DEMO)).withdrawn
