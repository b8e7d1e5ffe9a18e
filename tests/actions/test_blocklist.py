"""Blocking and lifting: what an entry hits, what it must not touch, and what comes back."""

import msgspec
import pytest

from tests.support.acting import principal_for
from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from tests.support.system_reads import get_submission
from vskill_client.wire.base import NoParameters
from vskill_core.errors import InvalidInput, NotFound, NotPermitted
from vskill_core.identity import upload_identity
from vskill_platform.actions.recall.blocklist import (
    BLOCK,
    BLOCKS,
    LIFT,
    BlockSomething,
    LiftBlock,
)
from vskill_platform.actions.skills.skill_names import current_blocklist
from vskill_platform.domain.blocklist import TargetKind
from vskill_platform.domain.people.namespace import PUBLIC
from vskill_platform.domain.skills import skill_changes
from vskill_platform.domain.skills.skill import PublishedSkill, StatusRole, VersionStatus
from vskill_platform.domain.skills.skill_changes import StatusChange
from vskill_platform.domain.submissions.states import State
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.recall.blocklist import list_blocks
from vskill_platform.store.skills.skills import get_skill, update_skill
from vskill_platform.store.tasks import read_task

pytestmark = pytest.mark.anyio

ROB = principal_for("admin:rob")
TIDY = "upload://tests/tidy"
LIVE, DOWN = VersionStatus.LIVE, VersionStatus.TAKEN_DOWN


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        yield opened


def place(target: str = TIDY, **changes) -> BlockSomething:
    asked = BlockSomething(kind=TargetKind.PLACE, target=target, reason="steals keys")
    return msgspec.structs.replace(asked, **changes)


def lifted(target: str = TIDY, kind: TargetKind = TargetKind.PLACE) -> LiftBlock:
    return LiftBlock(kind=kind, target=target, reason="a mistake")


async def publish(env, *bodies: str, name: str = "tidy") -> PublishedSkill:
    """A skill with one version for each body."""
    for body in bodies:
        done = await submit_skill(name, body)
        await run_until_quiet(env)
    assert done.submission is not None
    record = await get_submission(done.submission.id)
    assert record.published is not None
    return await get_skill(record.published.removeprefix("skill:"))


async def statuses(canonical: str) -> list[VersionStatus]:
    return [ref.status for ref in (await get_skill(canonical)).versions]


async def test_the_answer_says_what_the_entry_hits(env):
    skill = await publish(env, "one", "two")
    done = await BLOCK(env, ROB, place())
    assert done.submissions == (skill.submission,)
    assert (done.skills, done.versions) == ((skill.canonical,), 2)
    assert (done.entry.by, done.entry.severity) == ("admin:rob", "high")
    assert await statuses(skill.canonical) == [DOWN, DOWN]
    assert (await get_submission(str(skill.submission))).state is State.BLOCKED
    entry = next(one for one in (await list_audit()).items if one.action == "block")
    assert (entry.by, entry.reason) == ("admin:rob", "steals keys")


async def test_a_content_hits_only_the_versions_that_have_it(env):
    skill = await publish(env, "one", "two")
    request = place(kind=TargetKind.DIGEST, target=skill.versions[0].digest)
    done = await BLOCK(env, ROB, request)
    assert (done.skills, done.versions) == ((skill.canonical,), 1)
    assert await statuses(skill.canonical) == [DOWN, LIVE]


async def test_a_place_that_was_never_submitted_is_refused_with_the_nearest(env):
    await publish(env, "one")
    await publish(env, "one", name="other")
    with pytest.raises(
        InvalidInput, match="No skill was ever submitted from upload/tests/skills/tydi"
    ) as refused:
        await BLOCK(env, ROB, place("upload://tests/tydi"))
    near = refused.value.details["near"]
    assert isinstance(near, list) and near[0] == "upload/tests/skills/tidy"
    assert "upload/tests/skills/tidy" in str(refused.value.details["fix"])
    assert await list_blocks() == []


async def test_a_place_blocked_ahead_taints_nothing(env):
    skill = await publish(env, "one")
    done = await BLOCK(env, ROB, place("upload://tests/soon", ahead=True))
    assert (done.submissions, done.skills, done.versions) == ((), (), 0)
    blocklist = await current_blocklist(env)
    assert blocklist.taint(skill.identity, PUBLIC) is None
    assert (await submit_skill("soon")).outcome == "blocked"
    assert (await current_blocklist(env)).taint(skill.identity, PUBLIC) is None


