"""The blocklist as clients read it before they install: all of it, and whether it hits one skill."""

from typing import Annotated

import msgspec

from vskill_platform.actions.action import Action, Keep, Missing, Services
from vskill_platform.actions.blocked_skills import current_blocklist
from vskill_platform.actions.checks import ActionRequest
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import Right
from vskill_platform.actions.skill_names import find_skill
from vskill_platform.actions.visibility import audiences_of, document_reader
from vskill_platform.actions.wire import PLAIN, Wire, iso_time
from vskill_platform.domain.block_index import Blocklist, all_targets
from vskill_platform.domain.blocklist import BlockEntry, BlockTarget, TargetKind, name_target
from vskill_platform.domain.errors import Ambiguous, InvalidInput, NotFound
from vskill_platform.domain.identity import Identity, normalise
from vskill_platform.domain.naming import slug_of, slugify
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import Submission
from vskill_platform.domain.token import TokenScope
from vskill_platform.store.submission_lists import find_submissions

REFUSED = frozenset({State.REJECTED, State.TIER1_FAILED})
#: Refused submissions of one name that are looked at.
MOST_REFUSED = 50


class BlockView(Wire, frozen=True):
    """An entry of the blocklist."""

    skill_name: str
    source_url: str
    content_hash: str
    threat_type: str
    severity: str
    reason: str
    evidence_urls: tuple[str, ...]
    discovered_at: str
    #: place, repository, digest or name: how far it reaches
    target_kind: str
    target: str


class BlocklistAnswer(Wire, frozen=True):
    """Every entry."""

    entries: tuple[BlockView, ...]
    count: int
    #: null where there is none
    last_updated: str | None


class ReadBlocklist(ActionRequest, frozen=True, kw_only=True):
    """The whole blocklist."""


class CheckBlocklist(ActionRequest, frozen=True, kw_only=True):
    """A skill by name, by content, or both; `repoUrl` says which one of that name."""

    name: Annotated[str, msgspec.Meta(max_length=400, pattern=PLAIN)] | None = None
    repo_url: Annotated[str, msgspec.Meta(max_length=2048)] | None = None
    hash: Annotated[str, msgspec.Meta(max_length=200, pattern=PLAIN)] | None = None


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
    #: there if and only if it is blocked
    entry: BlockView | None = None
    rejection: RejectionView | None = None
    taint_reason: str | None = None


async def read_blocklist(services: Services, reader: Principal, _request: ReadBlocklist) -> BlocklistAnswer:
    """A document about the whole registry: it has two forms, and what only some accounts may read is in neither."""
    form = audiences_of(await document_reader(reader))
    blocklist = (await current_blocklist(services)).shown_to(form)
    entries = sorted(blocklist.entries.values(), key=lambda one: (one.discovered_at, one.target))
    latest = max((entry.updated_at or entry.discovered_at for entry in entries), default=None)
    shown = tuple(map(block_view, entries))
    return BlocklistAnswer(shown, len(shown), None if latest is None else iso_time(latest))


def block_view(entry: BlockEntry) -> BlockView:
    return BlockView(
        skill_name=entry.skill_name or _shown_name(entry.target),
        source_url=entry.source_url,
        content_hash=entry.content_hash,
        threat_type=entry.threat_type,
        severity=entry.severity.value,
        reason=entry.reason,
        evidence_urls=tuple(one for one in entry.evidence if one.startswith(("https://", "http://"))),
        discovered_at=iso_time(entry.discovered_at),
        target_kind=entry.target.kind.value,
        target=entry.target.value,
    )


def _shown_name(target: BlockTarget) -> str:
    return target.value.rpartition("/")[2] if target.kind is TargetKind.PLACE else target.value


async def check_blocklist(services: Services, reader: Principal, query: CheckBlocklist) -> CheckAnswer:
    if not (query.name or query.hash):
        raise InvalidInput("A name or a hash is required.", field="name", fix="give one of them")
    blocklist = (await current_blocklist(services)).shown_to(audiences_of(reader))
    place = None if not query.repo_url else normalise(query.repo_url)
    identity, names = await _find_meant_skill(services, reader, query.name, query.repo_url)
    hits = _hits(query, blocklist, place, identity, names)
    home = identity or place
    taint = next(iter(blocklist.tainted.get(home.repo_key, ())), None) if home else None
    refusal = await _refusal(reader, query.name, place)
    return CheckAnswer(
        blocked=bool(hits),
        rejected=refusal is not None,
        tainted=taint is not None,
        entry=block_view(hits[0]) if hits else None,
        rejection=refusal,
        taint_reason=f"another skill of this repository is blocked: {taint.reason}" if taint else None,
    )


