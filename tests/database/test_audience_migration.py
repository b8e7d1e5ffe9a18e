"""Stores from before there were audiences: ten thousand records of schema version 10 are public after the migration, in
lists, searches and counts, on both engines."""

import asyncio
import json
import sqlite3
from pathlib import Path

import asyncpg
import pytest

from tests.support.manual_clock import ManualClock
from tests.support.postgres import new_database, server
from vskill_platform.database.migrations import APPLICATION_ID, load_migrations
from vskill_platform.database.postgres import PostgresDatabase
from vskill_platform.database.sqlite import SqliteDatabase
from vskill_platform.domain.audience import EVERYTHING, PUBLIC_ONLY
from vskill_platform.kv import postgres_fields, sqlite_fields
from vskill_platform.kv.collections import COLLECTIONS, collection_holding
from vskill_platform.kv.contract import KV
from vskill_platform.kv.fields import DERIVED_COLUMNS, derive
from vskill_platform.kv.postgres import PostgresKV
from vskill_platform.kv.postgres_query import row_of
from vskill_platform.kv.query import In, Is
from vskill_platform.kv.sqlite import SqliteKV
from vskill_platform.kv.sqlite_query import index_name

pytestmark = pytest.mark.anyio

SCHEMA_10 = Path(__file__).with_name("schema_10")
SKILLS, SUBMISSIONS = 6_000, 4_000
STATES = ("RECEIVED", "PUBLISHED", "BLOCKED")


def old_records() -> dict[str, bytes]:
    """As release 10 wrote them: no record says who may read it. Some are no records at all."""
    records = {
        f"skill:o{n % 50}/r/s{n:05}": json.dumps(
            {"name": f"foo s{n}", "owner": f"o{n % 50}", "listing": {"updated_at": n, "category": "data"}}
        ).encode()
        for n in range(SKILLS)
    }
    for n in range(SUBMISSIONS):
        fields = {"state": STATES[n % 3], "updated_at": n, "created_at": n, "skill_name": f"foo s{n}"}
        records[f"sub:{n:05}"] = json.dumps(fields).encode()
    return {**records, "skill:odd": b"not json", "sub:odd": b"[]", "skill:alias:x:y": b"{}", "else": b"7"}


async def check(kv: KV) -> None:
    newest = await kv.select("skill:", audiences=PUBLIC_ONLY, order_by="listed_at", descending=True, limit=3)
    assert [entry.key for entry in newest.items] == [
        f"skill:o{n % 50}/r/s{n:05}" for n in range(SKILLS - 1, SKILLS - 4, -1)
    ]
    narrowed = await kv.select(
        "sub:", audiences=PUBLIC_ONLY, where={"state": In(STATES[:2])}, order_by="updated_at", limit=4
    )
    assert [entry.key for entry in narrowed.items] == ["sub:00000", "sub:00001", "sub:00003", "sub:00004"]
    under = await kv.select("skill:", audiences=PUBLIC_ONLY, under="o7/", limit=1_000)
    assert len(under.items) == SKILLS // 50
    assert await kv.count_by("skill:", "audience", audiences=EVERYTHING) == {"public": SKILLS, None: 1}
    assert await kv.count_by("sub:", "audience", audiences=PUBLIC_ONLY) == {"public": SUBMISSIONS}
    assert await kv.count_by("skill:", "category", audiences=PUBLIC_ONLY) == {"data": SKILLS}
    found = await kv.search("skill:", "s4711", audiences=PUBLIC_ONLY)
    assert [entry.key for entry in found.items] == ["skill:o11/r/s04711"]
    nobody = frozenset({"ns:o11"})
    assert (await kv.search("skill:", "s4711", audiences=nobody)).items == ()
    assert (await kv.select("skill:", audiences=nobody)).items == ()
    entry = await kv.get("skill:o11/r/s04711")
    assert entry is not None
    await kv.put(entry.key, json.dumps({**json.loads(entry.value), "audience": "ns:o11"}).encode())
    assert len((await kv.search("skill:", "s4711", audiences=nobody)).items) == 1
    assert (await kv.search("skill:", "s4711", audiences=PUBLIC_ONLY)).items == ()
    assert await kv.count_by("skill:", "category", audiences=nobody) == {"data": 1}
    both = await kv.select(
        "skill:", audiences=nobody | PUBLIC_ONLY, where={"owner": Is("o11")}, order_by="listed_at"
    )
    assert len(both.items) == SKILLS // 50


