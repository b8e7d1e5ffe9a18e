"""The schema's files: what was released is never changed, and what the declared collections need is there on both engines,
also in a store that is older than a declaration."""

import asyncio
import hashlib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import msgspec
import pytest

from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_S
from tests.support.postgres import new_database, server
from tools import declared_schema
from vskill_core.errors import SchemaUnknown
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.skills.search import every_term
from vskill_platform.ledger.database.migrations import FIRST, Migration, load_declared, load_migrations
from vskill_platform.ledger.database.postgres import PostgresDatabase, derive_nothing
from vskill_platform.ledger.database.postgres import migrate as migrate_postgres
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.kv import postgres_fields, sqlite_fields
from vskill_platform.ledger.kv.collections import COLLECTIONS
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.ledger.kv.postgres import PostgresKV
from vskill_platform.ledger.kv.query import Is
from vskill_platform.ledger.kv.sqlite import SqliteKV
from vskill_platform.ledger.kv.sqlite_query import index_name

ENGINES = ("sqlite", "postgres")
MIGRATIONS = load_migrations("postgres")

#: SHA-256 of every migration. A line is added with each new file, and none is ever changed: databases that had the
#: file applied would differ from those that will.
RELEASED = {
    "sqlite/0020_first.sql": "0cb796c194b505da0138bd6285b94216b71364db40066f5de48e3c223ea4c795",
    "sqlite/0021_search.sql": "32b3f7ce98ab4390c16a940311fb701be2a9f9af27fa1dd2903cde0b6484eca8",
    "sqlite/0022_choose.sql": "a03712ac7a07c978bd889343028da6d48ededa4c5ca984af2d04f7f0c7707226",
    "postgres/0020_first.sql": "b45be87afb6eb5ca69703b7dfcdd7c936e9afc407713e41c9e5c694b2d815fd8",
    "postgres/0021_search.sql": "3db4b03045039030c3715d73f789e2fbdf83471d5d7c23de61c470344eea3f17",
    "postgres/0022_choose.sql": "a03712ac7a07c978bd889343028da6d48ededa4c5ca984af2d04f7f0c7707226",
}

#: The newest migration, and SHA-256 of the generated script that goes with it. A declaration that changes the script needs
#: a new migration, since the script is run only where one is; then both change here.
DECLARED = {
    "sqlite": ("0022_choose.sql", "e0f423f351addf55816eae356cce8fd71f9d0d9d1789d9bc875f605993877681"),
    "postgres": ("0022_choose.sql", "3f161d4cb15ce15e6df3cee2799c6c269de6d00e6ba14e9fc19124081120f2d8"),
}


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_no_released_migration_is_changed_or_removed():
    found = {
        f"{engine}/{one.name}": sha256(one.script) for engine in ENGINES for one in load_migrations(engine)
    }
    assert found == RELEASED


@pytest.mark.parametrize("engine", ENGINES)
def test_a_changed_declaration_comes_with_a_migration(engine):
    """docs/how-to/add-a-field.md says how."""
    assert (load_migrations(engine)[-1].name, sha256(load_declared(engine))) == DECLARED[engine]


def test_both_engines_have_the_same_numbers_without_a_gap():
    sqlite, postgres = ([one.number for one in load_migrations(engine)] for engine in ENGINES)
    assert sqlite == postgres == list(range(FIRST, FIRST + len(sqlite)))


def test_the_generated_scripts_are_those_of_the_declarations():
    assert load_declared("sqlite") == declared_schema.sqlite()
    assert load_declared("postgres") == declared_schema.postgres()


@pytest.mark.anyio
async def test_a_new_file_has_the_declared_indexes_and_the_value_last(path: Path, clock: ManualClock):
    """A column behind the value is read through the value's overflow pages."""
    database = await SqliteDatabase.open(path, clock)
    columns = [row[1] for row in database.point_read("PRAGMA table_info(records)")]
    assert columns[-1] == "value"
    indexes = {name for (name,) in database.point_read("SELECT name FROM sqlite_schema WHERE type = 'index'")}
    assert {name for name in indexes if "_by_" in name and not name.startswith("messages")} == {
        index_name(kind, index) for kind in COLLECTIONS for index in kind.indexes
    }
    await database.close()


