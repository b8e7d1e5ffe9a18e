"""Numbered `.sql` files that make the schema, and the check that this file's schema is one that we know.

`application_id` says that a file is ours, `user_version` how far it is. A file of another program, or of a newer
release, is refused before anything in it changes.
"""

import sqlite3
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import msgspec

from vskill_platform.database.connections import begin, use_wal
from vskill_platform.domain.errors import SchemaUnknown

#: "vskl" in ASCII.
APPLICATION_ID = 0x76736B6C

#: A line of a migration that asks for the derived columns of a collection's records to be computed again.
_DERIVE = "-- derive: "

Derive = Callable[[sqlite3.Connection, str], None]


def derive_nothing(_: sqlite3.Connection, collection: str) -> None:
    """For whoever opens a file without the store that knows its collections."""
    raise SchemaUnknown(
        f"this file must be opened by the record store first, to bring {collection!r} up to date"
    )


class Migration(msgspec.Struct, frozen=True):
    """One step of the schema; its number is the `user_version` that it leads to."""

    number: int
    name: str
    script: str

    def statements(self) -> Iterator[str]:
        """One statement at a time: a script run as a whole would commit by itself."""
        pending = ""
        for line in self.script.splitlines(keepends=True):
            pending += line
            if sqlite3.complete_statement(pending):
                yield pending
                pending = ""

    def derived(self) -> tuple[str, ...]:
        """Collections whose fields changed with this step."""
        lines = self.script.splitlines()
        return tuple(line.removeprefix(_DERIVE).strip() for line in lines if line.startswith(_DERIVE))


def load_migrations() -> tuple[Migration, ...]:
    """The package's own, in order, without a gap."""
    folder = files("vskill_platform.database") / "sql" / "sqlite"
    found = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name
    )
    return tuple(Migration(int(file.name[:4]), file.name, file.read_text("utf-8")) for file in found)


def migrate(
    connection: sqlite3.Connection,
    path: Path,
    migrations: tuple[Migration, ...],
    derive: Derive,
    busy_ms: int,
) -> None:
    """Bring the file to the newest schema, or refuse it. Two processes may do this at once."""
    newest = migrations[-1].number
    check_schema(connection, path, newest)
    use_wal(connection, busy_ms)
    while not _step(connection, path, migrations, derive, busy_ms):
        pass


def _step(
    connection: sqlite3.Connection,
    path: Path,
    migrations: tuple[Migration, ...],
    derive: Derive,
    busy_ms: int,
) -> bool:
    """Apply the next migration in one transaction; True if there was none left."""
    begin(connection, busy_ms)
    try:
        version = check_schema(connection, path, migrations[-1].number)
        if version == migrations[-1].number:
            # Rolled back below. A file that cannot be written is found out by this, not by BEGIN.
            connection.execute(f"PRAGMA user_version = {version}")
            return True
        _apply(connection, migrations[version], derive)
        connection.execute("COMMIT")
        return False
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def check_schema(connection: sqlite3.Connection, path: Path, newest: int) -> int:
    """The file's schema version, if it is ours (or empty) and one that we know."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise SchemaUnknown(
            f"{path} is a database of another program (application id {application}, schema version {version}); "
            f"this release keeps its own (application id {APPLICATION_ID}, schema version {newest})",
            file=str(path),
            found=version,
            known=newest,
        )
    if version > newest:
        raise SchemaUnknown(
            f"{path} has schema version {version}; this release knows versions up to {newest}. "
            "Use the release that wrote it, or a newer one",
            file=str(path),
            found=version,
            known=newest,
        )
    return int(version)


def _apply(connection: sqlite3.Connection, migration: Migration, derive: Derive) -> None:
    for statement in migration.statements():
        connection.execute(statement)
    for collection in migration.derived():
        # In a new file nothing is to be computed, whoever opens it.
        if connection.execute("SELECT EXISTS (SELECT 1 FROM records)").fetchone()[0]:
            derive(connection, collection)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {migration.number}")
