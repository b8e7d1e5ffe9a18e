"""What the databases keep for the declared collections, written from the one declaration in
`ledger/kv/collections.py`: a
column for each field that an index or a count names, the indexes, what keeps the counts, and what is searched.

Each script may be run over a database that has some of it already: it adds what is missing and replaces functions and
triggers. It removes nothing; a migration does that.
"""

# ruff: noqa: S608 - statements made of declared names; nobody's input is among them

from collections.abc import Iterator
from pathlib import PurePosixPath

from vskill_platform.ledger.kv.collections import AUDIENCE, COLLECTIONS, RecordKind
from vskill_platform.ledger.kv.fields import FIELD_COLUMNS, column, kept_fields
from vskill_platform.ledger.kv.overlaps import numbers_table
from vskill_platform.ledger.kv.sqlite_fields import search_columns, search_table
from vskill_platform.ledger.kv.sqlite_query import index_name, narrow_index

_FOLDER = PurePosixPath("src/vskill_platform/ledger/database/sql")
SQLITE, POSTGRES = str(_FOLDER / "sqlite_declared.sql"), str(_FOLDER / "postgres_declared.sql")

_HEAD = """\
-- Written by `make reference` from kv/collections.py: change the declaration, not this file. It is run after the
-- migrations, over a new database or one that has some of it already, and removes nothing.
"""


def sqlite() -> str:
    return _HEAD + "".join("\n" + "\n".join(_sqlite_of(kind)) + "\n" for kind in COLLECTIONS)


def postgres() -> str:
    parts = ["\n".join(_postgres_of(kind)) for kind in COLLECTIONS]
    return _HEAD + "\n" + "\n\n".join([*parts, _counted_fields(), _audience_of(), _write_records()]) + "\n"


def _indexes(kind: RecordKind) -> Iterator[str]:
    for fields in kind.indexes:
        columns = ", ".join([*(column(kind, name) for name in fields), "key"])
        yield (
            f"CREATE INDEX IF NOT EXISTS {index_name(kind, fields)} ON records ({columns})\n"
            f"    WHERE collection = '{kind.name}';"
        )


# SQLite.


def _sqlite_of(kind: RecordKind) -> Iterator[str]:
    for name in kept_fields(kind):
        yield f"ALTER TABLE records ADD COLUMN {column(kind, name)};"
    yield from _indexes(kind)
    for name in kind.counted:
        yield from _count_triggers(kind, name)
    if kind.searched:
        columns = ", ".join(search_columns(kind))
        yield (
            f"CREATE VIRTUAL TABLE IF NOT EXISTS {search_table(kind)}\n"
            f"    USING fts5 ({columns}, detail = column, tokenize = 'ascii');"
        )
        yield (
            f"CREATE INDEX IF NOT EXISTS {narrow_index(kind)} ON records ({_narrow_columns(kind)})\n"
            f"    WHERE collection = '{kind.name}';"
        )
    if kind.numbers:
        yield from _sqlite_numbers(kind)


def _sqlite_numbers(kind: RecordKind) -> Iterator[str]:
    """The integers of its lists, which stand as JSON in their column, as the contract itself reads them."""
    table, listed = numbers_table(kind), column(kind, kind.numbers)
    yield (
        f"CREATE TABLE IF NOT EXISTS {table} (\n    number INTEGER NOT NULL,\n    family TEXT NOT NULL,\n"
        "    record INTEGER NOT NULL,\n    PRIMARY KEY (number, family, record)\n) WITHOUT ROWID;"
    )
    added = (
        f"    INSERT OR IGNORE INTO {table}\n"
        f"        SELECT value, {_sqlite_family(kind, 'NEW')}, NEW.id FROM json_each(NEW.{listed});\n"
    )
    removed = (
        f"    DELETE FROM {table} WHERE family = {_sqlite_family(kind, 'OLD')}\n"
        f"        AND record = OLD.id AND number IN (SELECT value FROM json_each(OLD.{listed}));\n"
    )
    yield _trigger(f"{table}_inserted", f"AFTER INSERT ON records WHEN NEW.collection = '{kind.name}'", added)
    yield _trigger(
        f"{table}_deleted", f"AFTER DELETE ON records WHEN OLD.collection = '{kind.name}'", removed
    )
    yield _trigger(
        f"{table}_changed",
        f"AFTER UPDATE OF {listed} ON records\n"
        f"    WHEN NEW.collection = '{kind.name}' AND OLD.{listed} IS NOT NEW.{listed}",
        removed + added,
    )


