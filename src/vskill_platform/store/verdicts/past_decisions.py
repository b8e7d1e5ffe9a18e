"""Decisions of reviewers, kept by what a later submission may have in common with them: the content, the public skill
that its owner changed, a file in which something was found, the repository, a rule. The next reviewer sees what was
decided then. For reviewers only."""

import enum
import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from vskill_core.content import SkillFile
from vskill_core.findings import Finding
from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.domain.canonical_names import canonical_name
from vskill_platform.domain.signals import Signal
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.ledger.kv.entries import Put
from vskill_platform.machine.slots import some_at_a_time
from vskill_platform.records import decode_readable, entries_of
from vskill_platform.store.verdicts.rule_figures import rules_that_held
from vskill_platform.worker_context import require_env

#: Files with findings that are remembered of one content.
MOST_FILES = 5
#: Decisions that are looked at for each thing in common, and shown together.
MOST_EACH, MOST_SHOWN = 6, 8
#: Subjects that are looked up at the same time.
AT_ONCE = 8
#: Moments count down from here, so that later decisions sort first.
_LAST_MS = 10**13


class SubjectKind(enum.StrEnum):
    """What two submissions can have in common; the most telling first."""

    CONTENT = "content"
    #: the same owner's change of the same remembered skill
    REMEMBERED = "remembered"
    FILE = "file"
    REPOSITORY = "repository"
    RULE = "rule"


class RulingSubject(msgspec.Struct, frozen=True):
    """One thing that a later submission may have in common."""

    kind: SubjectKind
    value: str
    #: in words, such as the file's path
    words: str = ""


class Ruling(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a reviewer decided."""

    submission: str
    run: int
    skill_name: str
    repo_url: str
    approved: bool
    reason: str
    by: str
    at: int
    #: that held it
    rules: tuple[str, ...] = ()


class SimilarRuling(msgspec.Struct, frozen=True):
    """A decision of the past, and what it has in common."""

    ruling: Ruling
    common: tuple[RulingSubject, ...]


def subjects_of(
    record: Submission, findings: Sequence[Finding], files: Iterable[SkillFile]
) -> tuple[RulingSubject, ...]:
    """What this submission has that others may have too."""
    found = [RulingSubject(SubjectKind.RULE, rule, f"rule {rule}") for rule in rules_that_held(record)]
    found.append(RulingSubject(SubjectKind.REPOSITORY, record.identity.repo_key, "the same repository"))
    if record.digest is not None:
        found.append(RulingSubject(SubjectKind.CONTENT, record.digest, "the same content"))
    noticed = record.evidence.noticed if record.evidence is not None else ()
    found += (_changed_skill(record.identity, one.sketch) for one in noticed if one.sketch)
    flagged = dict.fromkeys(one.file for one in findings if one.file)
    by_path = {file.path: file for file in files}
    for path in [path for path in flagged if path in by_path][:MOST_FILES]:
        digest = hashlib.sha256(by_path[path].data).hexdigest()
        found.append(RulingSubject(SubjectKind.FILE, digest, f"the same {path}"))
    return tuple(found)


def _changed_skill(identity: Identity, sketch: str) -> RulingSubject:
    owner, _, _ = canonical_name(identity).partition("/")
    return RulingSubject(SubjectKind.REMEMBERED, f"{owner}/{sketch}", "the same public skill, changed")


async def was_accepted(identity: Identity, signal: Signal) -> bool:
    """Whether the last reviewer to decide about this owner's change of a remembered skill approved it."""
    rulings = await _read_rulings(_changed_skill(identity, signal.sketch))
    return bool(rulings) and rulings[0].approved


async def was_rejected(digest: str) -> bool:
    """Whether the last reviewer to decide about these bytes rejected them."""
    rulings = await _read_rulings(RulingSubject(SubjectKind.CONTENT, digest))
    return bool(rulings) and not rulings[0].approved


def ruling_writes(
    record: Submission, step: Step, subjects: Iterable[RulingSubject], *, approved: bool
) -> tuple[Put, ...]:
    """For the commit that decides."""
    ruling = Ruling(
        submission=record.id,
        run=record.run,
        skill_name=record.skill_name,
        repo_url=record.repo_url,
        approved=approved,
        reason=step.reason,
        by=step.actor,
        at=step.at,
        rules=rules_that_held(record),
    )
    moment = f"{_LAST_MS - step.at:013d}-{step.event_id}"
    value = msgspec.json.encode(ruling)
    kept = {(one.kind, one.value) for one in subjects}
    return tuple(Put(keys.ruling(kind.value, subject, moment), value) for kind, subject in sorted(kept))


def content_rulings(
    record: Submission, step: Step, digests: Iterable[str], *, approved: bool
) -> tuple[Put, ...]:
    """A reviewer's word about these bytes, wherever they are: it says nothing about the rules that held them."""
    subjects = (RulingSubject(SubjectKind.CONTENT, digest) for digest in digests)
    return ruling_writes(record, step, subjects, approved=approved)


async def find_similar(record: Submission, subjects: Sequence[RulingSubject]) -> tuple[SimilarRuling, ...]:
    """Decisions about what has something in common with it: those with the most telling in common first, then the
    latest. Its own run is left out."""
    pages = await some_at_a_time(_read_rulings, subjects, AT_ONCE)
    found: dict[tuple[str, int, int], SimilarRuling] = {}
    for subject, rulings in zip(subjects, pages, strict=True):
        for ruling in rulings:
            if (ruling.submission, ruling.run) == (record.id, record.run):
                continue
            key = (ruling.submission, ruling.run, ruling.at)
            common = found[key].common if key in found else ()
            found[key] = SimilarRuling(ruling, (*common, subject))
    kinds = list(SubjectKind)
    ordered = sorted(
        found.values(), key=lambda one: (min(kinds.index(each.kind) for each in one.common), -one.ruling.at)
    )
    return tuple(ordered[:MOST_SHOWN])


async def _read_rulings(subject: RulingSubject) -> tuple[Ruling, ...]:
    kv = require_env("kv").kv
    page = await kv.scan(keys.ruling.under(subject.kind.value, subject.value), limit=MOST_EACH)
    return tuple(decode_readable(entries_of(page), Ruling, "rulings"))