# A field that is declared later.

#: Takes a counted and indexed field away, as if it had not been declared when the store was made.
_BEFORE_SQLITE = """
DROP TRIGGER skill_trust_inserted;
DROP TRIGGER skill_trust_deleted;
DROP TRIGGER skill_trust_changed;
DROP INDEX skill_by_audience_trust_listed_at;
ALTER TABLE records DROP COLUMN skill_trust;
DELETE FROM counts WHERE field = 'trust';
DELETE FROM audience_counts WHERE field = 'trust';
"""
_BEFORE_POSTGRES = """
ALTER TABLE records DROP COLUMN skill_trust;
DELETE FROM counts WHERE field = 'trust';
DELETE FROM audience_counts WHERE field = 'trust';
DELETE FROM count_deltas WHERE field = 'trust';
"""
LATER = "-- derive: skill\n"


def skill(number: int, tier: str) -> bytes:
    return msgspec.json.encode(
        {"name": f"skill {number}", "listing": {"updated_at": number, "trust_tier": tier}}
    )


async def fill(kv: KV) -> None:
    for number in range(7):
        await kv.put(f"skill:o/r/s{number}", skill(number, "T2" if number % 2 else "T3"))
    await kv.put("skill:alias:s1:o/r/s1", b"{}")
    await kv.put("skill:odd", b"not json")


async def check(kv: KV) -> None:
    """The field is there for the records of before, and for those that are written from now on."""
    assert await kv.count_by("skill:", "trust", audiences=EVERYTHING) == {"T2": 3, "T3": 4, None: 1}
    await kv.put("skill:o/r/s0", skill(0, "T2"))
    await kv.put("skill:o/r/new", skill(9, "T2"))
    assert await kv.count_by("skill:", "trust", audiences=EVERYTHING) == {"T2": 5, "T3": 3, None: 1}
    page = await kv.select(
        "skill:", where={"trust": Is("T2")}, order_by="listed_at", descending=True, audiences=EVERYTHING
    )
    assert [entry.key[10:] for entry in page.items] == ["new", "s5", "s3", "s1", "s0"]
    assert (
        len(
            (
                await kv.search(
                    "skill:", every_term("skill"), where={"trust": Is("T3")}, audiences=EVERYTHING
                )
            ).items
        )
        == 3
    )
    assert await kv.count_by("skill:", "certification", audiences=EVERYTHING) == {None: 9}


@pytest.mark.anyio
async def test_a_field_that_is_declared_later_is_there_in_an_older_file(path: Path, clock: ManualClock):
    kv = SqliteKV(await SqliteDatabase.open(path, clock))
    await fill(kv)
    await kv.close()
    with sqlite3.connect(path) as connection:
        connection.executescript(_BEFORE_SQLITE)
    connection.close()
    kv = SqliteKV(await asyncio.to_thread(open_later, path, clock))
    await check(kv)
    await kv.close()


def open_later(path: Path, clock: ManualClock) -> SqliteDatabase:
    migrations = load_migrations("sqlite")
    later = Migration(migrations[-1].number + 1, "later", LATER)
    return SqliteDatabase(path, clock, migrations=(*migrations, later), derive=sqlite_fields.derive_again)


@asynccontextmanager
async def postgres_kv(location: str) -> AsyncIterator[PostgresKV]:
    kv = PostgresKV(await PostgresDatabase.open(location))
    yield kv
    await kv.close()


