"""Reports by users: bounded, one open at a time, decided once, and upholding may block in the same commit."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.support.envs import active_env, open_test_env, run_until_quiet, submit_skill
from tests.support.faults import HookedKV
from tests.support.system_reads import get_submission
from vskill_core.errors import Conflict, InvalidInput, NotFound, StoreUnavailable, TransitionError
from vskill_core.findings import Severity
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import name_target
from vskill_platform.domain.people.namespace import PUBLIC_ONLY
from vskill_platform.domain.submissions.states import State
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.ledger.kv.entries import Operation
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.recall.blocklist import list_blocks
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.review.reports import (
    MOST_REASON,
    ReportCategory,
    ReportStatus,
    decide_report,
    file_report,
    get_report,
    list_reports,
)

pytestmark = pytest.mark.anyio

DEMO = "upload~tests/skills/demo"


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
async def demo(env):
    record = (await submit_skill("demo")).submission
    await run_until_quiet(env)
    return record


async def filed(reporter: str = "user:ann", name: str = DEMO, **options):
    return await file_report(
        name, reporter=reporter, reason="it reads my keys", audiences=PUBLIC_ONLY, **options
    )


async def test_a_report_names_skill_version_category_and_reporter(env, demo):
    done = await filed(name="demo", category=ReportCategory.MALWARE, version="1.0.0")
    report = await get_report(done.report.id)
    assert done.new and report == done.report
    assert (report.skill, report.version, report.category) == (DEMO, "1.0.0", ReportCategory.MALWARE)
    assert (report.reporter, report.at, report.status) == ("user:ann", env.kv.now(), ReportStatus.OPEN)
    assert len((await list_reports(skill=DEMO)).items) == 1


async def test_only_what_is_published_can_be_reported(env, demo):
    with pytest.raises(NotFound):
        await filed(name="none")
    with pytest.raises(NotFound, match="no version 9"):
        await filed(version="9.0.0")


@pytest.mark.parametrize(
    ("reporter", "reason", "field"),
    [
        ("user:ann", " ", "reason"),
        ("user:ann", "x" * (MOST_REASON + 1), "reason"),
        ("user:ann", "a\x1b[2Jb", "reason"),
        ("", "x", "reporter"),
        ("u" * 200, "x", "reporter"),
        ("a\nb", "x", "reporter"),
    ],
)
async def test_texts_are_bounded_and_clean(env, demo, reporter, reason, field):
    with pytest.raises(InvalidInput) as caught:
        await file_report(DEMO, reporter=reporter, reason=reason, audiences=PUBLIC_ONLY)
    assert caught.value.field == field
    assert (await list_reports(None)).items == ()


async def test_one_open_report_per_reporter_and_skill(env, demo):
    outcomes = await asyncio.gather(*(filed() for _ in range(5)))
    assert sum(one.new for one in outcomes) == 1
    assert len({one.report.id for one in outcomes}) == 1
    assert (await filed("user:bob")).new
    assert len((await list_reports(skill=DEMO)).items) == 2
    await decide_report(outcomes[0].report.id, ReportStatus.DISMISSED, by="admin:eve", reason="it does not")
    assert (await filed()).new


async def test_an_unknown_outcome_is_one_report(env, demo):
    hooked = HookedKV(env.kv)
    died: list[int] = []

    async def die(_operations):
        if not died:
            died.append(1)
            raise StoreUnavailable("the connection died")

    hooked.after_commit = die
    with active_env(env, kv=hooked):
        done = await filed()
        assert died and done.new
        died.clear()
        decided = await decide_report(done.report.id, ReportStatus.UPHELD, by="admin:eve", reason="true")
    assert decided == await get_report(done.report.id)
    assert [one.action for one in (await list_audit()).items] == ["report upheld", "report filed"]


class DecidedMeanwhile(HookedKV):
    """Whoever meets an open report finds it decided when it looks which one that is."""

    def __init__(self, inner: KV, report_id: str) -> None:
        super().__init__(inner)
        self._report: str | None = report_id

    async def commit(self, operations: Sequence[Operation], *, urgent: bool = False) -> int:
        try:
            return await super().commit(operations, urgent=urgent)
        except Conflict:
            assert self._report is not None
            report, self._report = self._report, None
            await decide_report(report, ReportStatus.DISMISSED, by="admin:eve", reason="it does not")
            raise


async def test_a_report_beside_one_that_is_decided_in_that_moment_is_a_new_one(env, demo):
    first = (await filed()).report
    with active_env(env, kv=DecidedMeanwhile(env.kv, first.id)):
        second = await filed()
    assert second.new and second.report.id != first.id
    assert (await get_report(first.id)).status is ReportStatus.DISMISSED
    assert [one.id for one in (await list_reports()).items] == [second.report.id]


async def test_upholding_may_block_in_the_same_commit(env, demo):
    report = (await filed(category=ReportCategory.MALWARE)).report
    hooked = HookedKV(env.kv)
    with active_env(env, kv=hooked):
        decided = await decide_report(
            report.id,
            ReportStatus.UPHELD,
            by="admin:eve",
            reason="it does read keys",
            block=name_target("demo"),
            severity=Severity.CRITICAL,
        )
    assert len(hooked.commits) == 1
    assert decided.decision is not None
    assert (decided.status, decided.decision.blocked) == (ReportStatus.UPHELD, "name demo")
    (entry,) = await list_blocks()
    assert (entry.severity, entry.reason, entry.threat_type) == (
        Severity.CRITICAL,
        "it does read keys",
        "malware",
    )
    assert entry.evidence == (keys.report(report.id),)
    assert {one.action for one in (await list_audit()).items} == {"report filed", "report upheld", "block"}
    await reapply_blocklist()
    assert (await get_submission(demo.id)).state is State.BLOCKED
    assert (await list_reports(skill=DEMO)).items == ()


async def test_a_report_is_decided_once(env, demo):
    report = (await filed()).report
    results = await asyncio.gather(
        *(decide_report(report.id, ReportStatus.DISMISSED, by=f"admin:{n}", reason="no") for n in range(3)),
        return_exceptions=True,
    )
    assert sum(isinstance(one, TransitionError) for one in results) == 2
    assert [one.action for one in (await list_audit()).items] == ["report dismissed", "report filed"]


async def test_a_decision_is_checked(env, demo):
    report = (await filed()).report
    for status, reason, block in (
        (ReportStatus.OPEN, "x", None),
        (ReportStatus.UPHELD, " ", None),
        (ReportStatus.DISMISSED, "x", name_target("demo")),
    ):
        with pytest.raises(InvalidInput):
            await decide_report(report.id, status, by="admin:eve", reason=reason, block=block)
    with pytest.raises(NotFound):
        await decide_report("none", ReportStatus.UPHELD, by="admin:eve", reason="x")
    assert (await get_report(report.id)).status is ReportStatus.OPEN


async def test_reports_are_listed_by_status_and_skill_page_by_page(env, demo):
    ids = []
    for number in range(5):
        env.clock.advance(1_000)
        ids.append((await filed(f"user:u{number}")).report.id)
    await decide_report(ids[0], ReportStatus.DISMISSED, by="admin:eve", reason="no")
    first = await list_reports(limit=3)
    rest = await list_reports(cursor=first.cursor, limit=3)
    assert [one.id for one in (*first.items, *rest.items)] == ids[1:]
    assert [one.id for one in (await list_reports(None)).items] == ids[::-1]
    assert [one.id for one in (await list_reports(ReportStatus.DISMISSED)).items] == ids[:1]
    assert len((await list_reports(skill=DEMO)).items) == 4
    assert (await list_reports(skill="a/b/c")).items == ()
    assert (await list_reports(None, skill="a/b/c")).items == ()


async def test_a_malformed_report_is_skipped_and_counted(env, demo):
    report = (await filed()).report
    await env.kv.put(keys.report(report.id), b"{")
    assert ((await list_reports()).items, (await list_reports()).skipped) == ((), 1)
