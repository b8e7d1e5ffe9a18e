"""`report`: what users said about published skills, and what a reviewer makes of it. `audit`: who did what."""

import click

from vskill_platform.cli.errors import PlatformGroup
from vskill_platform.cli.output import json_option, print_json, print_table, show_time
from vskill_platform.cli.process import OPERATOR, run_in_env

#: The names of `store.reports.ReportStatus`, here so that `--help` loads nothing.
STATUSES = ("open", "upheld", "dismissed", "all")

_reason = click.option("--reason", required=True, help="Why; kept with the report and in the audit.")


@click.group(cls=PlatformGroup)
def report() -> None:
    """Decide about reports of users; `skill report` files one."""


@report.command("list")
@click.option("--status", type=click.Choice(STATUSES), default="open", show_default=True)
@click.option("--skill", help="Only about this skill, by its canonical name.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@json_option
def list_reports(*, status: str, skill: str | None, limit: int, as_json: bool) -> None:
    """List reports: open ones by skill, others latest first."""
    from vskill_platform.store.reports import ReportStatus
    from vskill_platform.store.reports import list_reports as read

    wanted = None if status == "all" else ReportStatus(status)
    page = run_in_env(lambda: read(wanted, skill=skill, limit=limit))
    if as_json:
        print_json(list(page.items))
        return
    rows = [
        (one.id, one.skill, one.version or "", one.category.value, one.status.value, one.reporter, one.reason)
        for one in page.items
    ]
    columns = ("report", "skill", "version", "category", "status", "reporter", "reason")
    print_table(f"{len(rows)} reports{'' if page.cursor is None else '; there are more'}", columns, rows)
    if page.skipped:
        click.echo(f"{page.skipped} records could not be read; the log names them.", err=True)


@report.command("uphold")
@click.argument("report_id")
@_reason
@click.option(
    "--block", type=click.Choice(["place", "version", "name"]), help="Also block it; effective at once."
)
@click.option("--severity", type=click.Choice(["low", "medium", "high", "critical"]), default="high")
def uphold(*, report_id: str, reason: str, block: str | None, severity: str) -> None:
    """The reporter is right. --block place, name, or the version's content."""
    from vskill_platform.domain.blocklist import BlockTarget, digest_target, name_target, place_target
    from vskill_platform.domain.errors import InvalidInput
    from vskill_platform.domain.scan import Severity
    from vskill_platform.store.blocklist import reapply_blocklist
    from vskill_platform.store.reports import Report, ReportStatus, decide_report, get_report
    from vskill_platform.store.skills import get_skill, get_version

    async def target(found: Report) -> BlockTarget | None:
        if block is None:
            return None
        published = await get_skill(found.skill)
        if block == "place":
            return place_target(published.identity)
        if block == "name":
            return name_target(published.name)
        number = found.version or published.current_version
        if number is None:
            raise InvalidInput("No version is live.", field="--block", fix="block the place instead")
        return digest_target((await get_version(found.skill, number)).digest)

    async def act() -> Report:
        wanted = await target(await get_report(report_id))
        decided = await decide_report(
            report_id,
            ReportStatus.UPHELD,
            by=OPERATOR,
            reason=reason,
            block=wanted,
            severity=Severity(severity),
        )
        if wanted is not None:
            await reapply_blocklist()
        return decided

    decided = run_in_env(act)
    blocked = decided.decision.blocked if decided.decision else ""
    click.echo(f"Report {report_id} was upheld{f'; blocked: {blocked}' if blocked else ''}.")


@report.command("dismiss")
@click.argument("report_id")
@_reason
def dismiss(*, report_id: str, reason: str) -> None:
    """Nothing is wrong with it."""
    from vskill_platform.store.reports import ReportStatus, decide_report

    run_in_env(lambda: decide_report(report_id, ReportStatus.DISMISSED, by=OPERATOR, reason=reason))
    click.echo(f"Report {report_id} was dismissed.")


@click.group(cls=PlatformGroup)
def audit() -> None:
    """See who did what, when and why."""


@audit.command("list")
@click.option("--before", help="Only entries older than the one with this id.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@json_option
def list_entries(*, before: str | None, limit: int, as_json: bool) -> None:
    """List what was done, latest first."""
    from vskill_platform.store.audit import list_audit

    page = run_in_env(lambda: list_audit(before=before, limit=limit))
    if as_json:
        print_json(page)
        return
    rows = [(show_time(one.at), one.who, one.action, one.target, one.reason) for one in page.items]
    print_table(f"{len(rows)} entries", ("at (UTC)", "by", "what", "target", "reason"), rows)
    if page.before is not None:
        click.echo(f"Older ones: vskill-platform audit list --before {page.before}")
    if page.skipped:
        click.echo(f"{page.skipped} records could not be read; the log names them.", err=True)