async def test_an_old_file_is_public(path: Path, clock: ManualClock):
    await asyncio.to_thread(make_old_file, path)
    database = await SqliteDatabase.open(path, clock, derive=sqlite_fields.derive_again)
    kv = SqliteKV(database)
    columns = [row[1] for row in database.point_read("PRAGMA table_info(records)")]
    assert columns[-1] == "value", "a column behind the value is read through the value's pages"
    found = {name for (name,) in database.point_read("SELECT name FROM sqlite_schema WHERE type = 'index'")}
    assert {name for name in found if "_by_" in name and not name.startswith("messages")} == {
        index_name(kind, index) for kind in COLLECTIONS for index in kind.indexes
    }
    assert len((await kv.list("", limit=20_000)).items) == len(old_records())
    await check(kv)
    await kv.close()


def make_old_file(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(load_migrations("sqlite")[0].script)
    script = (SCHEMA_10 / "sqlite_declared.sql").read_text()
    connection.executescript(
        "\n".join(line for line in script.splitlines() if not line.startswith("ALTER TABLE"))
    )
    known = {row[1] for row in connection.execute("PRAGMA table_info(records)")}
    names = [name for name in DERIVED_COLUMNS if name in known]
    for number, (key, value) in enumerate(old_records().items(), start=1):
        columns = dict(zip(DERIVED_COLUMNS, derive(key, value), strict=True))
        row = (number, key, number, value.decode(), *(columns[name] for name in names))
        marks = ", ".join("?" * len(row))
        connection.execute(
            f"INSERT INTO records (id, key, version, value, {', '.join(names)}) VALUES ({marks})", row
        )
        kind = collection_holding(key)
        if kind is not None:
            texts = kind.search_texts(value)
            connection.execute(
                f"INSERT INTO {kind.name}_search (rowid, {', '.join(kind.searched)}) "
                f"VALUES (?{', ?' * len(texts)})",
                (number, *texts),
            )
    connection.execute("UPDATE sequence SET version = ?, record = ?", (number, number))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 10")
    connection.commit()
    connection.close()


async def test_an_old_database_is_public():
    location = await new_database(await asyncio.to_thread(server))
    await make_old_database(location)
    kv = PostgresKV(await PostgresDatabase.open(location, derive=postgres_fields.derive_again))
    await check(kv)
    assert await kv.sweep(changes_before=0) == 0
    assert await kv.count_by("sub:", "state", audiences=PUBLIC_ONLY) == {
        state: len(range(place, SUBMISSIONS, 3)) for place, state in enumerate(STATES)
    }
    await kv.close()


FIRST_IN_POSTGRES = load_migrations("postgres")[0].script
DECLARED_IN_POSTGRES = (SCHEMA_10 / "postgres_declared.sql").read_text()


async def make_old_database(location: str) -> None:
    connection = await asyncpg.connect(location)
    await connection.execute(FIRST_IN_POSTGRES)
    await connection.execute(DECLARED_IN_POSTGRES)
    await connection.execute("CREATE TABLE schema_version (version integer NOT NULL)")
    await connection.execute("INSERT INTO schema_version VALUES (10)")
    rows = [row_of(key, value, None) for key, value in old_records().items()]
    for row in rows:
        row.pop("sub_audience", None)
        row.pop("skill_audience", None)
    await connection.execute("SELECT write_records($1, nextval('versions'))", json.dumps(rows))
    await connection.close()
