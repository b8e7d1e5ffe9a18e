"""What the registry says about a version, as an in-toto Statement, version 1: these bytes were looked at by these
rules, with this result.

Publishing makes one with every version. The subjects are the content by our own digest and both archives by their
SHA-256, so any tool that knows in-toto can match a downloaded file. docs/reference/attestations.md describes it.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from vskill_platform.archives import ArchiveDigests
from vskill_platform.domain.content import FileEntry
from vskill_platform.domain.errors import AttestationInvalid
from vskill_platform.domain.evidence import Evidence, JudgeWord
from vskill_platform.domain.scan import Severity, StaticReport
from vskill_platform.domain.skill import VersionRef
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import Submission

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:vskill-platform:verification:v1"

#: Names of digests that only we compute; docs/reference/attestations.md says how.
CONTENT_DIGEST = "vskillContent"
SKILL_FILE_DIGEST = "vskillSkillFile"


class Subject(msgspec.Struct, frozen=True):
    """One thing that the statement is about, by name and digests."""

    name: str
    digest: dict[str, str]


class Static(msgspec.Struct, frozen=True, rename="camel"):
    """The static scan, as it reported before anything was cleared or suppressed."""

    ruleset: str
    status: str
    verdict: str
    score: int
    #: malice and mismatches, by severity
    findings: dict[str, int]
    capabilities: int


class CardEntry(msgspec.Struct, frozen=True):
    """One thing that the version can do; `SkillCapability` describes the members."""

    kind: str
    value: str
    file: str
    line: int
    context: str
    shell: bool


class CapabilityCard(msgspec.Struct, frozen=True, rename="camel"):
    """What our rules found that the version can do."""

    ruleset: str
    #: of the scan that made it; only `complete` has read everything
    status: str
    entries: tuple[CardEntry, ...]


class Judgement(msgspec.Struct, frozen=True, rename="camel"):
    """The judge's answer; the statement has none where no judge answered."""

    model: str
    rubric: str
    verdict: str
    score: int
    partial: bool


class AttestedFile(msgspec.Struct, frozen=True):
    """One file of the version."""

    path: str
    #: as git writes it: 100644 or 100755
    mode: str
    sha256: str


class Predicate(msgspec.Struct, frozen=True, rename="camel"):
    """What was found out about the subjects."""

    registry: str
    skill: str
    version: str
    repository: str
    path: str
    commit: str | None
    submission: str
    run: int
    #: None where nothing is known of a scan of these bytes
    static: Static | None
    #: of two judges the one with the lower score
    judge: Judgement | None
    #: `answered`, `none` or `down`
    judge_status: str
    certification: str
    #: the static score without what was cleared or suppressed
    score: int
    #: a person approved exactly these bytes
    reviewed: bool
    trusted_vendor: bool
    suppressed: tuple[str, ...]
    #: in UTC
    decided_at: str
    #: None where nothing is known, and in statements from before there were cards
    capability_card: CapabilityCard | None = None
    #: every file, by path; None in statements of earlier releases
    files: tuple[AttestedFile, ...] | None = None
    #: what another judge said, where two are configured
    second_judge: Judgement | None = None
    #: as `judge_status`, of the other judge
    second_judge_status: str = "none"


class Statement(msgspec.Struct, frozen=True, rename="camel"):
    """The payload of an attestation."""

    type: str = msgspec.field(name="_type")
    subject: tuple[Subject, ...]
    predicate_type: str
    predicate: Predicate

    def digest(self, algorithm: str) -> frozenset[str]:
        """Every digest of that kind among the subjects."""
        return frozenset(one.digest[algorithm] for one in self.subject if algorithm in one.digest)


def make_statement(
    registry: str,
    canonical: str,
    version: VersionRef,
    record: Submission,
    archives: ArchiveDigests,
    report: StaticReport | None = None,
    manifest: Iterable[FileEntry] | None = None,
) -> Statement:
    """What the registry vouches for about a version that this submission published; `report` is the scan of these
    very bytes, `manifest` lists them."""
    name = f"{canonical}@{version.number}"
    subjects = (
        Subject(name, {CONTENT_DIGEST: version.digest, SKILL_FILE_DIGEST: version.content_hash}),
        Subject(f"{name}.zip", {"sha256": archives.zip}),
        Subject(f"{name}.tar.gz", {"sha256": archives.tar_gz}),
    )
    predicate = msgspec.structs.replace(
        _predicate(registry, canonical, version, record),
        capability_card=_card(report),
        files=None
        if manifest is None
        else tuple(AttestedFile(one.path, one.mode, one.sha256) for one in manifest),
    )
    return Statement(STATEMENT_TYPE, subjects, PREDICATE_TYPE, predicate)


def encode_statement(statement: Statement) -> bytes:
    return msgspec.json.encode(statement)


def read_statement(payload: bytes) -> Statement:
    """A payload whose signature was checked; `AttestationInvalid` where it is none of ours."""
    try:
        statement = msgspec.json.decode(payload, type=Statement)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise AttestationInvalid(f"Its payload is not a statement about a skill: {error}.") from error
    kinds = (statement.type, statement.predicate_type)
    if kinds != (STATEMENT_TYPE, PREDICATE_TYPE):
        raise AttestationInvalid(f"It is a statement of another kind: {kinds[1][:80]!r}.")
    return statement


def _predicate(registry: str, canonical: str, version: VersionRef, record: Submission) -> Predicate:
    """What both tiers found, and whether a person approved it, only where that is about these very bytes."""
    evidence = record.evidence if record.evidence and record.evidence.digest == version.digest else None
    approved = [event.at for event in record.history if event.to is State.AUTO_APPROVED]
    return Predicate(
        registry=registry,
        skill=canonical,
        version=version.number,
        repository=record.repo_url,
        path=record.identity.path,
        commit=record.commit,
        submission=record.id,
        run=record.run,
        static=_static(evidence) if evidence else None,
        judge=_judgement(evidence.judge) if evidence else None,
        judge_status=evidence.judge_status.value if evidence else "none",
        second_judge=_judgement(evidence.second_judge) if evidence else None,
        second_judge_status=evidence.second_judge_status.value if evidence else "none",
        certification=version.certification.value,
        score=version.score,
        reviewed=record.approval is not None and record.approval.digest == version.digest,
        trusted_vendor=evidence.trusted_vendor if evidence else False,
        suppressed=evidence.suppressed if evidence else (),
        decided_at=utc_text(approved[-1] if approved else record.updated_at),
    )


def _static(evidence: Evidence) -> Static:
    return Static(
        ruleset=evidence.ruleset,
        status=evidence.status.value,
        verdict=evidence.verdict.value,
        score=evidence.score,
        findings={level.value: evidence.findings.get(level, 0) for level in Severity},
        capabilities=evidence.capabilities,
    )


def _card(report: StaticReport | None) -> CapabilityCard | None:
    if report is None or report.capabilities is None:
        return None
    entries = (
        CardEntry(one.kind.value, one.value, one.file, one.line, one.context.value, one.shell)
        for one in report.capabilities
    )
    return CapabilityCard(report.ruleset, report.status.value, tuple(entries))


def _judgement(word: JudgeWord | None) -> Judgement | None:
    if word is None:
        return None
    return Judgement(word.model, word.rubric, word.verdict.value, word.score, word.partial)


def utc_text(ms: int) -> str:
    """A moment as attestations write it."""
    text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
