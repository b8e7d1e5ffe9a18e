"""What reviewers make of reports: decided once, with a block where it is needed, the same at every entry point."""

import pytest

from tests.support.acting import principal_for
from tests.support.entry_points import EntryPoints
from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from vskill_platform.actions.blocklist import BlockReach
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.reports import (
    DISMISS,
    FILED,
    UPHOLD,
    DismissReport,
    ListReports,
    UpholdReport,
    WhichReports,
)
from vskill_platform.domain.blocklist import TargetKind
from vskill_platform.domain.errors import NotFound, NotPermitted, TransitionError
from vskill_platform.domain.scan import Severity
from vskill_platform.store.accounts import Role
from vskill_platform.store.audit import list_audit
from vskill_platform.store.blocklist import list_blocks
from vskill_platform.store.reports import file_report
from vskill_platform.store.skills import get_skill

pytestmark = pytest.mark.anyio

ROB = Principal("rob", Role.REVIEWER)
DEMO = "upload~tests/skills/demo"


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        yield opened


async def filed(env, reporter: str = "user:ann") -> str:
    await submit_skill("demo")
    await run_until_quiet(env)
    return (await file_report(DEMO, reporter=reporter, reason="reads my keys")).report.id


@pytest.mark.parametrize("reporter", ["user:ann", "user:192.0.2.7"])
async def test_the_audit_says_who_filed_a_report(env, reporter):
    number = await filed(env, reporter)
    entry = next(one for one in (await list_audit()).items if one.action == "report filed")
    assert (entry.target, entry.by, entry.reason) == (number, reporter, "reads my keys")


@pytest.mark.parametrize(
    ("reach", "kind"),
    [("place", TargetKind.PLACE), ("version", TargetKind.DIGEST), ("name", TargetKind.NAME)],
)
async def test_upholding_blocks_with_one_default_severity(env, reach, kind):
    number = await filed(env)
    decided = await UPHOLD(env, ROB, UpholdReport(report_id=number, reason="true", block=BlockReach(reach)))
    (entry,) = await list_blocks()
    assert (entry.target.kind, entry.severity) == (kind, Severity.HIGH)
    assert decided.status == "upheld" and decided.decision is not None
    assert (decided.decision.by, decided.decision.blocked) == ("admin:rob", str(entry.target))
    assert (await get_skill(DEMO)).current_version is None
    with pytest.raises(TransitionError, match="upheld already"):
        await DISMISS(env, ROB, DismissReport(report_id=number, reason="no"))


async def test_upholding_alone_and_dismissing_block_nothing(env):
    first, second = await filed(env), await filed(env, "user:bob")
    await UPHOLD(env, ROB, UpholdReport(report_id=first, reason="true"))
    await DISMISS(env, ROB, DismissReport(report_id=second, reason="no"))
    assert await list_blocks() == []
    assert (await get_skill(DEMO)).current_version is not None
    listed = (await FILED(env, ROB, ListReports(status=WhichReports.ALL))).reports
    assert {one.id: one.status for one in listed} == {first: "upheld", second: "dismissed"}
    assert (await FILED(env, ROB, ListReports())).reports == ()


async def test_only_reviewers_may_and_only_about_a_report_that_exists(env):
    ann = principal_for("user:ann")
    upheld, dismissed = UpholdReport(report_id="x", reason="true"), DismissReport(report_id="x", reason="no")
    for actor, refusal in ((ann, NotPermitted), (ROB, NotFound)):
        with pytest.raises(refusal):
            await UPHOLD(env, actor, upheld)
        with pytest.raises(refusal):
            await DISMISS(env, actor, dismissed)
    with pytest.raises(NotPermitted):
        await FILED(env, ann, ListReports())


async def test_form_api_and_command_leave_the_same_records(tmp_path, monkeypatch):
    async def prepare(env) -> dict[str, str]:
        return {"id": await filed(env)}

    doors = EntryPoints(tmp_path, monkeypatch, prepare, Role.REVIEWER)
    by_form = await doors.by_form("/admin/reports/{id}/uphold", reason="true", block="version", confirm="yes")
    assert by_form == await doors.by_json("/api/v1/reports/{id}/uphold", reason="true", block="version")
    assert by_form == await doors.by_command(
        "report", "uphold", "{id}", "--reason", "true", "--block", "version"
    )
