"""A PostgreSQL database filled as the product's own writes would have filled it, by COPY: the same rows
(`kv.postgres_query.row_of` makes them), the same counts, the changes of the last week, and messages for what waits.

Indexes and counts are made after the rows, which takes minutes less. `check` compares the outcome with what the
store says about it: counts with what was generated, rows with what a write of the same record gives.
"""

import csv
import io
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import Any

import asyncpg
import msgspec

from vskill_platform.domain.audience import EVERYTHING
from vskill_platform.domain.messages import submission_send
from vskill_platform.domain.states import State
from vskill_platform.env import Env
from vskill_platform.kv.collections import COLLECTIONS, SKILLS, SUBMISSIONS
from vskill_platform.kv.fields import FIELD_COLUMNS
from vskill_platform.kv.postgres_query import row_of
from vskill_platform.kv.query import Is
from vskill_platform.queue.jobs import CHANGES_KEPT_MS

_COLUMNS = ("key", "version", "collection", *FIELD_COLUMNS, "terms", "value")
_BLOCK = 2_000
_SAMPLE = 500

_INDEXES = """
SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS made FROM pg_index
WHERE indrelid = 'records'::regclass AND NOT indisprimary
"""
_COUNTS = """
INSERT INTO counts
SELECT one.collection, counted.field, coalesce(counted.value, ''), counted.value IS NOT NULL, count(*)
FROM records AS one, counted_fields(one) AS counted WHERE one.collection IS NOT NULL GROUP BY 1, 2, 3, 4
"""
_CHANGES = """
INSERT INTO changes (xid, key, version, deleted, at)
SELECT 3, key, version, false, coalesce(sub_updated_at, skill_listed_at) FROM records
WHERE coalesce(sub_updated_at, skill_listed_at) > $1 ORDER BY version
"""
_AUDIENCE_COUNTS = """
INSERT INTO audience_counts
SELECT one.collection, counted.field, coalesce(audience_of(one), ''), audience_of(one) IS NOT NULL,
    coalesce(counted.value, ''), counted.value IS NOT NULL, count(*)
FROM records AS one, counted_fields(one) AS counted WHERE one.collection IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6
"""
_NUMBERS = """
INSERT INTO sketch_numbers
SELECT DISTINCT unnest(sketch_hashes), split_part(substr(key, 8), '/', 1), hashtextextended(key, 0)
FROM records WHERE collection = 'sketch'
"""
#: Values of each counted field, by collection and field.
Counted = Counter[tuple[str, str, str | None]]


async def fill(location: str, made: Iterator[tuple[str, str]], now: int) -> Counted:
    """Rows of these keys and values, then what is made of them; the schema is there already, and empty."""
    counted: Counted = Counter()
    connection = await asyncpg.connect(location)
    try:
        await connection.execute("SET maintenance_work_mem = '512MB'")
        indexes = await connection.fetch(_INDEXES)
        for name, _ in indexes:
            await connection.execute(f"DROP INDEX {name}")
        await connection.execute("ALTER TABLE records DISABLE TRIGGER USER")
        await _copy(connection, made, counted)
        await connection.execute("ALTER TABLE records ENABLE TRIGGER USER")
        for _, definition in indexes:
            await connection.execute(definition)
        await connection.execute(_COUNTS)
        await connection.execute(_AUDIENCE_COUNTS)
        await connection.execute(_NUMBERS)
        await connection.execute(_CHANGES, now - CHANGES_KEPT_MS)
        await connection.execute("VACUUM (ANALYZE)")
    finally:
        await connection.close()
    return counted


async def _copy(
    connection: "asyncpg.Connection[Any]", made: Iterator[tuple[str, str]], counted: Counted
) -> None:
    versions = iter(range(1, 2**62))

    async def text() -> AsyncIterator[bytes]:
        while block := list(islice(made, _BLOCK)):
            yield _lines(block, versions, counted)

    await connection.copy_to_table("records", source=text(), columns=_COLUMNS, format="csv")
    await connection.execute("SELECT setval('versions', $1)", next(versions))


def _lines(block: Iterable[tuple[str, str]], versions: Iterator[int], counted: Counted) -> bytes:
    written = io.StringIO()
    writer = csv.writer(written)
    for key, value in block:
        row = {**row_of(key, value.encode(), None), "version": next(versions)}
        for kind in COLLECTIONS:
            if row.get("collection") == kind.name:
                for field in kind.counted:
                    counted[kind.name, field, row.get(f"{kind.name}_{field}")] += 1  # type: ignore[index]
        writer.writerow([_cell(row.get(name)) for name in _COLUMNS])
    return written.getvalue().encode()


def _cell(value: object) -> object:
    """A list as PostgreSQL reads one."""
    return f"{{{','.join(map(str, value))}}}" if isinstance(value, list) else value


async def send_waiting(env: Env) -> int:
    """A message for each submission that waits, as its commit would have sent it."""
    page = await env.kv.select(
        SUBMISSIONS.prefix,
        where={"state": Is(State.RECEIVED.value)},
        order_by="due_at",
        limit=1_000,
        audiences=EVERYTHING,
    )
    return await env.broker.send_batch(
        [submission_send(entry.key.removeprefix(SUBMISSIONS.prefix), 1) for entry in page.items]
    )


async def check(env: Env, location: str, counted: Counted) -> None:
    """Every count is what was generated, and every sampled row what a write of that record gives."""
    for kind in (SUBMISSIONS, SKILLS):
        for field, values in (await env.kv.count_all(kind.prefix, audiences=EVERYTHING)).items():
            wanted = {
                value: n for (name, of, value), n in counted.items() if (name, of) == (kind.name, field)
            }
            assert values == wanted, f"{kind.name}.{field}: {values} stored, {wanted} made"
    connection = await asyncpg.connect(location)
    try:
        rows = await connection.fetch(
            "SELECT row_to_json(records)::text AS row, (json_populate_record(NULL::records, "
            "json_build_object('terms', terms))).terms::text AS terms, key FROM records "
            "TABLESAMPLE BERNOULLI (100) REPEATABLE (7) ORDER BY md5(key) LIMIT $1",
            _SAMPLE,
        )
    finally:
        await connection.close()
    for row, _, key in rows:
        await _check_row(env, key, msgspec.json.decode(row))


async def _check_row(env: Env, key: str, row: dict[str, object]) -> None:
    entry = await env.kv.get(key)
    assert entry is not None
    wanted = row_of(key, entry.value, None)
    found = {name: value for name, value in row.items() if value is not None and name != "terms"}
    assert found == {**_without_terms(wanted), "version": entry.version}, key
    assert _terms(row.get("terms")) == _terms(wanted.get("terms")), key


def _without_terms(row: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if name != "terms"}


def _terms(vector: object) -> frozenset[str]:
    """Terms with their places, in whatever order they are written."""
    return frozenset(str(vector or "").split())
