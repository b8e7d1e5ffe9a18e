"""Both tiers in the pipeline: each content is scanned and judged once, reviewers' words and trusted owners count, and
a judge that is down leaves nothing behind."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import msgspec
import pytest

from tests.incidents.steps import UnfinishedScanner, record_of, submit_place
from tests.judge.server import JudgeServer, Reply, judge_server, passes, replies, says
from tests.support.acting import approve, run_again
from tests.support.envs import ENGINES, active_env, open_test_env, run_until_quiet, skill_files, submit_skill
from tests.support.faults import ListedSources
from tests.support.system_reads import get_submission
from vskill_core.content import SkillFile, digest_of_files
from vskill_core.errors import InvalidInput, NotFound, StoreUnavailable
from vskill_core.findings import (
    Finding,
    FindingCategory,
    FindingKind,
    JudgeReport,
    JudgeStatus,
    Severity,
    StaticReport,
    Verdict,
)
from vskill_platform.domain import keys
from vskill_platform.domain.skills.skill import Certification
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.store.verdicts.scans import get_scan
from vskill_platform.store.verdicts.suppressions import (
    add_suppression,
    list_suppressions,
    remove_suppression,
    suppressed_rules,
)
from vskill_platform.tiers.rubric import RUBRIC
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio


class CountingScanner:
    """Finds what it is told to find, and counts how often it is asked."""

    ruleset = "counting-1"

    def __init__(self, *findings: Finding) -> None:
        self.findings = findings
        self.scans = 0

    async def scan(self, files: Sequence[SkillFile]) -> StaticReport:
        self.scans += 1
        await asyncio.sleep(0.01)
        return StaticReport(self.ruleset, findings=self.findings)


def finding(rule: str, severity: Severity, kind: FindingKind = FindingKind.MISMATCH) -> Finding:
    return Finding(rule, severity, FindingCategory.DECLARATION, kind, "SKILL.md", 1)


CRITICAL = finding("X-001", Severity.CRITICAL, FindingKind.MALICE)


@pytest.fixture(params=ENGINES)
async def env(request, tmp_path) -> AsyncIterator[Env]:
    async with open_test_env(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
async def server() -> AsyncIterator[JudgeServer]:
    async with judge_server() as running:
        yield running


@pytest.fixture
async def judged(server, tmp_path) -> AsyncIterator[Env]:
    """The real wiring with a judge."""
    async with open_test_env("sqlite", tmp_path, judge_url=server.url, judge_model="llama3:8b") as opened:
        yield opened


async def verified(env: Env, name: str = "tidy", **options: object) -> Submission:
    submitted = record_of(await submit_skill(name, **options))  # type: ignore[arg-type]
    await run_until_quiet(env)
    return await get_submission(submitted.id)


# The same content is scanned once.


async def test_the_same_content_is_scanned_once_however_often_it_is_submitted(env):
    """In other places, at the same time, again after its end: one scan, and every submission has its result."""
    scanner = CountingScanner()
    with active_env(env, scanner=scanner) as counting:
        copies = [record_of(await submit_skill("tidy", namespace=f"n{number}")) for number in range(9)]
        await run_until_quiet(counting)
        await run_again(copies[0].id, by="admin:eve", reason="look again")
        await run_until_quiet(counting)
    records = [await get_submission(copy.id) for copy in copies]
    assert {record.state for record in records} == {State.PUBLISHED}
    assert scanner.scans == 1
    assert env.metrics.scans.labels("scanned")._value.get() == 1
    assert env.metrics.scans.labels("cached")._value.get() == 9
    stored = await get_scan(digest_of_files(skill_files("tidy")), "counting-1")
    assert stored == StaticReport("counting-1")


@pytest.mark.parametrize("change", ["one byte", "one mode bit"])
async def test_one_byte_or_one_mode_bit_more_is_a_new_digest_a_new_scan_and_a_new_version(env, change):
    scanner = CountingScanner()
    script = SkillFile("run.sh", "100644", b"echo 1\n")
    other = {"one byte": SkillFile("run.sh", "100644", b"echo 2\n"), "one mode bit": SkillFile("run.sh", "100755", b"echo 1\n")}  # fmt: skip
    with active_env(env, scanner=scanner) as counting:
        first = await verified(counting, extra=(script,))
        second = await verified(counting, extra=(other[change],))
    assert scanner.scans == 2
    assert first.digest != second.digest
    assert (first.published_version, second.published_version) == ("1.0.0", "1.0.1")


async def test_other_rules_scan_again(env):
    scanner = CountingScanner()
    with active_env(env, scanner=scanner) as counting:
        await verified(counting)
        scanner.ruleset = "counting-2"
        await submit_skill("tidy", namespace="other")
        await run_until_quiet(counting)
    assert scanner.scans == 2


async def test_a_scan_that_did_not_finish_is_not_kept(env):
    with active_env(env, scanner=UnfinishedScanner()) as failing:
        first = await verified(failing)
    assert first.state is State.NEEDS_REVIEW
    assert (await env.kv.list(keys.scan.prefix)).items == ()
    scanner = CountingScanner()
    with active_env(env, scanner=scanner) as counting:
        await run_again(first.id, by="admin:eve", reason="the scanner was repaired")
        await run_until_quiet(counting)
    assert (await get_submission(first.id)).state is State.PUBLISHED
    assert scanner.scans == 1


async def test_a_report_that_cannot_be_read_is_made_anew(env):
    key = keys.scan(digest_of_files(skill_files("tidy")), "counting-1")
    await env.kv.put(key, b'{"ruleset": 7}')
    scanner = CountingScanner()
    with active_env(env, scanner=scanner) as counting:
        assert (await verified(counting)).state is State.PUBLISHED
    assert scanner.scans == 1
    assert env.metrics.records_skipped.labels("cached_report", "malformed")._value.get() == 1


async def test_a_cache_that_cannot_be_read_is_not_an_empty_one(env):
    """The store is away: the attempt waits for it, nothing is decided."""

    class Away:
        def __init__(self, kv: KV) -> None:
            self._kv = kv

        def __getattr__(self, name):
            return getattr(self._kv, name)

        async def get(self, key):
            if key.startswith(keys.scan.prefix):
                raise StoreUnavailable("away")
            return await self._kv.get(key)

    scanner = CountingScanner()
    with active_env(env, scanner=scanner, kv=Away(env.kv)) as failing:
        record = await verified(failing)
    assert record.decision is None
    assert scanner.scans == 0


# The judge.


async def test_a_judge_that_passes_a_skill_verifies_it_and_is_asked_once_about_the_same_content(
    judged, server
):
    first = await verified(judged)
    assert (first.state, first.decision and first.decision.certification) == (State.PUBLISHED, "VERIFIED")
    await submit_skill("tidy", namespace="other")
    await run_until_quiet(judged)
    assert len(server.asked) == 1
    assert judged.metrics.judge_calls.labels("first", "cached")._value.get() == 1
    digest = digest_of_files(skill_files("tidy"))
    entry = await judged.kv.get(keys.judge(digest, judged.scanner.ruleset, "llama3:8b", RUBRIC))
    assert entry is not None
    stored = msgspec.json.decode(entry.value, type=JudgeReport)
    assert (stored.status, stored.score, stored.model) == (JudgeStatus.ANSWERED, 90, "llama3:8b")


async def test_the_same_content_at_the_same_time_is_one_question(judged, server):
    for number in range(6):
        await submit_skill("tidy", namespace=f"n{number}")
    await run_until_quiet(judged)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("said", "state"),
    [
        (says(score=20, verdict="FAIL", reason="It deceives."), State.REJECTED),
        (says(score=60, verdict="CONCERNS", reason="Unclear."), State.NEEDS_REVIEW),
        (says(score=79, verdict="PASS", reason="Nearly."), State.NEEDS_REVIEW),
    ],
)
async def test_what_the_judge_says_decides_by_the_table(judged, server, said, state):
    server.answer = said
    assert (await verified(judged)).state is state


async def test_B2_a_judge_that_is_down_leaves_nothing_of_itself_and_is_asked_again(judged, server):
    """Degraded mode: published at SCANNED, the error's text nowhere in the store."""
    server.answer = replies(Reply(b'{"error": "the words of the error"}', 500))
    record = await verified(judged)
    assert (record.state, record.decision and record.decision.certification) == (State.PUBLISHED, "SCANNED")
    assert record.evidence is not None
    assert (record.evidence.judge_status, record.evidence.judge) == (JudgeStatus.DOWN, None)
    assert (await judged.kv.list(keys.judge.prefix)).items == ()
    page = await judged.kv.scan("")
    stored = b"".join(entry.value for entry in page.items)
    assert b"words of the error" not in stored and b"status 500" not in stored
    server.answer = passes
    again = await run_again(record.id, by="admin:eve", reason="the judge is back")
    await run_until_quiet(judged)
    decision = (await get_submission(again.id)).decision
    assert decision is not None and decision.certification == "VERIFIED"


