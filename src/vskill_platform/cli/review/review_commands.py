"""The commands of a reviewer: decisions about what waits. A decision names the run and the bytes that were looked at;
without them the command shows what waits, and asks. Where either has changed since, the decision is refused."""

from typing import Any

import click

from vskill_client.destination import Caller
from vskill_client.output import plain, print_table
from vskill_client.wire.findings import RunFindings
from vskill_client.wire.submissions import SubmissionRequest
from vskill_core.errors import InvalidInput
from vskill_platform.actions.review.change_requests import REQUEST_CHANGE, WITHDRAW_REQUEST
from vskill_platform.actions.review.review import APPROVE, LOOK_AGAIN, REJECT
from vskill_platform.actions.review.review_queue import WAITING, WaitingPage
from vskill_platform.actions.submissions.findings import FINDINGS
from vskill_platform.actions.submissions.submissions import CANCEL, SHOW
from vskill_platform.actions.verdicts.rule_figures import RULE_FIGURES, RuleFiguresAnswer
from vskill_platform.actions.verdicts.suppressions import (
    SUPPRESS,
    SUPPRESSED,
    UNSUPPRESS,
    SuppressionChange,
    SuppressionList,
)
from vskill_platform.cli.action_commands import ForetoldQuestion, command_for
from vskill_platform.cli.submissions.submission_commands import show_findings, show_rerun, show_state


async def show_what_waits(caller: Caller, given: dict[str, Any]) -> dict[str, Any]:
    """Print a submission as it is now; the run and the digest that were shown."""
    seen = await caller.call(SHOW, SubmissionRequest(submission_id=given["submission_id"]))
    for name, shown in (("run", seen.run), ("digest", seen.digest)):
        if given.get(name) not in (None, shown):
            raise click.UsageError(f"--{name} {given[name]} is not what waits now, which is {shown}.")
    click.echo(plain(f"{seen.skill_name} ({seen.repo_url} {seen.skill_path})"))
    show_findings(await caller.call(FINDINGS, RunFindings(submission_id=seen.id, run=seen.run)))
    content = f" --digest {seen.digest}" if seen.digest else ""
    click.echo(f"Read its files first: {caller.pages}/admin/review/{seen.id}")
    click.echo(f"To decide without this question: --run {seen.run}{content}")
    return {"run": seen.run, "digest": seen.digest}


async def show_content(caller: Caller, given: dict[str, Any]) -> dict[str, Any]:
    """The same where a submission was given for its content."""
    seen = await show_what_waits(caller, {"submission_id": given["digest"]})
    return {"digest": _require_fetched(given["digest"], seen["digest"])}


async def look_up_digest(caller: Caller, given: dict[str, Any]) -> dict[str, Any]:
    """The digest of a submission's content, where the submission was given instead."""
    if _names_content(given):
        return given
    seen = await caller.call(SHOW, SubmissionRequest(submission_id=given["digest"]))
    return {**given, "digest": _require_fetched(seen.id, seen.digest)}


def _names_content(given: dict[str, Any]) -> bool:
    return not (given["digest"] or "").startswith("sub_")


def _require_fetched(submission_id: str, digest: str | None) -> str:
    if digest is None:
        raise InvalidInput(
            f"{submission_id} has not been fetched yet, so there is no content.",
            field="CONTENT",
            fix="wait until it has been scanned",
        )
    return digest


def show_waiting(found: WaitingPage) -> None:
    rows = [(one.id, one.risk_words, one.skill_name, one.since, one.reason) for one in found.items]
    columns = ("submission", "risk", "skill", "since (UTC)", "why")
    print_table(f"{found.total} wait for a reviewer", columns, rows)
    if found.beyond:
        click.echo(f"{found.beyond} more wait and are not ordered yet.")
    if found.after is not None:
        click.echo(f"More: --after {found.after}")


def show_rules(found: RuleFiguresAnswer) -> None:
    seen = [one for one in found.rules if one.fired or one.agreed or one.disagreed]
    rows = [
        (
            one.rule,
            str(one.fired),
            str(one.agreed),
            str(one.disagreed),
            "mostly wrong here" if one.mostly_wrong else "",
        )
        for one in seen
    ]
    columns = ("rule", "fired", "reviewers agreed", "disagreed", "")
    print_table(f"{len(seen)} of {len(found.rules)} rules have fired here", columns, rows)


def show_suppression(done: SuppressionChange) -> None:
    rule = done.suppression
    verb = "no longer counts" if rule.active else "counts again"
    click.echo(f"{rule.rule} {verb} for {rule.digest}.")
    if done.new_runs:
        click.echo(f"New runs: {', '.join(done.new_runs)}")
    if done.rescans:
        click.echo(f"Judged again: {', '.join(done.rescans)}")


def show_suppressions(found: SuppressionList) -> None:
    rows = [
        (one.rule, one.digest, "yes" if one.active else "no", step.by, step.at, step.reason)
        for one in found.suppressions
        for step in one.history[-1:]
    ]
    columns = ("rule", "content", "active", "by", "at (UTC)", "why")
    print_table(f"{len(rows)} suppressions{'; there are more' if found.after else ''}", columns, rows)


_DECISION: dict[str, Any] = {
    "optional": ("run",),
    "confirm": ForetoldQuestion(
        "Decide about exactly this?", show_what_waits, lambda given: given["run"] is not None
    ),
    "about": "Without --run it shows what waits now, and asks.",
}
_CONTENT: dict[str, Any] = {
    "metavars": {"digest": "CONTENT"},
    "about": "CONTENT is a digest, or the id of a submission that has the content.",
}

COMMANDS = (
    command_for(WAITING, show_waiting),
    command_for(RULE_FIGURES, show_rules),
    command_for(APPROVE, show_state, **_DECISION),
    command_for(REJECT, show_state, **_DECISION),
    command_for(REQUEST_CHANGE, show_state, **_DECISION),
    command_for(WITHDRAW_REQUEST, show_state),
    command_for(CANCEL, show_state),
    command_for(LOOK_AGAIN, show_rerun),
    command_for(
        SUPPRESS,
        show_suppression,
        confirm=ForetoldQuestion("Suppress the rule for exactly this content?", show_content, _names_content),
        **_CONTENT,
    ),
    command_for(UNSUPPRESS, show_suppression, fill=look_up_digest, **_CONTENT),
    command_for(SUPPRESSED, show_suppressions, arguments=("digest",), fill=look_up_digest, **_CONTENT),
)
