"""Submissions as everybody may follow them, and what their submitters do with them."""

from vskill_platform.actions.action import Action, Missing, Services
from vskill_platform.actions.checks import ActionRequest, SubmissionId
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import ActionObject, Right
from vskill_platform.actions.submission_views import SubmissionView, position_view, submission_view
from vskill_platform.actions.visibility import viewer_for
from vskill_platform.domain.errors import NotFound
from vskill_platform.domain.submission import Submission
from vskill_platform.domain.token import TokenScope
from vskill_platform.store.statistics import estimate_ms, position_of, recent_activity, waits
from vskill_platform.submission_store import get_submission

SUBMISSIONS = "/api/v1/submissions"


class SubmissionRequest(ActionRequest, frozen=True, kw_only=True):
    """One submission."""

    submission_id: SubmissionId


async def object_of(_services: Services, request: SubmissionRequest) -> ActionObject:
    """What rights on a submission are evaluated on."""
    record = await get_submission(request.submission_id)
    return ActionObject(record.identity, (record.submitter,) if record.submitter else ())


async def show(services: Services, actor: Principal, request: SubmissionRequest) -> SubmissionView:
    return await view_of(services, actor, await get_submission(request.submission_id))


async def view_of(services: Services, viewer: Principal, record: Submission) -> SubmissionView:
    """A submission as this principal may see it, with its place in the line where it waits."""
    now = services.kv.now()
    if not waits(record, now):
        return submission_view(record, viewer_for(viewer), now)
    position = await position_of(record)
    left = estimate_ms(position, await recent_activity())
    return submission_view(record, viewer_for(viewer), now, position_view(position, left))


SHOW = Action(
    name="submission.show",
    run=show,
    request=SubmissionRequest,
    answer=SubmissionView,
    method="GET",
    path=f"{SUBMISSIONS}/{{submission_id}}",
    right=Right.READER,
    scope=TokenScope.READ,
    acts_on=object_of,
    errors=(NotFound,),
    summary="Read one submission with its history",
    tag="submissions",
    page="/submissions/{submission_id}",
    command="status",
    mcp=Missing("no agent has asked for it yet"),
)

ACTIONS = (SHOW,)
