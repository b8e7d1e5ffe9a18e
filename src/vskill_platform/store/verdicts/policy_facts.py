"""The facts about one submission, made once per decision of what the pipeline has found and a few reads."""

import msgspec

from vskill_core.capability import CapabilityKind, SkillCapability
from vskill_core.content import SkillFile
from vskill_core.findings import counting
from vskill_core.identity import UPLOAD_HOST
from vskill_core.publisher import Publisher
from vskill_platform.domain.people.namespace import PUBLIC, common_audiences, namespace_in, uploader_of
from vskill_platform.domain.signals import Signal, SignalKind
from vskill_platform.domain.skills.skill import Certification
from vskill_platform.domain.skills.trust import DAY_MS
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.domain.verdicts.facts import (
    AnalyserFacts,
    CardFacts,
    Facts,
    FindingFacts,
    JudgeFacts,
    OwnerFacts,
    SignalFacts,
    SkillFacts,
    SourceFacts,
)
from vskill_platform.domain.verdicts.policy import Policy
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.records import decode_readable, entries_of
from vskill_platform.store.external_scans import list_external_scans
from vskill_platform.store.people.namespaces import read_directory
from vskill_platform.store.people.owners import groups_of, owners_of, role_at
from vskill_platform.store.skills.skills import SkillPlace
from vskill_platform.store.verdicts.capability_signals import Gains, newest_live
from vskill_platform.store.verdicts.judging import Verdicts
from vskill_platform.store.verdicts.registry_signals import count_recent_blocks, find_seen_hosts
from vskill_platform.worker_context import require_env
from vskill_scan.memory.known_hosts import is_known_host
from vskill_scan.memory.memory import Memory
from vskill_scan.reading.languages import ACTING_CODE, language_of
from vskill_scan.reading.manifest import Manifest

#: Skills of one owner that are counted.
MOST_SKILLS = 50
#: Analysers that rules can ask about, by name; registries have a few.
MOST_ANALYSERS = 20


class DecisionSubject(msgspec.Struct, frozen=True):
    """What is being decided about."""

    record: Submission
    place: SkillPlace
    files: tuple[SkillFile, ...]
    manifest: Manifest


class _SkillMark(msgspec.Struct, frozen=True):
    """Of a published skill: how far it was looked at, None where no version is live, and since when it is here."""

    certification: str | None = None
    created_at: int = 0


async def gather_facts(
    what: DecisionSubject,
    said: Verdicts,
    signals: tuple[Signal, ...],
    gains: Gains,
    policy: Policy,
    memory: Memory,
) -> Facts:
    """Everything that a rule can ask about."""
    record, card = what.record, said.report.capabilities or ()
    known = await _known_hosts(card, policy, memory)
    counted = counting(
        said.report.findings,
        trusted_vendor=said.grounds.get("trusted_vendor", False),
        suppressed=said.grounds.get("suppressed", ()),
    )
    return Facts(
        skill=skill_facts(
            what.manifest,
            what.files,
            first=newest_live(what.place.skill) is None,
            private=record.audience != PUBLIC,
        ),
        owner=await _owner_facts(what, signals, trusted=policy.trusts(record.identity)),
        source=SourceFacts(kind="git" if record.upload is None else "upload", host=record.identity.host),
        submitter=record.submitter or "",
        publisher=record.publisher or Publisher(),
        card=CardFacts.of(card, known),
        gained=CardFacts.of(gains.gained, known),
        findings=FindingFacts.all_of(counted),
        judge=judge_facts(said),
        analysers=await _analyser_facts(said.evidence.digest),
        signals=SignalFacts.of(signals),
        now=require_env("kv").kv.now() // 1000,
    )


def skill_facts(
    manifest: Manifest, files: tuple[SkillFile, ...], *, first: bool, private: bool
) -> SkillFacts:
    """What is known of a skill by its files."""
    return SkillFacts(
        name=manifest.name,
        licence=manifest.license or "",
        description=manifest.description,
        files=len(files),
        bytes=sum(len(file.data) for file in files),
        languages=tuple(sorted(ACTING_CODE & {language_of(file.path, file.data) for file in files})),
        first=first,
        private=private,
    )


async def _owner_facts(what: DecisionSubject, signals: tuple[Signal, ...], *, trusted: bool) -> OwnerFacts:
    identity, account = what.record.identity, what.record.submitter
    name = namespace_in(what.place.canonical)
    directory, kv = await read_directory(), require_env("kv").kv
    page = await kv.select(
        SKILLS.prefix,
        audiences=common_audiences(what.record.audience, directory),
        under=f"{name}/",
        limit=MOST_SKILLS,
    )
    marks = decode_readable(entries_of(page), _SkillMark, "policy_facts")
    managed = name in directory.namespaces and directory.namespaces[name].managed
    is_member = (
        managed
        and account is not None
        and await role_at(account, identity, await groups_of(account)) is not None
    )
    # The signal counts the same blocks, so without one there are none.
    is_blocked = any(one.kind is SignalKind.PUBLISHER for one in signals)
    blocks = await count_recent_blocks(identity) if is_blocked else 0
    approved = any(one.certification == Certification.CERTIFIED.value for one in marks)
    now = kv.now()
    first = min((one.created_at or now for one in marks), default=now)
    own_upload = identity.host == UPLOAD_HOST and account is not None and uploader_of(name) == account.lower()
    return OwnerFacts(
        name=name,
        trusted=trusted,
        vouched=not blocks and (trusted or is_member or approved),
        proven=own_upload or bool(await owners_of(identity)),
        managed=managed,
        live_skills=sum(one.certification is not None for one in marks),
        days=(now - first) // DAY_MS,
        blocks=blocks,
    )


async def _known_hosts(card: tuple[SkillCapability, ...], policy: Policy, memory: Memory) -> frozenset[str]:
    named = {one.value for one in card if one.kind is CapabilityKind.HOST}
    known = {host for host in named if policy.owns(host) or is_known_host(host) or host in memory.hosts}
    return frozenset(known | await find_seen_hosts(named - known))


async def _analyser_facts(digest: str) -> tuple[AnalyserFacts, ...]:
    return tuple(
        AnalyserFacts(
            name=one.provider,
            verdict=one.verdict.value if one.verdict is not None else "",
            findings=sum(one.counts.values()),
            critical=one.critical,
        )
        for one in (await list_external_scans(digest))[:MOST_ANALYSERS]
    )


def judge_facts(said: Verdicts) -> JudgeFacts:
    answered = sum(report.answer is not None for report in (said.judge, said.second))
    word = said.evidence.judge
    if word is None:
        return JudgeFacts(answered=answered)
    return JudgeFacts(answered=answered, verdict=word.verdict.value, score=word.score)
