"""What the simulator found in the product, each as the shortest history that shows it: once mended, never again."""

import msgspec
import pytest

from tests.support.acting import approve
from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.faults import HookedKV
from tests.support.skills import skill_files
from tests.support.system_reads import get_submission
from vskill_core.content import digest_of_files
from vskill_core.errors import PlatformError, StoreUnavailable, TransitionError
from vskill_core.findings import ScanStatus, Severity, StaticReport
from vskill_platform.domain.blocklist import BlockEntry, digest_target, name_target, place_target
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.verdicts.rescan_decision import RescanDecision, RescanOutcome
from vskill_platform.intake.submit import submit_upload
from vskill_platform.ledger.kv.entries import EntryPage
from vskill_platform.store.claims import HeldClaim, claim_submission
from vskill_platform.store.recall.blocklist import add_block, remove_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.store.verdicts.rescans import apply_rescan

pytestmark = pytest.mark.anyio

CANONICAL = "upload~tests/skills/demo"


class PartialKV(HookedKV):
    """A store that cannot read single keys of a scan."""

    unreadable: frozenset[str] = frozenset()

    async def scan(self, prefix, **options):
        page = await self.inner.scan(prefix, **options)
        failed: dict[str, PlatformError] = {
            one.key: StoreUnavailable(one.key) for one in page.items if one.key in self.unreadable
        }
        return EntryPage(tuple(one for one in page.items if one.key not in failed), page.after, failed)


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path, active=False) as plain:
        with active_env(plain, kv=PartialKV(plain.kv)) as env:
            yield env


async def submitted(body: str = "", name: str = "demo"):
    result = await submit_upload(skill_files(name, body), namespace="tests", slug="demo")
    assert result.submission is not None
    return result.submission


async def published(env, body: str = "", name: str = "demo"):
    record = await submitted(body, name)
    await run_until_quiet(env)
    record = await get_submission(record.id)
    assert record.state is State.PUBLISHED
    return record


def entry(target) -> BlockEntry:
    return BlockEntry(target, Severity.HIGH, "bad", "admin:eve", 1)


async def test_what_is_submitted_while_it_waits_is_newer_than_what_was_to_run_next(env):
    """D15: B came during the first attempt and C after it failed; B must not be judged after C, and go live."""
    record = await submitted("A")
    claim = await claim_submission(record.id, 1)
    assert isinstance(claim, HeldClaim)
    await submitted("B")
    await claim.failed("a bad moment")
    await submitted("C")
    await run_until_quiet(env)
    ended = await get_submission(record.id)
    assert (ended.state, ended.digest) == (State.PUBLISHED, digest_of_files(skill_files("demo", "C")))


async def test_what_the_work_learns_while_the_claim_is_renewed_is_not_forgotten(env):
    """Else a skill was published by a record that did not know its digest."""
    record = await submitted()
    claim = await claim_submission(record.id, 1)
    assert isinstance(claim, HeldClaim)

    async def meanwhile(_):
        env.kv.before_commit = None
        claim.learn(digest="d" * 64)

    env.kv.before_commit = meanwhile
    await claim.renew()
    assert claim.record.digest == "d" * 64
    await claim.move(State.TIER2_SCANNING, "goes on")
    assert (await get_submission(record.id)).digest == "d" * 64


async def test_a_block_by_the_name_in_the_front_matter_ends_and_lifts_like_any_other(env):
    """The slug is `demo`, the name `evil`: skill and submission must agree on what hits them."""
    record = await published(env, name="evil")
    await add_block(entry(name_target("evil")))
    await reapply_blocklist()
    assert (await get_submission(record.id)).state is State.BLOCKED
    assert (await get_skill(CANONICAL)).withdrawn
    await add_block(entry(name_target("another")))
    await reapply_blocklist()
    assert (await get_submission(record.id)).run == 1
    await remove_block(name_target("evil"))
    await reapply_blocklist()
    await run_until_quiet(env)
    assert (await get_submission(record.id)).state is State.PUBLISHED
    assert not (await get_skill(CANONICAL)).withdrawn


async def test_a_pass_that_could_not_read_a_record_is_not_over(env):
    record = await submitted()
    await add_block(entry(place_target(record.identity)))
    env.kv.unreadable = frozenset({record.key})
    with pytest.raises(StoreUnavailable):
        await reapply_blocklist()
    env.kv.unreadable = frozenset()
    await reapply_blocklist()
    assert (await get_submission(record.id)).state is State.BLOCKED


