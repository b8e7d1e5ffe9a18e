"""The brake of rescans: new rules that would take down many live skills stop before the first, until an admin looks."""

import pytest

from tests.support.acting import principal_for
from tests.support.envs import open_test_env, run_until_quiet
from tests.support.skills import skill_files
from tests.test_rescan import FAILING, Rules
from vskill_client.wire.base import NoParameters
from vskill_core.content import digest_of_files, manifest_of
from vskill_core.errors import NotPermitted, TransitionError
from vskill_core.findings import Finding, FindingCategory, FindingKind, Severity, StaticReport
from vskill_core.identity import Identity
from vskill_platform.actions.operation.jobs import (
    CONTINUE_RESCANS,
    SHOW_RESCANS,
    ContinueRescans,
)
from vskill_platform.domain.downloads import Artifact
from vskill_platform.domain.packed_content import pack
from vskill_platform.domain.people.refusal import AuditOutcome
from vskill_platform.domain.skills.skill import SkillVersion, VersionStatus
from vskill_platform.domain.skills.skill_changes import Publication, publish_version
from vskill_platform.intake.submit import submit_upload
from vskill_platform.queue.alerts import AlertCode
from vskill_platform.queue.health import queue_health
from vskill_platform.queue.jobs import JOBS
from vskill_platform.stages.rescan import request_rescan
from vskill_platform.store.people.audit import AuditFilter, list_audit
from vskill_platform.store.skills.skills import get_skill, iter_skills, skill_writes
from vskill_platform.store.verdicts.brake import count_live_skills, list_take_downs
from vskill_platform.store.verdicts.suppressions import add_suppression

pytestmark = pytest.mark.anyio

ADA = principal_for("admin:ada")
ROB = principal_for("user:rob")
LISTED = Finding("KB-001", Severity.CRITICAL, FindingCategory.KNOWN_BAD, FindingKind.MALICE, certain=True)
(RESCANS,) = (job for job in JOBS if job.name == "rescans")


class RulesForSome(Rules):
    """New rules hit what says so in its text; each kind has its own findings."""

    words: dict[bytes, tuple[Finding, ...]]

    def __init__(self) -> None:
        super().__init__()
        self.words = {}

    async def scan(self, files) -> StaticReport:
        self.scans += 1
        found = [these for word, these in self.words.items() if word in files[0].data]
        return StaticReport(self.ruleset, self.status, found[0] if found else ())


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path, scanner=RulesForSome()) as env:
        yield env


async def publish_many(env, count: int, bad: int, word: str = "bad") -> None:
    """Live skills as publishing leaves them, of which the first few hold the word."""
    for number in range(count):
        files = skill_files(f"{word}{number:04}", f"It says {word}." if number < bad else "It is fine.")
        digest = digest_of_files(files)
        await env.blobs.put(digest, pack(files))
        canonical = f"acme/many/{word}{number:04}"
        version = SkillVersion(
            canonical, "", digest, "", "", manifest_of(files), env.kv.now(), name=canonical
        )
        identity = Identity("github.com", "acme", "many", f"{word}{number:04}")
        skill, added = publish_version(
            None, Publication(version, identity, "worker:w", Artifact(True, "0" * 64))
        )
        await env.kv.commit(await skill_writes(None, skill, 0, added))


async def run_rescans(env, rounds: int = 60):
    """The job and the workers, until the job has nothing left to do or changes nothing."""
    state: dict = {"finished": "rules-1"}
    for _ in range(rounds):
        state = await RESCANS.run(state)
        await run_until_quiet(env)
        if state.get("finished") == env.scanner.ruleset or await is_stopped():
            break
    return state


async def is_stopped() -> bool:
    codes = {alert.code for alert in (await queue_health()).alerts}
    return AlertCode.RESCANS_STOPPED in codes


async def taken_down() -> set[str]:
    return {
        skill.canonical
        async for skill in iter_skills()
        if any(ref.status is VersionStatus.TAKEN_DOWN for ref in skill.versions)
    }


def go_on(ruleset: str = "rules-2") -> ContinueRescans:
    return ContinueRescans(ruleset=ruleset, reason="looked at the list")


@pytest.mark.slow
async def test_a_rule_that_hits_30_of_1000_stops_before_the_first_until_an_admin_continues(env):
    await publish_many(env, 1000, 30)
    env.scanner.ruleset, env.scanner.words = "rules-2", {b"says bad": FAILING}
    await run_rescans(env)
    assert await taken_down() == set()
    (alert,) = [one for one in (await queue_health()).alerts if one.code is AlertCode.RESCANS_STOPPED]
    assert "30 of 1000 live skills" in alert.text and alert.subject == "rules-2"
    seen = await SHOW_RESCANS(env, ADA, NoParameters())
    assert (seen.stopped, seen.ruleset, seen.skills, seen.live) == (True, "rules-2", 30, 1000)
    assert len(seen.take_downs) == 30 and all(
        "failed the static scan" in one.reason for one in seen.take_downs
    )

    # It stays stopped, whoever runs the job.
    await run_rescans(env, rounds=3)
    assert await taken_down() == set()

    with pytest.raises(NotPermitted):
        await CONTINUE_RESCANS(env, ROB, go_on())
    with pytest.raises(TransitionError, match="not stopped"):
        await CONTINUE_RESCANS(env, ADA, go_on("rules-1"))
    answer = await CONTINUE_RESCANS(env, ADA, go_on())
    assert (answer.stopped, answer.continued_by) == (False, "admin:ada")
    assert not await is_stopped()
    state = await run_rescans(env)
    assert state["finished"] == "rules-2"
    assert await taken_down() == {one.skill for one in seen.take_downs}
    assert await count_live_skills() == 970
    (entry,) = (await list_audit(wanted=AuditFilter(outcome=AuditOutcome.DONE))).items
    assert (entry.action, entry.target, entry.by) == ("rescan continue", "rules-2", "admin:ada")
    assert entry.details == {"skills": "30", "live": "1000"}
    with pytest.raises(TransitionError, match="not stopped"):
        await CONTINUE_RESCANS(env, ADA, go_on())


