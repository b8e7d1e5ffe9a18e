"""The blocklist: effective once written, applied until the store agrees, lifted without leaving anything behind."""

import asyncio

import msgspec
import pytest

from tests.support.acting import approve, cancel, reject, run_again
from tests.support.envs import open_test_env, run_until_quiet
from tests.support.skills import skill_files
from tests.support.system_reads import get_submission
from vskill_core.errors import InvalidInput, NotFound, RecordMalformed, TransitionError
from vskill_core.findings import Severity
from vskill_core.identity import upload_identity
from vskill_platform.domain.blocklist import (
    BlockEntry,
    BlockTarget,
    digest_target,
    name_target,
    place_target,
    repository_target,
)
from vskill_platform.domain.people.namespace import PUBLIC_ONLY
from vskill_platform.domain.skills import skill_changes
from vskill_platform.domain.skills.skill import Certification, StatusRole
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.domain.verdicts.decision import BlockScope
from vskill_platform.domain.verdicts.rescan_decision import RescanDecision, RescanOutcome
from vskill_platform.intake.submit import IntakeOutcome, submit_upload
from vskill_platform.store.claims import HeldClaim, claim_submission
from vskill_platform.store.recall.blocklist import add_block, blocklist_version, find_hits, remove_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.skills.skills import find_by_name, get_skill, get_version, update_skill
from vskill_platform.store.verdicts.rescans import apply_rescan
from vskill_platform.submission_store import enumerate_published_skills

pytestmark = pytest.mark.anyio

DEMO = upload_identity("tests", "demo")


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as env:
        yield env


async def submitted(slug: str = "demo", body: str = "") -> Submission:
    result = await submit_upload(skill_files(slug, body), namespace="tests", slug=slug)
    assert result.submission is not None
    return result.submission


async def published(env, slug: str = "demo", body: str = "") -> Submission:
    record = await submitted(slug, body)
    await run_until_quiet(env)
    record = await get_submission(record.id)
    assert record.state is State.PUBLISHED
    return record


def entry(env, target: BlockTarget, severity: Severity = Severity.HIGH, **changes) -> BlockEntry:
    return BlockEntry(target, severity, "steals keys", "admin:me", env.kv.now(), **changes)


def digest_of(record: Submission) -> str:
    assert record.digest is not None
    return record.digest


async def state_of(record: Submission) -> State:
    return (await get_submission(record.id)).state


async def targets(record: Submission) -> dict[str, BlockTarget]:
    return {
        "place": place_target(DEMO),
        "repository": repository_target(DEMO),
        "digest": digest_target(digest_of(record)),
        "name": name_target("demo"),
    }


@pytest.mark.parametrize("kind", ["place", "repository", "digest", "name"])
async def test_a_block_takes_down_what_is_live_and_lifting_it_publishes_again(env, kind):
    record = await published(env)
    target = (await targets(record))[kind]
    await add_block(entry(env, target))
    await reapply_blocklist()
    assert await state_of(record) is State.BLOCKED
    skill = await get_skill("upload~tests/skills/demo")
    assert skill.withdrawn and skill.versions[0].status == "taken_down"
    assert await enumerate_published_skills() == []
    assert (
        await submit_upload(skill_files("demo"), namespace="tests", slug="demo")
    ).outcome is IntakeOutcome.BLOCKED

    assert await remove_block(target)
    await reapply_blocklist()
    await run_until_quiet(env)
    assert await state_of(record) is State.PUBLISHED
    skill = await get_skill("upload~tests/skills/demo")
    assert (skill.current_version, len(skill.versions)) == ("1.0.0", 1)
    assert not await remove_block(target)


class BlocksMeanwhile:
    """A scanner during whose scan somebody writes an entry: after the pipeline has looked at the blocklist."""

    def __init__(self, env, *entries: BlockEntry) -> None:
        self._scanner = env.scanner
        self.ruleset = env.scanner.ruleset
        self._entries = entries

    async def scan(self, files):
        for one in self._entries:
            await add_block(one)
        return await self._scanner.scan(files)


