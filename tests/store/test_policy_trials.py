"""A policy is tried on stored runs: both ways, with the facts of their day, and nothing changes."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.test_policy import HOLD, NOTES, REFUSE, set_by_eve, submitted
from tests.support.acting import approve, principal_for
from tests.support.compiled_rules import bundled_engine
from tests.support.envs import ENGINES, open_test_env, run_until_quiet, submit_skill
from tests.support.manual_clock import ManualClock
from tests.support.scanners import InlineScanner
from tests.test_rescan import FAILING
from vskill_core.content import SkillFile
from vskill_core.errors import TransitionError
from vskill_core.findings import StaticReport
from vskill_core.identity import upload_identity
from vskill_platform.actions.verdicts.policy_trials import RESCAN_BY_POLICY, PolicyRescanView, RescanByPolicy
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC_ONLY
from vskill_platform.domain.skills.skill import VersionStatus
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.verdicts.dry_run import PolicyOutcome, PolicyTrial
from vskill_platform.domain.verdicts.facts import (
    CapabilityFacts,
    CardFacts,
    Facts,
    FindingFacts,
    JudgeFacts,
    SkillFacts,
)
from vskill_platform.domain.verdicts.policy import Preset, load_policy, match_rules
from vskill_platform.queue.jobs import JOBS
from vskill_platform.records import read_record
from vskill_platform.stages.rescan import MOST_OPEN, PAGE_SKILLS, request_policy_rescans
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.skills.skills import iter_skills
from vskill_platform.store.verdicts.brake import list_take_downs
from vskill_platform.store.verdicts.policy import read_policy
from vskill_platform.store.verdicts.policy_trials import TrialFigures, try_on_stored
from vskill_platform.store.verdicts.stored_facts import DecidedFacts

pytestmark = pytest.mark.anyio

PUBLISHED, DELAYED, HELD, REFUSED = PolicyOutcome
RULES = (
    "{name: a, when: 'card.hosts.exists(h, h.shell)', then: review, say: '{card.hosts.map(h, h.value)}'}",
    "{name: b, when: 'card.secrets.exists(s, s.file == \"a.sh\")', then: refuse}",
    "{name: c, when: 'gained.hosts.size() > 0', then: review, say: '{skill.name}'}",
    "{name: d, when: '1 / card.hosts.size() > 0', then: note}",
    "{name: e, when: 'true', then: note, say: '{1 / gained.hosts.size()}'}",
    "{name: f, when: 'owner.name == \"\"', then: note}",
    "{name: g, when: 'card.hosts.exists(h, !h.known)', then: {wait: 1d}}",
    "{name: h, when: '!owner.trusted', then: refuse, say: '{owner.vouched}'}",
)
#: Written by somebody who looked for rules that a trial answers in another way than the decision.
CONDITIONS = (
    "card.hosts == gained.hosts",
    "card == gained",
    "card.hosts.exists(one, one in gained.hosts)",
    "card.hosts.exists_one(h, h.shell)",
    "card.hosts.filter(h, h.acts).size() == 2",
    "card.hosts.filter(h, h.acts).exists(x, x.known)",
    "card.hosts.filter(h, h.acts)[0].known",
    "card.hosts.filter(h, h.acts) == gained.hosts.filter(h, h.acts)",
    "(card.hosts.filter(h, h.acts) + gained.hosts.filter(h, h.acts)).exists(x, x.shell)",
    "card.hosts.exists(h, gained.hosts.exists(g, g == h))",
    "card.hosts.exists(h, gained.hosts.exists(g, [g, 1] == [h, 1]))",
    "card.hosts.exists(h,gained.hosts.exists(g,h.value==g.value))",
    "card.hosts.exists(h,card.hosts.exists_one(g,g.acts == h.acts))",
    "card.hosts.exists(h, h.uses.exists(h, h.startsWith('s')))",
    "card.hosts.exists(h, h.acts) && skill.languages.exists(h, h.startsWith('ba'))",
    "card.hosts.exists(h, h.acts) || findings.exists(h, h.line == 1)",
    "card.hosts.exists(h, card.files.exists(h, h.acts))",
    "card.hosts.exists(skill, skill.acts)",
    "card.hosts.exists(h, h.value == 'h.dev')",
    "card.hosts.exists(// c\n h, h.acts)",
    "card . hosts . exists ( h , h . acts )",
    "card.hosts[0].known",
    "size(card.hosts) > 1",
    "skill.size() > 3",
    "skill.exists(k, k.startsWith('na'))",
    "skill.description.contains('skill.md')",
    "skill.name == '' // see owner.md",
    "skill['name'] == ''",
    "(skill.first ? card : gained).hosts.exists(h, h.acts)",
    "signals.publisher == publisher.issuer || judge.answered == 1",
    "submitter == '' && now == 0",
    "1 / card.hosts.size() > 0",
)
SENTENCES = (
    "",
    "{card.hosts.filter(h, h.acts).map(h, h.value)} {skill.name}",
    "{findings.filter(f, f.severity == '')[0].rule}",
    "{findings.map(f, f.rule)} {gained.hosts.map(f, f.value)}",
    "{card.hosts.size()} {skill.languages}",
    "{1 / gained.hosts.size()}",
    "{'skill.md'}",
)
DAY_MS = 86_400_000
#: Uses a host that nobody knows.
RUNS = SkillFile("run.sh", "100644", b"#!/bin/sh\ncurl -fsS https://odd-place.dev/x\n")


@pytest.fixture(params=ENGINES)
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path, scanner=InlineScanner(bundled_engine())) as opened:
        yield opened


async def tried(text: str, **options: object) -> TrialFigures:
    asked = {"since": 0, "audiences": EVERYTHING} | options
    return await try_on_stored((await read_policy()).policy, load_policy(text), **asked)  # type: ignore[arg-type]


async def test_runs_are_decided_again_by_both_texts_and_nothing_changes(env):
    first, second = await submitted(env), await submitted(env, "runs", extra=(RUNS,))
    before = [entry async for page in _pages(env) for entry in page.items]
    found = await tried(
        'rules: [{name: hosts, when: card.hosts.size() > 0, then: review, say: "it uses {card.hosts.map(h, h.value)}"}]'
    )
    assert (found.tried, found.changes) == (2, {(PUBLISHED, HELD): 1})
    (one,) = found.different
    assert (one.submission, one.run, one.skill_name, one.owner) == (second.id, 1, "runs", "upload~tests")
    assert [(rule.name, rule.reason) for rule in one.after.rules] == [("hosts", "it uses odd-place.dev")]
    assert (await tried(REFUSE)).changes == {(PUBLISHED, REFUSED): 2}
    await set_by_eve(HOLD)
    assert (await tried("")).changes == {(HELD, PUBLISHED): 2}
    assert (await tried(HOLD)).different == []
    assert first.state is State.PUBLISHED
    left = [entry async for page in _pages(env) for entry in page.items]
    assert left == before


async def _pages(env):
    for prefix in (keys.sub.prefix, keys.facts.prefix, keys.skill.prefix):
        yield await env.kv.scan(prefix)


@pytest.mark.parametrize("text", [HOLD, REFUSE, NOTES, *(f"extends: {one.value}" for one in Preset)])
async def test_the_text_that_decided_decides_the_same_again(env, text):
    ends = {
        State.PUBLISHED: PUBLISHED,
        State.COOLDOWN: DELAYED,
        State.NEEDS_REVIEW: HELD,
        State.REJECTED: REFUSED,
    }
    await set_by_eve(text)
    for record in (await submitted(env), await submitted(env, "runs", extra=(RUNS,))):
        stored, _ = await read_record(keys.facts(record.id, "1"), DecidedFacts)
        assert stored is not None and record.decision is not None
        (again,) = PolicyTrial(load_policy(text)).outcomes(stored.floor, stored.facts, record.identity)
        assert again.outcome is ends[record.state]
        assert {one.name for one in again.rules} <= {one.name for one in record.decision.matched}


TEXTS = st.builds(
    "{}\n{}".format,
    st.sampled_from(("", "own_hosts: [odd.dev]", "trusted: [upload/tests]", "needs: {judges: 1}")),
    st.lists(st.sampled_from(RULES), max_size=3, unique=True).map(
        lambda found: f"rules: [{', '.join(found)}]"
    ),
)


@given(TEXTS, TEXTS)
def test_two_policies_that_are_asked_together_do_what_each_does_alone(one, other):
    policies = [load_policy(one), load_policy(other)]
    trial, owner = PolicyTrial(*policies), upload_identity("tests", "demo")
    host = CapabilityFacts(value="odd.dev", file="a.sh", acts=True, shell=True)
    for facts in (
        Facts(),
        Facts(card=CardFacts(hosts=(host,), secrets=(host,))),
        Facts(gained=CardFacts(hosts=(host,)), judge=JudgeFacts(answered=1)),
    ):
        both = trial.outcomes(State.AUTO_APPROVED, facts, owner)
        alone = [PolicyTrial(each).outcomes(State.AUTO_APPROVED, facts, owner) for each in policies]
        assert both == tuple(found for (found,) in alone)


LISTS = st.lists(
    st.builds(
        CapabilityFacts,
        value=st.sampled_from(("odd.dev", "even.dev")),
        acts=st.booleans(),
        shell=st.booleans(),
        known=st.booleans(),
        uses=st.sampled_from(((), ("sends",))),
    ),
    max_size=3,
).map(tuple)


@given(st.lists(st.tuples(st.sampled_from(CONDITIONS), st.sampled_from(SENTENCES)), max_size=3), LISTS, LISTS)
def test_a_trial_answers_every_rule_as_the_decision_does(rules, hosts, gained):
    texts = [
        {"name": f"r{at}", "when": when, "then": "review", "say": say} for at, (when, say) in enumerate(rules)
    ]
    policy = load_policy(json.dumps({"rules": texts}))
    facts = Facts(
        skill=SkillFacts(description="see skill.md", languages=("bash",)),
        card=CardFacts(hosts=hosts, files=gained),
        gained=CardFacts(hosts=gained),
        findings=(FindingFacts(rule="EX-001", line=1), FindingFacts(rule="EX-002")),
    )
    (found,) = PolicyTrial(policy).outcomes(State.AUTO_APPROVED, facts)
    assert found.rules == match_rules(policy, facts)


async def test_runs_without_facts_are_older_unless_a_reviewer_approved_their_bytes(env):
    await submitted(env)
    await set_by_eve(HOLD)
    held, looked_at = await submitted(env, "held"), await submitted(env, "approved")
    await approve(looked_at.id, by="admin:eve", reason="looked")
    await run_until_quiet(env)
    for one in (held, looked_at):
        await env.kv.delete(keys.facts(one.id, "1"))
    found = await tried(REFUSE)
    assert (found.tried, found.older) == (1, 1)


async def test_only_what_has_changed_since_and_what_the_reader_may_read_is_tried(tmp_path):
    clock = ManualClock()
    async with open_test_env("memory", tmp_path, clock=clock) as env:
        await submitted(env)
        clock.advance(10 * DAY_MS)
        await submitted(env, "later")
        assert (await tried(HOLD, since=env.kv.now() - DAY_MS)).tried == 1
        assert (await tried(HOLD, audiences=PUBLIC_ONLY)).tried == 2
        assert (await tried(HOLD, audiences=frozenset({"acme:team"}))).tried == 0


async def test_a_look_has_an_end_and_the_next_goes_on_after_it(env):
    names = {(await submitted(env, name)).skill_name for name in ("one", "two", "three")}
    first = await tried(HOLD, most=2)
    rest = await tried(HOLD, most=2, after=first.after)
    assert (first.tried, rest.tried, rest.after) == (2, 1, None)
    assert {one.skill_name for one in (*first.different, *rest.different)} == names


async def test_a_rule_that_fails_holds_and_is_counted_and_malformed_facts_are_skipped(env):
    await submitted(env)
    bad = await submitted(env, "bad")
    await env.kv.put(keys.facts(bad.id, "1"), b'{"at": "never"}')
    found = await tried(NOTES)
    assert found.changes == {(PUBLISHED, HELD): 1}
    assert (found.failed, found.skipped) == (1, 1)


async def test_own_hosts_and_trusted_owners_of_the_text_count(env):
    await submitted(env, "runs", extra=(RUNS,))
    unknown = 'rules: [{name: a, when: "card.hosts.exists(h, !h.known)", then: review}]'
    assert (await tried(unknown)).changes == {(PUBLISHED, HELD): 1}
    assert (await tried(f'own_hosts: ["*.dev"]\n{unknown}')).different == []
    stranger = 'rules: [{name: a, when: "!owner.trusted || !owner.vouched", then: review}]'
    assert (await tried(stranger)).changes == {(PUBLISHED, HELD): 1}
    assert (await tried(f"trusted: [upload/tests]\n{stranger}")).different == []


def test_what_is_needed_of_judges_holds_and_what_the_table_holds_is_never_published():
    trial = PolicyTrial(*map(load_policy, ("", "needs: {judges: 1}", REFUSE)))
    facts = Facts(skill=SkillFacts(name="a"))

    def outcomes(floor: State, asked: Facts) -> list[PolicyOutcome]:
        return [one.outcome for one in trial.outcomes(floor, asked)]

    assert outcomes(State.AUTO_APPROVED, facts) == [PUBLISHED, HELD, REFUSED]
    judged = msgspec.structs.replace(facts, judge=JudgeFacts(answered=1))
    assert outcomes(State.AUTO_APPROVED, judged) == [PUBLISHED, PUBLISHED, REFUSED]
    assert outcomes(State.NEEDS_REVIEW, judged) == [HELD, HELD, REFUSED]


def test_a_wait_only_delays_what_nobody_must_look_at():
    wait, facts = 'rules: [{name: w, when: "true", then: {wait: 1d}}]', Facts(skill=SkillFacts(name="a"))
    trial = PolicyTrial(load_policy(wait), load_policy(f"needs: {{judges: 1}}\n{wait}"))

    def outcomes(floor: State) -> list[PolicyOutcome]:
        return [one.outcome for one in trial.outcomes(floor, facts)]

    assert outcomes(State.AUTO_APPROVED) == [DELAYED, HELD]
    assert outcomes(State.NEEDS_REVIEW) == [HELD, HELD]


# Live versions.

HOSTS = 'rules: [{name: hosts, when: "card.hosts.exists(h, !h.known)", then: refuse, say: "it uses hosts"}]'


async def rescan_by_policy(env, after: str | None = None) -> PolicyRescanView:
    asked = RescanByPolicy(reason="a new policy", after=after)
    done = await RESCAN_BY_POLICY(env, principal_for("admin:eve"), asked)
    await run_until_quiet(env)
    return done


async def reviewed(env) -> dict[str, str]:
    """By the name and number of each version that waits for a reviewer: why."""
    skills = [one async for one in iter_skills()]
    refs = [(skill.name, ref) for skill in skills for ref in skill.versions if ref.review is not None]
    assert all(ref.status is VersionStatus.LIVE for _, ref in refs)
    return {f"{name} {ref.number}": ref.review.reason for name, ref in refs if ref.review is not None}


async def test_live_versions_that_a_new_policy_would_not_publish_are_offered_to_a_reviewer_once(env):
    await submitted(env)
    await submitted(env, "runs", extra=(RUNS,))
    await set_by_eve(HOSTS)
    await run_until_quiet(env)
    assert await reviewed(env) == {}
    done = await rescan_by_policy(env)
    assert (done.asked, done.older, done.after) == (1, 0, None)
    waiting = {"runs 1.0.0": "refused by the policy: it uses hosts"}
    assert await reviewed(env) == waiting
    assert (await rescan_by_policy(env)).asked == 0
    entry = next(one for one in (await list_audit()).items if one.details.get("asked") == "1")
    assert (entry.action, entry.by, entry.reason) == ("policy rescan", "admin:eve", "a new policy")


async def test_what_a_rescan_by_the_policy_holds_is_taken_down_though_the_rules_are_through(env):
    record, ruleset = await submitted(env, "runs", extra=(RUNS,)), env.scanner.ruleset
    report = StaticReport(ruleset, findings=FAILING)
    await env.kv.put(keys.scan(str(record.digest), ruleset), msgspec.json.encode(report))
    await set_by_eve(HOSTS)
    assert (await rescan_by_policy(env)).asked == 1
    (job,) = (one for one in JOBS if one.name == "rescans")
    (skill,) = [one async for one in iter_skills()]
    assert [one.done for one in await list_take_downs(ruleset)] == [False] and not skill.withdrawn
    state = await job.run({"asked": ruleset, "finished": ruleset})
    assert state == {"asked": ruleset, "finished": ruleset}
    await run_until_quiet(env)
    (skill,) = [one async for one in iter_skills()]
    assert [one.done for one in await list_take_downs(ruleset)] == [True] and skill.withdrawn


async def test_an_older_version_that_is_live_is_offered_by_its_own_facts(env):
    await submitted(env, "runs", extra=(RUNS,))
    await submitted(env, "runs", body="Without the script.")
    await set_by_eve(HOSTS)
    assert (await rescan_by_policy(env)).asked == 1
    assert list(await reviewed(env)) == ["runs 1.0.0"]


async def test_what_a_reviewer_approved_or_keeps_is_not_asked_about(env):
    await set_by_eve(HOLD)
    held = await submitted(env)
    await approve(held.id, by="admin:eve", reason="looked")
    await run_until_quiet(env)
    assert (await rescan_by_policy(env)).asked == 0
    await set_by_eve("")
    runs = await submitted(env, "runs", extra=(RUNS,))
    await set_by_eve(HOSTS)
    assert (await rescan_by_policy(env)).asked == 1
    await approve(runs.id, by="admin:eve", reason="looked")
    await set_by_eve(HOLD)
    assert (await rescan_by_policy(env)).asked == 0


async def test_what_only_waits_is_not_asked_about_and_the_texts_own_hosts_count(env):
    await submitted(env, "runs", extra=(RUNS,))
    for text in ('rules: [{name: w, when: "true", then: {wait: 1d}}]', f'own_hosts: ["*.dev"]\n{HOSTS}'):
        await set_by_eve(text)
        assert (await rescan_by_policy(env)).asked == 0


async def test_live_versions_without_facts_are_counted(env):
    record = await submitted(env)
    await set_by_eve(HOLD)
    await env.kv.delete(keys.facts(record.id, "1"))
    done = await rescan_by_policy(env)
    assert (done.asked, done.older) == (0, 1) and "1 is older than the facts" in done.summary


async def test_a_look_at_live_versions_stops_at_its_room_and_the_next_goes_on(env):
    count = MOST_OPEN + PAGE_SKILLS
    for number in range(count):
        await submit_skill(f"demo{number}")
    await run_until_quiet(env)
    await set_by_eve(HOLD)
    first = await request_policy_rescans(audiences=EVERYTHING, after=None)
    assert MOST_OPEN <= first.asked < count and first.after is not None
    with pytest.raises(TransitionError, match="ask again once they are done"):
        await rescan_by_policy(env, first.after)
    await run_until_quiet(env)
    rest = await rescan_by_policy(env, first.after)
    assert (first.asked + rest.asked, rest.after) == (count, None)
    assert len(await reviewed(env)) == count
