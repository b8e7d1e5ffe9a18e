"""Published versions: see the status of each; as an owner withdraw one, bring it back, delete a skill as a whole.

Nothing here brings back what the blocklist hits, or what a reviewer took down.
"""

import msgspec

from vskill_client.wire import skills as skills_calls
from vskill_client.wire.base import VersionNumber
from vskill_client.wire.skills import SkillRequest, SkillState, VersionState
from vskill_core.errors import Ambiguous, Blocked, NotFound, VersionStatusError
from vskill_platform.actions.action import Reason, action, action_for
from vskill_platform.actions.principal import ActionObject, Principal, Right, audiences_of
from vskill_platform.actions.skills.skill_names import find_skill
from vskill_platform.domain.skills import skill_changes
from vskill_platform.domain.skills.skill import PublishedSkill, StatusRole, VersionRef
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State, may_move
from vskill_platform.domain.submissions.submission import Step, Submission
from vskill_platform.store.recall.withdrawals import AlterSkill, Follow, alter_skill
from vskill_platform.store.skills.skills import find_by_name
from vskill_platform.submission_store import RecordChange


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

ACTIONS = (SHOW_SKILL, YANK, UNYANK, DELETE)