async def test_a_judge_confirms_or_clears_critical_findings(judged, server):
    with active_env(judged, scanner=CountingScanner(CRITICAL)) as critical:
        cleared = await verified(critical, "cleared")
        word = {"finding": "F1", "confirmed": True, "why": "It is what the rule says."}
        server.answer = says(score=10, verdict="FAIL", reason="Harmful.", findings=[word])
        confirmed = await verified(critical, "confirmed")
        server.answer = replies(Reply(b"{}", 500))
        unknown = await verified(critical, "unknown")
    states = [record.state for record in (cleared, confirmed, unknown)]
    assert states == [State.NEEDS_REVIEW, State.BLOCKED, State.NEEDS_REVIEW]
    assert "the judge cleared 1 critical finding" in cleared.why


async def test_without_a_judge_there_is_none_and_with_one_it_is_closed_at_the_end(tmp_path, server):
    async with open_test_env("memory", tmp_path) as plain:
        assert plain.judge is None
    async with open_test_env("memory", tmp_path, judge_url=server.url, judge_model="m") as opened:
        assert opened.judge is not None
        inner = opened.judge._judge  # type: ignore[attr-defined]
    assert inner._client.is_closed


# What a decision rested on.


async def test_the_evidence_stands_in_the_record_bound_to_the_digest(judged):
    capability = finding("C-1", Severity.HIGH, FindingKind.CAPABILITY)
    with active_env(judged, scanner=CountingScanner(finding("M-1", Severity.LOW), capability)) as found:
        record = await verified(found)
    evidence = record.evidence
    assert evidence is not None
    assert (evidence.digest, evidence.ruleset, evidence.score) == (record.digest, "counting-1", 97)
    assert evidence.findings[Severity.LOW] == 1
    assert (sum(evidence.findings.values()), evidence.capabilities) == (1, 1)
    assert evidence.judge is not None
    assert (evidence.judge.verdict, evidence.judge.rubric) == (Verdict.PASS, RUBRIC)


