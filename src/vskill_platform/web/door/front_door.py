"""The front door of a web process: how many connections it holds, how many requests it works on, and whom it refuses.

A process can open a limited number of descriptors. The door uses fewer, so that the store, git and the scanner always
find one, however many clients connect. If there are too many connections, the one that has waited longest without
sending a whole request is closed. Requests take turns by address (round robin); one that would wait too long is refused
with 503, so that the others are answered soon.

`connection` speaks HTTP with one client and asks here.
"""

import asyncio
import os
import resource
import socket
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable

import msgspec
import structlog

from vskill_platform.machine.shortages import shortage_of
from vskill_platform.observing.metrics import Metrics
from vskill_platform.settings import Settings
from vskill_platform.sources.git import FetchSettings
from vskill_platform.web.door.limits import address_behind, is_within, networks_of, share_of
from vskill_platform.web.door.refusals import BUSY, FULL, TOO_MANY_FROM_ADDRESS, Refusal, refuse_at_once

_log = structlog.get_logger(__name__)

#: Most descriptors that a process asks the system for; no setting needs more.
MOST_DESCRIPTORS = 65_536
#: Connections that are held where the system would allow more: each costs memory too.
MOST_CONNECTIONS = 4_096
#: The minimum for a web server; if the system's limit leaves less, the operator is told.
FEWEST_CONNECTIONS = 16
#: Descriptors of a process that is idle: store, log, listener, event loop, loaded files; and as many for short reads.
_OF_A_PROCESS = 128
#: Descriptors of one message at work, one fetch (pipes, files, sockets) and one scanning process.
_OF_A_MESSAGE, _OF_A_FETCH, _OF_A_SCANNER = 2, 8, 8
#: Refused connections that still read their answer; they use the reserved descriptors.
MOST_LINGERING = 64
#: Connections that are accepted in one go, before existing ones are served again.
_ACCEPT_AT_ONCE = 32
#: Pause before the next accept after a shortage of descriptors or memory.
_PAUSE_AFTER_SHORTAGE_S = 0.5
#: How often time limits are checked.
SWEEP_EVERY_S = 0.25
#: Of the requests that run at once, one in this many may have a large body.
_REQUESTS_PER_UPLOAD = 4
#: An upload may wait longer for its turn: it takes longer itself.
_UPLOAD_PATIENCE = 10
#: If the queue has not been empty for this long, requests may wait only a part of their time: a standing queue only
#: makes every answer late.
_STANDING_QUEUE_S = 1.0
_PART_WHILE_STANDING = 0.25
#: Refusals are logged at most this often.
_SAY_EVERY_S = 30.0
#: How long a connection stays open between two requests.
IDLE_S = 15.0


class DoorLimits(msgspec.Struct, frozen=True):
    """The numbers of one process."""

    #: Connections that are held at once.
    connections: int
    #: Connections of one address, or of one IPv6 /64 network; trusted proxies are not limited.
    per_address: int
    #: Requests that are worked on at once; others wait for their turn.
    requests: int = 64
    #: How long a request waits for its turn before it is refused with 503.
    wait_s: float = 1.0
    #: Time that a client has to send a request's headers.
    header_s: float = 10.0
    #: Time that a client has to send a request's body; every 16 KB add a second.
    body_s: float = 20.0
    #: How long a connection stays open between two requests.
    idle_s: float = IDLE_S