def _sqlite_family(kind: RecordKind, row: str) -> str:
    """What `RecordKind.family_of` says of a record's key."""
    name = f"substr({row}.key, {len(kind.prefix) + 1})"
    return f"substr({name}, 1, instr({name} || '/', '/') - 1)"


def _narrow_columns(kind: RecordKind) -> str:
    """What ordering the matches of a search needs, by the record's number: the records are many times as wide. The
    collection is the same in all of it, but SQLite reads the record where a column that is asked for is missing."""
    fields = (column(kind, name) for name in (kind.weighed, AUDIENCE))
    return ", ".join(["id", *fields, "expires_at", "key", "collection"])


def _count_triggers(kind: RecordKind, name: str) -> Iterator[str]:
    """They keep the sums over everything, and beside them those of each audience."""
    field, audience = column(kind, name), column(kind, AUDIENCE)
    is_kind = f".collection = '{kind.name}'"
    one_more = (
        f"    INSERT INTO counts VALUES ('{kind.name}', '{name}', ifnull(NEW.{field}, x''), 1)\n"
        "        ON CONFLICT DO UPDATE SET n = n + 1;\n"
    )
    one_less = (
        "    UPDATE counts SET n = n - 1\n"
        f"        WHERE collection = '{kind.name}' AND field = '{name}' AND value = ifnull(OLD.{field}, x'');\n"
    )
    watched, changed = field, f"OLD.{field} IS NOT NEW.{field}"
    if kind.has_audience:
        one_more += (
            "    INSERT INTO audience_counts\n"
            f"        VALUES ('{kind.name}', '{name}', ifnull(NEW.{audience}, x''), ifnull(NEW.{field}, x''), 1)\n"
            "        ON CONFLICT DO UPDATE SET n = n + 1;\n"
        )
        one_less += (
            "    UPDATE audience_counts SET n = n - 1\n"
            f"        WHERE collection = '{kind.name}' AND field = '{name}'\n"
            f"            AND audience = ifnull(OLD.{audience}, x'') AND value = ifnull(OLD.{field}, x'');\n"
        )
        if name != AUDIENCE:
            watched = f"{field}, {audience}"
            changed = f"({changed} OR OLD.{audience} IS NOT NEW.{audience})"
    yield _trigger(f"{field}_inserted", f"AFTER INSERT ON records WHEN NEW{is_kind}", one_more)
    yield _trigger(f"{field}_deleted", f"AFTER DELETE ON records WHEN OLD{is_kind}", one_less)
    yield _trigger(
        f"{field}_changed",
        f"AFTER UPDATE OF {watched} ON records\n    WHEN NEW{is_kind} AND {changed}",
        one_less + one_more,
    )


def _trigger(name: str, when: str, body: str) -> str:
    return f"DROP TRIGGER IF EXISTS {name};\nCREATE TRIGGER {name} {when}\nBEGIN\n{body}END;"


# PostgreSQL.


def _postgres_of(kind: RecordKind) -> Iterator[str]:
    for name in kept_fields(kind):
        sort = "bigint" if kind.fields[name].kind is int else 'text COLLATE "C"'
        if name == kind.numbers:
            sort = "bigint[]"
        yield f"ALTER TABLE records ADD COLUMN IF NOT EXISTS {column(kind, name)} {sort};"
    yield from _indexes(kind)
    if kind.searched:
        # The words with the audience.
        readers = f", (ARRAY[{column(kind, AUDIENCE)}])" if kind.has_audience else ""
        words = f"(CASE WHEN collection = '{kind.name}' THEN terms END)"
        yield (
            f"CREATE INDEX IF NOT EXISTS {kind.name}_words ON records USING gin ({words}{readers})\n"
            f"    WHERE {words} IS NOT NULL;"
        )
        yield f"CREATE STATISTICS IF NOT EXISTS {kind.name}_words_common ON {words}\n    FROM records;"
    if kind.numbers:
        yield from _postgres_numbers(kind)


