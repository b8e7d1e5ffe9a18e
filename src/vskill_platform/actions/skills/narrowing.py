"""A skill that fewer people may read than its namespace: its maintainers narrow it. What everybody could read again is
widened by reviewers only."""

import enum
from collections.abc import Callable, Sequence

import msgspec

from vskill_client.wire.base import Wire
from vskill_client.wire.skills import SkillRequest
from vskill_core.errors import Ambiguous, InvalidInput, NotFound, NotPermitted
from vskill_platform.actions.action import Reason, action
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.actions.skills.skill_names import find_skill
from vskill_platform.actions.skills.versions import object_of
from vskill_platform.domain.people.namespace import Namespace, Visibility
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.ledger.kv.entries import Operation, Put
from vskill_platform.stages.rescan import request_rescan
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.store.people.namespaces import belonging_of
from vskill_platform.store.recall.blocklist import list_blocks
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.skills.names import claim_writes
from vskill_platform.store.skills.sketches import sketch_readers_writes
from vskill_platform.store.skills.skills import alias_writes, require_skill, skill_writes
from vskill_platform.submission_store import read_submission


class SkillVisibility(enum.StrEnum):
    """Who may read a skill, at most."""

    #: As the namespace is.
    NAMESPACE = "namespace"
    INTERNAL = "internal"
    TEAM = "team"


class NarrowSkill(SkillRequest, frozen=True, kw_only=True):
    """Who may read a skill, at most."""

    #: every account (`internal`), members of the namespace (`team`), or as the namespace is (`namespace`)
    to: SkillVisibility
    #: why; kept in the audit
    reason: Reason


class WidenSkill(SkillRequest, frozen=True, kw_only=True):
    """A skill that is to be as readable as its namespace."""

    #: why; kept in the audit
    reason: Reason


class SkillReaders(Wire, frozen=True):
    """Who may read a skill."""

    skill: str
    #: of its namespace
    visibility: Visibility
    #: its own, where that is narrower; null: as the namespace is
    narrowed: Visibility | None


async def narrow(actor: Principal, request: NarrowSkill) -> SkillReaders:
    def check(namespace: Namespace, before: Visibility | None, after: Visibility | None) -> None:
        goes_public = namespace.visibility is Visibility.PUBLIC and before is not None and after is None
        if goes_public and not actor.is_reviewer:
            message = "Only reviewers and admins may make a skill public again."
            raise NotPermitted(message, needs="reviewer", fix="ask a reviewer of this registry")

    narrowed = None if request.to is SkillVisibility.NAMESPACE else Visibility(request.to.value)
    return await _set(actor, request, narrowed, check)


async def widen(actor: Principal, request: WidenSkill) -> SkillReaders:
    return await _set(actor, request, None, lambda *_: None)


async def _set(
    actor: Principal,
    request: NarrowSkill | WidenSkill,
    narrowed: Visibility | None,
    check: Callable[[Namespace, Visibility | None, Visibility | None], None],
) -> SkillReaders:
    canonical = (await find_skill(actor, request.skill)).canonical

    async def decide() -> tuple[SkillReaders, Sequence[Operation]]:
        found, version = await require_skill(canonical)
        belonging = await belonging_of(found.identity, narrowed)
        answer = SkillReaders(canonical, _require_managed(belonging.namespace), narrowed)
        if (found.narrowed, found.audience) == (narrowed, belonging.audience):
            return answer, ()
        check(belonging.namespace, found.narrowed, narrowed)
        changed = msgspec.structs.replace(found, narrowed=narrowed, audience=belonging.audience)
        writes = await _skill_writes(found, changed, version, belonging.namespace)
        return answer, [belonging.asserted, *writes]

    to = {"to": "namespace" if narrowed is None else narrowed.value}
    answer = await commit_audited(
        AuditNote("skill readers", canonical, actor.actor, request.reason, to), decide
    )
    if await list_blocks():
        # Its entries get the audience of what they hit.
        await reapply_blocklist(judge_again=request_rescan)
    return answer


def _require_managed(namespace: Namespace) -> Visibility:
    if namespace.visibility is None:
        message = f"{namespace.name} is unmanaged, so all its skills are readable as the registry is."
        raise InvalidInput(message, field="skill", fix="set the visibility of the namespace first")
    return namespace.visibility


async def _skill_writes(
    before: PublishedSkill, after: PublishedSkill, version: int, namespace: Namespace
) -> list[Operation]:
    """The skill with its names, and everything beside it that its readers may read."""
    named, claims = await claim_writes(after, namespace)
    return [
        *await skill_writes(before, named, version),
        *await sketch_readers_writes(named),
        *claims,
        *alias_writes(named),
        *await _submission_writes(named),
    ]


async def _submission_writes(skill: PublishedSkill) -> tuple[Operation, ...]:
    """Its submission tells its name too."""
    found = None if skill.submission is None else await read_submission(skill.submission)
    if found is None:
        return ()
    record, version = found
    changed = msgspec.structs.replace(record, audience=skill.audience)
    return (Put(record.key, msgspec.json.encode(changed), version),)


_SKILL = "/api/v1/skills/{skill}"

NARROW_SKILL = action(
    narrow,
    "skill.narrow",
    f"{_SKILL}/narrow",
    right=Right.MAINTAINER,
    acts_on=object_of,
    errors=(NotFound, Ambiguous),
    summary="Let fewer people read a skill than its namespace",
    about="Its namespace must be managed. To make it public again is for reviewers.",
    tag="owners",
)
WIDEN_SKILL = action(
    widen,
    "skill.widen",
    f"{_SKILL}/widen",
    right=Right.REVIEWER,
    errors=(NotFound, Ambiguous),
    summary="Make a skill as readable as its namespace",
    tag="namespaces",
)

ACTIONS = (NARROW_SKILL, WIDEN_SKILL)
