"""What reviewers make of reports: decided once, with a block where it is needed, the same at every entry point."""

import pytest

from tests.support.acting import principal_for
from tests.support.entry_points import EntryPoints
from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from vskill_core.errors import InvalidInput, NotFound, NotPermitted, TransitionError
from vskill_core.findings import Severity
from vskill_platform.actions.principal import OPERATOR, Principal
from vskill_platform.actions.recall.blocklist import BlockReach
from vskill_platform.actions.review.reports import (
    DISMISS,
    FILE,
    FILED,
    UPHOLD,
    DismissReport,
    FileReport,
    ListReports,
    UpholdReport,
    WhichReports,
)
from vskill_platform.domain.blocklist import TargetKind
from vskill_platform.domain.people.namespace import PUBLIC_ONLY
from vskill_platform.domain.people.refusal import ANONYMOUS
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.recall.blocklist import list_blocks
from vskill_platform.store.review.reports import ReportCategory, file_report
from vskill_platform.store.skills.skills import get_skill

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
    return (
        await file_report(DEMO, reporter=reporter, reason="reads my keys", audiences=PUBLIC_ONLY)
    ).report.id


@pytest.mark.parametrize(
    ("who", "reporter"),
    [
        (Principal("ann", Role.AUTHOR), "user:ann"),
        (Principal(address="192.0.2.7"), "user:192.0.2.7"),
        (OPERATOR, "admin:command line"),
    ],
    ids=["account", "anybody", "operator"],
)
async def test_anybody_files_one_report_and_the_audit_says_who(env, who, reporter):
    await submit_skill("demo")
    await run_until_quiet(env)
    wanted = FileReport(skill="demo", reason=" reads my keys ", category=ReportCategory.MALWARE)
    first = await FILE(env, who, wanted)
    assert (first.skill, first.category, first.status, first.version, first.new) == (
        DEMO,
        "malware",
        "open",
        None,
        True,
    )
    again = await FILE(env, who, FileReport(skill=DEMO, reason="really", version="1.0.0"))
    assert (again.id, again.version, again.new) == (first.id, None, False)
    (entry,) = [one for one in (await list_audit()).items if one.action == "report filed"]
    # An address stands in no entry, which never ends.
    by = ANONYMOUS if who.address else reporter
    assert (entry.target, entry.by, entry.reason) == (first.id, by, "reads my keys")
    assert entry.details == {"skill": DEMO, "category": "malware"}


async def test_a_report_is_about_a_version_that_exists_and_has_a_reason(env):
    await submit_skill("demo")
    await run_until_quiet(env)
    ann = Principal("ann", Role.AUTHOR)
    for wanted, refusal in (
        (FileReport(skill="none", reason="odd"), NotFound),
        (FileReport(skill=DEMO, version="9.9.9", reason="odd"), NotFound),
        (FileReport(skill=DEMO, reason=" "), InvalidInput),
    ):
        with pytest.raises(refusal):
            await FILE(env, ann, wanted)
    reading = Principal("ann", Role.AUTHOR, frozenset({"read"}))
    with pytest.raises(NotPermitted, match="scope 'submit'"):
        await FILE(env, reading, FileReport(skill=DEMO, reason="odd"))
    assert (await FILED(env, ROB, ListReports())).reports == ()


async def test_a_report_leaves_the_same_records_at_every_entry_point(tmp_path, monkeypatch):
    async def prepare(env) -> dict[str, str]:
        await submit_skill("demo")
        await run_until_quiet(env)
        return {}

    doors = EntryPoints(tmp_path, monkeypatch, prepare, Role.AUTHOR, "ann")
    by_form = await doors.by_form(f"/skills/{DEMO}/report", category="spam", reason="an advert")
    assert any("an advert" in one for one in by_form)
    path = f"/api/v1/skills/{DEMO}/reports"
    assert by_form == await doors.by_json(path, category="spam", reason="an advert")
    words = ("report", "file", DEMO, "--category", "spam", "--reason", "an advert")
    assert by_form == await doors.by_command(*words)
    assert by_form == await doors.by_remote_command(*words)


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
    with pytest.raises(TransitionError, match="already upheld"):
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
