"""`review`: what a reviewer decides, and `block`: what nobody may publish. Each goes through the store's one function
for it, with the reason in the history."""

import click

from vskill_platform.cli.errors import ActionGroup
from vskill_platform.cli.output import json_option, print_json, print_table, show_time
from vskill_platform.cli.process import run_in_env


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.review_commands")
def review() -> None:
    """Decide about submissions that wait for a person."""


@review.command("list")
@json_option
def waiting(*, as_json: bool) -> None:
    """List what waits for a person, latest first."""
    from vskill_platform.domain.states import State
    from vskill_platform.submission_store import list_submissions

    page = run_in_env(lambda: list_submissions([State.NEEDS_REVIEW], limit=100))
    if as_json:
        print_json(list(page.items))
        return
    rows = [(one.id, one.skill_name, show_time(one.updated_at), one.history[-1].reason) for one in page.items]
    print_table(f"{len(rows)} wait for a person", ("submission", "skill", "since (UTC)", "why"), rows)


@click.group(cls=ActionGroup, commands_in="vskill_platform.cli.block_commands")
def block() -> None:
    """Keep skills from being published, and take down those that are."""
