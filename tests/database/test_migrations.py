"""The schema's files: what was released is never changed, and what the declared collections need is there on both engines,
also in a store that is older than a declaration."""

import asyncio
import hashlib
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import msgspec
import pytest

from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_S
from tests.support.postgres import new_database, server
from tools import declared_schema
from vskill_platform.database.migrations import FIRST, Migration, load_declared, load_migrations
from vskill_platform.database.postgres import PostgresDatabase, derive_nothing
from vskill_platform.database.postgres import migrate as migrate_postgres
from vskill_platform.database.sqlite import SqliteDatabase
from vskill_platform.domain.audience import EVERYTHING
from vskill_platform.domain.errors import SchemaUnknown
from vskill_platform.kv import postgres_fields, sqlite_fields
from vskill_platform.kv.contract import KV
from vskill_platform.kv.postgres import PostgresKV
from vskill_platform.kv.query import Is
from vskill_platform.kv.sqlite import SqliteKV

ENGINES = ("sqlite", "postgres")
MIGRATIONS = load_migrations("postgres")

#: SHA-256 of every migration. A line is added with each new file, and none is ever changed: databases that had the
#: file applied would differ from those that will.
RELEASED = {
    "sqlite/0010_first.sql": "547d51f20621e7c1142f282e73a284ccfe55bf8021a2906b79e8f5c5ac6b2d8f",
    "postgres/0010_first.sql": "3fdb6ad22abcc28ca9036b3b957c201d2782fac5cb63d41564d60b0d8f955d21",
    "sqlite/0011_audience.sql": "2a1aabf2c736e0e6f2c3d9fa974fa7cdee6ca76af2d983f0e16b0b0a4b889709",
    "postgres/0011_audience.sql": "b5a165560b5d517c2319999553616d397686972d715f1c06a9b33f3847a3a291",
    "sqlite/0012_audience_in_search.sql": "b42ab6d2609622254606d32175825cd259344c928c866f93d40a313f538950c8",
    "postgres/0012_audience_in_search.sql": "7933cef4cb151addfbc165a353aa39197063200fd695ac5c66f1b4e0590fe929",
    "sqlite/0013_owner.sql": "25ab83973f4cba74de035420982705a885a9a58b22bb6d72704550d93f56e1b4",
    "postgres/0013_owner.sql": "0eba4dfde451a54cedbcc5f409ffc58b6cf44d83b613cd3d1e54aab0d5a75efd",
    "sqlite/0014_weight.sql": "4ab0975d56b87c4238bbf3be4ad63ef7cf9d3c6dcda5568adde251077ecf26b1",
    "postgres/0014_weight.sql": "4329e059ec0ac98f1bd917b34dc67ae40ca91c26b790eec32288690c978224e6",
    "sqlite/0015_sketches.sql": "85a0bbc7e2a04afd2bfccaa403fca6e7685b6f2b2737ae2539d73c73c4ec0c5f",
    "postgres/0015_sketches.sql": "71528b146a075ad66396994c0b943778245de0f996a638aa71dc9882b9614dfa",
    "sqlite/0016_sketch_families.sql": "734e27d710d9180f3f646dc511f52f09e0ccbcfc26c1ed1c339c1a3ee407e32f",
    "postgres/0016_sketch_families.sql": "f732aded81eda1d7e8830494a2d7eef6e353e850b9b850978720882c2690b68d",
    "sqlite/0017_change_numbers.sql": "47fa5bface3e280cff0ef92bf184f28797ca7188ac76f8fa9bb5223420241b17",
    "postgres/0017_change_numbers.sql": "6666091c9516636f7242d48321411b8291dda772709adeb11871e4c3803bae74",
}

#: The newest migration, and SHA-256 of the generated script that goes with it. A declaration that changes the script needs
#: a new migration, since the script is run only where one is; then both change here.
DECLARED = {
    "sqlite": (
        "0017_change_numbers.sql",
        "40b51d6a231bf2724abb44e26b46aad6337dc647ddae1a703943288e6da10ab5",
    ),
    "postgres": (
        "0017_change_numbers.sql",
        "7b4f059fe2aad0ca8892d3f676e3d413855020e0e649a53276a20b547a3fef8d",
    ),
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
        len((await kv.search("skill:", "skill", where={"trust": Is("T3")}, audiences=EVERYTHING)).items) == 3
    )
    assert await kv.count_by("skill:", "certification", audiences=EVERYTHING) == {None: 9}


async def make_older(
    path: Path, clock: ManualClock, write: Callable[[KV], Awaitable[None]], script: str
) -> None:
    """A file with these records, as the script leaves it."""
    kv = SqliteKV(await SqliteDatabase.open(path, clock))
    await write(kv)
    await kv.close()
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
    connection.close()