def _postgres_numbers(kind: RecordKind) -> Iterator[str]:
    """The integers of its lists by the hash of the record's key, which is much shorter than the key. The write fills
    the column, and triggers fill the table."""
    table, listed = numbers_table(kind), column(kind, kind.numbers)
    yield (
        f"CREATE TABLE IF NOT EXISTS {table} (\n    number bigint NOT NULL,\n"
        '    family text COLLATE "C" NOT NULL,\n    record bigint NOT NULL,\n'
        "    PRIMARY KEY (number, family, record)\n);"
    )
    yield (
        f"CREATE INDEX IF NOT EXISTS {kind.name}_by_hash ON records (hashtextextended(key, 0))\n"
        f"    WHERE collection = '{kind.name}';"
    )
    removed = (
        f"    IF TG_OP <> 'INSERT' THEN\n        DELETE FROM {table}\n"
        f"        WHERE number = ANY (OLD.{listed}) AND family = {_postgres_family(kind, 'OLD')}\n"
        "            AND record = hashtextextended(OLD.key, 0);\n    END IF;\n"
    )
    added = (
        f"    IF TG_OP <> 'DELETE' THEN\n        INSERT INTO {table}\n"
        f"        SELECT unnest(NEW.{listed}), {_postgres_family(kind, 'NEW')}, hashtextextended(NEW.key, 0)\n"
        "        ON CONFLICT DO NOTHING;\n    END IF;\n"
    )
    yield (
        f"CREATE OR REPLACE FUNCTION keep_{table}() RETURNS trigger LANGUAGE plpgsql AS $$\n"
        f"BEGIN\n{removed}{added}    RETURN NULL;\nEND;\n$$;"
    )
    for name, event, row in (
        ("inserted", "INSERT", "NEW"),
        ("changed", "UPDATE", "NEW"),
        ("deleted", "DELETE", "OLD"),
    ):
        yield (
            f"DROP TRIGGER IF EXISTS {table}_{name} ON records;\n"
            f"CREATE TRIGGER {table}_{name} AFTER {event} ON records\n"
            f"    FOR EACH ROW WHEN ({row}.collection = '{kind.name}') EXECUTE FUNCTION keep_{table}();"
        )


def _postgres_family(kind: RecordKind, row: str) -> str:
    """What `RecordKind.family_of` says of a record's key."""
    return f"split_part(substr({row}.key, {len(kind.prefix) + 1}), '/', 1)"


def _counted_fields() -> str:
    rows = ",\n".join(
        f"        ('{kind.name}', '{name}', one.{column(kind, name)})"
        for kind in COLLECTIONS
        for name in kind.counted
    )
    return (
        "-- The fields of a record that are counted, with their values.\n"
        "CREATE OR REPLACE FUNCTION counted_fields(one records) RETURNS TABLE (field text, value text)\n"
        "LANGUAGE sql IMMUTABLE AS $$\n"
        f"    SELECT counted.field, counted.value FROM (VALUES\n{rows}\n"
        "    ) AS counted (collection, field, value) WHERE counted.collection = one.collection;\n"
        "$$;"
    )


def _audience_of() -> str:
    whens = "\n".join(
        f"        WHEN '{kind.name}' THEN one.{column(kind, AUDIENCE)}"
        for kind in COLLECTIONS
        if kind.has_audience
    )
    return (
        "-- Who may read a record; NULL where it does not say.\n"
        "CREATE OR REPLACE FUNCTION audience_of(one records) RETURNS text\n"
        "LANGUAGE sql IMMUTABLE AS $$\n"
        f"    SELECT CASE one.collection\n{whens}\n    END;\n"
        "$$;"
    )


def _write_records() -> str:
    names = ("version", "expires_at", "collection", *FIELD_COLUMNS, "terms", "value")
    assigned = ",\n".join(f"        {name} = excluded.{name}" for name in names)
    return (
        "-- Write records, given as rows of the table without their version.\n"
        "CREATE OR REPLACE FUNCTION write_records(puts json, number bigint) RETURNS void LANGUAGE plpgsql AS $$\n"
        "DECLARE\n    base records;\nBEGIN\n    base.version := number;\n"
        "    INSERT INTO records SELECT * FROM json_populate_recordset(base, puts)\n"
        f"    ON CONFLICT (key) DO UPDATE SET\n{assigned};\nEND;\n$$;"
    )