async def test_what_is_blocked_while_it_is_scanned_does_not_go_live(env):
    """Publishing relies on the look before the scan, and asserts in its commit that nothing has changed since."""
    record = await submitted()
    scanner = BlocksMeanwhile(env, entry(env, name_target("demo")))
    await run_until_quiet(msgspec.structs.replace(env, scanner=scanner))
    assert await state_of(record) is State.BLOCKED
    assert await enumerate_published_skills() == []


async def test_an_entry_that_hits_another_skill_delays_nothing(env):
    """The first commit fails, because the blocklist has changed; the next look finds nothing."""
    record = await submitted()
    scanner = BlocksMeanwhile(env, entry(env, name_target("another")))
    await run_until_quiet(msgspec.structs.replace(env, scanner=scanner))
    ended = await get_submission(record.id)
    assert ended.state is State.PUBLISHED
    assert [event.seq for event in ended.history] == list(range(1, len(ended.history) + 1))
    assert [skill.name for skill in await enumerate_published_skills()] == ["demo"]


async def test_what_another_entry_still_hits_stays_blocked(env):
    record = await published(env)
    await add_block(entry(env, place_target(DEMO)))
    await add_block(entry(env, name_target("demo")))
    await reapply_blocklist()
    await remove_block(place_target(DEMO))
    await reapply_blocklist()
    assert await state_of(record) is State.BLOCKED


async def test_D10_a_block_of_one_place_leaves_every_other_of_that_name(env):
    other = await submit_upload(skill_files("demo"), namespace="others", slug="demo")
    await published(env)
    await add_block(entry(env, place_target(DEMO)))
    await reapply_blocklist()
    assert other.submission is not None
    assert await state_of(other.submission) is State.PUBLISHED


async def test_a_block_ends_an_active_run(env):
    record = await submitted()
    await add_block(entry(env, place_target(DEMO)))
    await reapply_blocklist()
    blocked = await get_submission(record.id)
    assert blocked.state is State.BLOCKED and blocked.rerun_requested is None and blocked.claim is None
    assert "steals keys" in blocked.history[-1].reason


async def test_what_was_uploaded_during_a_run_that_was_blocked_is_looked_at_when_the_block_is_lifted(env):
    record = await submitted(body="First.")
    assert isinstance(await claim_submission(record.id, 1), HeldClaim)
    newer = await submitted(body="Second.")
    assert newer.rerun_requested is not None
    await add_block(entry(env, place_target(DEMO)))
    await reapply_blocklist()
    await run_until_quiet(env)
    blocked = await get_submission(record.id)
    assert (blocked.run, blocked.state, blocked.upload) == (2, State.BLOCKED, newer.rerun_requested.upload)
    await remove_block(place_target(DEMO))
    await reapply_blocklist()
    await run_until_quiet(env)
    live = await get_submission(record.id)
    assert (live.state, live.digest) == (State.PUBLISHED, newer.rerun_requested.upload)


async def test_the_version_rises_with_every_change_and_a_pass_is_made_only_then(env):
    before = await blocklist_version()
    await add_block(entry(env, name_target("evil")))
    raised = await blocklist_version()
    assert raised > before
    assert await reapply_blocklist(raised) == raised
    await asyncio.gather(*(add_block(entry(env, name_target("evil"), evidence=(f"e{n}",))) for n in range(8)))
    (merged,) = await find_hits([name_target("evil")])
    assert merged.evidence == tuple(f"e{n}" for n in range(8))
    assert await blocklist_version() > raised


async def test_severity_only_rises(env):
    await add_block(entry(env, name_target("evil"), Severity.CRITICAL))
    await add_block(entry(env, name_target("evil"), Severity.LOW))
    (merged,) = await find_hits([name_target("evil")])
    assert merged.severity is Severity.CRITICAL


async def test_an_entry_that_cannot_be_read_is_not_an_entry_that_was_lifted(env):
    record = await published(env)
    await add_block(entry(env, place_target(DEMO)))
    await reapply_blocklist()
    await env.kv.put(f"block:place:{DEMO.key}", b"{broken")
    with pytest.raises(RecordMalformed):
        await reapply_blocklist()
    assert await state_of(record) is State.BLOCKED


# Rescans.


