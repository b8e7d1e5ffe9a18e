"""PostgreSQL beneath the contract: late commits, migrations, lost connections, and errors that say which server."""

import asyncio
import random
from collections.abc import Awaitable, Callable

import asyncpg
import msgspec
import pytest

from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_S
from tests.support.postgres import Server, database_of, new_database
from tests.support.postgres import server as postgres_server
from vskill_core.errors import (
    Conflict,
    NotFound,
    PlatformError,
    SchemaUnknown,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
)
from vskill_platform.domain.messages import Send
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.ledger.broker.postgres import PostgresBroker
from vskill_platform.ledger.database.migrations import load_migrations
from vskill_platform.ledger.database.postgres import PostgresDatabase
from vskill_platform.ledger.kv.collections import COLLECTIONS
from vskill_platform.ledger.kv.entries import ABSENT, Add, Assert, Delete, Put
from vskill_platform.ledger.kv.fields import FIELD_COLUMNS, column, kept_fields
from vskill_platform.ledger.kv.postgres import PostgresKV, find_risks
from vskill_platform.ledger.kv.postgres_snapshot import open_postgres_snapshot
from vskill_platform.setting_values import shown_location

pytestmark = pytest.mark.anyio

MIGRATIONS = load_migrations("postgres")


@pytest.fixture
async def location(tmp_path) -> str:
    return await database_of(tmp_path)


@pytest.fixture
async def database(location):
    opened = await PostgresDatabase.open(location)
    yield opened
    await opened.close()


@pytest.fixture
async def kv(database):
    return PostgresKV(database, PostgresBroker(database))


async def held_commit(connection, key: str) -> None:
    """A commit as the store makes it, in a transaction that stays open."""
    row = msgspec.json.encode([{"key": key, "value": "{}"}]).decode()
    await connection.fetchrow(
        "SELECT * FROM commit_records($1, '{}', '{}', '{}', $2, NULL, '{}', $1, 1)", [key], row
    )


async def test_no_change_is_skipped_because_a_lower_number_committed_later(kv, location):
    """A transaction that began first and ends last: whoever follows the changes meanwhile must still see it."""
    start = await kv.change_cursor()
    late = await asyncpg.connect(location)
    transaction = late.transaction()
    await transaction.start()
    await held_commit(late, "a:late")
    await kv.put("a:early", b"{}")
    meanwhile = await kv.changes("a:", after=start)
    assert [change.key for change in meanwhile.items] == []
    await transaction.commit()
    await late.close()
    assert await kv.wait_for_change(meanwhile.after, 2_000)
    seen = await kv.changes("a:", after=meanwhile.after)
    assert sorted(change.key for change in seen.items) == ["a:early", "a:late"]


async def test_followers_of_many_writers_see_every_change_once_and_in_one_order(kv):
    start = await kv.change_cursor()
    written = {f"c:{writer}:{n}" for writer in range(8) for n in range(15)}

    async def write(writer: int) -> None:
        for n in range(15):
            await kv.put(f"c:{writer}:{n}", b"{}")

    async def follow() -> list[str]:
        seen: list[str] = []
        cursor = start
        while len(seen) < len(written):
            await kv.wait_for_change(cursor, 1_000)
            page = await kv.changes("c:", after=cursor, limit=7)
            seen += [change.key for change in page.items]
            cursor = page.after
        return seen

    writing = asyncio.gather(*(write(writer) for writer in range(8)))
    first, second = await asyncio.wait_for(asyncio.gather(follow(), follow()), PATIENCE_S)
    await writing
    assert first == second
    assert len(first) == len(set(first)) and set(first) == written


async def test_commits_over_the_same_keys_in_any_order_never_wait_for_each_other_for_ever(kv):
    rng = random.Random(7)
    names = [f"k:{n}" for n in range(6)]
    await kv.commit([Put(name, b"0") for name in names])

    async def work() -> int:
        lost = 0
        for _ in range(12):
            chosen = rng.sample(names, 3)
            held = await kv.get(chosen[0])
            operations = [
                Assert(chosen[0], held.version),
                *(Add(name) for name in chosen[1:]),
                Send(b"{}", chosen[1]),
            ]
            try:
                await kv.commit(operations)
            except Conflict:
                lost += 1
        return lost

    lost = sum(await asyncio.wait_for(asyncio.gather(*(work() for _ in range(8))), PATIENCE_S))
    total = sum([int((await kv.get(name)).value) for name in names])
    assert total == (8 * 12 - lost) * 2


