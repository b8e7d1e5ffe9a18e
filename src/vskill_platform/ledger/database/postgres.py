"""A PostgreSQL database that holds records and messages: a pool of connections with timeouts, the schema's migrations
under a lock, one listening connection that wakes waiters, and the server's clock.

The engines above (`ledger.kv.postgres`, `ledger.broker.postgres`) know the statements; this module knows connections.
It translates every driver error.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

import asyncpg
import structlog

from vskill_core.errors import (
    PlatformError,
    SchemaUnknown,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreTimeout,
    StoreUnavailable,
)
from vskill_platform.ledger.clock import Clock, ServerClock
from vskill_platform.ledger.database.migrations import (
    Migration,
    check_version,
    collections_to_derive,
    load_declared,
    load_migrations,
)
from vskill_platform.ledger.database.waiting import SERVER_POLL_S, Database, ServerWatch
from vskill_platform.setting_values import driver_address, shown_location

_log = structlog.get_logger(__name__)

#: Timeout of one statement: a hanging server blocks nobody for longer (E9).
STATEMENT_S = 10.0
CONNECT_S = 5.0
#: Timeout of one migration, such as an index over a million records, or of waiting for another process's.
MIGRATION_S = 3600.0
#: The server ends a transaction that says nothing for this long: its process stands still or its machine is gone, and
#: others wait for what it has locked.
IDLE_S = 10.0
#: The server ends a connection whose machine has not answered for a minute; most systems wait two hours.
_NOTICE_THE_GONE = (
    "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_user_timeout = 60000;"
)
#: How long a caller waits for a free connection.
ACQUIRE_S = 5.0
#: How often the server's clock is compared with this machine's.
CLOCK_S = 30.0
#: Advisory lock for migrations; an arbitrary number that nobody else uses.
_MIGRATION_LOCK = 0x76736B6C
#: How often a migration is tried if another transaction is in the way.
_MIGRATION_TRIES = 5
CHANNELS = ("vskill_changes", "vskill_messages")
#: Everything that the driver raises if the server or the network fails.
DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    TimeoutError,
)

_SERVER_TIME = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"


#: Computes a collection's columns again in the connection's transaction, for a migration that asks for it.
Derive = Callable[["asyncpg.Connection[Any]", str], Awaitable[None]]


async def derive_nothing(_: object, collection: str) -> None:
    """For callers that open a database without the store that knows its collections."""
    raise SchemaUnknown(
        f"this database must be opened by the record store first, to bring {collection!r} up to date"
    )


class PostgresDatabase(Database):
    """An open database, shared by the store and the queue of one process."""

    def __init__(self, location: str, pool: "asyncpg.Pool[Any]", clock: Clock | None) -> None:
        super().__init__()
        self.location = location
        _, self._shares_connections = driver_address(location)
        self.place = shown_location(location)
        self._pool = pool
        self._own_clock = ServerClock()
        self._clock = clock
        self._watches: dict[str, set[ServerWatch]] = {channel: set() for channel in CHANNELS}
        #: Whether the listening connection is down.
        self._away = False
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def open(
        cls,
        location: str,
        *,
        clock: Clock | None = None,
        connections: int = 10,
        derive: Derive = derive_nothing,
    ) -> "PostgresDatabase":
        """Connect and bring the schema up to date. `clock` replaces the server's own, for tests."""
        with translate_errors(shown_location(location)):
            pool = await asyncpg.create_pool(
                **driver_options(location),
                # With a minimum, the pool would reconnect by itself and log a traceback at every attempt of an outage.
                min_size=0,
                max_size=connections,
                server_settings={"application_name": "vskill-platform", "timezone": "UTC"},
                init=None if driver_address(location)[1] else _bound_waits,
                reset=_leave_as_it_is,
            )
        database = cls(location, pool, clock)
        try:
            await database._start(derive)
        except BaseException:
            await database.close()
            raise
        return database

    async def _start(self, derive: Derive) -> None:
        async with self.connection() as connection:
            await migrate(connection, self.place, derive)
        await self._compare_clocks()
        self._tasks = [asyncio.create_task(self._keep_time(), name="postgres-clock")]
        # Behind a pooler that shares connections, notifications reach whoever has the connection then: waiters poll.
        if not self._shares_connections:
            self._tasks.append(asyncio.create_task(self._listen(), name="postgres-listen"))

    # Time.

    def now(self) -> int:
        return (self._clock or self._own_clock).now()

    async def _compare_clocks(self) -> None:
        asked = time.monotonic()
        server_ms = await self.fetchval(_SERVER_TIME)
        self._own_clock.compare(server_ms, asked, time.monotonic())

    async def _keep_time(self) -> None:
        while True:
            await asyncio.sleep(CLOCK_S)
            try:
                await self._compare_clocks()
            except PlatformError as error:
                _log.warning("server's clock not read", store=self.place, error=error.message)

    # Statements.

    @contextlib.asynccontextmanager
    async def connection(self) -> AsyncIterator["asyncpg.Connection[Any]"]:
        """One connection for several statements. A pooler that shares connections keeps it for a transaction only."""
        if self._shares_connections:
            async with self.transaction() as connection:
                yield connection
        else:
            async with self._acquire() as connection:
                yield connection

    @contextlib.asynccontextmanager
    async def transaction(self, isolation: str | None = None) -> AsyncIterator["asyncpg.Connection[Any]"]:
        """One connection in a transaction."""
        async with self._acquire() as connection, connection.transaction(isolation=isolation):
            if self._shares_connections:
                await connection.execute(f"SET LOCAL {_idle_limit()}")
            yield connection

    @contextlib.asynccontextmanager
    async def _acquire(self) -> AsyncIterator["asyncpg.Connection[Any]"]:
        if self._closed:
            raise StoreUnavailable(f"{self.place} is closed")
        with translate_errors(self.place):
            async with self._pool.acquire(timeout=ACQUIRE_S) as connection:
                try:
                    yield connection
                except asyncpg.InternalClientError:
                    # An answer was cut off, so the connection cannot be reused.
                    connection.terminate()
                    raise

    async def fetch(self, statement: str, *arguments: object) -> Sequence[Any]:
        async with self.connection() as connection:
            rows: Sequence[Any] = await connection.fetch(statement, *arguments)
            return rows

    async def fetch_once(self, statement: str, *arguments: object) -> Sequence[Any]:
        """Rows of a statement that the server plans for these arguments, at the price of a round trip. A prepared
        statement may get one generic plan, although the arguments decide how many rows match."""
        async with self.connection() as connection:
            prepared = await connection.prepare(statement, name="")
            rows: Sequence[Any] = await prepared.fetch(*arguments)
            return rows

    async def fetchrow(self, statement: str, *arguments: object) -> Any:
        async with self.connection() as connection:
            return await connection.fetchrow(statement, *arguments)

    async def fetchval(self, statement: str, *arguments: object) -> Any:
        async with self.connection() as connection:
            return await connection.fetchval(statement, *arguments)

    # Waiting.

    @contextlib.contextmanager
    def watch(self, channel: str) -> Iterator[ServerWatch]:
        watch = ServerWatch()
        self._watches[channel].add(watch)
        try:
            yield watch
        finally:
            self._watches[channel].discard(watch)

    def wake(self, channel: str) -> None:
        for watch in self._watches[channel]:
            watch.set()

    async def _listen(self) -> None:
        """Hold one connection that listens for commits; if it breaks, open another and wake all waiters."""
        while True:
            try:
                await self._hear()
                reason = "the connection broke"
            except (PlatformError, *DRIVER_ERRORS) as error:
                reason = _words(error)
            # Log once per outage.
            if not self._away:
                self._away = True
                _log.warning("the store's server is gone; looking for it", store=self.place, error=reason)
            for channel in CHANNELS:
                self.wake(channel)
            await asyncio.sleep(SERVER_POLL_S)

    async def _hear(self) -> None:
        connection = await asyncpg.connect(**driver_options(self.location))
        broken = asyncio.Event()
        connection.add_termination_listener(lambda _: broken.set())
        try:
            await connection.execute(_NOTICE_THE_GONE)
            for channel in CHANNELS:
                await connection.add_listener(channel, lambda _, _pid, told, _payload: self.wake(told))
            if self._away:
                self._away = False
                _log.info("the store's server is back", store=self.place)
            await broken.wait()
        finally:
            with contextlib.suppress(Exception):
                await connection.close(timeout=1)

    # Closing.

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._pool.close()
        except (TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self._pool.terminate()


def driver_options(location: str) -> dict[str, Any]:
    dsn, shared = driver_address(location)
    options: dict[str, Any] = {"dsn": dsn, "timeout": CONNECT_S, "command_timeout": STATEMENT_S}
    # What is prepared stays on its connection, which somebody else gets next from a pooler.
    return options | ({"statement_cache_size": 0} if shared else {})


def _idle_limit() -> str:
    return f"idle_in_transaction_session_timeout = {int(IDLE_S * 1000)}"


async def _bound_waits(connection: "asyncpg.Connection[Any]") -> None:
    """Settings of a new connection. Not parameters of its start: poolers refuse those that they do not know."""
    await connection.execute(f"{_NOTICE_THE_GONE} SET {_idle_limit()}")


async def _leave_as_it_is(_: object) -> None:
    """Skip the driver's reset of a connection: our sessions keep no state beyond a transaction, which the driver ends
    by itself, and the reset would cost a round trip of four statements after each of ours."""


# Migrations.


async def migrate(connection: Any, place: str, derive: Derive, migrations: Sequence[Migration] = ()) -> None:
    """Bring the schema to the newest version, one process at a time; refuse one that this release does not know."""
    migrations = migrations or await asyncio.to_thread(load_migrations, "postgres")
    declared = await asyncio.to_thread(load_declared, "postgres")
    for left in reversed(range(_MIGRATION_TRIES)):
        try:
            async with connection.transaction():
                # Ends with the transaction: behind a pooler, an unlock could reach another connection.
                lock = "SELECT pg_advisory_xact_lock($1)"
                await connection.execute(lock, _MIGRATION_LOCK, timeout=MIGRATION_S)
                await _migrate_alone(connection, place, derive, migrations, declared)
            return
        except asyncpg.DeadlockDetectedError:
            # A deadlock with others that lock tables in another order; nothing was changed.
            if not left:
                raise


async def _migrate_alone(
    connection: Any, place: str, derive: Derive, migrations: Sequence[Migration], declared: str
) -> None:
    found = await read_version(connection)
    check_version(place, found, migrations)
    pending = [one for one in migrations if one.number > found]
    if not pending:
        # Fails on a read-only server.
        await connection.execute("SELECT nextval('versions')")
        return
    await _apply(connection, pending, declared)
    # A new database has nothing to compute.
    for collection in collections_to_derive(pending) if found else ():
        await derive(connection, collection)
    await connection.execute("ANALYZE records", timeout=MIGRATION_S)


async def _apply(connection: Any, pending: Sequence[Migration], declared: str) -> None:
    await connection.execute("CREATE TABLE IF NOT EXISTS schema_version (version integer NOT NULL)")
    for migration in pending:
        # In one call: the driver cannot execute a file that holds nothing but comments.
        noted = f"INSERT INTO schema_version VALUES ({migration.number})"  # noqa: S608 - a number of ours
        await connection.execute(f"{migration.script}\n{noted}", timeout=MIGRATION_S)
    await connection.execute(declared, timeout=MIGRATION_S)


async def read_version(connection: Any) -> int:
    """The schema version of the database; 0 where there is no store in it."""
    if await connection.fetchval("SELECT to_regclass('schema_version')") is None:
        return 0
    return await connection.fetchval("SELECT max(version) FROM schema_version") or 0


# Errors.

_POOLED = "behind a pooler that shares connections, end the address with ?pool_mode=transaction"
_BY_CLASS: tuple[tuple[type[BaseException], type[StoreError], str], ...] = (
    (asyncpg.DiskFullError, StoreFull, "the disk is full"),
    (asyncpg.ReadOnlySQLTransactionError, StoreReadOnly, "the server is read-only"),
    (asyncpg.DeadlockDetectedError, StoreBusy, "two transactions waited for each other"),
    (asyncpg.SerializationError, StoreBusy, "another transaction was faster"),
    (asyncpg.LockNotAvailableError, StoreBusy, "another transaction holds a lock"),
    (asyncpg.QueryCanceledError, StoreTimeout, "the statement took too long"),
    (asyncpg.InsufficientResourcesError, StoreUnavailable, "the server lacks resources"),
    (asyncpg.OperatorInterventionError, StoreUnavailable, "the server is stopping or starting"),
    (asyncpg.PostgresConnectionError, StoreUnavailable, "the connection broke"),
    (asyncpg.IdleInTransactionSessionTimeoutError, StoreUnavailable, "this process stood still"),
    (asyncpg.InvalidAuthorizationSpecificationError, StoreUnavailable, "the server refuses this user"),
    (asyncpg.InvalidCatalogNameError, StoreUnavailable, "there is no such database"),
    (asyncpg.InvalidSQLStatementNameError, StoreUnavailable, _POOLED),
    (asyncpg.DuplicatePreparedStatementError, StoreUnavailable, _POOLED),
    (asyncpg.PostgresIOError, StoreUnavailable, "the server cannot use its disk"),
    (asyncpg.InterfaceError, StoreUnavailable, "the connection cannot be used"),
    (asyncpg.InternalClientError, StoreUnavailable, "the connection cannot be used"),
    (TimeoutError, StoreTimeout, "the server did not answer in time"),
    (OSError, StoreUnavailable, "the server cannot be reached"),
)


@contextlib.contextmanager
def translate_errors(place: str) -> Iterator[None]:
    """Translate the driver's errors into PlatformErrors that name the server."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise translate(error, place) from error


#: The server's messages if a file cannot grow for another reason than a full disk: a quota or a file size limit.
_CANNOT_GROW = ("could not extend file", "could not write to file")


def translate(error: BaseException, place: str) -> PlatformError:
    if isinstance(error, asyncpg.PostgresError) and str(error).startswith(_CANNOT_GROW):
        return StoreFull(f"{place}: the disk is full ({_words(error)})", reason=_words(error))
    for kind, ours, meaning in _BY_CLASS:
        if isinstance(error, kind):
            return ours(f"{place}: {meaning} ({_words(error)})", reason=_words(error))
    return StoreError(f"{place}: {_words(error)}", reason=_words(error))


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
