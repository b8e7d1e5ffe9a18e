"""What is done with a published skill: see the status of each version; as a maintainer withdraw one, bring it back, let
fewer people read the skill than its namespace, delete it as a whole; as an admin take a short name from it.

Nothing here brings back what the blocklist hits, or what a reviewer took down. What everybody could read again is
widened by reviewers only.
"""

import enum
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec

from vskill_client.wire import skills as skills_calls
from vskill_client.wire.base import VersionNumber, Wire
from vskill_client.wire.skills import SkillRequest, SkillState, VersionState
from vskill_core.errors import Ambiguous, Blocked, InvalidInput, NotFound, NotPermitted, VersionStatusError
from vskill_platform.actions.action import Reason, Services, action, action_for
from vskill_platform.actions.principal import ActionObject, Principal, Right, audiences_of
from vskill_platform.actions.skills.skill_names import find_skill
from vskill_platform.domain.people.namespace import Namespace, Visibility
from vskill_platform.domain.skills import skill_changes
from vskill_platform.domain.skills.names import listed_name
from vskill_platform.domain.skills.skill import PublishedSkill, StatusRole, VersionRef
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State, may_move
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.ledger.kv.entries import Operation, Put
from vskill_platform.stages.rescan import request_rescan
from vskill_platform.store.people.audit import AuditNote, commit_audited
from vskill_platform.store.people.namespaces import belonging_of
from vskill_platform.store.recall.blocklist import list_blocks
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.recall.withdrawals import AlterSkill, Follow, alter_skill
from vskill_platform.store.skills import skills
from vskill_platform.store.skills.names import claim_writes, release_name
from vskill_platform.submission_store import RecordChange, read_submission


class WithdrawVersion(SkillRequest, frozen=True, kw_only=True):
    """One version of a skill, and what an owner says about it."""

    version: VersionNumber
    #: why; shown with the version
    reason: Reason


class DeleteSkill(SkillRequest, frozen=True, kw_only=True):
    """A skill that its owner gives up."""

    #: why; shown with its versions and in the history of its submission
    reason: Reason


async def object_of(actor: Principal, request: SkillRequest) -> ActionObject:
    return ActionObject((await skills.find_by_name(request.skill, audiences=audiences_of(actor))).identity)


async def show(reader: Principal, request: SkillRequest) -> SkillState:
    return state_of(await find_skill(reader, request.skill))


async def yank(actor: Principal, request: WithdrawVersion) -> SkillState:
    def alter(found: PublishedSkill, now: int) -> PublishedSkill:
        return skill_changes.yank(found, _change(actor, now, request.reason), number=request.version)

    return await _alter(actor, request, alter, "yank")


async def unyank(actor: Principal, request: WithdrawVersion) -> SkillState:
    def alter(found: PublishedSkill, now: int) -> PublishedSkill:
        return skill_changes.unyank(found, _change(actor, now, request.reason), number=request.version)

    return await _alter(actor, request, alter, "unyank", bringing_back=True)


async def delete(actor: Principal, request: DeleteSkill) -> SkillState:
    """The skill's numbers and names stay taken; a submission that is BLOCKED stays so."""
    said = f"deleted by {'the operator' if actor.operator else 'its owner'}: {request.reason}"

    def alter(found: PublishedSkill, now: int) -> PublishedSkill:
        return skill_changes.delete(found, _change(actor, now, request.reason))

    def end(record: Submission, _: VersionRef | None, step: Step) -> RecordChange | None:
        """Also a run that is under way: it must not publish what its owner has just deleted."""
        if not may_move(record.state, State.DEQUEUED):
            return None
        told = msgspec.structs.replace(step, reason=said)
        return RecordChange(submission.move(submission.cancel_rerun(record), State.DEQUEUED, told))

    return await _alter(actor, request, alter, "delete", follow=end)


async def _alter(
    actor: Principal,
    request: WithdrawVersion | DeleteSkill,
    alter: AlterSkill,
    verb: str,
    *,
    bringing_back: bool = False,
    follow: Follow | None = None,
) -> SkillState:
    changed = await alter_skill(
        (await find_skill(actor, request.skill)).canonical,
        alter,
        verb,
        request.version if isinstance(request, WithdrawVersion) else None,
        by=actor.actor,
        reason=request.reason,
        bringing_back=bringing_back,
        always=follow is not None,
        follow=follow,
    )
    return state_of(changed)


def _change(actor: Principal, now: int, reason: str) -> skill_changes.StatusChange:
    return skill_changes.StatusChange(StatusRole.OWNER, actor.actor, now, reason)


def state_of(found: PublishedSkill) -> SkillState:
    versions = (VersionState.of(ref, version=ref.number) for ref in reversed(found.versions))
    return SkillState.of(found, skill=found.canonical, versions=tuple(versions))


_SKILL = "/api/v1/skills/{skill}"