class CountingBroker(PostgresBroker):
    """How many settlements went to the server together, each time."""

    def __init__(self, database: PostgresDatabase) -> None:
        super().__init__(database)
        self.together: list[int] = []

    async def _apply(self, settlements):
        self.together.append(len(settlements))
        return await super()._apply(settlements)


async def test_what_batches_settle_at_the_same_time_is_settled_together(database):
    broker = CountingBroker(database)
    await broker.send_batch([Send(b"%d" % n) for n in range(30)])
    batches = await broker.receive(max_batch_size=3, max_wait_ms=0, batches=10)
    await asyncio.gather(*(batch.ack_all() for batch in batches))
    assert broker.together == [30]
    assert (await broker.depth()).leased == 0


async def test_what_is_settled_while_others_are_settled_waits_and_goes_together(database):
    broker = CountingBroker(database)
    await broker.send_batch([Send(b"%d" % n) for n in range(9)])
    first, *others = await broker.receive(max_batch_size=3, max_wait_ms=0, batches=3)
    under_way = asyncio.create_task(first.ack_all())
    async with asyncio.timeout(PATIENCE_S):
        while not broker.together:  # noqa: ASYNC110 - it does not tell
            await asyncio.sleep(0)
    await asyncio.gather(under_way, *(batch.ack_all() for batch in others))
    assert broker.together == [3, 6]


async def test_a_settlement_that_nobody_waits_for_any_more_is_made_and_disturbs_no_other(database):
    broker = CountingBroker(database)
    await broker.send_batch([Send(b"1"), Send(b"2")])
    gone, other = [message for batch in await broker.receive(1, 0, 2) for message in batch.messages]
    cancelled = asyncio.create_task(gone.ack())
    waiting = asyncio.create_task(other.ack())
    await asyncio.sleep(0)
    cancelled.cancel()
    assert await waiting is True
    assert (await broker.depth()).leased == 0


async def test_an_error_of_a_settlement_is_the_error_of_everybody_in_it(database, location):
    broker = CountingBroker(database)
    await broker.send_batch([Send(b"1"), Send(b"2")])
    one, two = [message for batch in await broker.receive(1, 0, 2) for message in batch.messages]
    connection = await asyncpg.connect(location)
    await connection.execute("ALTER TABLE messages RENAME TO gone")
    answers = await asyncio.gather(one.ack(), two.ack(), return_exceptions=True)
    assert [isinstance(answer, PlatformError) for answer in answers] == [True, True]
    await connection.execute("ALTER TABLE gone RENAME TO messages")
    await connection.close()
    assert list(await asyncio.gather(one.ack(), two.ack())) == [True, True]


async def test_a_connection_that_goes_back_to_the_pool_keeps_no_transaction(database):
    """Nothing else is cleared, which saves a round trip for each statement."""
    with pytest.raises(StoreError):
        async with database.connection() as connection, connection.transaction():
            await connection.execute("SELECT 1 / 0")
    async with database.connection() as connection:
        assert not connection.is_in_transaction()


async def test_of_two_who_create_the_same_key_at_once_one_does(kv):
    async def create(n: int) -> bool:
        try:
            await kv.put("new:key", b"%d" % n, if_version=ABSENT)
        except Conflict:
            return False
        return True

    assert sum(await asyncio.gather(*map(create, range(10)))) == 1


async def test_an_absent_key_that_is_asserted_stays_absent_until_the_commit_ends(kv):
    """Without a lock on keys that are not there, both of these could pass."""

    async def add(mine: str, other: str) -> bool:
        try:
            await kv.commit([Assert(other, ABSENT), Put(mine, b"{}", ABSENT)])
        except Conflict:
            return False
        return True

    for n in range(20):
        both = await asyncio.gather(add(f"x:{n}", f"y:{n}"), add(f"y:{n}", f"x:{n}"))
        assert sum(both) == 1


