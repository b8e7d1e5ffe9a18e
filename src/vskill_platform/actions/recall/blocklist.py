"""The blocklist: reviewers block a place, a repository, a content or a name, and lift blocks. An entry takes effect
when it is written; before the action answers, queued submissions have ended, and live versions are taken down or
brought back."""

import enum
from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, Wire, iso_time
from vskill_core.errors import InvalidInput, NotFound
from vskill_core.findings import Severity
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.actions.skills.skill_names import find_skill
from vskill_platform.domain import blocklist
from vskill_platform.domain.skills.skill import PublishedSkill, VersionRef
from vskill_platform.stages.rescan import request_rescan
from vskill_platform.store.recall.blocklist import add_block, find_hits, list_blocks, remove_block
from vskill_platform.store.recall.blocklist_pass import BlockHits, find_hit_by, reapply_blocklist
from vskill_platform.store.skills.skills import get_version

ENTRIES = "/api/v1/blocklist/entries"

#: How bad it is, unless the reviewer says otherwise.
DEFAULT_SEVERITY = Severity.HIGH

TargetText = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000)]
#: What kind of danger it is, in a word or two; clients show it.
ThreatType = Annotated[str, msgspec.Meta(max_length=40, pattern=r"^([a-z][a-z0-9-]*)?$")]


class BlockReach(enum.StrEnum):
    """What is blocked together with another decision about a published skill."""

    NOTHING = "nothing"
    #: the skill at its place
    PLACE = "place"
    #: the content of one version, wherever it is
    VERSION = "version"
    #: the skill's name, everywhere
    NAME = "name"


class BlockSomething(ActionRequest, frozen=True, kw_only=True):
    """What is blocked, and why."""

    #: how far the block reaches
    kind: blocklist.TargetKind
    #: an address for a place or a repository, 64 hexadecimal digits for a content, or a name; the full name of a skill
    #: blocks its place
    target: TargetText
    #: why; everybody sees it who may read something that the block hits
    reason: Reason
    #: how dangerous it is
    severity: Severity = DEFAULT_SEVERITY
    #: what kind of danger it is, such as credential-theft
    threat_type: ThreatType = ""
    #: block what nobody has submitted yet
    ahead: bool = False


class LiftBlock(ActionRequest, frozen=True, kw_only=True):
    """Which entry is lifted, and why."""

    kind: blocklist.TargetKind
    #: as the list shows it, or as it was written
    target: TargetText
    #: why; kept in the audit
    reason: Reason


class BlockEntryView(Wire, frozen=True):
    """An entry of the blocklist, as reviewers see it."""

    kind: str
    target: str
    severity: str
    reason: str
    by: str
    since: str


class BlockEntryList(Wire, frozen=True):
    """Every entry of the blocklist, the latest first."""

    entries: tuple[BlockEntryView, ...]


class BlockAdded(Wire, frozen=True):
    """An entry, and what it hits."""

    entry: BlockEntryView
    #: submissions that it hits, by id
    submissions: tuple[str, ...]
    #: published skills that it hits, by full name
    skills: tuple[str, ...]
    #: how many versions of these skills
    versions: int


class BlockLifted(Wire, frozen=True):
    """What is no longer blocked."""

    kind: str
    target: str
    #: skills with versions that came back, by full name
    skills: tuple[str, ...]
    #: how many versions came back
    versions: int


async def block(services: Services, actor: Principal, request: BlockSomething) -> BlockAdded:
    target = blocklist.parse_target(request.kind.value, request.target)
    hits = await find_hit_by(target)
    if hits.nothing and _is_full_name(target):
        target = await _place_named(actor, request.target)
        hits = await find_hit_by(target)
    if hits.nothing and not request.ahead:
        raise _hits_nothing(target, hits)
    now = services.kv.now()
    entry = blocklist.BlockEntry(
        target,
        request.severity,
        request.reason,
        actor.actor,
        now,
        now,
        threat_type=request.threat_type,
        audience=hits.audience,
    )
    await add_block(entry)
    await reapply_blocklist(judge_again=request_rescan)
    return block_added(entry, hits)


def block_added(entry: blocklist.BlockEntry, hits: BlockHits) -> BlockAdded:
    return BlockAdded.of(hits, entry=_entry_view(entry))


