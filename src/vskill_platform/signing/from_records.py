"""What the registry signs, made from its records: the statement about a version, and the revocation list."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec

from vskill_core import revocation_list, statement
from vskill_core.content import FileEntry
from vskill_core.findings import Severity, StaticReport
from vskill_platform.domain.downloads import ArchiveDigests
from vskill_platform.domain.evidence import ComparedMemory, Evidence, JudgeWord
from vskill_platform.domain.skills.skill import RevokedList, RevokedVersion, VersionRef
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import RecordedDecision, Submission, is_approved

#: By skill and version.
Archives = Mapping[tuple[str, str], ArchiveDigests]


def make_statement(
    registry: str,
    canonical: str,
    version: VersionRef,
    record: Submission,
    archives: ArchiveDigests,
    report: StaticReport,
    manifest: Iterable[FileEntry],
    generated: tuple[str, ...] = (),
) -> statement.Statement:
    """The statement about a version that this submission published; `report` is the scan of exactly these bytes,
    `manifest` lists them, and the registry itself made those at the paths `generated`."""
    name = f"{canonical}@{version.number}"
    subjects = (
        statement.Subject(
            name,
            {statement.CONTENT_DIGEST: version.digest, statement.SKILL_FILE_DIGEST: version.content_hash},
        ),
        statement.Subject(f"{name}.zip", {"sha256": archives.zip}),
        statement.Subject(f"{name}.tar.gz", {"sha256": archives.tar_gz}),
    )
    files = tuple(statement.AttestedFile(one.path, one.mode, one.sha256) for one in manifest)
    predicate = _predicate(registry, canonical, version, record, _card(report), files, generated)
    return statement.Statement(statement.STATEMENT_TYPE, subjects, statement.PREDICATE_TYPE, predicate)


def _predicate(
    registry: str,
    canonical: str,
    version: VersionRef,
    record: Submission,
    card: statement.CapabilityCard | None,
    files: tuple[statement.AttestedFile, ...],
    generated: tuple[str, ...],
) -> statement.Predicate:
    """The results of both tiers and a person's approval, each only if it is about exactly these bytes."""
    evidence = record.evidence if record.evidence and record.evidence.digest == version.digest else None
    approved = [event.at for event in record.history if event.to is State.AUTO_APPROVED]
    return statement.Predicate(
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
        certification=version.certification.value,
        score=version.score,
        reviewed=is_approved(record, version.digest),
        trusted_vendor=evidence.trusted_vendor if evidence else False,
        suppressed=evidence.suppressed if evidence else (),
        decided_at=utc_text(approved[-1] if approved else record.updated_at),
        capability_card=card,
        files=files,
        second_judge=_judgement(evidence.second_judge) if evidence else None,
        second_judge_status=evidence.second_judge_status.value if evidence else "none",
        policy=_policy(record.decision),
        memory=_memory(evidence.memory) if evidence else None,
        team_approved=is_approved(record, version.digest, team=True),
        publisher=version.publisher,
        generated=generated,
    )


def _policy(decision: RecordedDecision | None) -> statement.AttestedPolicy | None:
    """Without what the rules say: their sentences can name an account."""
    if decision is None or not decision.policy:
        return None
    matched = (statement.AttestedRule(one.name, one.then.value, one.failed) for one in decision.matched)
    return statement.AttestedPolicy(decision.policy, tuple(matched))


def _static(evidence: Evidence) -> statement.Static:
    return statement.Static(
        ruleset=evidence.ruleset,
        status=evidence.status.value,
        verdict=evidence.verdict.value,
        score=evidence.score,
        findings={level.value: evidence.findings.get(level, 0) for level in Severity},
        capabilities=evidence.capabilities,
    )


def _memory(compared: ComparedMemory | None) -> statement.AttestedMemory | None:
    return (
        None
        if compared is None
        else statement.AttestedMemory(compared.date, compared.digest, compared.skills)
    )


def _card(report: StaticReport) -> statement.CapabilityCard | None:
    if report.capabilities is None:
        return None
    entries = (
        statement.CardEntry(
            one.kind.value, one.value, one.file, one.line, one.context.value, one.shell, one.uses
        )
        for one in report.capabilities
    )
    return statement.CapabilityCard(report.ruleset, report.status.value, tuple(entries))


def _judgement(word: JudgeWord | None) -> statement.Judgement | None:
    if word is None:
        return None
    return statement.Judgement(word.model, word.rubric, word.verdict.value, word.score, word.partial)


# The revocation list.


def make_document(
    registry: str, scope: str, revoked: RevokedList, archives: Archives, now: int
) -> revocation_list.RevocationDocument:
    """What the list says at this serial, on this day."""
    issued = max(revoked.at, now - now % revocation_list.DAY_MS)
    entries = tuple(_entry(one, archives.get((one.skill, one.version))) for one in revoked.versions)
    return revocation_list.RevocationDocument(
        1,
        registry,
        revoked.serial,
        utc_text(issued),
        utc_text(issued + revocation_list.VALID_MS),
        entries,
        scope,
    )


def _entry(one: RevokedVersion, archives: ArchiveDigests | None) -> revocation_list.ListedRevocation:
    instead = one.replacement
    return revocation_list.ListedRevocation(
        skill=one.skill,
        version=one.version,
        digest=one.digest,
        content_hash=one.content_hash,
        archives=None if archives is None else revocation_list.ListedArchives(archives.zip, archives.tar_gz),
        status=one.status,
        threat_type=one.threat_type or None,
        severity=None if one.severity is None else one.severity.value,
        reason=one.reason,
        since=utc_text(one.since),
        replacement=None
        if instead is None
        else revocation_list.ListedReplacement(instead.version, instead.digest),
    )


def encode_document(document: revocation_list.RevocationDocument) -> bytes:
    return msgspec.json.encode(document)


def utc_text(ms: int) -> str:
    text = datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