async def test_counts_stay_exact_while_they_are_folded(kv):
    async def write(n: int) -> None:
        await kv.put(f"sub:{n}", b'{"state": "RECEIVED", "updated_at": 1}')
        if n % 3 == 0:
            await kv.put(f"sub:{n}", b'{"state": "PUBLISHED", "updated_at": 2}')
        if n % 5 == 0:
            await kv.commit([Delete(f"sub:{n}")])

    async def fold() -> None:
        for _ in range(10):
            await kv.sweep(changes_before=0)

    await asyncio.gather(*map(write, range(60)), fold(), fold())
    await kv.sweep(changes_before=0)
    alive = [n for n in range(60) if n % 5]
    published = [n for n in alive if n % 3 == 0]
    expected = {"PUBLISHED": len(published), "RECEIVED": len(alive) - len(published)}
    assert await kv.count_by("sub:", "state", audiences=EVERYTHING) == expected


async def test_the_schema_has_a_column_for_every_declared_field(database):
    rows = await database.fetch(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'records'"
    )
    kinds = {row[0]: row[1] for row in rows}
    for collection in COLLECTIONS:
        for name in kept_fields(collection):
            expected = "bigint" if collection.fields[name].kind is int else "text"
            if name == collection.numbers:
                expected = "ARRAY"
            assert kinds[column(collection, name)] == expected
    assert set(FIELD_COLUMNS) == {
        name for name in kinds if name.partition("_")[0] in {"sub", "skill", "task", "sketch"}
    }


@pytest.mark.parametrize("collection", COLLECTIONS, ids=lambda one: one.name)
async def test_every_declared_index_is_there(database, collection):
    rows = await database.fetch("SELECT indexname FROM pg_indexes WHERE tablename = 'records'")
    there = {row[0] for row in rows}
    assert {f"{collection.name}_by_{'_'.join(index)}" for index in collection.indexes} <= there


async def test_E16_a_newer_schema_is_refused_and_nothing_in_it_changes(location):
    first = await PostgresDatabase.open(location)
    await first.fetchval("INSERT INTO schema_version VALUES (99) RETURNING version")
    try:
        with pytest.raises(SchemaUnknown, match="99"):
            await PostgresDatabase.open(location)
    finally:
        await first.fetch("DELETE FROM schema_version WHERE version = 99")
        await first.close()


async def test_a_database_from_before_the_first_release_is_refused_with_what_to_do_and_nothing_in_it_changes():
    location = await new_database(await asyncio.to_thread(postgres_server))
    connection = await asyncpg.connect(location)
    try:
        await connection.execute("CREATE TABLE schema_version (version integer NOT NULL)")
        await connection.execute("INSERT INTO schema_version VALUES (10), (11), (17)")
        await connection.execute("CREATE TABLE records (key text, value text)")
        await connection.execute("INSERT INTO records VALUES ('sub:a', '{}')")
        before = await tables_of(connection)
        for opening in (PostgresDatabase.open(location), open_view_of(location)):
            with pytest.raises(
                SchemaUnknown, match=r"0\.3\.0.*\(vskill-platform backup FILE\).* restore FILE"
            ):
                await opening
        assert await tables_of(connection) == before
    finally:
        await connection.close()


async def open_view_of(location: str) -> None:
    async with open_postgres_snapshot(location, 0):
        pass


async def tables_of(connection) -> dict[str, list[tuple[object, ...]]]:
    """Everything that a database holds."""
    names = [
        row[0]
        for row in await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    ]
    return {name: [tuple(row) for row in await connection.fetch(f"TABLE {name}")] for name in names}


async def test_a_database_without_a_store_has_no_snapshot_and_gets_none():
    location = await new_database(await asyncio.to_thread(postgres_server))
    with pytest.raises(NotFound, match="no store"):
        await open_view_of(location)
    connection = await asyncpg.connect(location)
    try:
        assert await tables_of(connection) == {}
    finally:
        await connection.close()


async def test_ten_processes_that_start_at_once_migrate_once():
    server = await asyncio.to_thread(Server)
    try:
        location = await new_database(server)
        opened = await asyncio.gather(*(PostgresDatabase.open(location, connections=2) for _ in range(10)))
        versions = await opened[0].fetch("SELECT version FROM schema_version ORDER BY version")
        assert [row[0] for row in versions] == [one.number for one in MIGRATIONS]
        for one in opened:
            await one.close()
    finally:
        await asyncio.to_thread(server.remove)


