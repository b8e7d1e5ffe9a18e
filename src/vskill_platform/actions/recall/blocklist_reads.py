"""The blocklist as clients read it before they install: the whole list, and whether it hits one skill."""

from collections.abc import Sequence
from typing import Annotated

import msgspec

from vskill_client.wire.base import PLAIN, ActionRequest, Wire, iso_time
from vskill_core.errors import Ambiguous, InvalidInput, NotFound
from vskill_core.findings import Severity
from vskill_core.identity import Identity, normalise
from vskill_core.naming import slug_of, slugify
from vskill_platform.actions.action import Keep, Services, action
from vskill_platform.actions.principal import Principal, Right, audiences_of, document_reader
from vskill_platform.actions.recall import revocations
from vskill_platform.actions.skills.skill_names import current_blocklist, find_skill
from vskill_platform.domain.blocklist import BlockEntry, BlockTarget, TargetKind, name_target
from vskill_platform.domain.recall.block_index import Blocklist, all_targets
from vskill_platform.domain.skills.skill import PublishedSkill, RevokedVersion, VersionRef
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.store.skills.skills import list_flat
from vskill_platform.store.submissions.submission_lists import find_submissions

#: What clients are told where nobody said what kind of danger it is.
UNSPECIFIED = "unspecified"
REFUSED = frozenset({State.REJECTED, State.TIER1_FAILED})
#: Refused submissions of one name that are looked at.
MOST_REFUSED = 50


class BlockView(Wire, frozen=True):
    """An entry of the blocklist."""

    skill_name: str
    source_url: str
    #: of the SKILL.md of the version that it was found in; empty where none was published
    content_hash: str
    #: of all files of that version
    digest: str
    threat_type: str
    severity: str
    reason: str
    evidence_urls: tuple[str, ...]
    discovered_at: str
    #: place, repository, digest or name: how far it reaches
    target_kind: str
    target: str
    #: whether a skill that it hits was ever published here
    published: bool


class BlocklistAnswer(Wire, frozen=True):
    """Every entry."""

    entries: tuple[BlockView, ...]
    count: int
    #: null where there is none
    last_updated: str | None


class ReadBlocklist(ActionRequest, frozen=True, kw_only=True):
    """The whole blocklist, or what is found in it."""

    #: words of a name, an address or a reason
    q: Annotated[str, msgspec.Meta(max_length=200, pattern=PLAIN)] = ""


class CheckBlocklist(ActionRequest, frozen=True, kw_only=True):
    """A skill by name, by content, or both; `repoUrl` says which one of that name."""

    name: Annotated[str, msgspec.Meta(max_length=400, pattern=PLAIN)] | None = None
    repo_url: Annotated[str, msgspec.Meta(max_length=2048)] | None = None
    #: the digest of a version, or the hash of its SKILL.md
    hash: Annotated[str, msgspec.Meta(max_length=200, pattern=PLAIN)] | None = None
    #: of the skill that `name` means
    version: Annotated[str, msgspec.Meta(max_length=80, pattern=PLAIN)] | None = None


class RejectionView(Wire, frozen=True):
    """The latest refusal of a skill."""

    skill_name: str
    reason: str
    score: int | None
    repo_url: str
    state: str
    rejected_at: str


class CheckAnswer(Wire, frozen=True, omit_defaults=True):
    """What is known about a skill."""

    blocked: bool
    rejected: bool
    tainted: bool
    #: the version that was asked about was blocked, taken down or deleted
    revoked: bool
    #: there if and only if it is blocked
    entry: BlockView | None = None
    rejection: RejectionView | None = None
    taint_reason: str | None = None
    #: what became of the version that was asked about, where it was withdrawn
    recall: revocations.RecallView | None = None


