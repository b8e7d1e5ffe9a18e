"""Taking published skills down, with a block where it is needed, and bringing them back."""

import pytest

from tests.support.acting import principal_for
from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from tests.support.people import signed_in
from tests.support.system_reads import get_submission
from vskill_core.errors import Blocked, InvalidInput, NotPermitted
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.recall.blocklist import LIFT, BlockReach, LiftBlock
from vskill_platform.actions.recall.takedowns import RESTORE, TAKE_DOWN, RestoreSkill, TakeDownSkill
from vskill_platform.domain.blocklist import TargetKind
from vskill_platform.domain.skills.skill import PublishedSkill, VersionStatus
from vskill_platform.domain.submissions.states import State
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.recall.blocklist import list_blocks
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

ROB = Principal("rob", Role.REVIEWER)
TIDY = "upload~tests/skills/tidy"


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        yield opened


async def publish(env, *bodies: str, submitter: str | None = None) -> PublishedSkill:
    for body in bodies:
        await submit_skill("tidy", body, submitter=submitter)
        await run_until_quiet(env)
    return await get_skill(TIDY)


async def test_a_take_down_without_a_block_is_one_entry_and_comes_back(env):
    skill = await publish(env, "one", "two")
    state = await TAKE_DOWN(env, ROB, TakeDownSkill(skill="tidy", reason="complaints"))
    assert state.current_version is None
    assert {one.status for one in state.versions} == {VersionStatus.TAKEN_DOWN}
    record = await get_submission(str(skill.submission))
    assert record.state is State.NEEDS_REVIEW and record.history[-1].actor == "admin:rob"
    entry = (await list_audit()).items[0]
    assert (entry.action, entry.by, entry.reason) == ("take down", "admin:rob", "complaints")
    back = await RESTORE(env, ROB, RestoreSkill(skill=TIDY, reason="a mistake"))
    assert {one.status for one in back.versions} == {VersionStatus.LIVE}
    assert (await get_submission(str(skill.submission))).state is State.AUTO_APPROVED


@pytest.mark.parametrize(
    ("reach", "kind"),
    [("place", TargetKind.PLACE), ("version", TargetKind.DIGEST), ("name", TargetKind.NAME)],
)
async def test_what_is_blocked_with_it_is_blocked_in_the_same_commit(env, reach, kind):
    await publish(env, "one")
    await TAKE_DOWN(env, ROB, TakeDownSkill(skill=TIDY, reason="steals keys", block=BlockReach(reach)))
    (entry,) = await list_blocks()
    assert (entry.target.kind, entry.reason, entry.discovered_by) == (kind, "steals keys", "admin:rob")
    with pytest.raises(Blocked):
        await RESTORE(env, ROB, RestoreSkill(skill=TIDY, reason="a mistake"))
    await LIFT(env, ROB, LiftBlock(kind=kind, target=entry.target.value, reason="a mistake"))
    # The reviewer's word outlasts the block.
    assert (await get_skill(TIDY)).current_version is None
    await RESTORE(env, ROB, RestoreSkill(skill=TIDY, reason="a mistake"))
    assert (await get_skill(TIDY)).current_version is not None


async def test_four_eyes_forbid_restoring_ones_own(tmp_path):
    async with open_test_env("memory", tmp_path, four_eyes="on") as env:
        await publish(env, "one", submitter="rob")
        await TAKE_DOWN(env, ROB, TakeDownSkill(skill=TIDY, reason="complaints"))
        with pytest.raises(NotPermitted, match="VSKILL_FOUR_EYES"):
            await RESTORE(env, ROB, RestoreSkill(skill=TIDY, reason="it is fine"))
        await RESTORE(env, principal_for("admin:ada"), RestoreSkill(skill=TIDY, reason="it is fine"))


@pytest.mark.parametrize("action", [TAKE_DOWN, RESTORE], ids=lambda one: one.name)
async def test_only_reviewers_may_and_only_with_a_reason(env, action):
    await publish(env, "one")
    with pytest.raises(NotPermitted):
        await action(env, principal_for("user:ann"), action.request(skill=TIDY, reason="x"))
    with pytest.raises(InvalidInput):
        await action(env, ROB, action.request(skill=TIDY, reason=" "))


async def test_only_reviewers_see_it_on_the_skills_page(env):
    await publish(env, "one")
    app = create_app(env)
    async with signed_in(app, env, "ann", Role.AUTHOR) as ann:
        assert "Take down…" not in (await ann.get(f"/skills/{TIDY}")).text
    async with signed_in(app, env, "rob", Role.REVIEWER) as rob:
        page = (await rob.get(f"/skills/{TIDY}")).text
        assert "Take down…" in page and "Restore…" not in page
        assert "tick the box" in await rob.do(
            f"/skills/{TIDY}/take-down", reason="malware", version="", block="version", back=f"/skills/{TIDY}"
        )
        assert (await get_skill(TIDY)).current_version is not None
        said = await rob.do(
            f"/skills/{TIDY}/take-down", reason="malware", version="", block="nothing", confirm="yes"
        )
        assert said == f"{TIDY} is taken down. No version is left."
        page = (await rob.get(f"/skills/{TIDY}")).text
        assert "Take down…" not in page and "Restore…" in page
        await rob.do(f"/skills/{TIDY}/restore", reason="a mistake", version="")
    assert (await get_skill(TIDY)).current_version is not None