async def test_a_place_that_was_submitted_taints_its_repository(env):
    await publish(env, "one")
    await BLOCK(env, ROB, place())
    assert (await current_blocklist(env)).taint(upload_identity("tests", "other"), PUBLIC) is not None


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (TargetKind.NAME, "evil"),
        (TargetKind.DIGEST, "a" * 64),
        (TargetKind.REPOSITORY, "github.com/evil/skills"),
    ],
)
async def test_what_hits_nothing_says_so_and_may_be_blocked_ahead(env, kind, target):
    with pytest.raises(InvalidInput) as refused:
        await BLOCK(env, ROB, place(kind=kind, target=target))
    assert target in refused.value.public_message
    assert "ahead" in str(refused.value.details["fix"])
    done = await BLOCK(env, ROB, place(kind=kind, target=target, ahead=True))
    assert (done.submissions, done.skills) == ((), ())
    listed = (await BLOCKS(env, ROB, NoParameters())).entries
    assert [(one.kind, one.target) for one in listed] == [(kind.value, target)]


async def test_lifting_brings_back_every_version_and_has_it_judged_again(env):
    skill = await publish(env, "one", "two")
    await BLOCK(env, ROB, place())
    done = await LIFT(env, ROB, lifted())
    assert (done.skills, done.versions) == ((skill.canonical,), 2)
    assert await statuses(skill.canonical) == [LIVE, LIVE]
    for ref in skill.versions:
        task, _ = await read_task("rescan", f"{skill.canonical}:{ref.digest}:{env.scanner.ruleset}")
        assert task is not None
    await run_until_quiet(env)
    assert (await get_submission(str(skill.submission))).state is State.PUBLISHED
    assert await statuses(skill.canonical) == [LIVE, LIVE]


@pytest.mark.parametrize(
    "change",
    [
        StatusChange(StatusRole.REVIEWER, "admin:eve", 1, "blocked (as if): it is worse than that"),
        StatusChange(StatusRole.SYSTEM, "system", 1, "rescan: new rules find it"),
    ],
    ids=["reviewer", "rescan"],
)
@pytest.mark.parametrize("before_the_block", [True, False])
async def test_what_something_else_took_down_stays_down(env, change, before_the_block):
    skill = await publish(env, "one", "two")
    number = skill.versions[0].number

    async def take_down() -> None:
        await update_skill(
            skill.canonical, lambda found: skill_changes.take_down(found, change, number=number)
        )

    if before_the_block:
        await take_down()
    await BLOCK(env, ROB, place())
    if not before_the_block:
        await take_down()
    await LIFT(env, ROB, lifted())
    # A rescan does not look at what is down already, so after the block it has no say.
    stays = before_the_block or change.role is StatusRole.REVIEWER
    assert await statuses(skill.canonical) == [DOWN if stays else LIVE, LIVE]


async def test_another_entry_keeps_it_down_until_it_is_lifted_too(env):
    skill = await publish(env, "one", "two")
    await BLOCK(env, ROB, place(severity="critical"))
    await BLOCK(env, ROB, place(kind=TargetKind.NAME, target="tidy", severity="low"))
    assert (await LIFT(env, ROB, lifted())).versions == 0
    assert await statuses(skill.canonical) == [DOWN, DOWN]
    assert (await LIFT(env, ROB, lifted("tidy", TargetKind.NAME))).versions == 2
    assert await statuses(skill.canonical) == [LIVE, LIVE]


async def test_what_its_owner_had_yanked_stays_yanked(env):
    skill = await publish(env, "one", "two")
    change = StatusChange(StatusRole.OWNER, "user:ann", 1, "old")
    number = skill.versions[0].number
    await update_skill(skill.canonical, lambda found: skill_changes.yank(found, change, number=number))
    await BLOCK(env, ROB, place())
    await LIFT(env, ROB, lifted())
    assert await statuses(skill.canonical) == [VersionStatus.YANKED, LIVE]


async def test_an_entry_is_lifted_by_its_listed_text_too(env):
    await publish(env, "one")
    await BLOCK(env, ROB, place())
    (entry,) = (await BLOCKS(env, ROB, NoParameters())).entries
    assert (await LIFT(env, ROB, lifted(entry.target))).target == entry.target
    with pytest.raises(NotFound, match="no blocklist entry for the place"):
        await LIFT(env, ROB, lifted())


@pytest.mark.parametrize(
    ("action", "request_"), [(BLOCK, place()), (LIFT, lifted()), (BLOCKS, NoParameters())]
)
async def test_only_reviewers_may(env, action, request_):
    with pytest.raises(NotPermitted):
        await action(env, principal_for("user:ann"), request_)
