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

from vskill_platform.cli.output import plain

if TYPE_CHECKING:
    from vskill_platform.domain.scan import Finding
    from vskill_platform.domain.states import State
    from vskill_platform.domain.submission import Submission

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
    state: "State"
    reason: str
    #: Where a rule matched, why that matters and what helps; each one line.
    findings: tuple[str, ...] = ()
    #: What the author can do now.
    advice: str = ""


async def explain(record: "Submission", title: str = "") -> Explanation:
    """The explanation of a run that is over, or of where it stands."""
    shown = title or record.skill_name
    lines = _lines(await _findings(record))
    if len(lines) > MOST_FINDINGS:
        lines[MOST_FINDINGS:] = [f"and {len(lines) - MOST_FINDINGS} more"]
    return Explanation(shown, record.state, _reason(record), tuple(lines), _advice(record))


def print_explanation(out: Console, one: Explanation) -> None:
    """A block: the result in one line, what it rests on below it."""
    head = Text(f"{one.state:<13} ", style=_STYLES.get(one.state.value, "bold"))
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


def _reason(record: "Submission") -> str:
    if record.published_version is not None and record.state.value == "PUBLISHED" and record.published:
        name = record.published.removeprefix("skill:")
        certification = record.decision.certification if record.decision else None
        return f"{name} {record.published_version}" + (f", {certification}" if certification else "")
    return record.history[-1].reason


async def _findings(record: "Submission") -> "list[Finding]":
    """What counted in the decision, the worst first. None for what was published: it passed."""
    from vskill_platform.domain.scan import Kind
    from vskill_platform.store.scans import get_scan

    if record.evidence is None or record.decision is None or record.state.value == "PUBLISHED":
        return []
    report = await get_scan(record.evidence.digest, record.evidence.ruleset)
    counted = [
        finding
        for finding in (report.findings if report else ())
        if finding.kind is not Kind.CAPABILITY and finding.rule_id in record.decision.rule_ids
    ]
    return sorted(counted, key=lambda finding: -finding.severity.rank)


def _lines(findings: "list[Finding]") -> list[str]:
    """One for each rule and file, with all its places."""
    places: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        places.setdefault((finding.rule_id, finding.file), []).append(finding)
    return [_line(same) for same in places.values()]


def _line(same: "list[Finding]") -> str:
    first = same[0]
    numbers = sorted({finding.line for finding in same if finding.line})
    where = first.file or "the whole skill"
    if numbers:
        where += f" line {', '.join(map(str, numbers))}"
    return " ".join(f"{where} ({first.severity.value}, {first.rule_id}): {first.why} {first.remedy}".split())


def _advice(record: "Submission") -> str:
    codes = record.decision.rule_ids if record.decision else ()
    match record.state.value:
        case "TIER1_FAILED":
            return f"correct what was found, and {_SUBMIT_AGAIN}."
        case "NEEDS_REVIEW":
            return (
                "wait for a reviewer's decision; 'vskill-platform status' shows it with its reason. "
                f"To go faster, remove what was found and {_SUBMIT_AGAIN}."
            )
        case "REJECTED" if "lower_version" in codes:
            return f"give it a higher version in the front matter of SKILL.md, and {_SUBMIT_AGAIN}."
        case "REJECTED":
            return f"correct it, and {_SUBMIT_AGAIN}."
        case "BLOCKED":
            return "this content cannot be published here. If that is a mistake, ask the operator of this registry."
        case "DEQUEUED":
            return f"nothing, or {_SUBMIT_AGAIN}."
        case _:
            return ""