@pytest.mark.slow
async def test_a_rule_that_hits_8_of_1000_goes_through(env):
    await publish_many(env, 1000, 8)
    env.scanner.ruleset, env.scanner.words = "rules-2", {b"says bad": FAILING}
    state = await run_rescans(env)
    assert state["finished"] == "rules-2" and not await is_stopped()
    assert len(await taken_down()) == 8
    assert (await SHOW_RESCANS(env, ADA, NoParameters())).ruleset is None


@pytest.mark.parametrize(("bad", "stops"), [(5, False), (6, True)])
async def test_of_a_small_registry_five_go_and_six_do_not(env, bad, stops):
    await publish_many(env, 20, bad)
    env.scanner.ruleset, env.scanner.words = "rules-2", {b"says bad": FAILING}
    await run_rescans(env)
    assert (await is_stopped(), len(await taken_down())) == (stops, 0 if stops else bad)


async def test_what_the_operator_listed_is_outside_the_brake(env):
    await publish_many(env, 40, 20)
    await publish_many(env, 10, 10, "listed")
    env.scanner.ruleset, env.scanner.words = "rules-2", {b"says bad": FAILING, b"says listed": (LISTED,)}
    await run_rescans(env)
    assert await is_stopped()
    assert await taken_down() == {f"acme/many/listed{number:04}" for number in range(10)}


async def test_each_is_judged_once_more_before_it_goes(env):
    """A suppression that a reviewer wrote while the rules were stopped saves the skill."""
    await publish_many(env, 10, 7)
    env.scanner.ruleset, env.scanner.words = "rules-2", {b"says bad": FAILING}
    await run_rescans(env)
    spared = await get_skill("acme/many/bad0003")
    for finding in FAILING:
        digest = spared.versions[0].digest
        await add_suppression(digest, finding.rule_id, by="admin:ada", reason="it is honest")
    await CONTINUE_RESCANS(env, ADA, go_on())
    state = await run_rescans(env)
    assert state["finished"] == "rules-2"
    assert len(await taken_down()) == 6 and spared.canonical not in await taken_down()
    assert all(one.done for one in await list_take_downs("rules-2"))


async def test_mended_rules_end_the_alert_and_nothing_is_taken_down(env):
    await publish_many(env, 10, 7)
    env.scanner.ruleset, env.scanner.words = "rules-2", {b"says bad": FAILING}
    await run_rescans(env)
    assert await is_stopped()
    env.scanner.ruleset, env.scanner.words = "rules-3", {}
    state = await RESCANS.run({"asked": "rules-2", "finished": "rules-1"})
    await run_until_quiet(env)
    state = await RESCANS.run(state)
    assert state["finished"] == "rules-3"
    assert not await is_stopped() and await taken_down() == set()


async def test_one_rule_set_cannot_pass_the_limit_little_by_little(env):
    """What it took down before counts: the sixth of ten stops it, though it comes alone."""
    await publish_many(env, 10, 5)
    env.scanner.ruleset, env.scanner.words = "rules-2", {b"says": FAILING}
    state = await run_rescans(env)
    assert state["finished"] == "rules-2" and len(await taken_down()) == 5
    await publish_many(env, 1, 1, "later")
    await RESCANS.run({"finished": "rules-1"})
    await run_until_quiet(env)
    await RESCANS.run({"finished": "rules-1"})
    assert await is_stopped() and len(await taken_down()) == 5


async def test_a_crash_between_judging_and_applying_loses_nothing(env):
    """The job's own memory is gone, and it begins again from the records."""
    await publish_many(env, 10, 4)
    env.scanner.ruleset, env.scanner.words = "rules-2", {b"says bad": FAILING}
    await RESCANS.run({})
    await run_until_quiet(env)
    assert await taken_down() == set() and len(await list_take_downs("rules-2")) == 4
    state: dict = {}
    for _ in range(4):
        state = await RESCANS.run(state)
        await run_until_quiet(env)
    assert state["finished"] == "rules-2" and len(await taken_down()) == 4


async def test_a_rescan_that_somebody_asked_for_is_not_held(env):
    env.scanner.words = {}
    submitted = await submit_upload(skill_files("bad0", "It says bad."), namespace="tests", slug="bad0")
    assert submitted.submission is not None
    await run_until_quiet(env)
    env.scanner.ruleset, env.scanner.words = "rules-2", {b"says bad": FAILING}
    skill = await get_skill("upload~tests/skills/bad0")
    await request_rescan(skill, skill.versions[0])
    await run_until_quiet(env)
    assert (await get_skill(skill.canonical)).withdrawn
