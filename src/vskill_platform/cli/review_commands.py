"""The commands of a reviewer: decisions about what waits. What is decided about is what the registry shows now: the
run and the bytes are looked up first, and where they change before the decision arrives, it is refused."""

from typing import Any

import click

from vskill_platform.actions.review import APPROVE, REJECT
from vskill_platform.actions.submission_views import SubmissionView
from vskill_platform.actions.submissions import SHOW, SubmissionRequest
from vskill_platform.cli.action_commands import command_for
from vskill_platform.cli.caller import Caller


async def look_up_run(caller: Caller, given: dict[str, Any]) -> dict[str, Any]:
    """The run and the digest that wait now."""
    seen = await caller.call(SHOW, SubmissionRequest(submission_id=given["submission_id"]))
    return {**given, "run": seen.run, "digest": seen.digest}


def show_decision(decided: SubmissionView) -> None:
    click.echo(f"{decided.id}: {decided.state} ({decided.meaning})")


_LOOKED_UP = ("run", "digest")

COMMANDS = (
    command_for(APPROVE, show_decision, fill=look_up_run, filled=_LOOKED_UP),
    command_for(REJECT, show_decision, fill=look_up_run, filled=_LOOKED_UP),
)
