"""The same decision about many submissions. Each names the run and the digest that were looked at, goes through the
action for one, and what has changed since is left alone."""

import enum
from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, SubmissionId, Wire
from vskill_core.errors import PlatformError
from vskill_platform.actions.action import Digest, Reason, Services, action
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.review.review import APPROVE, LOOK_AGAIN, REJECT, DecideSubmission, require_same
from vskill_platform.actions.review.review_queue import REVIEW
from vskill_platform.actions.submissions.submissions import CANCEL, CancelSubmission, RerunSubmission
from vskill_platform.domain.submissions.states import State, may_move
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.store.people.audit import note
from vskill_platform.store.submissions.submission_lists import find_submissions
from vskill_platform.submission_store import get_submission

#: Done in one go.
MOST_AT_ONCE = 500
#: Looked at for a filter in one go.
MOST_LOOKED_AT = 20_000
HOUR_MS = 3_600_000
_SERVER_ERROR = 500


class BulkVerb(enum.StrEnum):
    """What can be done to many."""

    AGAIN = "again"
    CANCEL = "cancel"
    APPROVE = "approve"
    REJECT = "reject"


class SeenSubmission(msgspec.Struct, frozen=True, rename="camel"):
    """A submission as it was looked at."""

    id: SubmissionId
    run: int
    #: null where nothing was fetched
    digest: Digest | None = None


class DecideMany(ActionRequest, frozen=True, kw_only=True):
    """One decision about many submissions."""

    verb: BulkVerb
    #: those that were looked at
    items: Annotated[tuple[SeenSubmission, ...], msgspec.Meta(min_length=1, max_length=MOST_AT_ONCE)]
    #: why; shown in the history of each
    reason: Reason


class RefusedItem(Wire, frozen=True):
    """A submission that was left alone."""

    id: str
    reason: str


class ManyDecided(Wire, frozen=True):
    """What became of them."""

    #: those that it was done to, by id
    done: tuple[str, ...]
    refused: tuple[RefusedItem, ...]


class BulkFilter(msgspec.Struct, frozen=True):
    """Which submissions."""

    state: State
    #: A part of the repository's address.
    place: str = ""
    #: A part of the last event's reason.
    why: str = ""
    #: Unchanged for so many hours.
    hours: int = 0


class BulkCandidates(msgspec.Struct, frozen=True):
    """What the filter finds."""

    records: tuple[Submission, ...]
    #: Of those, how many the action would be refused for.
    refused: int
    #: There are more than are done in one go, or than were looked at.
    more: bool


async def decide_many(services: Services, actor: Principal, request: DecideMany) -> ManyDecided:
    details = {"count": str(len(request.items))}
    await note(
        f"bulk {request.verb.value}", "submissions", by=actor.actor, reason=request.reason, details=details
    )
    done: list[str] = []
    refused: list[RefusedItem] = []
    for item in request.items:
        seen = DecideSubmission(
            submission_id=item.id, run=item.run, digest=item.digest, reason=request.reason
        )
        try:
            await _VERBS[request.verb](services, actor, seen)
        except PlatformError as error:
            if error.status >= _SERVER_ERROR:
                raise
            refused.append(RefusedItem(item.id, error.public_message))
        else:
            done.append(item.id)
    return ManyDecided(tuple(done), tuple(refused))


async def _cancel(services: Services, actor: Principal, seen: DecideSubmission) -> None:
    require_same(await get_submission(seen.submission_id, audiences=audiences_of(actor)), seen)
    await CANCEL(services, actor, CancelSubmission(submission_id=seen.submission_id, reason=seen.reason))


async def _run_again(services: Services, actor: Principal, seen: DecideSubmission) -> None:
    require_same(await get_submission(seen.submission_id, audiences=audiences_of(actor)), seen)
    await LOOK_AGAIN(services, actor, RerunSubmission(submission_id=seen.submission_id, reason=seen.reason))


_VERBS: dict[BulkVerb, Callable[[Services, Principal, DecideSubmission], Awaitable[object]]] = {
    BulkVerb.APPROVE: APPROVE,
    BulkVerb.REJECT: REJECT,
    BulkVerb.CANCEL: _cancel,
    BulkVerb.AGAIN: _run_again,
}

BULK = action(
    decide_many,
    "review.bulk",
    f"{REVIEW}/bulk",
    right=Right.REVIEWER,
    summary="Decide about many submissions at once",
    about="Each item names the run and the digest that were looked at. What has changed since is left alone.",
    command="",
)


# What a decision about many would reach.


async def find_candidates(
    services: Services, actor: Principal, verb: BulkVerb, wanted: BulkFilter
) -> BulkCandidates:
    BULK.admit(actor)
    now, audiences = services.kv.now(), audiences_of(actor)
    matching: list[Submission] = []
    after: str | None = None
    looked_at = 0
    while len(matching) <= MOST_AT_ONCE and looked_at < MOST_LOOKED_AT:
        page = await find_submissions(states=[wanted.state], audiences=audiences, after=after, limit=1000)
        looked_at += len(page.items)
        matching += [record for record in page.items if _fits(wanted, record, now)]
        after = page.after
        if after is None:
            break
    chosen = matching[:MOST_AT_ONCE]
    able = [record for record in chosen if _is_able(verb, record)]
    return BulkCandidates(
        records=tuple(able),
        refused=len(chosen) - len(able),
        more=after is not None or len(matching) > MOST_AT_ONCE,
    )


def _fits(wanted: BulkFilter, record: Submission, now: int) -> bool:
    return (
        wanted.place.casefold().strip() in record.repo_url.casefold()
        and wanted.why.casefold().strip() in record.why.casefold()
        and now - record.updated_at >= wanted.hours * HOUR_MS
    )


def _is_able(verb: BulkVerb, record: Submission) -> bool:
    if verb is BulkVerb.CANCEL:
        return not record.state.terminal
    if verb is BulkVerb.APPROVE:
        return record.state.reviewable and record.digest is not None
    if verb is BulkVerb.REJECT:
        return may_move(record.state, State.REJECTED)
    return record.claim is None
