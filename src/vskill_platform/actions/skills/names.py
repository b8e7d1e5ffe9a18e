"""Short names, as admins handle them: the only way in which a skill loses one."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import Wire
from vskill_client.wire.skills import SkillRequest
from vskill_core.errors import Ambiguous, NotFound
from vskill_platform.actions.action import Reason, action
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.skills.skill_names import find_skill
from vskill_platform.domain.skills.names import listed_name
from vskill_platform.store.skills.names import release_name

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

ACTIONS = (RELEASE_NAME,)