async def test_a_rescan_that_is_no_worse_changes_the_certification_in_place(env):
    record = await published(env)
    decision = RescanDecision(RescanOutcome.KEEP, "passed", certification=Certification.VERIFIED, score=97)
    skill = await apply_rescan("upload~tests/skills/demo", digest_of(record), decision)
    assert (skill.certification, skill.score, len(skill.versions)) == (Certification.VERIFIED, 97, 1)
    assert await state_of(record) is State.PUBLISHED


@pytest.mark.parametrize("block", [BlockScope.NONE, BlockScope.PLACE, BlockScope.DIGEST])
async def test_a_worse_rescan_takes_the_version_down_and_a_reviewer_can_bring_it_back(env, block):
    record = await published(env)
    state = State.NEEDS_REVIEW if block is BlockScope.NONE else State.BLOCKED
    decision = RescanDecision(
        RescanOutcome.TAKE_DOWN, "new rule", next_state=state, rule_ids=("R-1",), block=block
    )
    skill = await apply_rescan("upload~tests/skills/demo", digest_of(record), decision)
    assert skill.withdrawn
    assert await state_of(record) is state
    if block is BlockScope.NONE:
        await approve(record.id, by="admin:me", reason="a false alarm")
        await run_until_quiet(env)
        skill = await get_skill("upload~tests/skills/demo")
        assert (skill.current_version, skill.certification) == ("1.0.0", Certification.CERTIFIED)
    else:
        await reapply_blocklist()
        assert await state_of(record) is State.BLOCKED


async def test_a_rescan_of_an_older_version_leaves_the_submission_alone(env):
    old = await published(env, body="one")
    new = await published(env, body="two")
    decision = RescanDecision(RescanOutcome.TAKE_DOWN, "new rule", next_state=State.NEEDS_REVIEW)
    skill = await apply_rescan("upload~tests/skills/demo", digest_of(old), decision)
    assert skill.current_version == "1.0.1" and not skill.withdrawn
    assert await state_of(new) is State.PUBLISHED


async def test_an_undecided_rescan_changes_nothing(env):
    record = await published(env)
    before = await get_skill("upload~tests/skills/demo")
    decision = RescanDecision(RescanOutcome.UNDECIDED, "the judge is down")
    assert await apply_rescan("upload~tests/skills/demo", digest_of(record), decision) == before
    with pytest.raises(NotFound):
        await apply_rescan("nobody/none/none", digest_of(record), decision)


async def test_blocking_an_earlier_content_leaves_what_was_published_since(env):
    first = await published(env)
    latest = await published(env, body="better")
    await add_block(entry(env, digest_target(digest_of(first))))
    await reapply_blocklist()
    skill = await get_skill("upload~tests/skills/demo")
    assert [ref.status.value for ref in skill.versions] == ["taken_down", "live"]
    assert skill.current_digest == digest_of(latest)
    assert await state_of(latest) is State.PUBLISHED


async def named(env, name: str) -> Submission:
    """The skill `demo` published with a front matter that gives it this name."""
    files = skill_files(name)
    result = await submit_upload(files, namespace="tests", slug="demo")
    assert result.submission is not None
    await run_until_quiet(env)
    return await get_submission(result.submission.id)


async def statuses() -> list[str]:
    return [ref.status.value for ref in (await get_skill("upload~tests/skills/demo")).versions]


async def test_a_blocked_name_takes_down_the_versions_that_bear_it(env):
    await named(env, "first-name")
    latest = await named(env, "second-name")
    await add_block(entry(env, name_target("first-name")))
    await reapply_blocklist()
    assert await statuses() == ["taken_down", "live"]
    assert await state_of(latest) is State.PUBLISHED


async def test_what_a_blocked_name_took_down_stays_down_after_a_version_with_another_name(env):
    """Seed 200858: the versions followed the skill's newest name, so nothing said that the next pass had work to do."""
    first = await named(env, "first-name")
    await add_block(entry(env, name_target("first-name")))
    await reapply_blocklist()
    assert await state_of(first) is State.BLOCKED
    latest = await named(env, "second-name")
    assert (latest.state, await statuses()) == (State.PUBLISHED, ["taken_down", "live"])
    await reapply_blocklist()
    assert await statuses() == ["taken_down", "live"]

    await remove_block(name_target("first-name"))
    await reapply_blocklist()
    assert await statuses() == ["live", "live"]


