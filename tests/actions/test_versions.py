"""What owners do with published versions: withdraw one, bring it back, delete a skill; each within their rights, each
with its audit entry."""

import asyncio
from typing import Any

import pytest

from tests.support.acting import delete, unyank, yank
from tests.support.envs import active_env, open_test_env, run_until_quiet, submit_skill
from tests.support.faults import HookedKV
from tests.support.system_reads import get_submission
from vskill_client.wire.skills import SkillRequest
from vskill_core.errors import (
    InvalidInput,
    NotFound,
    NotPermitted,
    NotSignedIn,
    VersionStatusError,
)
from vskill_core.findings import Severity
from vskill_core.identity import upload_identity
from vskill_platform.actions.action import Action
from vskill_platform.actions.principal import ANYBODY, OPERATOR, Principal
from vskill_platform.actions.skills.versions import (
    DELETE,
    SHOW_SKILL,
    UNYANK,
    YANK,
    DeleteSkill,
    WithdrawVersion,
)
from vskill_platform.domain.blocklist import BlockEntry, place_target
from vskill_platform.domain.people.refusal import AuditOutcome
from vskill_platform.domain.skills.skill import VersionStatus
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.submit import IntakeOutcome
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import AuditFilter, list_audit
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.skills.skills import get_skill
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
    """What was done."""
    found = await list_audit(wanted=AuditFilter(outcome=AuditOutcome.DONE))
    return [one.action for one in reversed(found.items)]


async def block(env, target) -> None:
    await add_block(BlockEntry(target, Severity.HIGH, "steals keys", "admin:eve", env.kv.now()))


async def test_an_owner_yanks_a_version_and_brings_it_back(env, demo):
    changed = await yank(DEMO, "1.0.1", account="ann", reason="broken")
    assert (changed.current_version, await statuses()) == ("1.0.0", {"1.0.0": "live", "1.0.1": "yanked"})
    entry = (await list_audit()).items[0]
    assert (entry.action, entry.target, entry.by, entry.reason) == ("yank", DEMO, "user:ann", "broken")
    assert entry.details == {"version": "1.0.1"}
    assert (await unyank(DEMO, "1.0.1", account="ann", reason="it works")).current_version == "1.0.1"
    assert await actions() == ["yank", "unyank"]


async def test_only_an_owner_may(env, demo):
    for act in (yank, unyank):
        with pytest.raises(NotPermitted):
            await act(DEMO, "1.0.1", account="bob", reason="mine now")
    with pytest.raises(NotPermitted):
        await delete(DEMO, account="bob", reason="mine now")
    assert await actions() == [] and await statuses() == {"1.0.0": "live", "1.0.1": "live"}


async def test_what_cannot_be_is_refused_and_not_accounted_for(env, demo):
    with pytest.raises(VersionStatusError):
        await unyank(DEMO, "1.0.1", account="ann", reason="x")
    with pytest.raises(NotFound):
        await yank(DEMO, "9.9.9", account="ann", reason="x")
    with pytest.raises(NotFound):
        await yank("a/b/c", "1.0.0", account="ann", reason="x")
    with pytest.raises(InvalidInput):
        await yank(DEMO, "1.0.1", account="ann", reason=" ")
    assert await actions() == []


async def test_two_at_once_yank_once(env, demo):
    results = await asyncio.gather(
        *(yank(DEMO, "1.0.1", account="ann", reason="broken") for _ in range(4)), return_exceptions=True
    )
    assert sum(isinstance(one, VersionStatusError) for one in results) == 3
    assert await actions() == ["yank"]


async def test_anybody_sees_the_status_of_every_version(env, demo):
    await yank(DEMO, "1.0.1", account="ann", reason="broken")
    found = await SHOW_SKILL(env, ANYBODY, SkillRequest(skill="demo"))
    assert (found.skill, found.current_version) == (DEMO, "1.0.0")
    assert [(one.version, one.status, one.reason) for one in found.versions] == [
        ("1.0.1", VersionStatus.YANKED, "broken"),
        ("1.0.0", VersionStatus.LIVE, "published"),
    ]
    with pytest.raises(NotFound):
        await SHOW_SKILL(env, ANYBODY, SkillRequest(skill="nothing"))


