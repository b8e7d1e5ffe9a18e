"""Messages that follow a commit instead of being part of it: where the queue is not the store's own."""

from collections.abc import Sequence

import structlog

from vskill_platform.domain.messages import Send
from vskill_platform.ledger.broker.contract import Broker

_log = structlog.get_logger(__name__)


async def send_after(outbox: Broker, sends: Sequence[Send]) -> None:
    """The record is committed, so a message that cannot be sent fails nobody: recovery sends it again."""
    try:
        await outbox.send_batch(sends)
    except Exception as error:  # noqa: BLE001 - of whatever kind, it must not make the commit look failed
        _log.warning("message not sent after commit", error=repr(error), messages=len(sends))
