"""New rules that would take down many live skills: what they would take down, and letting them go on."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire
from vskill_core.errors import TransitionError
from vskill_platform.actions.action import NoParameters, Reason, action
from vskill_platform.actions.operation.queue import ADMIN_QUEUE
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain.verdicts.brake import Brake
from vskill_platform.store.verdicts.brake import continue_rescans, list_take_downs, read_brake

RESCANS = f"{ADMIN_QUEUE}/rescans"
#: How many take-downs an answer lists; the number is always whole.
MOST_LISTED = 1_000


class ContinueRescans(ActionRequest, frozen=True, kw_only=True):
    """Rules that are to go on."""

    #: the rules that stopped, as the list names them
    ruleset: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    #: why; it stands in the audit
    reason: Reason


class HeldView(Wire, frozen=True):
    """A version that the rules would take down."""

    skill: str
    version: str
    digest: str
    reason: str
    rule_ids: tuple[str, ...]
    #: it was taken down meanwhile
    done: bool


class BrakeView(Wire, frozen=True):
    """The rules that stopped before their first take-down; all empty where none did."""

    #: nothing is taken down until an admin continues
    stopped: bool
    ruleset: str | None
    #: how many skills they would take down, and how many are live
    skills: int
    live: int
    since: str | None
    #: the admin who let them go on
    continued_by: str | None
    #: what they would take down or took down, at most 1,000
    take_downs: tuple[HeldView, ...]


async def show(_request: NoParameters) -> BrakeView:
    brake, _ = await read_brake()
    return await _view(brake)


async def go_on(actor: Principal, request: ContinueRescans) -> BrakeView:
    return await _view(await continue_rescans(request.ruleset, by=actor.actor, reason=request.reason))


async def _view(brake: Brake | None) -> BrakeView:
    if brake is None:
        return BrakeView(False, None, 0, 0, None, None, ())
    held = (await list_take_downs(brake.ruleset))[:MOST_LISTED]
    take_downs = tuple(HeldView.of(one, skill=one.canonical, version=one.number) for one in held)
    return BrakeView.of(brake, stopped=brake.holds, take_downs=take_downs)


SHOW_RESCANS = action(
    show,
    "rescan.show",
    RESCANS,
    method="GET",
    right=Right.ADMIN,
    summary="Show what new rules would take down, where they stopped before it",
    command="queue rescans show",
)
CONTINUE_RESCANS = action(
    go_on,
    "rescan.continue",
    f"{RESCANS}/continue",
    right=Right.ADMIN,
    errors=(TransitionError,),
    summary="Let new rules take down what they stopped at",
    about="New rules that would take down more than 1 % of the live skills, and more than 5, stop before the first. "
    "Each version is judged once more before it is taken down.",
    command="queue rescans continue",
)

ACTIONS = (SHOW_RESCANS, CONTINUE_RESCANS)
