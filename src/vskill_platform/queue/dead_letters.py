"""Dead letters: messages that were set aside for a person. `actions.operation.dead_letters` replays and discards
them."""

from vskill_core.errors import NotFound
from vskill_platform.ledger.broker.contract import DeadLetter
from vskill_platform.store.people.audit import note
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


async def get_dead_letter(letter_id: int) -> DeadLetter:
    """The letter, or NotFound."""
    letter = next((letter for letter in await list_dead_letters() if letter.id == letter_id), None)
    if letter is None:
        raise _no_such(letter_id)
    return letter


async def remove_dead_letter(letter_id: int, action: str, *, by: str) -> None:
    """Remove it, and say so in the audit."""
    if not await require_env("broker").broker.discard(letter_id):
        raise _no_such(letter_id)
    await note(action, str(letter_id), by=by, reason="asked for it")


def _no_such(letter_id: int) -> NotFound:
    return NotFound(f"There is no dead letter {letter_id}; 'queue dead-letters list' shows what there is.")
