"""Replaying dead letters: messages that were set aside for a person. It starts a new run of the submission or task,
because the record, not the message, says what is to be done."""

import msgspec

from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.submissions import RERUN, RerunSubmission
from vskill_platform.domain.errors import InvalidInput
from vskill_platform.domain.messages import TaskMessage, decode_body
from vskill_platform.queue.dead_letters import get_dead_letter, remove_dead_letter
from vskill_platform.store.tasks import ask_for, read_task


async def replay_dead_letter(services: Services, actor: Principal, letter_id: int) -> str:
    """Start a new run, then remove the letter: one that a crash left behind can be replayed again. The answer says
    what runs now."""
    letter = await get_dead_letter(letter_id)
    try:
        body = decode_body(letter.body)
    except msgspec.DecodeError as error:
        message = f"Dead letter {letter_id} is not a message of this platform, so there is nothing to run."
        raise InvalidInput(message, field="LETTER_ID", fix="discard it") from error
    if isinstance(body, TaskMessage):
        task, _ = await read_task(body.task, body.id)
        asked = await ask_for(body.task, body.id, task.subject if task else {})
        replayed = f"{asked.key}: run {asked.run}, {asked.state}"
    else:
        wanted = RerunSubmission(submission_id=body.submission_id, reason="its dead letter was replayed")
        record = await RERUN(services, actor, wanted)
        replayed = f"{record.id}: run {record.run}, {record.state}"
    await remove_dead_letter(letter_id, "dead letter replayed", by=actor.actor)
    return replayed
