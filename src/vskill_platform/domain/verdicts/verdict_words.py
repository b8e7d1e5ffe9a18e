"""What was looked at and what was not, in sentences: the words of pages, of the JSON report and of MCP. They claim no
more than was done: a scan that found nothing says that it found nothing, never that there is nothing.
"""

import enum
from collections.abc import Sequence

import msgspec

from vskill_core.capability import CapabilityKind
from vskill_core.findings import Finding, FindingKind, JudgeStatus, ScanStatus, StaticReport
from vskill_platform.domain.evidence import JudgeWord, JudgeWords

#: What no scan of files can see.
NEVER_LOOKED_AT = "What it downloads or writes while it runs was not looked at."
NOT_JUDGED = "The instructions were not read by a judge."

#: Unread things that the sentence about the files names; the card has all of them.
MOST_NAMED = 3

_STATUS_WORDS = {
    ScanStatus.TIMED_OUT: "ran out of time",
    ScanStatus.ERROR: "failed",
    ScanStatus.INCOMPLETE: "could not read everything",
}


class Tone(enum.StrEnum):
    """How a verdict is shown."""

    GOOD = "good"
    #: nothing was found, and nobody has read it
    INFO = "info"
    WARN = "warn"
    BAD = "bad"


class VerdictWords(msgspec.Struct, frozen=True):
    """A verdict in words."""

    #: what came out
    headline: str
    tone: Tone
    #: what else was looked at, and what was not
    details: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The headline and the first detail, in which the judge speaks or is missed."""
        return " ".join((self.headline, *self.details[:1]))


def words_for_scan(report: StaticReport | None, judges: JudgeWords) -> VerdictWords:
    """About content that nobody has blocked."""
    if report is None:
        return VerdictWords("No report of our rules is stored.", Tone.WARN, (judges_sentence(judges),))
    counted = [one for one in report.findings if one.kind is not FindingKind.CAPABILITY or one.certain]
    headline, tone = rules_sentence(report.status, report.problem, report.ruleset, counted)
    if tone is Tone.GOOD and judges.word is None:
        tone = Tone.INFO
    details = [judges_sentence(judges)]
    if report.coverage.files_total:
        read, total = report.coverage.files_scanned, report.coverage.files_total
        unread = [one for one in report.capabilities or () if one.kind is CapabilityKind.UNREAD]
        left = [f"{one.value} ({one.file})" if one.file else one.value for one in unread if one.acts]
        more = [f"{len(left) - MOST_NAMED} more"] if len(left) > MOST_NAMED else []
        not_all = f", but not all of what is in them: {', '.join(left[:MOST_NAMED] + more)}" if left else ""
        details.append(f"Our rules read {read} of {total} files{not_all}.")
        details += [f"{one.value}." for one in unread if not one.acts]
    return VerdictWords(headline, tone, (*details, NEVER_LOOKED_AT))


def words_for_blocked(reasons: Sequence[str], *, blocked: bool) -> VerdictWords:
    """About content that cannot be installed: no word of what it passed."""
    headline = "This skill is blocked." if blocked else "This version was taken down."
    return VerdictWords(headline, Tone.BAD, tuple(reasons))


def rules_sentence(
    status: ScanStatus, problem: str, ruleset: str, counted: Sequence[Finding]
) -> tuple[str, Tone]:
    """What our rules say: what they found, or that they did not come to an end."""
    version = f"version {ruleset.partition('-')[0]}"
    if status is not ScanStatus.COMPLETE:
        why = f": {problem}" if problem else ""
        return f"The scan by our rules ({version}) {_STATUS_WORDS[status]}{why}. It has no result.", Tone.WARN
    malice = sum(one.kind is FindingKind.MALICE or one.certain for one in counted)
    others = len(counted) - malice
    if malice:
        rest = f" and {_count(others, 'mismatch', 'mismatches')}" if others else ""
        return f"Our rules ({version}) found {_count(malice, 'sign', 'signs')} of an attack{rest}.", Tone.BAD
    if others:
        found = _count(others, "mismatch", "mismatches")
        return (
            f"Our rules ({version}) found {found} between what it says and what it does, and no known attack.",
            Tone.WARN,
        )
    return f"No known attack found by our rules ({version}).", Tone.GOOD


def judges_sentence(judges: JudgeWords) -> str:
    if judges.word is None:
        down = ": it was unavailable." if judges.status is JudgeStatus.DOWN else "."
        return NOT_JUDGED.removesuffix(".") + down
    said = [_describe_word("A judge", judges.word)]
    if judges.second is not None:
        said.append(_describe_word("A second judge", judges.second))
    elif judges.second_status is JudgeStatus.DOWN:
        said.append("A second judge was unavailable.")
    return " ".join(said)


def _describe_word(who: str, word: JudgeWord) -> str:
    what = "part of the instructions" if word.partial else "the instructions"
    return f"{who} ({word.model}) read {what}: {word.verdict.value.lower()}, {word.score} of 100."


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
