"""Dead letters: messages that were set aside for a person. Replaying one starts a new run of its submission,
because the record, not the message, says what is to be done."""

import msgspec

from vskill_platform.broker.contract import DeadLetter
from vskill_platform.domain.errors import InvalidInput, NotFound
from vskill_platform.domain.messages import TaskMessage, decode_body
from vskill_platform.store.actions import run_again
from vskill_platform.store.audit import note
from vskill_platform.store.tasks import ask_for, read_task
from vskill_platform.worker_context import require_env


async def list_dead_letters() -> list[DeadLetter]:
    """All of them, oldest first."""
    broker = require_env("broker").broker
    found: list[DeadLetter] = []
    after: int | None = None
    while True:
        page = await broker.dead_letters(after=after)
        found.extend(page.items)
        after = page.after
        if after is None:
            return found


async def replay_dead_letter(letter_id: int, *, by: str) -> str:
    """A new run first, then the letter goes: one that is left over after a crash can be replayed again. What
    runs now, in words."""
    letter = next((one for one in await list_dead_letters() if one.id == letter_id), None)
    if letter is None:
        raise _no_such(letter_id)
    try:
        body = decode_body(letter.body)
    except msgspec.DecodeError as error:
        message = f"Dead letter {letter_id} is not a message of ours, so there is nothing to run."
        raise InvalidInput(message, field="LETTER_ID", fix="discard it") from error
    if isinstance(body, TaskMessage):
        task, _ = await read_task(body.task, body.id)
        asked = await ask_for(body.task, body.id, task.subject if task else {})
        replayed = f"{asked.key}: run {asked.run}, {asked.state}"
    else:
        record = await run_again(body.submission_id, by=by, reason="its dead letter was replayed")
        replayed = f"{record.id}: run {record.run}, {record.state}"
    await _remove(letter_id, "dead letter replayed", by)
    return replayed


async def discard_dead_letter(letter_id: int, *, by: str) -> None:
    """Remove a letter; the submission's record stays as it is."""
    await _remove(letter_id, "dead letter discarded", by)


async def _remove(letter_id: int, action: str, by: str) -> None:
    if not await require_env("broker").broker.discard(letter_id):
        raise _no_such(letter_id)
    await note(action, str(letter_id), by=by, reason="asked for it")


def _no_such(letter_id: int) -> NotFound:
    return NotFound(f"There is no dead letter {letter_id}; 'queue dead-letters list' shows what there is.")