async def ask_until_refused(ask: Callable[[], Awaitable[object]]) -> None:
    """A server process that was busy notices only after its answer that the others were killed."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            await ask()


async def test_a_server_that_goes_away_is_a_typed_error_and_everything_goes_on_when_it_is_back():
    server = await asyncio.to_thread(lambda: Server(durable=True))
    try:
        database = await PostgresDatabase.open(await new_database(server))
        broker = PostgresBroker(database)
        kv = PostgresKV(database, broker)
        await kv.put("k", b"1")
        await asyncio.to_thread(server.stop, kill=True)
        with pytest.raises(StoreUnavailable, match=r"127\.0\.0\.1"):
            await ask_until_refused(lambda: kv.get("k"))
        with pytest.raises(StoreUnavailable):
            await ask_until_refused(lambda: broker.take(1, 0))
        await asyncio.to_thread(server.start)
        kept = await kv.get("k")
        assert kept is not None and kept.value == b"1"
        cursor = await kv.change_cursor()
        waiting = asyncio.ensure_future(kv.wait_for_change(cursor, 20_000))
        await asyncio.sleep(0.1)
        await kv.put("k", b"2")
        assert await waiting
        await database.close()
    finally:
        await asyncio.to_thread(server.remove)


async def test_nobody_there_is_said_with_the_address_and_without_the_password():
    with pytest.raises(StoreUnavailable) as caught:
        await PostgresDatabase.open("postgresql://ann:secret@127.0.0.1:1/db")
    assert "127.0.0.1:1/db" in caught.value.message
    assert "secret" not in caught.value.message
    assert shown_location("postgresql://ann:secret@h:5/db?x=y") == "postgresql://ann@h:5/db"


@pytest.mark.parametrize(
    ("facts", "named"),
    [
        (("on", "on", "", 0), []),
        (("on", "on", "ANY 1 (*)", 1), []),
        (("on", "remote_apply", "*", 2), []),
        (("on", "on", "", 1), ["synchronous_standby_names"]),
        (("on", "local", "*", 1), ["synchronous_standby_names"]),
        (("on", "off", "", 0), ["synchronous_commit"]),
        (("off", "on", "", 0), ["fsync"]),
        (("on", "on", "*", 0), ["synchronous_standby_names is set and no standby"]),
    ],
)
def test_what_may_lose_an_acknowledged_write_is_named_with_its_setting(facts, named):
    risks = tuple(find_risks(*facts))
    assert len(risks) == len(named) and all(name in risk for name, risk in zip(named, risks, strict=True))


async def test_the_risks_of_a_server_are_read_from_it(kv):
    assert [risk.partition(" ")[0] for risk in await kv.risks()] == ["fsync", "synchronous_commit"]


async def test_a_server_that_only_reads_is_refused_at_the_start(database):
    async with database.connection() as connection:
        name = await connection.fetchval("SELECT current_database()")
        await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    try:
        with pytest.raises(StoreReadOnly, match="read-only"):
            await PostgresDatabase.open(database.location, connections=1)
    finally:
        async with database.connection() as connection:
            await connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")


async def test_the_servers_clock_is_the_stores(database):
    server_ms = await database.fetchval("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
    assert abs(database.now() - server_ms) < 1_000


async def test_a_clock_that_is_given_replaces_the_servers(location):
    clock = ManualClock()
    opened = await PostgresDatabase.open(location, clock=clock)
    assert opened.now() == clock.now()
    await opened.close()


async def test_an_address_of_shared_connections_keeps_nothing_on_one(location):
    """`pool_mode=transaction`: everything works without prepared statements, and waiters poll instead of listening."""
    database = await PostgresDatabase.open(f"{location}?application_name=test&pool_mode=transaction")
    kv = PostgresKV(database, PostgresBroker(database))
    start = await kv.change_cursor()
    await kv.commit([Put("a:1", b"{}"), Send(b"body")])
    assert await kv.wait_for_change(start, 2_000)
    assert [change.key for change in (await kv.changes("a:", after=start)).items] == ["a:1"]
    async with database.connection() as connection:
        assert connection.is_in_transaction()
        assert await connection.fetchval("SELECT count(*) FROM pg_prepared_statements WHERE name <> ''") == 0
    await database.close()


async def test_a_statement_that_a_pooler_lost_says_what_to_write(database):
    with pytest.raises(StoreUnavailable, match=r"\?pool_mode=transaction"):
        async with database.connection() as connection:
            await connection.execute("EXECUTE lost")