async def reached_target(
    reach: BlockReach, published: PublishedSkill, version: str | None
) -> blocklist.BlockTarget | None:
    """The target of such a block; without a version, the content of the current one."""
    match reach:
        case BlockReach.NOTHING:
            return None
        case BlockReach.PLACE:
            return blocklist.place_target(published.identity)
        case BlockReach.NAME:
            return blocklist.name_target(published.name)
        case _:
            number = version or published.current_version
            if number is None:
                raise InvalidInput(
                    "No version is live.", field="block", fix="name a version, or block the place"
                )
            return blocklist.digest_target((await get_version(published.canonical, number)).digest)


def _is_full_name(target: blocklist.BlockTarget) -> bool:
    return target.kind is blocklist.TargetKind.NAME and "/" in target.value


async def _place_named(actor: Principal, name: str) -> blocklist.BlockTarget:
    """The place of the skill with this full name; without such a skill, the block could never hit anything."""
    try:
        return blocklist.place_target((await find_skill(actor, name.strip())).identity)
    except NotFound as error:
        raise InvalidInput(
            f"No skill has the name {name[:200]}.",
            field="target",
            fix="give the name without its owner and repository, or block the place by its address",
        ) from error


_NOTHING_HIT = {
    blocklist.TargetKind.PLACE: "No skill was ever submitted from {}.",
    blocklist.TargetKind.REPOSITORY: "No skill was ever submitted from {}.",
    blocklist.TargetKind.DIGEST: "No submission has the content {}.",
    blocklist.TargetKind.NAME: "No skill has the name {}.",
}


def _hits_nothing(target: blocklist.BlockTarget, hits: BlockHits) -> InvalidInput:
    near = f"use one of {', '.join(hits.near)}; or " if hits.near else ""
    return InvalidInput(
        _NOTHING_HIT[target.kind].format(target.value[:200]),
        field="target",
        fix=f"{near}set `ahead` to block it in advance",
        near=list(hits.near),
    )


async def lift(actor: Principal, request: LiftBlock) -> BlockLifted:
    target = await _listed_target(actor, request)
    if target is None or not await remove_block(target, by=actor.actor, reason=request.reason):
        message = f"There is no blocklist entry for the {request.kind.value} {request.target[:200]}."
        raise NotFound(message, field="target", fix="choose one that the list shows")
    back: list[str] = []

    async def judge_again(skill: PublishedSkill, ref: VersionRef) -> None:
        back.append(skill.canonical)
        await request_rescan(skill, ref)

    await reapply_blocklist(judge_again=judge_again)
    return BlockLifted(target.kind.value, target.value, tuple(dict.fromkeys(back)), len(back))


async def _listed_target(actor: Principal, request: LiftBlock) -> blocklist.BlockTarget | None:
    """The stored target that equals this text, or that a person means by it; None if neither is listed."""
    exact = blocklist.BlockTarget(request.kind, request.target)
    if await find_hits((exact,)):
        return exact
    written = blocklist.parse_target(request.kind.value, request.target)
    if _is_full_name(written) and not await find_hits((written,)):
        try:
            written = blocklist.place_target((await find_skill(actor, request.target.strip())).identity)
        except NotFound:
            return None
    return written if await find_hits((written,)) else None


async def list_entries(_request: NoParameters) -> BlockEntryList:
    found = sorted(await list_blocks(), key=lambda entry: (-entry.discovered_at, entry.target))
    return BlockEntryList(tuple(map(_entry_view, found)))


def _entry_view(entry: blocklist.BlockEntry) -> BlockEntryView:
    kind, target, since = entry.target.kind.value, entry.target.value, iso_time(entry.discovered_at)
    return BlockEntryView.of(entry, kind=kind, target=target, by=entry.discovered_by, since=since)


BLOCK = action(
    block,
    "block.add",
    ENTRIES,
    right=Right.REVIEWER,
    summary="Block a place, a repository, a content or a name",
    about="It is effective at once: what is queued ends as BLOCKED, and live versions are taken down. A block that "
    "hits nothing is refused unless `ahead` is set; such a block taints no other skill.",
)
LIFT = action(
    lift,
    "block.remove",
    f"{ENTRIES}/lift",
    right=Right.REVIEWER,
    errors=(NotFound,),
    summary="Lift a block",
    about="Blocked submissions that no other entry hits run again. Every version that the block took down comes back "
    "and is judged again, unless a rescan, a reviewer or another entry keeps it down.",
)
BLOCKS = action(
    list_entries,
    "block.list",
    ENTRIES,
    right=Right.REVIEWER,
    summary="List every entry of the blocklist with who added it",
)