def raise_descriptor_limit() -> int:
    """Ask for as many descriptors as the system lets this process have; how many it may open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # a system that names no limit and has one
            return soft
        return wanted
    return MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def door_limits(settings: Settings, descriptors: int) -> DoorLimits:
    """As many connections as descriptors remain beside the process's own needs, and half of them for one address."""
    most = max(FEWEST_CONNECTIONS, min(MOST_CONNECTIONS, descriptors - descriptors_kept(settings)))
    return DoorLimits(connections=most, per_address=most // 2)


def descriptors_kept(settings: Settings) -> int:
    """Descriptors reserved for store, queue, git and scanner of this process."""
    scanners = settings.scan_processes or os.cpu_count() or 1
    return (
        _OF_A_PROCESS
        + MOST_LINGERING
        + _ACCEPT_AT_ONCE
        + _OF_A_MESSAGE * settings.max_batch_size * settings.max_concurrency
        + _OF_A_FETCH * FetchSettings().at_once
        + _OF_A_SCANNER * scanners
    )


class Turn(msgspec.Struct):
    """A request on its way through the door: it waits, runs and leaves, each once."""

    address: str
    start: Callable[["Turn"], None]
    refuse: Callable[[Refusal], None]
    is_gone: Callable[[], bool]
    since: float = 0.0
    runs: bool = False


class RequestSlots:
    """Requests that run, and those that wait: within an address in order, between addresses in turns."""

    def __init__(self, most: int, per_address: int, wait_s: float, now: Callable[[], float]) -> None:
        self._most = most
        self._per_address = per_address
        self._wait_s = wait_s
        self._now = now
        self.running = 0
        self.waiting = 0
        self._lines: dict[str, deque[Turn]] = {}
        #: Since when the queue has not been empty.
        self._standing_since: float | None = None

    def enter(self, turn: Turn) -> None:
        turn.since = self._now()
        if self.running < self._most and not self.waiting:
            self._run(turn)
            return
        line = self._lines.setdefault(turn.address, deque())
        if len(line) >= self._per_address:
            # A client behind a proxy, whose connections are not limited per client.
            turn.refuse(TOO_MANY_FROM_ADDRESS)
            return
        if not self.waiting:
            self._standing_since = turn.since
        line.append(turn)
        self.waiting += 1

    def leave(self, turn: Turn) -> None:
        """Free the slot, because the answer begins; the next request may start."""
        if not turn.runs:
            return
        turn.runs = False
        self.running -= 1
        self._fill()

    def refuse_overdue(self) -> None:
        """Refuse those that have waited too long."""
        patience = self._patience()
        for address in list(self._lines):
            line = self._lines[address]
            while line and self._now() - line[0].since > patience:
                self._take(address).refuse(BUSY)

    def _fill(self) -> None:
        patience = self._patience()
        while self.waiting and self.running < self._most:
            address = next(iter(self._lines))
            turn = self._take(address)
            # The address goes to the end of the round.
            if address in self._lines:
                self._lines[address] = self._lines.pop(address)
            if turn.is_gone():
                continue
            if self._now() - turn.since > patience:
                turn.refuse(BUSY)
            else:
                self._run(turn)

    def _take(self, address: str) -> Turn:
        line = self._lines[address]
        turn = line.popleft()
        if not line:
            del self._lines[address]
        self.waiting -= 1
        if not self.waiting:
            self._standing_since = None
        return turn

    def _patience(self) -> float:
        standing = self._standing_since
        is_standing = standing is not None and self._now() - standing > _STANDING_QUEUE_S
        return self._wait_s * (_PART_WHILE_STANDING if is_standing else 1)

    def _run(self, turn: Turn) -> None:
        turn.runs = True
        self.running += 1
        turn.start(turn)


class Visitor(asyncio.Protocol, ABC):
    """A connection, as the door knows it."""

    #: The address that it is counted for.
    address: str

    @abstractmethod
    def give_up(self, reason: Refusal) -> None:
        """End, because another connection needs the place or the time is over."""

    @abstractmethod
    def check_time(self, now: float) -> None:
        """End if the client takes too long."""

    @abstractmethod
    def leave_door(self) -> None:
        """Give the place back."""


class FrontDoor:
    """All open connections, and the decision about the next one."""

    def __init__(self, settings: Settings, limits: DoorLimits, metrics: Metrics) -> None:
        self.limits = limits
        self._metrics = metrics
        self._proxies = networks_of(settings)
        self._loop = asyncio.get_running_loop()
        each, wait_s, now = limits.per_address, limits.wait_s, self._loop.time
        self.requests = RequestSlots(limits.requests, each, wait_s, now)
        uploads = max(1, limits.requests // _REQUESTS_PER_UPLOAD)
        self.uploads = RequestSlots(uploads, each, wait_s * _UPLOAD_PATIENCE, now)
        self._inside: set[Visitor] = set()
        self.empty = asyncio.Event()
        self.empty.set()
        #: Connections without a whole request, the longest waiting first.
        self._resting: dict[Visitor, None] = {}
        self._by_address: Counter[str] = Counter()
        self.lingering = 0
        #: Refusals since the last log line, by reason.
        self._untold: Counter[str] = Counter()
        self._told_at = -_SAY_EVERY_S

    # Connections.

    def admit(self, peer: str) -> Refusal | None:
        """None if one more may come in, else the reason. If the door is full, a resting connection is closed for it."""
        address = share_of(peer)
        if self._by_address[address] >= self.limits.per_address and not is_within(peer, self._proxies):
            return None if self._make_room(TOO_MANY_FROM_ADDRESS, address) else TOO_MANY_FROM_ADDRESS
        if len(self._inside) >= self.limits.connections:
            return None if self._make_room(FULL) else FULL
        return None

    def enter(self, connection: Visitor) -> None:
        self._inside.add(connection)
        self.empty.clear()
        self._by_address[connection.address] += 1
        self._metrics.connections_open.set(len(self._inside))

    def leave(self, connection: Visitor) -> None:
        """It frees its place, whether it is closed or still reads why it was refused."""
        if connection not in self._inside:
            return
        self._inside.discard(connection)
        if not self._inside:
            self.empty.set()
        self._resting.pop(connection, None)
        self._by_address[connection.address] -= 1
        if not self._by_address[connection.address]:
            del self._by_address[connection.address]
        self._metrics.connections_open.set(len(self._inside))

    def rest(self, connection: Visitor) -> None:
        """It waits for its client; of all resting connections it is now the last to be closed for another."""
        if connection in self._inside:
            self._resting.pop(connection, None)
            self._resting[connection] = None

    def work(self, connection: Visitor) -> None:
        """Its client waits for us, so it is not closed for another."""
        self._resting.pop(connection, None)

    def address_of(self, peer: str, forwarded_for: str) -> str:
        """The address that a request is counted for: behind a trusted proxy, the one that the proxy names."""
        return share_of(address_behind(peer, forwarded_for, self._proxies) if self._proxies else peer)

    def count_refusal(self, refusal: Refusal) -> None:
        self._metrics.refused.labels(refusal.code).inc()
        self._untold[refusal.code] += 1

    def _make_room(self, reason: Refusal, address: str | None = None) -> bool:
        for connection in self._resting:
            if address is None or connection.address == address:
                connection.give_up(reason)
                return True
        return False

    # Time.

    async def watch(self) -> None:
        """Enforce the time limits for as long as the process serves."""
        while True:
            await asyncio.sleep(SWEEP_EVERY_S)
            now = self._loop.time()
            for slots in (self.requests, self.uploads):
                slots.refuse_overdue()
            for connection in list(self._inside):
                connection.check_time(now)
            self._metrics.requests_running.set(self.requests.running + self.uploads.running)
            self._metrics.requests_waiting.set(self.requests.waiting + self.uploads.waiting)
            self._tell(now)

    def _tell(self, now: float) -> None:
        """One line for many refusals: a flood must not fill the log too."""
        if self._untold and now - self._told_at >= _SAY_EVERY_S:
            _log.warning("clients refused", connections=len(self._inside), **self._untold)
            self._untold, self._told_at = Counter(), now


class Entrance:
    """Accepts connections one by one, so that at most one descriptor more than the admitted ones is in use. It replaces
    asyncio's server in uvicorn, and ends as that does."""

    def __init__(
        self,
        listener: socket.socket,
        door: FrontDoor,
        make: Callable[[str, Refusal | None], Visitor],
    ) -> None:
        self._listener = listener
        self._door = door
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._joining: set[asyncio.Task[None]] = set()
        self._closed = False
        self._watching = asyncio.create_task(door.watch(), name="front-door")
        listener.setblocking(False)
        self._open()

    def stop_accepting(self) -> None:
        """Leave the listener to the processes that share it; the time limits of those inside go on."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._listener)

    def close(self) -> None:
        self.stop_accepting()
        self._watching.cancel()

    async def wait_closed(self) -> None:
        await asyncio.wait({self._watching, *self._joining})

    def _open(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(_ACCEPT_AT_ONCE):
            try:
                client, peer = self._listener.accept()
            except BlockingIOError:
                return  # nobody waits any more
            except OSError as error:
                if shortage_of(error) is not None:
                    _log.error("no descriptor or memory for a connection", error=error.strerror)
                    self._loop.remove_reader(self._listener)
                    self._loop.call_later(_PAUSE_AFTER_SHORTAGE_S, self._open)
                # Otherwise the client that waited has gone.
                return
            client.setblocking(False)
            self._let_in(client, peer[0])

    def _let_in(self, client: socket.socket, peer: str) -> None:
        refusal = self._door.admit(peer)
        if refusal is not None and self._door.lingering >= MOST_LINGERING:
            self._door.count_refusal(refusal)
            refuse_at_once(client, refusal)
            return
        connection = self._make(peer, refusal)
        task = self._loop.create_task(self._join(connection, client))
        self._joining.add(task)
        task.add_done_callback(self._joining.discard)

    async def _join(self, connection: Visitor, client: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: connection, client)
        except OSError:  # it has gone meanwhile
            client.close()
            connection.leave_door()