async def test_a_short_name_does_and_goes_on_to_mean_its_holder(env, demo):
    assert (await yank("demo", "1.0.1", account="ann", reason="broken")).skill == DEMO
    await submit_skill("demo", namespace="bob")
    await run_until_quiet(env)
    assert (await yank("demo", "1.0.0", account="ann", reason="broken")).skill == DEMO
    with pytest.raises(NotPermitted):
        await yank("demo", "1.0.0", account="bob", reason="not mine")
    newcomer = await yank("demo-upload-bob", "1.0.0", account="bob", reason="broken")
    assert newcomer.skill == "upload~bob/skills/demo"


@pytest.mark.parametrize(
    ("actor", "refused"),
    [
        (ANYBODY, NotSignedIn),
        (Principal("bob", Role.AUTHOR), NotPermitted),
        # Reviewers take down; what an owner says in the owner's name is not theirs to say.
        (Principal("rob", Role.REVIEWER), NotPermitted),
        (Principal("ada", Role.ADMIN), NotPermitted),
        (Principal("ann", Role.AUTHOR, frozenset({"read", "submit"})), NotPermitted),
        (Principal("ann", Role.AUTHOR), None),
        (Principal("ANN", Role.AUTHOR), None),
        (Principal("ann", Role.AUTHOR, frozenset({"own"})), None),
        (OPERATOR, None),
    ],
    ids=[
        "anybody",
        "another",
        "reviewer",
        "admin",
        "no scope",
        "owner",
        "owner in capitals",
        "scope",
        "operator",
    ],
)
async def test_who_may_withdraw(env, demo, actor, refused):
    attempts: tuple[tuple[Action[Any, Any], Any], ...] = (
        (YANK, WithdrawVersion(skill=DEMO, version="1.0.1", reason="broken")),
        (UNYANK, WithdrawVersion(skill=DEMO, version="1.0.1", reason="mended")),
        (DELETE, DeleteSkill(skill=DEMO, reason="gone")),
    )
    for action, request in attempts:
        if refused is None:
            await action(env, actor, request)
        else:
            with pytest.raises(refused):
                await action(env, actor, request)
    done = [] if refused else ["yank", "unyank", "delete"]
    assert await actions() == done
    assert {one.by for one in (await list_audit()).items} <= {actor.actor}


async def test_a_refusal_says_whose_it_is(env, demo):
    with pytest.raises(NotPermitted, match="a maintainer of upload~ann may do this"):
        await yank(DEMO, "1.0.1", account="bob", reason="mine now")


async def test_the_operator_is_not_called_an_owner(env, demo):
    await DELETE(env, OPERATOR, DeleteSkill(skill=DEMO, reason="a court order"))
    last = (await get_submission(demo.id)).history[-1]
    assert (last.actor, last.reason) == ("admin:command line", "deleted by the operator: a court order")


# Deleting.


async def test_deleting_yanks_everything_and_dequeues_the_submission_in_one_commit(env, demo):
    hooked = HookedKV(env.kv)
    with active_env(env, kv=hooked):
        changed = await delete(DEMO, account="ann", reason="not mine to give")
    assert len(hooked.commits) == 1 and changed.current_version is None
    assert await statuses() == {"1.0.0": "yanked", "1.0.1": "yanked"}
    record = await get_submission(demo.id)
    assert (record.state, record.history[-1].actor) == (State.DEQUEUED, "user:ann")
    assert "deleted by its owner: not mine to give" in record.history[-1].reason
    assert await actions() == ["delete"]
    assert await enumerate_published_skills() == []


async def test_a_run_under_way_does_not_publish_what_was_deleted(env, demo):
    again = (await submit_skill("demo", "third", namespace="ann")).submission
    assert again is not None
    assert (await get_submission(again.id)).state is State.RECEIVED
    await delete(DEMO, account="ann", reason="gone")
    await run_until_quiet(env)
    assert (await get_submission(again.id)).state is State.DEQUEUED
    assert (await get_skill(DEMO)).withdrawn


async def test_what_is_blocked_stays_blocked_when_its_owner_deletes_it(env, demo):
    await block(env, place_target(PLACE))
    await reapply_blocklist()
    await delete(DEMO, account="ann", reason="gone")
    assert (await get_submission(demo.id)).state is State.BLOCKED
    assert set((await statuses()).values()) == {"taken_down"}


async def test_submitting_again_after_deleting_publishes_again(env, demo):
    await delete(DEMO, account="ann", reason="gone")
    again = await submit_skill("demo", "back", namespace="ann")
    assert again.outcome is IntakeOutcome.REQUEUED
    await run_until_quiet(env)
    assert (await get_skill(DEMO)).current_version == "1.0.2"