async def read_blocklist(services: Services, reader: Principal, request: ReadBlocklist) -> BlocklistAnswer:
    """A document about the whole registry: it has two forms, and neither contains what only some accounts may read."""
    form = audiences_of(await document_reader(reader))
    blocklist = (await current_blocklist(services)).shown_to(form)
    entries = sorted(blocklist.entries.values(), key=lambda one: (one.discovered_at, one.target))
    latest = max((entry.updated_at or entry.discovered_at for entry in entries), default=None)
    shown = tuple(view for view in map(block_view, entries) if _is_about(view, request.q))
    return BlocklistAnswer(shown, len(shown), None if latest is None else iso_time(latest))


def _is_about(view: BlockView, words: str) -> bool:
    text = f"{view.skill_name} {view.source_url} {view.target} {view.reason} {view.threat_type}".casefold()
    return all(word in text for word in words.casefold().split())


def block_view(entry: BlockEntry) -> BlockView:
    # What an upstream alone brought is not blocked by its digest for whoever has it from elsewhere.
    by_digest = entry.target.kind is TargetKind.DIGEST and "@" not in entry.target.value
    return BlockView.of(
        entry,
        skill_name=entry.skill_name or _shown_name(entry.target),
        digest=entry.target.value if by_digest else entry.digest,
        threat_type=entry.threat_type or UNSPECIFIED,
        evidence_urls=tuple(one for one in entry.evidence if one.startswith(("https://", "http://"))),
        target_kind=entry.target.kind.value,
        target=entry.target.value,
        published=bool(entry.content_hash),
    )


def _view_of_revoked(one: RevokedVersion) -> BlockView:
    """A version that was taken down without an entry, in the form of an entry, for clients that know only entries."""
    return BlockView.of(
        one,
        skill_name=one.skill,
        source_url="",
        threat_type=one.threat_type or UNSPECIFIED,
        severity=(one.severity or Severity.HIGH).value,
        evidence_urls=(),
        discovered_at=iso_time(one.since),
        target_kind=TargetKind.DIGEST.value,
        target=one.digest,
        published=True,
    )


def _shown_name(target: BlockTarget) -> str:
    return target.value.rpartition("/")[2] if target.kind is TargetKind.PLACE else target.value


async def check_blocklist(services: Services, reader: Principal, query: CheckBlocklist) -> CheckAnswer:
    if not (query.name or query.hash):
        raise InvalidInput("A name or a hash is required.", field="name", fix="give one of them")
    blocklist = (await current_blocklist(services)).shown_to(audiences_of(reader))
    place = None if not query.repo_url else normalise(query.repo_url)
    skill = await _find_meant_skill(reader, query)
    ref = None if skill is None else revocations.find_version(skill, query.version, query.hash, None)
    hits = _hits(query, blocklist, place, skill, ref)
    home = skill.identity if skill is not None else place
    taint = next(iter(blocklist.tainted.get(home.repo_key, ())), None) if home else None
    refusal = await _refusal(reader, query.name, place)
    # Read in every case, so that hidden and missing skills take the same reads.
    bad = await revocations.find_revoked_content(reader, query.hash) if query.hash else None
    withdrawn = revocations.find_revoked(skill, ref) if skill is not None and ref is not None else bad
    recall = _recall(hits, withdrawn)
    revoked = recall is not None and recall.revokes
    entry = block_view(hits[0]) if hits else None
    return CheckAnswer(
        blocked=revoked,
        rejected=refusal is not None,
        tainted=taint is not None,
        revoked=revoked,
        entry=entry or (_view_of_revoked(withdrawn) if revoked and withdrawn else None),
        rejection=refusal,
        taint_reason=f"another skill of this repository is blocked: {taint.reason}" if taint else None,
        recall=recall,
    )


def _recall(hits: Sequence[BlockEntry], withdrawn: RevokedVersion | None) -> revocations.RecallView | None:
    """Whether what was asked about was recalled. An entry counts before the pass that takes versions down."""
    instead = withdrawn.replacement if withdrawn is not None else None
    replacement = instead.version if instead is not None else None
    if hits:
        return revocations.recall_by_block(hits[0], replacement)
    return None if withdrawn is None else revocations.recall_by_record(withdrawn, replacement)