@pytest.mark.anyio
async def test_a_field_that_is_declared_later_is_there_in_an_older_file(path: Path, clock: ManualClock):
    await make_older(path, clock, fill, _BEFORE_SQLITE)
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


# Sketches of a store from before they stood by family.

_WITHOUT_FAMILIES_SQLITE = """
DROP TABLE sketch_numbers;
CREATE TABLE sketch_numbers (number INTEGER NOT NULL, record INTEGER NOT NULL, PRIMARY KEY (number, record)) WITHOUT ROWID;
INSERT INTO sketch_numbers SELECT held.value, records.id FROM records, json_each(sketch_hashes) AS held;
DROP TRIGGER sketch_numbers_inserted;
CREATE TRIGGER sketch_numbers_inserted AFTER INSERT ON records WHEN NEW.collection = 'sketch'
BEGIN
    INSERT OR IGNORE INTO sketch_numbers SELECT value, NEW.id FROM json_each(NEW.sketch_hashes);
END;
PRAGMA user_version = 15;
"""
_WITHOUT_FAMILIES_POSTGRES = """
DROP TABLE sketch_numbers;
CREATE TABLE sketch_numbers (number bigint NOT NULL, record bigint NOT NULL, PRIMARY KEY (number, record));
INSERT INTO sketch_numbers SELECT unnest(sketch_hashes), hashtextextended(key, 0) FROM records;
CREATE OR REPLACE FUNCTION keep_sketch_numbers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO sketch_numbers SELECT unnest(NEW.sketch_hashes), hashtextextended(NEW.key, 0) ON CONFLICT DO NOTHING;
    RETURN NULL;
END;
$$;
DELETE FROM schema_version WHERE version > 15;
"""


async def write_sketches(kv: KV) -> None:
    for name in ("mia/a", "mia/b", "ann/a", "plain"):
        await kv.put(f"sketch:{name}", msgspec.json.encode({"hashes": [1, 2, 3], "audience": "public"}))


async def check_sketches(kv: KV) -> None:
    """Those of before are found by family, changed and deleted like those that are written from now on."""
    await kv.put("sketch:zoe/a", msgspec.json.encode({"hashes": [1, 2], "audience": "public"}))
    await kv.put("sketch:ann/a", msgspec.json.encode({"hashes": [1, 9], "audience": "public"}))
    await kv.delete("sketch:plain")
    found = await kv.overlap("sketch:", (1, 2, 3), audiences=EVERYTHING, least=1, limit=9, without="mia")
    assert [(one.key, one.shared) for one in found] == [("sketch:zoe/a", 2), ("sketch:ann/a", 1)]
    found = await kv.overlap("sketch:", (1, 2, 3), audiences=EVERYTHING, least=3, limit=9, without="ann")
    assert [one.key for one in found] == ["sketch:mia/a", "sketch:mia/b"]


@pytest.mark.anyio
async def test_sketches_of_an_older_file_stand_by_family(path: Path, clock: ManualClock):
    await make_older(path, clock, write_sketches, _WITHOUT_FAMILIES_SQLITE)
    kv = SqliteKV(await SqliteDatabase.open(path, clock))
    await check_sketches(kv)
    await kv.close()


@pytest.mark.anyio
async def test_sketches_of_an_older_database_stand_by_family():
    location = await new_database(await asyncio.to_thread(server))
    async with postgres_kv(location) as kv:
        await write_sketches(kv)
        async with kv._db.connection() as connection:
            await connection.execute(_WITHOUT_FAMILIES_POSTGRES)
            await migrate_postgres(connection, "here", postgres_fields.derive_again)
        await check_sketches(kv)


#: Somebody waits for this table.
_WAITED_FOR = "SELECT 1 FROM pg_locks WHERE relation = 'sketch_numbers'::regclass AND NOT granted"


@pytest.mark.anyio
async def test_a_migration_that_another_transaction_is_in_the_way_of_is_tried_again():
    """Whoever reads sketches and then records waits for the migration, and the migration for it."""
    location = await new_database(await asyncio.to_thread(server))
    async with postgres_kv(location) as kv:
        await write_sketches(kv)
        reader = await asyncpg.connect(location)
        async with kv._db.connection() as connection, asyncio.TaskGroup() as tasks:
            await connection.execute(_WITHOUT_FAMILIES_POSTGRES)
            # Of the two, the migration is the one that ends.
            await reader.execute("SET deadlock_timeout = '1h'")
            async with reader.transaction():
                await reader.fetch("SELECT FROM sketch_numbers LIMIT 1")
                tasks.create_task(migrate_postgres(connection, "here", postgres_fields.derive_again))
                async with asyncio.timeout(PATIENCE_S):
                    while not await reader.fetch(_WAITED_FOR):  # noqa: ASYNC110 - nobody tells
                        await asyncio.sleep(0.01)
                await reader.fetch("SELECT FROM records LIMIT 1")
        await reader.close()
        await check_sketches(kv)