async def test_the_skill_is_called_what_its_current_version_is_called(env):
    await named(env, "first-name")
    await named(env, "second-name")
    await add_block(entry(env, name_target("second-name")))
    await reapply_blocklist()
    skill = await get_skill("upload~tests/skills/demo")
    assert (skill.name, skill.current_version) == ("first-name", skill.versions[0].number)


async def test_a_malformed_record_keeps_the_blocklist_from_no_other(env):
    record = await published(env)
    for key in ("sub:sub_0", "sub:sub_z", "skill:a/b/c", "skill:z/b/c"):
        await env.kv.put(key, b"{")
    await add_block(entry(env, digest_target(digest_of(record))))
    await reapply_blocklist()
    assert await state_of(record) is State.BLOCKED
    assert (await get_skill("upload~tests/skills/demo")).withdrawn
    labels = {"operation": "reapply_blocklist", "reason": "malformed"}
    assert env.metrics.registry.get_sample_value("vskill_records_skipped_total", labels) >= 4


# What people do.


async def test_cancelling_approving_and_rejecting_are_each_one_step_with_a_reason(env):
    record = await submitted()
    with pytest.raises(InvalidInput, match="reason"):
        await cancel(record.id, by="user:me", reason=" ")
    with pytest.raises(TransitionError, match="Only a submission that waits"):
        await approve(record.id, by="admin:me", reason="fine")
    await cancel(record.id, by="user:me", reason="a mistake")
    with pytest.raises(TransitionError, match="nothing to cancel"):
        await cancel(record.id, by="user:me", reason="again")
    again = await run_again(record.id, by="admin:me", reason="they asked")
    assert (again.run, again.state) == (2, State.RECEIVED)
    assert (await run_again(record.id, by="admin:me", reason="now")).run == 2
    await reject(record.id, by="admin:me", reason="spam")
    rejected = await get_submission(record.id)
    assert rejected.state is State.REJECTED and rejected.decision is not None
    assert rejected.decision.reason == "spam" and rejected.history[-1].actor == "admin:me"


async def test_D7_of_two_approvals_one_counts(env):
    record = await published(env)
    decision = RescanDecision(RescanOutcome.TAKE_DOWN, "new rule", next_state=State.NEEDS_REVIEW)
    await apply_rescan("upload~tests/skills/demo", digest_of(record), decision)
    results = await asyncio.gather(
        *(approve(record.id, by=f"admin:{name}", reason="fine") for name in "ab"), return_exceptions=True
    )
    assert sum(isinstance(result, TransitionError) for result in results) == 1
    await run_until_quiet(env)
    history = (await get_submission(record.id)).history
    assert sum(event.to is State.AUTO_APPROVED and event.actor.startswith("admin") for event in history) == 1


# Skills by name.


async def test_a_short_name_stays_with_the_first_skill_that_claims_it(env):
    await published(env)
    assert (await find_by_name("demo", audiences=PUBLIC_ONLY)).canonical == "upload~tests/skills/demo"
    assert (await find_by_name("upload~tests/skills/demo", audiences=PUBLIC_ONLY)).name == "demo"
    await submit_upload(skill_files("demo"), namespace="others", slug="demo")
    await run_until_quiet(env)
    assert (await find_by_name("demo", audiences=PUBLIC_ONLY)).canonical == "upload~tests/skills/demo"
    other = await find_by_name("demo-upload-others", audiences=PUBLIC_ONLY)
    assert other.canonical == "upload~others/skills/demo"
    with pytest.raises(NotFound):
        await find_by_name("nothing", audiences=PUBLIC_ONLY)
    with pytest.raises(NotFound):
        await get_version("upload~tests/skills/demo", "9.9.9")
    assert (await get_version("upload~tests/skills/demo", "1.0.0")).number == "1.0.0"


async def test_a_skill_is_changed_by_compare_and_swap(env):
    await published(env)
    yank = skill_changes.StatusChange(StatusRole.OWNER, "user:me", env.kv.now(), "broken")
    skill = await update_skill("upload~tests/skills/demo", lambda skill: skill_changes.yank(skill, yank))
    assert skill.withdrawn
    with pytest.raises(NotFound):
        await update_skill("a/b/c", lambda skill: skill)
