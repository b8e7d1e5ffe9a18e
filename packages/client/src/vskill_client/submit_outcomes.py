"""What became of a submission, in words for its author: the result, what was found and where, and what to do next; and
following submissions to their ends: each step as it is written, or of many a count of how far they are.

`submit --watch` and `status` print it. The findings come from the stored report of the very content that was decided
about; where there is none, the decision's own reason has to do.
"""

import time
from collections import Counter
from collections.abc import Sequence

import click
import msgspec

from vskill_client.destination import Caller, current_destination
from vskill_client.output import StatusLine, bold, plain, print_wrapped, show_text_time
from vskill_client.wire import submissions
from vskill_core.plural import counted

#: Of one skill's findings, the first so many; the rest are counted.
MOST_FINDINGS = 5

_COLOURS = {
    "PUBLISHED": "green",
    "NEEDS_REVIEW": "yellow",
    "COOLDOWN": "cyan",
    "TIER1_FAILED": "red",
    "REJECTED": "red",
    "BLOCKED": "red",
}
_SUBMIT_AGAIN = "submit it again"


class Explanation(msgspec.Struct, frozen=True):
    """A submission's end, for people."""

    title: str
    state: str
    reason: str
    #: Where a rule matched or the form has a note, why that matters and what helps; each one line.
    findings: tuple[str, ...] = ()
    #: What the author can do now.
    advice: str = ""


async def explain(caller: Caller, view: submissions.SubmissionView, title: str = "") -> Explanation:
    """The explanation of a run that is over, or of where it stands."""
    lines = await _read_lines(caller, view)
    if len(lines) > MOST_FINDINGS:
        every = current_destination().command_line("submission", "findings", view.id)
        more = f"and {len(lines) - MOST_FINDINGS} more: '{every}'"
        lines[MOST_FINDINGS:] = [more]
    return Explanation(title or view.skill_name, view.state, _reason(view), tuple(lines), _advice(view))


def print_explanation(one: Explanation) -> None:
    """A block: the result in one line, what it rests on below it."""
    click.echo(f"{bold(f'{one.state:<13}', _COLOURS.get(one.state))} {bold(plain(one.title))}")
    print_wrapped(one.reason, 14)
    print_grounds(one, indent=14)


def print_grounds(one: Explanation, indent: int = 2) -> None:
    """What was found and what to do, without the result itself."""
    for line in one.findings:
        print_wrapped(f"- {line}", indent)
    if one.advice:
        print_wrapped(one.advice, indent, "What to do: ")


def _reason(view: submissions.SubmissionView) -> str:
    if view.published_version is not None and view.state == "PUBLISHED" and view.published_skill:
        certification = view.decision.certification if view.decision else None
        return f"{view.published_skill} {view.published_version}" + (
            f", {certification}" if certification else ""
        )
    return view.history[-1].reason


async def _read_lines(caller: Caller, view: submissions.SubmissionView) -> list[str]:
    """What counted in the decision, the worst first, and the notes on form. Of what was published only the notes: it
    passed."""
    if view.scan is None or view.decision is None:
        return []
    found = await caller.call(
        submissions.FINDINGS, submissions.RunFindings(submission_id=view.id, run=view.run)
    )
    named = () if view.state == "PUBLISHED" else view.decision.rule_ids
    counted = [one for one in found.findings if one.kind != "capability" and one.rule_id in named]
    notes = [f"SKILL.md line {one.line} (note): {one.sentence} {one.fix}" for one in found.notes]
    told = [f"Note: {note}" for note in (view.name_note, view.version_note) if note]
    return [*_lines(counted), *told, *notes]


def _lines(findings: list[submissions.FindingView]) -> list[str]:
    """One for each rule and file, with all its places."""
    places: dict[tuple[str, str], list[submissions.FindingView]] = {}
    for finding in findings:
        places.setdefault((finding.rule_id, finding.file), []).append(finding)
    return [_line(same) for same in places.values()]


def _line(same: list[submissions.FindingView]) -> str:
    first = same[0]
    numbers = sorted({finding.line for finding in same if finding.line})
    where = first.file or "the whole skill"
    if numbers:
        where += f" line {', '.join(map(str, numbers))}"
    return " ".join(f"{where} ({first.severity}, {first.rule_id}): {first.why} {first.remedy}".split())


def _advice(view: submissions.SubmissionView) -> str:
    codes, destination = view.decision.rule_ids if view.decision else (), current_destination()
    appeal = f"'{destination.command_line('submission', 'appeal', view.id)}'"
    match view.state:
        case "TIER1_FAILED":
            return f"correct what was found, and {_SUBMIT_AGAIN}. If the finding is wrong: {appeal}."
        case "NEEDS_REVIEW" if view.change_request is not None:
            answer = f"'{destination.command_line('submission', 'answer', view.id)}'"
            until = show_text_time(view.change_request.until)
            return f"change it and {_SUBMIT_AGAIN}, or answer with {answer}, by {until}."
        case "NEEDS_REVIEW":
            return (
                f"wait for a reviewer's decision; '{destination.command_line('status', view.id)}' shows it. "
                f"To go faster, remove what was found and {_SUBMIT_AGAIN}."
            )
        case "COOLDOWN":
            until = show_text_time(view.next_attempt_at) if view.next_attempt_at else "then"
            return f"nothing: it is decided again {until} UTC, with the content that you submitted."
        case "REJECTED" if "lower_version" in codes:
            return f"give it a higher version in the front matter of SKILL.md, and {_SUBMIT_AGAIN}."
        case "REJECTED":
            return f"correct it, and {_SUBMIT_AGAIN}. If the decision is wrong: {appeal}."
        case "BLOCKED":
            return f"this cannot be published here. If that is a mistake: {appeal}."
        case "DEQUEUED":
            return f"nothing, or {_SUBMIT_AGAIN}."
        case _:
            return ""


