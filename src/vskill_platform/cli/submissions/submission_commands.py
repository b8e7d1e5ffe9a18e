"""The commands of a submitter: find one's submissions, end a run, start another one, appeal, answer a
reviewer, read what was found."""

from vskill_client.output import print_json, print_table
from vskill_platform.actions.review.appeals import APPEAL
from vskill_platform.actions.review.reports import REPORT_SUBMISSION
from vskill_platform.actions.review.review import ANSWER
from vskill_platform.actions.submissions import submission_lists, submissions
from vskill_platform.cli.action_commands import Part, command_for, each, table, when

STATE = "{id}: {state} ({meaning})"
RERUN = when(
    "rerun_requested",
    "{id}: the next run begins when run {run} is over ({state})",
    "{id}: run {run}, {state}",
)
_WHAT = "{severity} {kind} {rule_id}"
SHOWN_FINDINGS: Part = (
    "{id}, run {run}: {state}, {reason}",
    each(
        "findings",
        when(
            "line",
            f"{{file}}:{{line}}: {_WHAT}",
            when("file", f"{{file}}: {_WHAT}", f"the whole skill: {_WHAT}"),
        ),
        when("excerpt", "    {excerpt}"),
        when("remedy", "    {why} {remedy}", "    {why}"),
    ),
    each("notes", "SKILL.md:{line}: note {code}", "    {sentence} {fix}"),
    each("remedies", "What to do: {}"),
    when("ruleset", when("findings", (), "Nothing was found."), "Its content was not scanned in this run."),
)
_SUBMISSIONS = table(
    "{#submissions:submission}",
    "submissions",
    ("submission", "id"),
    "state",
    ("skill", "skill_name"),
    ("last change (UTC)", "updated_at"),
    ("why", "reason"),
)


def show_hand_in(hand_in: submission_lists.HandInView) -> None:
    rows = [
        (
            one.submission.skill_name if one.submission else one.skill_path or one.repo_url,
            one.submission.state if one.submission else "refused",
            one.submission.id if one.submission else "",
            one.submission.reason if one.submission else one.reason,
        )
        for one in hand_in.skills
    ]
    title = f"{hand_in.id}: {'ended' if hand_in.ended else 'still being checked'}"
    print_table(title, ("skill", "state", "submission", "why"), rows)


COMMANDS = (
    command_for(submission_lists.LIST, _SUBMISSIONS),
    command_for(submissions.CANCEL, STATE),
    command_for(submissions.RERUN, RERUN),
    command_for(APPEAL, STATE),
    command_for(ANSWER, STATE),
    command_for(REPORT_SUBMISSION, STATE),
    command_for(
        submissions.RUNS,
        table("{id}", "runs", "run", "state", ("last change", "updated_at"), ("why", "reason")),
    ),
    command_for(submissions.FINDINGS, SHOWN_FINDINGS),
    command_for(submissions.SARIF, print_json),
    command_for(submission_lists.SHOW_HAND_IN, show_hand_in),
)