async def test_a_new_run_starts_without_the_evidence_of_the_last_one(env):
    record = await verified(env)
    again = await run_again(record.id, by="admin:eve", reason="look again")
    assert record.evidence is not None and again.evidence is None


async def test_what_a_reviewer_approves_keeps_the_evidence_of_the_scan(env):
    with active_env(env, scanner=CountingScanner(CRITICAL)) as critical:
        record = await verified(critical)
        assert record.state is State.NEEDS_REVIEW
        await approve(record.id, by="admin:eve", reason="I have read it")
        await run_until_quiet(critical)
    published = await get_submission(record.id)
    assert published.state is State.PUBLISHED
    assert published.evidence is not None
    assert published.evidence.findings[Severity.CRITICAL] == 1


# Suppressions.


async def test_a_suppressed_rule_does_not_count_for_this_content_and_for_no_other(env):
    scanner = CountingScanner(CRITICAL)
    with active_env(env, scanner=scanner) as critical:
        record = await verified(critical)
        assert record.state is State.NEEDS_REVIEW
        assert record.digest is not None
        await add_suppression(record.digest, "X-001", by="admin:eve", reason="an example in a lesson")
        await run_again(record.id, by="admin:eve", reason="suppressed")
        await run_until_quiet(critical)
        same = await get_submission(record.id)
        other = await verified(critical, "tidy", body="one word more")
    assert same.state is State.PUBLISHED
    assert same.evidence is not None and same.evidence.suppressed == ("X-001",)
    assert other.state is State.NEEDS_REVIEW