SHOW_SKILL = action_for(
    show,
    skills_calls.SHOW_SKILL,
    right=Right.READER,
    errors=(NotFound, Ambiguous),
    summary="Show a skill with the status of every version, withdrawn ones too",
)
YANK = action(
    yank,
    "skill.yank",
    f"{_SKILL}/versions/{{version}}/yank",
    right=Right.MAINTAINER,
    acts_on=object_of,
    errors=(NotFound, Ambiguous, VersionStatusError),
    summary="Withdraw a version",
    about="Nobody can install it any more; the newest remaining version becomes current. An owner may bring it back.",
    tag="owners",
)
UNYANK = action(
    unyank,
    "skill.unyank",
    f"{_SKILL}/versions/{{version}}/unyank",
    right=Right.MAINTAINER,
    acts_on=object_of,
    errors=(NotFound, Ambiguous, VersionStatusError, Blocked),
    summary="Bring a withdrawn version back",
    about="Only for versions that an owner withdrew; only a reviewer restores a version that was taken down.",
    tag="owners",
)
DELETE = action(
    delete,
    "skill.delete",
    f"{_SKILL}/delete",
    right=Right.MAINTAINER,
    acts_on=object_of,
    errors=(NotFound, Ambiguous),
    summary="Delete a skill: withdraw every version and end its submission",
    about="Its name and version numbers stay taken. Submitting it again publishes the next version.",
    tag="owners",
)


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

    #: the newest version that you have looked at; needed where only its own people approved a version
    version: VersionNumber | None = None
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
    narrowed = None if request.to is SkillVisibility.NAMESPACE else Visibility(request.to.value)

    def change(found: PublishedSkill, namespace: Namespace) -> PublishedSkill:
        is_public = namespace.visibility is Visibility.PUBLIC
        goes_public = is_public and found.narrowed is not None and narrowed is None
        if goes_public and not actor.is_reviewer:
            message = "Only reviewers and admins may make a skill public again."
            raise NotPermitted(message, needs="reviewer", fix="ask a reviewer of this registry")
        if found.kept_to_team and narrowed is not Visibility.TEAM:
            message = (
                "Only its own people approved a version of it, so it is for its team until a reviewer agrees."
            )
            raise NotPermitted(message, needs="reviewer", fix="ask a reviewer of this registry to widen it")
        return found

    return await _set(actor, request, narrowed, change)


async def widen(services: Services, actor: Principal, request: WidenSkill) -> SkillReaders:
    def change(found: PublishedSkill, _namespace: Namespace) -> PublishedSkill:
        newest = found.versions[-1].number
        if found.kept_to_team and request.version != newest:
            message = (
                "Only its own people approved a version of it, so whoever widens it agrees with all versions."
            )
            raise InvalidInput(message, field="version", fix=f"look at them, and give the newest: {newest}")
        return skill_changes.agree(found, actor.actor, services.kv.now()) if found.kept_to_team else found

    return await _set(actor, request, None, change)


async def _set(
    actor: Principal,
    request: NarrowSkill | WidenSkill,
    narrowed: Visibility | None,
    change: Callable[[PublishedSkill, Namespace], PublishedSkill],
) -> SkillReaders:
    """`change` raises what forbids it."""
    canonical = (await find_skill(actor, request.skill)).canonical

    async def decide() -> tuple[SkillReaders, Sequence[Operation]]:
        found, version = await skills.require_skill(canonical)
        belonging = await belonging_of(found.identity, narrowed)
        answer = SkillReaders(canonical, _require_managed(belonging.namespace), narrowed)
        if (found.narrowed, found.audience) == (narrowed, belonging.audience):
            return answer, ()
        changed = change(found, belonging.namespace)
        changed = msgspec.structs.replace(changed, narrowed=narrowed, audience=belonging.audience)
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
        *await skills.skill_writes(before, named, version),
        *await skills.sketch_readers_writes(named),
        *claims,
        *skills.alias_writes(named),
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
    about="Where only its own people approved a version, this is the word of a reviewer on all its versions.",
    tag="namespaces",
)


ShortName = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]


class ReleaseName(SkillRequest, frozen=True, kw_only=True):
    """A short name that a skill is to lose."""

    #: the short name
    name: ShortName
    #: why; kept in the audit
    reason: Reason


class ReleasedName(Wire, frozen=True):
    """What a skill is called after it lost a name."""

    skill: str
    #: the name that the next skill of that slug gets
    released: str
    #: the skill's new short name; null while it has none
    listed_as: str | None


async def release(actor: Principal, request: ReleaseName) -> ReleasedName:
    canonical = (await find_skill(actor, request.skill)).canonical
    flat = request.name.lower()
    changed = await release_name(canonical, flat, by=actor.actor, reason=request.reason)
    return ReleasedName(canonical, flat, listed_name(changed.listed_as, audiences_of(actor)))


RELEASE_NAME = action(
    release,
    "name.release",
    "/api/v1/skills/{skill}/release-name",
    right=Right.ADMIN,
    errors=(NotFound, Ambiguous),
    summary="Take a short name from the skill that holds it",
    about="Whoever installed the skill by that name gets no updates by it. The skill gets its next best name.",
    command="skill release-name",
)