@pytest.mark.anyio
async def test_a_field_that_is_declared_later_is_there_in_an_older_database():
    location = await new_database(await asyncio.to_thread(server))
    migrations = (*MIGRATIONS, Migration(MIGRATIONS[-1].number + 1, "later", LATER))
    async with postgres_kv(location) as kv:
        await fill(kv)
        async with kv._db.connection() as connection:
            await connection.execute(_BEFORE_POSTGRES)
            with pytest.raises(SchemaUnknown, match="by the record store first"):
                await migrate_postgres(connection, "here", derive_nothing, migrations)
            await migrate_postgres(connection, "here", postgres_fields.derive_again, migrations)
            # What is done is not done again.
            await migrate_postgres(connection, "here", derive_nothing, migrations)
        await check(kv)


# Words that were cut in another way.

#: As schema version 20 had them: words as written, and stems with a mark.
_OLD_SEARCH = """
DROP TABLE skill_search;
CREATE VIRTUAL TABLE skill_search USING fts5 (name, canonical, description, audience, tokenize = 'ascii');
INSERT INTO skill_search (rowid, name) SELECT id, 'slides ≈slid' FROM records WHERE collection = 'skill';
PRAGMA user_version = 20;
"""


async def found_sliding(kv: KV) -> list[str]:
    return [one.key for one in (await kv.search("skill:", every_term("sliding"), audiences=EVERYTHING)).items]


@pytest.mark.anyio
async def test_an_older_search_index_is_made_anew_once(path: Path, clock: ManualClock):
    kv = SqliteKV(await SqliteDatabase.open(path, clock, derive=sqlite_fields.derive_again))
    await kv.put("skill:o/r/slides", b'{"name": "slides"}')
    await kv.close()
    with sqlite3.connect(path) as connection:
        connection.executescript(_OLD_SEARCH)
    connection.close()
    for _ in range(2):
        kv = SqliteKV(await SqliteDatabase.open(path, clock, derive=sqlite_fields.derive_again))
        assert await found_sliding(kv) == ["skill:o/r/slides"]
        await kv.close()


@pytest.mark.anyio
async def test_an_older_search_index_of_a_server_is_made_anew():
    location = await new_database(await asyncio.to_thread(server))
    async with postgres_kv(location) as kv:
        await kv.put("skill:o/r/slides", b'{"name": "slides"}')
        async with kv._db.connection() as connection:
            await connection.execute("UPDATE records SET terms = 'slides:1A'")
            assert await found_sliding(kv) == []
            await connection.execute("DELETE FROM schema_version WHERE version > 20")
            await migrate_postgres(connection, "here", postgres_fields.derive_again)
        assert await found_sliding(kv) == ["skill:o/r/slides"]


#: Takes its locks in another order than a reader.
_LOCKING = "LOCK TABLE records IN ACCESS EXCLUSIVE MODE; ALTER TABLE sketch_numbers ADD COLUMN later bigint;"
#: Somebody waits for this table.
_WAITED_FOR = "SELECT 1 FROM pg_locks WHERE relation = 'sketch_numbers'::regclass AND NOT granted"


@pytest.mark.anyio
async def test_a_migration_that_another_transaction_is_in_the_way_of_is_tried_again():
    """Whoever reads sketches and then records waits for the migration, and the migration for it."""
    location = await new_database(await asyncio.to_thread(server))
    migrations = (*MIGRATIONS, Migration(MIGRATIONS[-1].number + 1, "later", _LOCKING))
    async with postgres_kv(location) as kv:
        reader = await asyncpg.connect(location)
        async with kv._db.connection() as connection, asyncio.TaskGroup() as tasks:
            # Of the two, the migration is the one that ends.
            await reader.execute("SET deadlock_timeout = '1h'")
            async with reader.transaction():
                await reader.fetch("SELECT FROM sketch_numbers LIMIT 1")
                tasks.create_task(migrate_postgres(connection, "here", derive_nothing, migrations))
                async with asyncio.timeout(PATIENCE_S):
                    while not await reader.fetch(_WAITED_FOR):  # noqa: ASYNC110 - nobody tells
                        await asyncio.sleep(0.01)
                await reader.fetch("SELECT FROM records LIMIT 1")
        await reader.fetch("SELECT later FROM sketch_numbers")
        await reader.close()
