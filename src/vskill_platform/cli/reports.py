"""`report`: what users say about published skills, and what a reviewer makes of it. `audit`: who did what."""

import click

from vskill_platform.cli.errors import ActionGroup, PlatformGroup
from vskill_platform.cli.output import json_option, print_json, print_table, show_time
from vskill_platform.cli.process import run_in_env


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.report_commands")
def report() -> None:
    """Report a skill; decide about the reports of users."""


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
