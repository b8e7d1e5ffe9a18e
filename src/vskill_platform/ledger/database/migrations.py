"""Numbered `.sql` files that make the schema, one series per engine, and the check that this release knows a database's
schema. `migrate` brings a SQLite file up to date; `ledger.database.postgres` does the same for PostgreSQL.

Files are only ever added. After them runs one generated script for the declared collections, which adds what is
missing. Where a file has a line `-- derive: COLLECTION`, that collection's columns, words and counts are computed again
from its records. All of it is one transaction.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import msgspec

from vskill_core.errors import SchemaUnknown
from vskill_platform.ledger.database.connections import begin, use_wal

#: "vskl" in ASCII: says that a SQLite file is ours.
APPLICATION_ID = 0x76736B6C

#: The schema version of release 0.3.0, the first release. Lower ones are of commits before it.
FIRST = 20

#: Marks a line of a migration that asks to compute a collection's derived data again.
_DERIVE = "-- derive: "
_ADD_COLUMN = "ALTER TABLE records ADD COLUMN "

Derive = Callable[[sqlite3.Connection, str], None]


def derive_nothing(_: sqlite3.Connection, collection: str) -> None:
    """For callers that open a file without the store that knows its collections."""
    raise SchemaUnknown(
        f"this file must be opened by the record store first, to bring {collection!r} up to date"
    )


class Migration(msgspec.Struct, frozen=True):
    """One step of the schema; its number is the schema version that it leads to."""

    number: int
    name: str
    script: str


def load_migrations(engine: str) -> tuple[Migration, ...]:
    """The package's own for `sqlite` or `postgres`, in order."""
    folder = files("vskill_platform.ledger.database") / "sql" / engine
    found = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name
    )
    return tuple(Migration(int(file.name[:4]), file.name, file.read_text("utf-8")) for file in found)


def load_declared(engine: str) -> str:
    """The script that adds what the declared collections need (`tools/declared_schema.py` writes it)."""
    script = files("vskill_platform.ledger.database") / "sql" / f"{engine}_declared.sql"
    return script.read_text("utf-8")


def collections_to_derive(migrations: Iterable[Migration]) -> tuple[str, ...]:
    """The collections that any of these steps asks to derive, each once."""
    lines = [line for one in migrations for line in one.script.splitlines() if line.startswith(_DERIVE)]
    return tuple(dict.fromkeys(line.removeprefix(_DERIVE).strip() for line in lines))


def check_version(place: str, found: int, migrations: Sequence[Migration]) -> None:
    """Refuse a schema that this release does not know; 0 is a new database."""
    newest = migrations[-1].number
    if found > newest:
        raise SchemaUnknown(
            f"{place} has schema version {found}; this release knows versions up to {newest}. "
            "Start the release that wrote it, or a newer one, or restore a backup from before the upgrade",
            file=place,
            found=found,
            known=newest,
        )
    if 0 < found < FIRST:
        raise SchemaUnknown(
            f"{place} was written by a commit before release 0.3.0 (schema version {found}), which no release opens: "
            "back it up with the commit that wrote it (vskill-platform backup FILE), then restore that file into an "
            "empty store with this release (vskill-platform restore FILE)",
            file=place,
            found=found,
            known=newest,
        )


# SQLite.


def migrate(
    connection: sqlite3.Connection,
    path: Path,
    migrations: tuple[Migration, ...],
    derive: Derive,
    busy_ms: int,
) -> None:
    """Bring the file to the newest schema, or refuse it. Two processes may do this at once."""
    check_schema(connection, path, migrations)
    use_wal(connection, busy_ms)
    begin(connection, busy_ms)
    try:
        version = check_schema(connection, path, migrations)
        _apply(connection, version, [one for one in migrations if one.number > version], derive)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        # Even if nothing is new (then it is rolled back): unlike BEGIN, this write detects a read-only file.
        connection.execute(f"PRAGMA user_version = {migrations[-1].number}")
        connection.execute("COMMIT" if version < migrations[-1].number else "ROLLBACK")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def check_schema(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> int:
    """The file's schema version, if it is ours (or empty) and one that we know."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        newest = migrations[-1].number
        raise SchemaUnknown(
            f"{path} is a database of another program (application id {application}, schema version {version}); "
            f"this release keeps its own (application id {APPLICATION_ID}, schema version {newest})",
            file=str(path),
            found=version,
            known=newest,
        )
    check_version(str(path), version, migrations)
    return int(version)


def _apply(
    connection: sqlite3.Connection, version: int, pending: Sequence[Migration], derive: Derive
) -> None:
    if not pending:
        return
    for migration in pending:
        for statement in _statements(migration.script):
            connection.execute(statement)
    columns = {row[1] for row in connection.execute("PRAGMA table_info(records)")}
    for statement in _statements(load_declared("sqlite")):
        # SQLite has no ADD COLUMN IF NOT EXISTS.
        if statement.strip().rstrip(";").removeprefix(_ADD_COLUMN) not in columns:
            connection.execute(statement)
    # A new file has nothing to compute.
    for collection in collections_to_derive(pending) if version else ():
        derive(connection, collection)


def _statements(script: str) -> Iterator[str]:
    """The single statements: `executescript` would commit by itself."""
    pending = ""
    for line in script.splitlines(keepends=True):
        if line.startswith("--") and not pending.strip():
            continue
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