async def test_a_suppression_can_be_withdrawn_and_keeps_who_said_what_and_why(env):
    digest = "d" * 64
    await add_suppression(digest, "X-001", by="admin:eve", reason="false")
    again = await add_suppression(digest, "X-001", by="admin:bob", reason="also false")
    assert len(again.history) == 1, "once more changes nothing"
    await add_suppression(digest, "X-002", by="admin:eve", reason="false too")
    await add_suppression("e" * 64, "X-003", by="admin:eve", reason="elsewhere")
    assert await suppressed_rules(digest) == {"X-001", "X-002"}
    await remove_suppression(digest, "X-001", by="admin:bob", reason="it was true")
    assert await suppressed_rules(digest) == {"X-002"}
    listed = {one.rule_id: one for one in await list_suppressions(digest)}
    assert [(step.action, step.by, step.reason) for step in listed["X-001"].history] == [
        ("added", "admin:eve", "false"),
        ("removed", "admin:bob", "it was true"),
    ]


async def test_a_suppression_needs_a_reason_and_one_that_is_not_there_cannot_be_withdrawn(env):
    with pytest.raises(InvalidInput):
        await add_suppression("d" * 64, "X-001", by="admin:eve", reason=" ")
    with pytest.raises(NotFound):
        await remove_suppression("d" * 64, "X-001", by="admin:eve", reason="gone")


# Trusted owners.


@pytest.mark.parametrize(
    ("trusted", "state"),
    [
        (("github.com/acme",), State.PUBLISHED),
        (("GitHub.com/ACME",), State.PUBLISHED),
        (("gitlab.com/acme",), State.NEEDS_REVIEW),
        (("github.com/acm",), State.NEEDS_REVIEW),
        ((), State.NEEDS_REVIEW),
    ],
)
async def test_mismatches_do_not_count_for_a_trusted_owner_on_that_host(tmp_path, trusted, state):
    mismatches = [finding(f"M-{number}", Severity.HIGH) for number in range(4)]
    async with open_test_env("memory", tmp_path, policy_text=f"trusted: [{', '.join(trusted)}]") as env:
        sources = ListedSources(env.blobs)
        with active_env(env, scanner=CountingScanner(*mismatches), sources=sources) as trusting:
            submitted = await submit_place(sources, "https://github.com/Acme/tools", "tidy", "tidy")
            await run_until_quiet(trusting)
            record = await get_submission(submitted.id)
    assert record.state is state
    if state is State.PUBLISHED:
        assert record.decision is not None
        assert record.decision.certification == Certification.CERTIFIED
        assert record.evidence is not None and record.evidence.trusted_vendor


async def test_malice_counts_for_a_trusted_owner_too(tmp_path):
    async with open_test_env("memory", tmp_path, policy_text="trusted: [github.com/acme]") as env:
        sources = ListedSources(env.blobs)
        with active_env(env, scanner=CountingScanner(CRITICAL), sources=sources) as trusting:
            submitted = await submit_place(sources, "https://github.com/acme/tools", "tidy", "tidy")
            await run_until_quiet(trusting)
            assert (await get_submission(submitted.id)).state is State.NEEDS_REVIEW
