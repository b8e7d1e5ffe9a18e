"""The commands of a reviewer: decisions about what waits. A decision names the run and the bytes that were looked at;
without them the command shows what waits, and asks. Where either has changed since, the decision is refused."""

from typing import Any

import click

from vskill_client.destination import Caller
from vskill_client.output import plain, print_table, show_text_time
from vskill_client.wire.submissions import FINDINGS, SHOW, RunFindings, SubmissionRequest
from vskill_core.errors import InvalidInput
from vskill_platform.actions.review import review, review_queue
from vskill_platform.actions.submissions.submissions import CANCEL
from vskill_platform.actions.verdicts import rule_figures, suppressions
from vskill_platform.cli import action_commands
from vskill_platform.cli.submissions.submission_commands import RERUN, SHOWN_FINDINGS, STATE


async def show_what_waits(caller: Caller, given: action_commands.Given) -> action_commands.Given:
    """Print a submission as it is now; the run and the digest that were shown."""
    seen = await caller.call(SHOW, SubmissionRequest(submission_id=given["submission_id"]))
    for name, shown in (("run", seen.run), ("digest", seen.digest)):
        if given.get(name) not in (None, shown):
            raise click.UsageError(f"--{name} {given[name]} is not what waits now, which is {shown}.")
    click.echo(plain(f"{seen.skill_name} ({seen.repo_url} {seen.skill_path})"))
    found = await caller.call(FINDINGS, RunFindings(submission_id=seen.id, run=seen.run))
    action_commands.show_answer(found, SHOWN_FINDINGS)
    content = f" --digest {seen.digest}" if seen.digest else ""
    click.echo(f"Read its files first: {caller.pages}/admin/review/{seen.id}")
    click.echo(f"To decide without this question: --run {seen.run}{content}")
    return {"run": seen.run, "digest": seen.digest}


async def show_content(caller: Caller, given: action_commands.Given) -> action_commands.Given:
    """The same where a submission was given for its content."""
    seen = await show_what_waits(caller, {"submission_id": given["digest"]})
    return {"digest": _require_fetched(given["digest"], seen["digest"])}


async def look_up_digest(caller: Caller, given: action_commands.Given) -> action_commands.Given:
    """The digest of a submission's content, where the submission was given instead."""
    if _names_content(given):
        return given
    seen = await caller.call(SHOW, SubmissionRequest(submission_id=given["digest"]))
    return {**given, "digest": _require_fetched(seen.id, seen.digest)}


def _names_content(given: action_commands.Given) -> bool:
    return not (given["digest"] or "").startswith("sub_")


def _require_fetched(submission_id: str, digest: str | None) -> str:
    if digest is None:
        raise InvalidInput(
            f"{submission_id} has not been fetched yet, so there is no content.",
            field="CONTENT",
            fix="wait until it has been scanned",
        )
    return digest


_WAITING: action_commands.Part = (
    action_commands.table(
        "{total} wait for a reviewer",
        "items",
        ("submission", "id"),
        ("risk", "risk_words"),
        ("skill", "skill_name"),
        ("since (UTC)", "since"),
        ("why", "reason"),
    ),
    action_commands.when("beyond", "{beyond} more wait and are not ordered yet."),
)


def show_rules(figures: rule_figures.RuleFiguresAnswer) -> None:
    rows = [
        (rule.rule, rule.fired, rule.agreed, rule.disagreed, "mostly wrong here" if rule.mostly_wrong else "")
        for rule in figures.rules
        if rule.fired or rule.agreed or rule.disagreed
    ]
    columns = ("rule", "fired", "reviewers agreed", "disagreed", "")
    print_table(f"{len(rows)} of {len(figures.rules)} rules have fired here", columns, rows)


_SUPPRESSION: action_commands.Part = (
    action_commands.when(
        "suppression.active",
        "{suppression.rule} no longer counts for {suppression.digest}.",
        "{suppression.rule} counts again for {suppression.digest}.",
    ),
    action_commands.when("new_runs", "New runs: {new_runs}"),
    action_commands.when("rescans", "Judged again: {rescans}"),
)
_SUPPRESSIONS = action_commands.table(
    "{#suppressions} suppressions",
    "suppressions",
    "rule",
    ("content", "digest"),
    ("active", lambda one: "yes" if one.active else "no"),
    ("by", lambda one: one.history[-1].by),
    ("at (UTC)", lambda one: show_text_time(one.history[-1].at)),
    ("why", lambda one: one.history[-1].reason),
)
_DECISION: dict[str, Any] = {
    "optional": ("run",),
    "confirm": action_commands.CommandQuestion(
        "Decide about exactly this?", show_what_waits, lambda given: given["run"] is not None
    ),
    "about": "Without --run it shows what waits now, and asks.",
}
_CONTENT: dict[str, Any] = {
    "metavars": {"digest": "CONTENT"},
    "about": "CONTENT is a digest, or the id of a submission that has the content.",
}

COMMANDS = (
    action_commands.command_for(review_queue.WAITING, _WAITING),
    action_commands.command_for(rule_figures.RULE_FIGURES, show_rules),
    action_commands.command_for(review.APPROVE, STATE, **_DECISION),
    action_commands.command_for(review.REJECT, STATE, **_DECISION),
    action_commands.command_for(review.REQUEST_CHANGE, STATE, **_DECISION),
    action_commands.command_for(review.WITHDRAW_REQUEST, STATE),
    action_commands.command_for(CANCEL, STATE),
    action_commands.command_for(review.LOOK_AGAIN, RERUN),
    action_commands.command_for(
        suppressions.SUPPRESS,
        _SUPPRESSION,
        confirm=action_commands.CommandQuestion(
            "Suppress the rule for exactly this content?", show_content, _names_content
        ),
        **_CONTENT,
    ),
    action_commands.command_for(suppressions.UNSUPPRESS, _SUPPRESSION, fill=look_up_digest, **_CONTENT),
    action_commands.command_for(
        suppressions.SUPPRESSED, _SUPPRESSIONS, arguments=("digest",), fill=look_up_digest, **_CONTENT
    ),
)
