"""A NATS server as the queue sees it: its location, a connection that reconnects for ever once it was made, the streams
of messages and dead letters, and translated errors. `ledger.broker.nats` uses them.
"""

import asyncio
import contextlib
import string
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import msgspec
import structlog
from nats.aio.client import Client
from nats.errors import AuthorizationError
from nats.errors import Error as NatsError
from nats.js import JetStreamContext, api
from nats.js.errors import APIError, NotFoundError, ServiceUnavailableError

from vskill_core.errors import InvalidSettings, QueueUnavailable

_log = structlog.get_logger(__name__)

#: Timeouts of the first connection and of one request.
CONNECT_S = 5.0
ANSWER_S = 5.0
#: Pause between two attempts to reconnect.
RECONNECT_S = 0.5
#: Ping interval; a connection that misses two answers is closed.
PING_S = 10
#: For how long the server recognises a dead letter that is written twice.
DUPLICATES_S = 120.0
DEFAULT_NAME = "vskill"
REPLICAS = (1, 3, 5)
#: The server's error for a second message of a subject that may have only one.
_NOT_STORED, _TAKEN = 10077, "maximum messages per subject exceeded"

_FIX = "write nats://HOST:4222, or nats://USER:PASSWORD@HOST:4222/NAME?replicas=3"


class NatsLocation(msgspec.Struct, frozen=True):
    """What a location says: `nats://[USER:PASSWORD@]HOST:PORT[,HOST:PORT…][/NAME][?replicas=1]`."""

    servers: tuple[str, ...]
    #: Without the password, for messages and logs.
    shown: str
    #: Installations that share a server have different names.
    name: str = DEFAULT_NAME
    replicas: int = 1

    @classmethod
    def of(cls, location: str) -> "NatsLocation":
        parts = urlsplit(location)
        login, at, hosts = parts.netloc.rpartition("@")
        name = parts.path.strip("/") or DEFAULT_NAME
        shown = f"{parts.scheme}://{hosts}/{name}"
        if parts.scheme not in ("nats", "tls") or not all(hosts.split(",")):
            raise _invalid(shown, "it names no server")
        if set(name) - set(string.ascii_letters + string.digits + "_-"):
            raise _invalid(shown, "a name has letters, digits, '-' and '_' only")
        servers = tuple(f"{parts.scheme}://{login}{at}{host}" for host in hosts.split(","))
        return cls(servers, shown, name, _replicas(parts.query, shown))

    @property
    def work(self) -> str:
        return f"{self.name}_work"

    @property
    def dead(self) -> str:
        return f"{self.name}_dead"

    @property
    def consumer(self) -> str:
        return "workers"

    @property
    def dead_subject(self) -> str:
        return f"{self.name}.dead"

    @property
    def next_subject(self) -> str:
        return f"$JS.API.CONSUMER.MSG.NEXT.{self.work}.{self.consumer}"

    def subject_of(self, token: str) -> str:
        return f"{self.name}.work.{token}"


def _replicas(query: str, shown: str) -> int:
    options = parse_qs(query, keep_blank_values=True)
    (text, *_) = options.pop("replicas", ["1"])
    if options or text not in map(str, REPLICAS):
        raise _invalid(shown, "after '?' stands replicas=1, 3 or 5, and nothing else")
    return int(text)


def _invalid(shown: str, problem: str) -> InvalidSettings:
    return InvalidSettings(
        f"VSKILL_BROKER is {shown!r}: {problem}; {_FIX}.", setting="VSKILL_BROKER", fix=_FIX
    )


async def connect(place: NatsLocation) -> Client:
    """Connect now; the connection reconnects by itself, however often it breaks."""
    client = Client()

    async def problem(error: Exception) -> None:
        _log.debug("queue's connection", broker=place.shown, error=str(error) or repr(error))

    async def lost() -> None:
        if not client.is_closed:
            _log.warning("the queue's server is gone; looking for it", broker=place.shown)

    async def found() -> None:
        _log.info("the queue's server is back", broker=place.shown)

    try:
        async with asyncio.timeout(CONNECT_S):
            await client.connect(
                servers=list(place.servers),
                name="vskill-platform",
                error_cb=problem,
                disconnected_cb=lost,
                reconnected_cb=found,
                max_reconnect_attempts=-1,
                reconnect_time_wait=RECONNECT_S,  # type: ignore[arg-type] # seconds, and fractions work
                connect_timeout=int(CONNECT_S),
                ping_interval=PING_S,
            )
    except BaseException as error:
        reason = client.last_error or error
        with contextlib.suppress(Exception):
            await client.close()
        if isinstance(error, TimeoutError | OSError | NatsError):
            raise translate(reason, place.shown) from error
        raise
    return client


async def create_queues(js: JetStreamContext, place: NatsLocation, lease_ms: int) -> None:
    """Create or update both streams and the one consumer that all workers share."""
    await _stream(js, _work_stream(place))
    await _stream(js, _dead_stream(place))
    await js.add_consumer(
        place.work,
        api.ConsumerConfig(
            durable_name=place.consumer,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=lease_ms / 1000,
            # No limit: the record counts attempts.
            max_deliver=-1,
            max_ack_pending=-1,
        ),
    )


def _work_stream(place: NatsLocation) -> api.StreamConfig:
    return api.StreamConfig(
        name=place.work,
        subjects=[f"{place.name}.work.>"],
        retention=api.RetentionPolicy.WORK_QUEUE,
        storage=api.StorageType.FILE,
        num_replicas=place.replicas,
        # The server refuses a second message of a key while the first one lives.
        max_msgs_per_subject=1,
        discard=api.DiscardPolicy.NEW,
        discard_new_per_subject=True,
    )


def _dead_stream(place: NatsLocation) -> api.StreamConfig:
    return api.StreamConfig(
        name=place.dead,
        subjects=[place.dead_subject],
        retention=api.RetentionPolicy.LIMITS,
        storage=api.StorageType.FILE,
        num_replicas=place.replicas,
        duplicate_window=DUPLICATES_S,
    )


async def _stream(js: JetStreamContext, wanted: api.StreamConfig) -> None:
    """Create or update a stream. Many processes may start at once, so another one may have created it."""
    try:
        found = await js.stream_info(wanted.name or "")
    except NotFoundError:
        await js.add_stream(wanted)
        return
    if found.config.num_replicas != wanted.num_replicas:
        await js.update_stream(wanted)


# Errors.


def subject_taken(error: APIError) -> bool:
    """Whether the subject has a message already. The code alone says only that the message was not stored: a full disk
    has the same code."""
    return error.err_code == _NOT_STORED and error.description == _TAKEN


@contextlib.contextmanager
def translate_errors(shown: str) -> Iterator[None]:
    """Translate the driver's errors into PlatformErrors that name the server."""
    try:
        yield
    except (NatsError, OSError, TimeoutError) as error:
        raise translate(error, shown) from error


def translate(error: BaseException, shown: str) -> QueueUnavailable:
    words = str(error) or type(error).__name__
    return QueueUnavailable(f"{shown}: {_meaning(error)} ({words})", reason=words)


def _meaning(error: BaseException) -> str:
    if isinstance(error, AuthorizationError) or "authorization" in str(error).lower():
        return "the server refuses this user"
    if isinstance(error, ServiceUnavailableError) and error.err_code is None:
        return "JetStream does not answer: is it switched on?"
    if isinstance(error, APIError):
        return "the server refuses"
    if isinstance(error, TimeoutError):
        return "the server did not answer in time"
    return "the server cannot be reached"
