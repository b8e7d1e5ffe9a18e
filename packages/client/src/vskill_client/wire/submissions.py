"""Submissions: what is put on the queue, and how it is followed."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, SubmissionId, Wire, call_for
from vskill_client.wire.skills import CapabilityView
from vskill_core.kind import Kind
from vskill_core.publisher import Publisher

SUBMISSIONS = "/api/v1/submissions"

Url = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
Folder = Annotated[str, msgspec.Meta(max_length=1024)]


# Submitting.


class SubmitSkill(ActionRequest, frozen=True, kw_only=True):
    """A skill or plugin of a repository; without name and path, every one in it."""

    #: a repository's address, or `owner/repo` on GitHub
    repo_url: Url
    #: the folder's name, where the path is not known
    skill_name: Annotated[str, msgspec.Meta(max_length=200)] | None = None
    #: the folder that holds SKILL.md, or the manifest of a plugin
    skill_path: Folder | None = None
    #: what it is published as, where its maintainer says so: skill or plugin
    kind: Kind | None = None
    #: which door it came through
    source: str | None = None
    #: also the skills below a folder that is one itself
    every: bool = False


class PlaceOutcome(Wire, frozen=True, omit_defaults=True):
    """What became of one place. Which members are there tells the outcome."""

    #: of the submission; absent only where a place that never had one is blocked
    id: str | None = None
    submission_id: str | None = None
    state: str | None = None
    skill_name: str | None = None
    skill_path: str | None = None
    repo_url: str | None = None
    created_at: str | None = None
    #: it is on its way already
    duplicate: bool = False
    #: these very bytes are published
    already_verified: bool = False
    #: the content changed, so a new run has begun
    requeued: bool = False
    #: it is on the blocklist, or so is what it is part of
    blocked: bool = False
    reason: str | None = None
    #: under which name it is published, where its folder and SKILL.md give two
    name_note: str | None = None
    #: which version it will be, where the one in SKILL.md is published already
    version_note: str | None = None
    #: why this place was refused, where others were not
    error: str | None = None
    code: str | None = None
    #: of a repository: what became of each of its skills
    results: tuple["PlaceOutcome", ...] = ()
    #: skills of the repository that were not asked for
    not_submitted: tuple[str, ...] = ()
    #: there are more skills than were looked at
    truncated: bool = False
    #: folders whose names no address can hold
    skipped: tuple[str, ...] = ()
    #: plugins of its marketplace that are not in the repository, each as a sentence with what to do
    elsewhere: tuple[str, ...] = ()
    #: the path of the page on which people follow it: the submission's, or of several skills the hand-in's
    page: str | None = None

    @property
    def outcome(self) -> str:
        """The outcome in a word; `refused` where nothing was written."""
        if self.error is not None:
            return "refused"
        if self.duplicate:
            return "duplicate"
        if self.already_verified:
            return "already verified"
        if self.requeued:
            return "requeued"
        return "blocked" if self.blocked else "created"


class UploadSkill(ActionRequest, frozen=True, kw_only=True):
    """An archive of one skill or plugin, for an upload namespace."""

    #: a zip, tar or tar.gz with SKILL.md, or a plugin's manifest, at its root or in its one folder
    archive: bytes
    #: the skill's name in the namespace; the one in the front matter if left out
    name: Annotated[str, msgspec.Meta(max_length=100)] = ""
    #: the upload namespace, such as `platform` for `upload~platform`, in which one must be an author; the account's own
    #: if left out
    namespace: Annotated[str, msgspec.Meta(max_length=100)] = ""
    #: what it is published as, where its maintainer says so: skill or plugin
    kind: Kind | None = None
    #: which door it came through
    source: str | None = None


# Following.


class SubmissionRequest(ActionRequest, frozen=True, kw_only=True):
    """One submission."""

    submission_id: SubmissionId


class SubmissionRuns(SubmissionRequest, frozen=True, kw_only=True):
    """The runs of a submission."""

    #: how many, the latest first
    limit: Annotated[int, msgspec.Meta(ge=1, le=20)] = 10


class HistoryEvent(Wire, frozen=True):
    """One step."""

    seq: int
    at: str
    source: str | None = msgspec.field(name="from")
    to: str
    #: `user:`, `admin:` or `worker:` and a name, or `system`; `its submitter`, `a reviewer` or `a worker` to those who
    #: may not know the name
    actor: str
    reason: str


class AttemptsView(Wire, frozen=True):
    """How this run's attempts ended."""

    started: int
    failed: int
    interrupted: int
    #: times in a row that the source or a store was unavailable
    unavailable: int
    unavailable_since: str | None
    waiting_for: str | None
    last_error: str | None


class MatchedRuleView(Wire, frozen=True):
    """A rule of the registry's policy that matched."""

    name: str
    #: refuse, review or note
    then: str
    #: what it says, cut after 300 characters
    reason: str
    #: it could not be evaluated, so it asks for a reviewer
    failed: bool