#: How often the records are looked at.
LOOK_EVERY_S = 0.2
#: A registry elsewhere is asked less often.
ASK_EVERY_S = 1.0
#: After so long without a step of any, it is worth saying that perhaps nobody works the queue.
QUIET_S = 10.0
_NOBODY = (
    "Nothing has moved for 10 s. Is a server or a worker running? "
    "Ctrl-C stops watching; what was submitted stays on the queue."
)


async def follow_all(
    caller: Caller, views: Sequence[submissions.SubmissionView], *, quiet: bool
) -> list[submissions.SubmissionView]:
    """Each as it ended, in the order given."""
    watch = _Watch(caller, views, quiet=quiet)
    with StatusLine("waiting for a worker", quiet=quiet) as status:
        return await watch.to_the_end(status)


async def print_ends(caller: Caller, titled: Sequence[tuple[str, submissions.SubmissionView]]) -> None:
    """A block for each, those that need attention last, where the eye is. A single one's steps were shown as they were
    written, so only what they rest on is added."""
    if len(titled) == 1:
        print_grounds(await explain(caller, titled[0][1], titled[0][0]))
        return
    ordered = sorted(titled, key=lambda one: one[1].state != "PUBLISHED")
    for title, record in ordered:
        click.echo()
        print_explanation(await explain(caller, record, title))
    click.echo()
    click.echo(plain(tally([record for _, record in titled])))


def tally(records: Sequence[submissions.SubmissionView]) -> str:
    """`6 skills: 1 PUBLISHED, 2 REJECTED, …`, by how often."""
    counts = Counter(record.state for record in records)
    return f"{counted(len(records), 'skill')}: " + ", ".join(
        f"{count} {state}" for state, count in counts.most_common()
    )


class _Watch:
    """The records that are followed, and what was said about them."""

    def __init__(self, caller: Caller, records: Sequence[submissions.SubmissionView], *, quiet: bool) -> None:
        self._caller = caller
        self._records = list(records)
        self._quiet = quiet
        self._shown = [0] * len(records)
        self._moved_at = time.monotonic()
        self._warned = quiet

    async def to_the_end(self, status: StatusLine) -> list[submissions.SubmissionView]:
        import asyncio

        while True:
            for index in range(len(self._records)):
                await self._look(index, status)
            open_ones = [record for record in self._records if not _is_over(record)]
            if not open_ones:
                return self._records
            self._tell_progress(status, open_ones)
            await asyncio.sleep(ASK_EVERY_S if self._caller.registry else LOOK_EVERY_S)

    async def _look(self, index: int, status: StatusLine) -> None:
        before = self._records[index]
        if self._shown[index] and _is_over(before):
            return
        record = await _read_run(self._caller, before.id, before.run)
        for event in record.history:
            if event.seq > self._shown[index]:
                self._moved_at = time.monotonic()
                self._shown[index] = event.seq
                if not self._quiet and len(self._records) == 1:
                    status.hide()
                    click.echo(plain(f"  {show_text_time(event.at)}  {event.to:<15} {event.reason}"))
        self._records[index] = record

    def _tell_progress(self, status: StatusLine, open_ones: list[submissions.SubmissionView]) -> None:
        if not self._warned and time.monotonic() - self._moved_at > QUIET_S:
            self._warned = True
            status.hide()
            click.echo(_NOBODY, err=True)
        if len(self._records) == 1:
            status.update(open_ones[0].meaning)
            return
        done = len(self._records) - len(open_ones)
        counts = Counter(record.meaning for record in open_ones)
        rest = ", ".join(f"{count} {meaning}" for meaning, count in counts.items())
        status.update(f"{done} of {len(self._records)} decided; {rest}")


def _is_over(view: submissions.SubmissionView) -> bool:
    """Whether no worker owes its run anything."""
    return view.category not in {"waiting", "running"}


async def _read_run(caller: Caller, submission_id: str, run: int) -> submissions.SubmissionView:
    """The run that is followed, also when another one has begun since."""
    shown = await caller.call(submissions.SHOW, submissions.SubmissionRequest(submission_id=submission_id))
    if shown.run == run:
        return shown
    found = await caller.call(
        submissions.RUNS, submissions.SubmissionRuns(submission_id=submission_id, limit=20)
    )
    return next((one for one in found.runs if one.run == run), shown)
