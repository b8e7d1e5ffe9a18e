"""Dead letters: messages that were set aside for a person. Replaying one starts a new run of its submission or task,
because the record, not the message, says what to do."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire
from vskill_core.errors import Blocked, InvalidInput, NotFound, QueueUnavailable, TransitionError
from vskill_platform.actions.action import Services, action
from vskill_platform.actions.operation.queue import ADMIN_QUEUE
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.actions.submissions.submissions import RERUN, RerunSubmission
from vskill_platform.domain.messages import TaskMessage, decode_body
from vskill_platform.ledger.broker.contract import DeadLetter
from vskill_platform.store.people.audit import note
from vskill_platform.store.tasks import ask_for, read_task

LETTERS = f"{ADMIN_QUEUE}/dead-letters"

#: As many digits as every engine can keep.
LetterId = Annotated[int, msgspec.Meta(ge=0, lt=10**18)]


class ListLetters(ActionRequest, frozen=True, kw_only=True):
    """Which page of the dead letters."""

    #: the `after` of the page before
    after: LetterId | None = None
    #: how many to show on a page
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 100


class LetterRequest(ActionRequest, frozen=True, kw_only=True):
    """One dead letter."""

    letter_id: LetterId


class LetterView(Wire, frozen=True):
    """A dead letter."""

    id: int
    key: str | None
    reason: str
    deliveries: int
    sent_at: str
    died_at: str
    #: as text; bytes that are none are replaced
    body: str


class LetterList(Wire, frozen=True):
    """A page of dead letters, oldest first."""

    letters: tuple[LetterView, ...]
    #: asks for the next page; null on the last
    after: int | None
    #: how many there are in all
    total: int


class LetterReplayed(Wire, frozen=True):
    """What runs now."""

    #: the submission's id, or the task's key
    id: str
    run: int
    state: str


async def list_letters(services: Services, request: ListLetters) -> LetterList:
    page = await services.broker.dead_letters(after=request.after, limit=request.limit)
    letters = (LetterView.of(one, body=one.body.decode("utf-8", "replace")) for one in page.items)
    return LetterList(tuple(letters), page.after, await services.broker.dead_letter_count())


async def replay(services: Services, actor: Principal, request: LetterRequest) -> LetterReplayed:
    """Start a new run, then remove the letter: if a crash leaves it behind, it can be replayed again."""
    letter = await _find_letter(services, request.letter_id)
    try:
        body = decode_body(letter.body)
    except msgspec.DecodeError as error:
        message = f"Dead letter {letter.id} is not a message of this platform, so it cannot run again."
        raise InvalidInput(message, field="letter_id", fix="discard it") from error
    if isinstance(body, TaskMessage):
        task, _ = await read_task(body.task, body.id)
        asked = await ask_for(body.task, body.id, task.subject if task else {})
        replayed = LetterReplayed(asked.key, asked.run, asked.state.value)
    else:
        wanted = RerunSubmission(submission_id=body.submission_id, reason="its dead letter was replayed")
        record = await RERUN(services, actor, wanted)
        replayed = LetterReplayed(record.id, record.run, record.state)
    await _remove(services, letter.id, "dead letter replayed", actor)
    return replayed


async def discard(services: Services, actor: Principal, request: LetterRequest) -> None:
    """Remove the letter; the submission's record does not change."""
    await _remove(services, request.letter_id, "dead letter discarded", actor)


async def _find_letter(services: Services, letter_id: int) -> DeadLetter:
    page = await services.broker.dead_letters(after=max(letter_id - 1, 0), limit=1)
    for letter in page.items:
        if letter.id == letter_id:
            return letter
    raise _no_such(letter_id)


async def _remove(services: Services, letter_id: int, action: str, actor: Principal) -> None:
    if not await services.broker.discard(letter_id):
        raise _no_such(letter_id)
    await note(action, str(letter_id), by=actor.actor, reason="asked for it")


def _no_such(letter_id: int) -> NotFound:
    return NotFound(f"There is no dead letter {letter_id}; 'queue dead-letters list' shows what there is.")


LIST_LETTERS = action(
    list_letters,
    "dead-letter.list",
    LETTERS,
    right=Right.ADMIN,
    errors=(QueueUnavailable,),
    summary="List dead letters, oldest first, with the reason of each",
    command="queue dead-letters list",
)
REPLAY = action(
    replay,
    "dead-letter.replay",
    f"{LETTERS}/{{letter_id}}/replay",
    right=Right.ADMIN,
    errors=(NotFound, TransitionError, Blocked, QueueUnavailable),
    summary="Start a new run of the submission or task that a dead letter is about",
    command="queue dead-letters replay",
)
DISCARD = action(
    discard,
    "dead-letter.discard",
    f"{LETTERS}/{{letter_id}}/discard",
    status=204,
    right=Right.ADMIN,
    errors=(NotFound, QueueUnavailable),
    summary="Remove a dead letter; the submission's record stays as it is",
    command="queue dead-letters discard",
)
