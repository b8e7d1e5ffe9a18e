"""What became of a submission, in words for its author: the result, what was found and where, and what to do next.

`submit --watch` and `status` print it. The findings come from the stored report of the very content that was decided
about; where there is none, the decision's own reason has to do.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from vskill_platform.cli.destination import command_line
from vskill_platform.cli.output import plain

if TYPE_CHECKING:
    from vskill_platform.cli.caller import Caller
    from vskill_platform.client.wire.findings import FindingView
    from vskill_platform.client.wire.submissions import SubmissionView

#: Of one skill's findings, the first so many; the rest are counted.
MOST_FINDINGS = 5

_STYLES = {
    "PUBLISHED": "bold green",
    "NEEDS_REVIEW": "bold yellow",
    "TIER1_FAILED": "bold red",
    "REJECTED": "bold red",
    "BLOCKED": "bold red",
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


async def explain(caller: "Caller", view: "SubmissionView", title: str = "") -> Explanation:
    """The explanation of a run that is over, or of where it stands."""
    lines = await _read_lines(caller, view)
    if len(lines) > MOST_FINDINGS:
        every = command_line(caller.registry, "submission", "findings", view.id)
        more = f"and {len(lines) - MOST_FINDINGS} more: '{every}'"
        lines[MOST_FINDINGS:] = [more]
    return Explanation(
        title or view.skill_name, view.state, _reason(view), tuple(lines), _advice(view, caller.registry)
    )


def print_explanation(out: Console, one: Explanation) -> None:
    """A block: the result in one line, what it rests on below it."""
    head = Text(f"{one.state:<13} ", style=_STYLES.get(one.state, "bold"))
    head.append_text(Text(plain(one.title).plain, style="bold"))
    out.print(head)
    out.print(Padding(plain(one.reason), (0, 0, 0, 14), expand=False))
    print_grounds(out, one, indent=14)


def print_grounds(out: Console, one: Explanation, indent: int = 2) -> None:
    """What was found and what to do, without the result itself."""
    for line in _grounds(one):
        out.print(Padding(line, (0, 0, 0, indent), expand=False))


def _grounds(one: Explanation) -> Iterator[Text]:
    for line in one.findings:
        yield plain(f"- {line}")
    if one.advice:
        yield Text("What to do: ", style="bold").append_text(Text(plain(one.advice).plain, style="not bold"))


def _reason(view: "SubmissionView") -> str:
    if view.published_version is not None and view.state == "PUBLISHED" and view.published_skill:
        certification = view.decision.certification if view.decision else None
        return f"{view.published_skill} {view.published_version}" + (
            f", {certification}" if certification else ""
        )
    return view.history[-1].reason


async def _read_lines(caller: "Caller", view: "SubmissionView") -> list[str]:
    """What counted in the decision, the worst first, and the notes on form. Of what was published only the notes: it
    passed."""
    from vskill_platform.actions.findings import FINDINGS
    from vskill_platform.client.wire.findings import RunFindings

    if view.scan is None or view.decision is None:
        return []
    found = await caller.call(FINDINGS, RunFindings(submission_id=view.id, run=view.run))
    named = () if view.state == "PUBLISHED" else view.decision.rule_ids
    counted = [one for one in found.findings if one.kind != "capability" and one.rule_id in named]
    notes = [f"SKILL.md line {one.line} (note): {one.sentence} {one.fix}" for one in found.notes]
    told = [f"Note: {note}" for note in (view.name_note, view.version_note) if note]
    return [*_lines(counted), *told, *notes]


def _lines(findings: "list[FindingView]") -> list[str]:
    """One for each rule and file, with all its places."""
    places: dict[tuple[str, str], list[FindingView]] = {}
    for finding in findings:
        places.setdefault((finding.rule_id, finding.file), []).append(finding)
    return [_line(same) for same in places.values()]


def _line(same: "list[FindingView]") -> str:
    first = same[0]
    numbers = sorted({finding.line for finding in same if finding.line})
    where = first.file or "the whole skill"
    if numbers:
        where += f" line {', '.join(map(str, numbers))}"
    return " ".join(f"{where} ({first.severity}, {first.rule_id}): {first.why} {first.remedy}".split())


def _advice(view: "SubmissionView", registry: str) -> str:
    codes = view.decision.rule_ids if view.decision else ()
    appeal = f"'{command_line(registry, 'submission', 'appeal', view.id)}'"
    match view.state:
        case "TIER1_FAILED":
            return f"correct what was found, and {_SUBMIT_AGAIN}. If the finding is wrong: {appeal}."
        case "NEEDS_REVIEW" if view.change_request is not None:
            answer = f"'{command_line(registry, 'submission', 'answer', view.id)}'"
            until = view.change_request.until.replace("T", " ")
            return f"change it and {_SUBMIT_AGAIN}, or answer with {answer}, by {until}."
        case "NEEDS_REVIEW":
            return (
                f"wait for a reviewer's decision; '{command_line(registry, 'status', view.id)}' shows it. "
                f"To go faster, remove what was found and {_SUBMIT_AGAIN}."
            )
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