class DecisionView(Wire, frozen=True):
    """Why a run ended as it did."""

    reason: str
    #: of findings, and codes of errors
    rule_ids: tuple[str, ...]
    certification: str | None
    score: int | None
    #: digest of the policy that was in force; empty where it was not asked
    policy: str = ""
    #: the rules of that policy that matched
    matched: tuple[MatchedRuleView, ...] = ()


class OtherJudgeView(Wire, frozen=True):
    """What the second of two judges said."""

    #: answered or down
    status: str
    verdict: str | None
    score: int | None
    model: str | None


class ScanSummary(Wire, frozen=True):
    """What both tiers reported, in short; the skill's security report has every finding."""

    digest: str
    ruleset: str
    #: complete, timed_out, error or incomplete
    status: str
    #: null where the scan did not end, and where the submission is blocked
    verdict: str | None
    score: int | None
    #: malice and mismatches, by severity
    findings: dict[str, int]
    capabilities: int
    #: answered, none or down
    judge_status: str
    judge_verdict: str | None
    judge_score: int | None
    judge_model: str | None
    #: of the other judge, where two are configured; the lower score of the two stands above
    second_judge: OtherJudgeView | None = None
    #: what it was compared with, such as `1,762 public skills, as of 2026-11`
    compared_with: str | None = None


class ChangeRequestView(Wire, frozen=True):
    """What a reviewer asks the author to change or to explain."""

    text: str
    at: str
    #: when the submission is rejected without an answer
    until: str


class SignalView(Wire, frozen=True):
    """Something that the registry noticed and no scan of the files can see."""

    #: new-capability, copy, remembered, look-alike, host or publisher
    kind: str
    reason: str
    #: places in files, lines that were added, hosts
    details: tuple[str, ...]
    #: canonical names of the skills that it speaks of
    skills: tuple[str, ...]
    #: whether it goes to a reviewer because of this
    holds: bool


class PositionView(Wire, frozen=True):
    """A place in the line of those that wait for a worker."""

    #: from 1
    place: int
    #: true if counting stopped at a limit: the position is a minimum
    at_least: bool
    #: when its turn comes if the line goes on as fast as lately, a pause included; null where that is unknown
    estimate_ms: int | None
    #: the queue is paused until then; null where it is not
    paused_until: str | None


class SubmissionCard(Wire, frozen=True):
    """A submission in a list."""

    id: str
    repo_url: str
    skill_name: str
    skill_path: str
    state: str
    category: str
    #: the state in words
    meaning: str
    #: why it stands where it does: of a success what it has passed, otherwise the latest step's reason
    reason: str
    run: int
    source: str
    created_at: str
    updated_at: str
    next_attempt_at: str | None
    published_skill: str | None
    published_version: str | None


class SubmissionView(SubmissionCard, frozen=True):
    """One submission."""

    #: to that account and to reviewers; null also where nobody was signed in
    submitter: str | None
    #: which worker has it at the moment, and until when its claim lasts; `a worker` to all but reviewers
    worker: str | None
    claimed_until: str | None
    rerun_requested: bool
    attempts: AttemptsView
    decision: DecisionView | None
    scan: ScanSummary | None
    commit: str | None
    digest: str | None
    #: milliseconds of this run by state
    timings: dict[str, int]
    #: null where it does not wait for a worker
    position: PositionView | None
    history: tuple[HistoryEvent, ...]
    #: what the registry noticed about this content
    signals: tuple[SignalView, ...] = ()
    #: under which name it is published, where its folder and SKILL.md give two
    name_note: str | None = None
    #: why its version is not the one in SKILL.md
    version_note: str | None = None
    #: a reviewer approved their own submission
    approved_by_submitter: bool = False
    #: only a maintainer of its namespace approved it, and no reviewer
    approved_by_team: bool = False
    #: there while the submission waits for its author
    change_request: ChangeRequestView | None = None
    #: the CI job that submitted it; null where none did
    publisher: Publisher | None = None


class StatsView(Wire, frozen=True):
    """How many submissions there are."""

    total: int
    active: int
    by_state: dict[str, int]
    by_category: dict[str, int]
    #: records that cannot be read; they count in the total
    unreadable: int
    #: always false: the numbers are exact. A failed count is a 503, never a smaller number
    degraded: bool = False


class RunsAnswer(Wire, frozen=True):
    """Every run of a submission, the latest first."""

    id: str
    runs: tuple[SubmissionView, ...]


SUBMIT = call_for("submission.submit", SUBMISSIONS, SubmitSkill, PlaceOutcome, "POST")
UPLOAD = call_for(
    "submission.upload",
    f"{SUBMISSIONS}/upload",
    UploadSkill,
    PlaceOutcome,
    "POST",
    body_field="archive",
    body_media="application/zip",
)
SHOW = call_for("submission.show", f"{SUBMISSIONS}/{{submission_id}}", SubmissionRequest, SubmissionView)
RUNS = call_for("submission.runs", f"{SUBMISSIONS}/{{submission_id}}/runs", SubmissionRuns, RunsAnswer)
STATS = call_for("submission.stats", f"{SUBMISSIONS}/stats", NoParameters, StatsView)


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
