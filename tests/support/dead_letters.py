"""All dead letters of the queue, as tests look at them."""

from vskill_platform.ledger.broker.contract import DeadLetter
from vskill_platform.worker_context import require_env


async def list_dead_letters() -> list[DeadLetter]:
    return list((await require_env("broker").broker.dead_letters(limit=1_000)).items)
