"""What the rules found in the content of a run."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import Wire, call_for
from vskill_client.wire.submissions import SUBMISSIONS, SubmissionRequest


class RunFindings(SubmissionRequest, frozen=True, kw_only=True):
    """A run of a submission."""

    #: the latest run if left out
    run: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None


class FindingView(Wire, frozen=True):
    """One place where a rule matched."""

    rule_id: str
    severity: str
    category: str
    #: capability, mismatch or malice; a capability counts for nothing
    kind: str
    file: str
    #: from 1; 0 is the whole file
    line: int
    column: int
    excerpt: str
    why: str
    remedy: str


class FormNoteView(Wire, frozen=True):
    """Something to correct in SKILL.md. It counts for nothing: the registry takes the skill all the same."""

    #: what it is about, such as `name-invalid`
    code: str
    #: the field of the front matter, or `front matter`
    field: str
    #: what is wrong, and what the registry took instead
    sentence: str
    fix: str
    #: of SKILL.md, from 1
    line: int


class CapabilityView(Wire, frozen=True):
    """One thing that a version can do, as far as our rules found it."""

    #: host, command, file, secret, install, persistence or unread
    kind: str
    #: the host, program, path, package, or what it is in words
    value: str
    #: the first place that says so
    file: str
    #: from 1; 0 is the whole file
    line: int
    #: code (it runs), instruction (an agent is told to run or use it) or link (nothing runs it)
    context: str
    #: of a host: a shell command names it, or its file starts commands
    shell: bool
    #: runs, sends, requires, moves, starts or deletes: what the skill does with it, where that can be told
    uses: tuple[str, ...] = ()


class FindingsAnswer(Wire, frozen=True):
    """What the static scan found in the content of one run."""

    id: str
    run: int
    state: str
    #: why the run stands where it does
    reason: str
    #: what to do where no finding says it
    remedies: tuple[str, ...]
    #: null where the content was not scanned in this run
    digest: str | None
    ruleset: str | None
    #: null also where the scan did not end, and where the submission is blocked
    verdict: str | None
    score: int | None
    #: those that the decision names first, then the worst; capabilities last
    findings: tuple[FindingView, ...]
    #: what its author should correct in SKILL.md
    notes: tuple[FormNoteView, ...]
    #: the capability card: what our rules found that it can do; null where nothing is known
    capabilities: tuple[CapabilityView, ...] | None


FINDINGS = call_for(
    "submission.findings", f"{SUBMISSIONS}/{{submission_id}}/findings", RunFindings, FindingsAnswer
)