async def _find_meant_skill(reader: Principal, query: CheckBlocklist) -> PublishedSkill | None:
    """The published skill of that name. Clients send short names of skills that they found elsewhere: if several skills
    share one, and neither a repository nor a version is given, a block of its holder does not hit it (D10)."""
    name, repo_url = query.name, query.repo_url
    if not name:
        return None
    is_bare = "/" not in name and not (repo_url or query.version)
    if is_bare and len(await list_flat(name, audiences=audiences_of(reader))) > 1:
        return None
    try:
        return await find_skill(reader, name, repo_url)
    except (NotFound, Ambiguous):
        return None


def _hits(
    query: CheckBlocklist,
    blocklist: Blocklist,
    place: Identity | None,
    skill: PublishedSkill | None,
    ref: VersionRef | None,
) -> list[BlockEntry]:
    found = {target: blocklist.entries.get(target) for target in _targets(query, place, skill)}
    hits = [entry for entry in found.values() if entry is not None]
    if skill is not None and ref is not None:
        hits += blocklist.hits_version(skill, ref)
    if query.hash:
        wanted = query.hash.removeprefix("sha256:").lower()
        hits += [one for one in blocklist.entries.values() if wanted in (one.content_hash, one.target.value)]
    if place is not None and query.name:
        hits += [one for one in blocklist.entries.values() if _is_place_in(one, place, query.name)]
    return sorted(hits, key=lambda entry: -entry.severity.rank)


def _targets(query: CheckBlocklist, place: Identity | None, skill: PublishedSkill | None) -> set[BlockTarget]:
    targets = {name_target(one) for one in (query.name, (query.name or "").rpartition("/")[2]) if one}
    if skill is not None:
        targets.update(all_targets(skill.identity, (skill.name, skill.slug)))
    if place is not None:
        targets.add(BlockTarget(TargetKind.REPOSITORY, place.repo_key))
    return targets


def _is_place_in(entry: BlockEntry, repo: Identity, name: str) -> bool:
    """Whether the entry blocks the place of that name in this repository, published or not."""
    if entry.target.kind is not TargetKind.PLACE or not f"{entry.target.value}/".startswith(
        f"{repo.repo_key}/"
    ):
        return False
    path = entry.target.value.removeprefix(repo.repo_key).strip("/")
    slug = slug_of(msgspec.structs.replace(repo, path=path))
    wanted = slugify(name.rpartition("/")[2])
    return wanted == slug or (bool(entry.skill_name) and wanted == slugify(entry.skill_name))


async def _refusal(reader: Principal, name: str | None, place: Identity | None) -> RejectionView | None:
    """The latest refusal of a skill of this name in this repository; without a repository, of the full name only."""
    if not name:
        return None
    owner, _, rest = name.partition("/")
    if place is None and rest.count("/") != 1:
        return None
    repo_key = place.repo_key if place else f"github.com/{owner}/{rest.partition('/')[0]}".lower()
    slug = slugify(name.rpartition("/")[2])
    found = await find_submissions(
        audiences=audiences_of(reader), states=REFUSED, text=slug, limit=MOST_REFUSED
    )
    own = [
        one for one in found.items if one.identity.repo_key == repo_key and slugify(one.skill_name) == slug
    ]
    return _rejection(max(own, key=lambda one: one.updated_at)) if own else None


def _rejection(record: Submission) -> RejectionView:
    decision = record.decision
    return RejectionView.of(
        record,
        reason=decision.reason if decision else record.history[-1].reason,
        score=decision.score if decision else None,
        rejected_at=iso_time(record.updated_at),
    )


READ_BLOCKLIST = action(
    read_blocklist,
    "blocklist.read",
    "/api/v1/blocklist",
    method="GET",
    right=Right.READER,
    keep=Keep.BY_TAG,
    summary="Read the blocklist, or search it",
    command="",
)
CHECK_BLOCKLIST = action(
    check_blocklist,
    "blocklist.check",
    "/api/v1/blocklist/check",
    method="GET",
    right=Right.READER,
    summary="Ask whether a skill is blocked, refused or tainted",
    command="",
)