async def _find_meant_skill(
    services: Services, reader: Principal, name: str | None, repo_url: str | None
) -> tuple[Identity | None, tuple[str, ...]]:
    """The published skill of that name, if there is exactly one: another one's block does not hit it (D10)."""
    if not name:
        return None, ()
    try:
        skill = await find_skill(services, reader, name, repo_url)
    except (NotFound, Ambiguous):
        return None, ()
    if repo_url and skill.identity.repo_key != normalise(repo_url).repo_key:
        return None, ()
    return skill.identity, (skill.name, skill.slug)


def _hits(
    query: CheckBlocklist,
    blocklist: Blocklist,
    place: Identity | None,
    identity: Identity | None,
    names: tuple[str, ...],
) -> list[BlockEntry]:
    found = {target: blocklist.entries.get(target) for target in _targets(query, place, identity, names)}
    hits = [entry for entry in found.values() if entry is not None]
    if query.hash:
        wanted = query.hash.removeprefix("sha256:").lower()
        hits += [one for one in blocklist.entries.values() if wanted in (one.content_hash, one.target.value)]
    if place is not None and query.name:
        hits += [one for one in blocklist.entries.values() if _is_place_in(one, place, query.name)]
    return sorted(hits, key=lambda entry: -entry.severity.rank)


def _targets(
    query: CheckBlocklist, place: Identity | None, identity: Identity | None, names: tuple[str, ...]
) -> set[BlockTarget]:
    targets = {name_target(one) for one in (query.name, (query.name or "").rpartition("/")[2]) if one}
    if identity is not None:
        targets.update(all_targets(identity, names))
    if place is not None:
        targets.add(BlockTarget(TargetKind.REPOSITORY, place.repo_key))
    return targets


def _is_place_in(entry: BlockEntry, repo: Identity, name: str) -> bool:
    """A block of the place in this repository that has this name, whether or not it was ever published."""
    if entry.target.kind is not TargetKind.PLACE or not f"{entry.target.value}/".startswith(
        f"{repo.repo_key}/"
    ):
        return False
    path = entry.target.value.removeprefix(repo.repo_key).strip("/")
    slug = slug_of(msgspec.structs.replace(repo, path=path))
    wanted = slugify(name.rpartition("/")[2])
    return wanted == slug or (bool(entry.skill_name) and wanted == slugify(entry.skill_name))


async def _refusal(reader: Principal, name: str | None, place: Identity | None) -> RejectionView | None:
    """The latest refusal of a skill of this name in this repository; without one, of the full name only."""
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
    return RejectionView(
        skill_name=record.skill_name,
        reason=decision.reason if decision else record.history[-1].reason,
        score=decision.score if decision else None,
        repo_url=record.repo_url,
        state=record.state.value,
        rejected_at=iso_time(record.updated_at),
    )


READ_BLOCKLIST = Action(
    name="blocklist.read",
    run=read_blocklist,
    request=ReadBlocklist,
    answer=BlocklistAnswer,
    method="GET",
    path="/api/v1/blocklist",
    right=Right.READER,
    scope=TokenScope.READ,
    keep=Keep.BY_TAG,
    summary="Read the whole blocklist",
    tag="blocklist",
    page=Missing("the page of each skill says that it is blocked"),
    command=Missing("`block list` shows the entries with who made them"),
    mcp=Missing("skills that agents find are marked where they are blocked"),
)
CHECK_BLOCKLIST = Action(
    name="blocklist.check",
    run=check_blocklist,
    request=CheckBlocklist,
    answer=CheckAnswer,
    method="GET",
    path="/api/v1/blocklist/check",
    right=Right.READER,
    scope=TokenScope.READ,
    summary="Ask whether a skill is blocked, refused or tainted",
    tag="blocklist",
    page=Missing("the page of each skill says it"),
    command=Missing("`verify` and `skill security` tell it"),
    mcp=Missing("`get_security_report` tells it"),
)

ACTIONS = (READ_BLOCKLIST, CHECK_BLOCKLIST)
