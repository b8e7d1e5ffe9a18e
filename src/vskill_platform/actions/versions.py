"""Published versions: see the status of each; as an owner withdraw one, bring it back, delete a skill as a whole.

Nothing here brings back what the blocklist hits, or what a reviewer took down.
"""

from vskill_platform.actions.action import Services, action
from vskill_platform.actions.checks import Reason
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import ActionObject, Right
from vskill_platform.actions.skill_names import find_skill
from vskill_platform.actions.visibility import audiences_of
from vskill_platform.client.wire.base import VersionNumber, iso_time
from vskill_platform.client.wire.skills import SkillRequest, SkillState, VersionState
from vskill_platform.domain import skill, submission
from vskill_platform.domain.errors import Ambiguous, Blocked, NotFound, VersionStatusError
from vskill_platform.domain.skill import PublishedSkill, StatusRole
from vskill_platform.domain.states import State, may_move
from vskill_platform.domain.submission import Step, Submission
from vskill_platform.domain.token import TokenScope
from vskill_platform.kv.entries import Operation
from vskill_platform.records import persist
from vskill_platform.store.audit import record_audit, was_audited
from vskill_platform.store.skills import find_by_name, require_skill, skill_writes
from vskill_platform.store.withdrawals import AlterSkill, alter_skill
from vskill_platform.submission_store import RecordChange, commit_change, read_submission, stored_form


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
    """What rights on a skill are evaluated on."""
    return ActionObject((await find_by_name(request.skill, audiences=audiences_of(actor))).identity)


async def show(reader: Principal, request: SkillRequest) -> SkillState:
    return state_of(await find_skill(reader, request.skill))


async def yank(actor: Principal, request: WithdrawVersion) -> SkillState:
    def alter(found: PublishedSkill, now: int) -> PublishedSkill:
        return skill.yank(found, _change(actor, now, request.reason), number=request.version)

    return await _alter(actor, request, alter, "yank")


async def unyank(actor: Principal, request: WithdrawVersion) -> SkillState:
    def alter(found: PublishedSkill, now: int) -> PublishedSkill:
        return skill.unyank(found, _change(actor, now, request.reason), number=request.version)

    return await _alter(actor, request, alter, "unyank", bringing_back=True)


async def delete(services: Services, actor: Principal, request: DeleteSkill) -> SkillState:
    """One commit. The skill's numbers and names stay taken; a submission that is BLOCKED stays so."""
    canonical = (await find_skill(actor, request.skill)).canonical
    event_id = services.clock.new_id()
    said = f"deleted by {'the operator' if actor.operator else 'its owner'}: {request.reason}"

    async def write() -> PublishedSkill:
        found, version = await require_skill(canonical)
        if await was_audited(event_id):
            return found
        now = services.kv.now()
        changed = skill.delete(found, _change(actor, now, request.reason))
        audit = record_audit("delete", canonical, by=actor.actor, reason=request.reason, entry_id=event_id)
        operations: list[Operation] = [audit]
        if changed != found:
            operations += await skill_writes(found, changed, version)
        ended = await _end_submission(found, Step(event_id, now, actor.actor, said))
        if ended is None:
            await services.kv.commit(operations)
        else:
            before, after, writes = ended
            await commit_change([*operations, *writes], before, after)
        return changed

    return state_of(await persist(write))


async def _end_submission(
    found: PublishedSkill, step: Step
) -> tuple[Submission, Submission, tuple[Operation, ...]] | None:
    """Also a run that is under way: it must not publish what its owner has just deleted."""
    known = None if found.submission is None else await read_submission(found.submission)
    if known is None or not may_move(known[0].state, State.DEQUEUED):
        return None
    record, version = known
    ended = submission.move(submission.cancel_rerun(record), State.DEQUEUED, step)
    stored, writes = stored_form(RecordChange(ended), version, step.event_id)
    return record, stored, writes


async def _alter(
    actor: Principal,
    request: WithdrawVersion,
    alter: AlterSkill,
    verb: str,
    *,
    bringing_back: bool = False,
) -> SkillState:
    changed = await alter_skill(
        (await find_skill(actor, request.skill)).canonical,
        alter,
        verb,
        request.version,
        by=actor.actor,
        reason=request.reason,
        bringing_back=bringing_back,
    )
    return state_of(changed)


def _change(actor: Principal, now: int, reason: str) -> skill.StatusChange:
    return skill.StatusChange(StatusRole.OWNER, actor.actor, now, reason)


def state_of(found: PublishedSkill) -> SkillState:
    versions = (
        VersionState(
            ref.number,
            ref.status.value,
            ref.reason,
            ref.certification.value,
            iso_time(ref.published_at),
            ref.digest,
        )
        for ref in reversed(found.versions)
    )
    return SkillState(found.canonical, found.description, found.current_version, tuple(versions))


_SKILL = "/api/v1/skills/{skill}"

SHOW_SKILL = action(
    show,
    "skill.show",
    f"{_SKILL}/status",
    method="GET",
    right=Right.READER,
    scope=TokenScope.READ,
    errors=(NotFound, Ambiguous),
    summary="Show a skill with the status of every version, withdrawn ones too",
)
YANK = action(
    yank,
    "skill.yank",
    f"{_SKILL}/versions/{{version}}/yank",
    right=Right.MAINTAINER,
    scope=TokenScope.OWN,
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
    scope=TokenScope.OWN,
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
    scope=TokenScope.OWN,
    acts_on=object_of,
    errors=(NotFound, Ambiguous),
    summary="Delete a skill: withdraw every version and end its submission",
    about="Its name and version numbers stay taken. Submitting it again publishes the next version.",
    tag="owners",
)

ACTIONS = (SHOW_SKILL, YANK, UNYANK, DELETE)