async def test_a_version_is_taken_down_together_with_the_success_that_it_was(env):
    """Where the pass cannot read the submission, and the entry is lifted before the next pass, it stayed PUBLISHED
    with a version that nobody would bring back."""
    record = await published(env)
    await add_block(entry(place_target(record.identity)))
    env.kv.unreadable = frozenset({record.key})
    with pytest.raises(StoreUnavailable):
        await reapply_blocklist()
    env.kv.unreadable = frozenset()
    await remove_block(place_target(record.identity))
    await reapply_blocklist()
    await run_until_quiet(env)
    assert (await get_submission(record.id)).state is State.PUBLISHED
    assert not (await get_skill(CANONICAL)).withdrawn


async def test_what_is_unblocked_while_a_worker_ends_it_as_blocked_runs_again(env):
    """The pass for the lifted entry had gone by already: nobody would ever start it again."""
    record = await submitted()
    target = digest_target(record.upload)
    await add_block(entry(target))

    async def meanwhile(operations):
        if b'"BLOCKED"' in b"".join(getattr(one, "value", b"") for one in operations):
            env.kv.before_commit = None
            await remove_block(target)
            await reapply_blocklist()

    env.kv.before_commit = meanwhile
    await run_until_quiet(env)
    assert (await get_submission(record.id)).state is State.PUBLISHED


class Unfinished:
    """A scanner that does not finish, and lets somebody act meanwhile."""

    ruleset = "unfinished"

    def __init__(self, meanwhile) -> None:
        self.meanwhile = meanwhile

    async def scan(self, files):
        await self.meanwhile()
        return StaticReport(self.ruleset, ScanStatus.INCOMPLETE, problem="on purpose")


async def test_content_that_is_blocked_while_it_is_scanned_ends_as_blocked(env):
    """No record named its digest yet, so the pass could not see it."""
    record = await submitted()

    async def block():
        await add_block(entry(digest_target(record.upload)))
        await reapply_blocklist()

    scanning = msgspec.structs.replace(env, scanner=Unfinished(block))
    await run_until_quiet(scanning)
    assert (await get_submission(record.id)).state is State.BLOCKED


async def test_blocked_content_over_which_the_scanner_breaks_is_blocked(env):
    record = await submitted()
    claim = await claim_submission(record.id, 1)
    assert isinstance(claim, HeldClaim)
    await add_block(entry(digest_target(record.upload)))
    await reapply_blocklist()
    await claim.hand_back("it stops")

    async def breaks():
        raise RuntimeError("broken")

    await run_until_quiet(msgspec.structs.replace(env, scanner=Unfinished(breaks)))
    assert (await get_submission(record.id)).state is State.BLOCKED


async def test_only_what_waits_for_a_person_is_approved(env):
    """A reviewer's yes in the middle of a scan published what the scan was about to refuse."""
    record = await submitted()
    claim = await claim_submission(record.id, 1)
    assert isinstance(claim, HeldClaim)
    claim.learn(digest=record.upload)
    await claim.move(State.TIER2_SCANNING, "goes on")
    with pytest.raises(TransitionError):
        await approve(record.id, by="admin:eve", reason="fine")
    assert (await get_submission(record.id)).state is State.TIER2_SCANNING


async def test_a_rescan_that_was_applied_unseen_is_not_applied_to_what_was_judged_after_it(env):
    """Seed 818717: the take-down was applied but looked as if it had failed; a reviewer's yes brought the bytes back,
    and the second try took them down once more, under the same event."""
    record = await published(env)
    worse = RescanDecision(RescanOutcome.TAKE_DOWN, "new rule", next_state=State.NEEDS_REVIEW)

    async def go_on_and_die(_):
        env.kv.after_commit = None
        await approve(record.id, by="admin:eve", reason="a false alarm")
        await run_until_quiet(env)
        raise StoreUnavailable("the connection died after the commit")

    env.kv.after_commit = go_on_and_die
    with pytest.raises(TransitionError, match="must be judged again"):
        await apply_rescan(CANONICAL, str(record.digest), worse)
    ended = await get_submission(record.id)
    assert [event.to for event in ended.history[-3:]] == [
        State.NEEDS_REVIEW,
        State.AUTO_APPROVED,
        State.PUBLISHED,
    ]
    assert not (await get_skill(CANONICAL)).withdrawn


async def test_a_rescan_whose_write_failed_is_applied_by_the_next_try(env):
    record = await published(env)
    worse = RescanDecision(RescanOutcome.TAKE_DOWN, "new rule", next_state=State.NEEDS_REVIEW)

    async def fail(_):
        env.kv.before_commit = None
        raise StoreUnavailable("not applied")

    env.kv.before_commit = fail
    assert (await apply_rescan(CANONICAL, str(record.digest), worse)).withdrawn
    assert (await get_submission(record.id)).state is State.NEEDS_REVIEW
