"""How much of the queue on NATS one owner may fill. The server delivers in stream order, so ten thousand messages of
one owner would come before everybody else's. So at most `MOST_OF_OWNER` messages of an owner are in the stream at once,
leased or waiting. The sender keeps the others back and sends them when there is room; if its process ends before that,
recovery finds them by their records.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextvars import Context

import structlog

from vskill_core.errors import PlatformError
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.broker.nats_wire import token_of

_log = structlog.get_logger(__name__)

#: Messages of one owner in the stream: enough to keep a few workers busy, and the most that a newcomer waits behind,
#: per bulk owner. Each process may exceed it by UNCOUNTED.
MOST_OF_OWNER = 100
#: Messages that a process sends for an owner before it asks the server for the count.
UNCOUNTED = 16
#: At most this many owners are counted; then all counts are reset.
MOST_COUNTED = 1_000
#: How often room is looked for, and how many messages a process keeps back for it.
LOOK_EVERY_S = 0.25
MOST_KEPT_BACK = 10_000


class OwnerBounds:
    """Decides which messages a process may send now, and keeps the others back."""

    def __init__(
        self,
        live_tokens: Callable[[str], Awaitable[Collection[str]]],
        publish: Callable[[Send], Awaitable[bool]],
    ) -> None:
        #: The tokens of an owner's messages in the stream.
        self._live_tokens = live_tokens
        self._publish = publish
        self._uncounted: dict[str, int] = {}
        self._kept_back: dict[str, dict[str, Send]] = {}
        self._sending: asyncio.Task[None] | None = None

    async def admit(self, sends: Sequence[Send]) -> list[Send]:
        """The messages to send now, in their order. Interrupted work (`first`) is never kept back."""
        groups: defaultdict[str, list[Send]] = defaultdict(list)
        for send in sends:
            if _is_bounded(send):
                groups[send.owner].append(send)
        admitted = {owner: set(await self._admit(owner, group)) for owner, group in groups.items()}
        return [send for send in sends if not _is_bounded(send) or send in admitted[send.owner]]

    async def _admit(self, owner: str, group: Sequence[Send]) -> Sequence[Send]:
        uncounted = self._uncounted.get(owner, 0) + len(group)
        if uncounted <= UNCOUNTED and owner not in self._kept_back:
            if len(self._uncounted) >= MOST_COUNTED:
                self._uncounted.clear()
            self._uncounted[owner] = uncounted
            return group
        live = await self._live_tokens(owner)
        new = [send for send in group if token_of(send) not in live]
        # Messages already kept back go first.
        room = 0 if owner in self._kept_back else max(MOST_OF_OWNER - len(live), 0)
        self._uncounted[owner] = len(new[:room])
        self._keep_back(owner, new[room:])
        return new[:room]

    def _keep_back(self, owner: str, sends: Sequence[Send]) -> None:
        # Recovery repeats its messages anyway, from newer records.
        kept = {send.key: send for send in sends if send.key is not None and not send.repeated}
        room = MOST_KEPT_BACK - sum(map(len, self._kept_back.values()))
        for key, send in list(kept.items())[: max(room, 0)]:
            self._kept_back.setdefault(owner, {}).setdefault(key, send)
        if self._kept_back and (self._sending is None or self._sending.done()):
            self._sending = asyncio.create_task(self._send_kept_back(), context=Context())

    async def _send_kept_back(self) -> None:
        while self._kept_back:
            await asyncio.sleep(LOOK_EVERY_S)
            for owner in list(self._kept_back):
                try:
                    await self._send_some(owner)
                except PlatformError as error:
                    _log.debug("messages are kept back for longer", error=str(error))

    async def _send_some(self, owner: str) -> None:
        waiting = self._kept_back[owner]
        room = MOST_OF_OWNER - len(await self._live_tokens(owner))
        for key in list(waiting)[: max(room, 0)]:
            await self._publish(waiting[key])
            del waiting[key]
        if not waiting:
            del self._kept_back[owner]

    async def close(self) -> None:
        """Leave the messages that were kept back to recovery."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)


def _is_bounded(send: Send) -> bool:
    return bool(send.owner) and send.key is not None and not send.first
