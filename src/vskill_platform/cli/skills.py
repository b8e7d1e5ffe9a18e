"""`skill`: see a published skill, withdraw versions of it and bring them back, and report it.

A NAME is a canonical name (owner/repository/skill) or a flat one that means exactly one skill.
"""

import click
import msgspec

from vskill_platform.cli.errors import ActionGroup
from vskill_platform.cli.output import (
    json_option,
    print_json,
)
from vskill_platform.cli.process import run_in_env

#: The names of `store.reports.Category`, here so that `--help` loads nothing.
CATEGORIES = ("malware", "vulnerability", "impersonation", "spam", "licence", "other")

_reason = click.option("--reason", required=True, help="Why; shown with the version and kept in the audit.")


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.skill_commands")
def skill() -> None:
    """Look at published skills, withdraw versions and bring them back."""


@skill.command("export")
def export() -> None:
    """Print every published skill as one line of JSON each, in the order of their names."""
    from vskill_platform.actions.catalogue import enumerate_catalogue
    from vskill_platform.actions.principal import OPERATOR
    from vskill_platform.actions.wire import camel
    from vskill_platform.worker_context import require_env

    for found in run_in_env(lambda: enumerate_catalogue(require_env(), OPERATOR)):
        click.echo(msgspec.json.encode(camel(found)))


@skill.command("report")
@click.argument("name")
@click.argument("version", required=False)
@click.option("--reason", required=True, help="What is wrong with it.")
@click.option("--category", type=click.Choice(CATEGORIES), default="other", show_default=True)
@click.option("--account", default="local", show_default=True, help="The account that acts.")
@json_option
def report(
    *, name: str, version: str | None, reason: str, category: str, account: str, as_json: bool
) -> None:
    """Report a skill, or one version of it, to the reviewers."""
    from vskill_platform.store.reports import Category, file_report

    filed = run_in_env(
        lambda: file_report(
            name, reporter=f"user:{account}", reason=reason, category=Category(category), version=version
        )
    )
    if as_json:
        print_json(filed)
    elif filed.new:
        click.echo(f"Report {filed.report.id} about {filed.report.skill} was filed.")
    else:
        click.echo(f"Report {filed.report.id} of {account} about {filed.report.skill} is still open.")
