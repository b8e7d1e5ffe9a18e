"""Opening a file: it is ours and known, or it is refused with an error that names it, unchanged."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from tests.database import children
from tests.support.manual_clock import ManualClock
from vskill_core.errors import NotFound, SchemaUnknown, StoreBusy, StoreCorrupt, StoreUnavailable
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.skills.search import every_term
from vskill_platform.ledger.database.migrations import APPLICATION_ID, FIRST, Migration, load_migrations
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.kv.query import Is
from vskill_platform.ledger.kv.sqlite import SqliteKV
from vskill_platform.ledger.kv.sqlite_fields import derive_again
from vskill_platform.ledger.kv.sqlite_snapshot import open_sqlite_snapshot

pytestmark = pytest.mark.anyio

MIGRATIONS = load_migrations("sqlite")
NEWEST = MIGRATIONS[-1].number


async def make(path: Path, clock: ManualClock) -> None:
    await (await SqliteDatabase.open(path, clock)).close()


async def open_with(path: Path, clock: ManualClock, further: Migration) -> SqliteDatabase:
    def blocking() -> SqliteDatabase:
        return SqliteDatabase(path, clock, migrations=(*MIGRATIONS, further), derive=derive_again)

    return await asyncio.to_thread(blocking)


def alter(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


async def refuse(path: Path, clock: ManualClock, error: type[Exception], match: str) -> None:
    """It is refused, and the file's bytes are what they were."""
    before = path.read_bytes()
    with pytest.raises(error, match=match) as caught:
        await SqliteDatabase.open(path, clock, busy_ms=100)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_a_new_file_is_ours_at_the_newest_version_and_durable(path, clock):
    database = await SqliteDatabase.open(path, clock)
    pragmas = {
        name: database.point_read(f"PRAGMA {name}")[0][0]
        for name in ("application_id", "user_version", "journal_mode")
    }
    assert pragmas == {"application_id": APPLICATION_ID, "user_version": NEWEST, "journal_mode": "wal"}
    await database.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


async def test_E16_a_newer_schema_is_refused_and_both_versions_are_named(path, clock):
    await make(path, clock)
    alter(path, "PRAGMA journal_mode = DELETE", f"PRAGMA user_version = {NEWEST + 7}")
    await refuse(path, clock, SchemaUnknown, f"version {NEWEST + 7}.*up to {NEWEST}")


@pytest.mark.parametrize("version", [1, 17, FIRST - 1])
async def test_a_file_from_before_the_first_release_is_refused_with_what_to_do(path, clock, version):
    alter(
        path,
        "CREATE TABLE records (key TEXT, value TEXT)",
        "INSERT INTO records VALUES ('sub:a', '{}')",
        f"PRAGMA application_id = {APPLICATION_ID}",
        f"PRAGMA user_version = {version}",
    )
    said = r"before release 0\.3\.0.*commit that wrote it \(vskill-platform backup FILE\).* restore FILE"
    await refuse(path, clock, SchemaUnknown, said)
    before = path.read_bytes()
    with pytest.raises(SchemaUnknown, match="vskill-platform backup FILE"):
        async with open_sqlite_snapshot(path, 0):
            pass
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE theirs (a)", "PRAGMA application_id = 1234", "PRAGMA user_version = 1"],
)
async def test_a_database_of_another_program_is_refused(path, clock, statement):
    alter(path, statement)
    await refuse(path, clock, SchemaUnknown, "another program")


async def test_a_file_that_is_no_database_is_refused(path, clock):
    path.write_bytes(b"this is no database, but it is long enough to be looked at\n" * 100)
    await refuse(path, clock, StoreCorrupt, "not a SQLite database")


async def test_an_empty_file_is_a_new_store(path, clock):
    path.touch()
    with pytest.raises(NotFound, match="no store"):
        async with open_sqlite_snapshot(path, 0):
            pass
    await make(path, clock)


async def test_a_folder_that_is_not_there_is_named(tmp_path, clock):
    with pytest.raises(StoreUnavailable, match="nowhere"):
        await SqliteDatabase.open(tmp_path / "nowhere" / "store.sqlite", clock)


async def test_a_file_that_another_process_keeps_locked_is_busy_not_broken(path, clock):
    await make(path, clock)
    other = children.start(
        """
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        print("locked", flush=True)
        sys.stdin.read()
        """,
        path,
    )
    assert await asyncio.to_thread(children.line_of, other) == "locked"
    with pytest.raises(StoreBusy, match=path.name):
        await SqliteDatabase.open(path, clock, busy_ms=100)
    children.finish(other)
    await make(path, clock)


@pytest.mark.parametrize("protected", ["file", "folder"])
def test_a_read_only_file_or_folder_is_refused_as_such(path, clock, protected):
    """As somebody who is not root, since permissions do not bind root."""
    script = f"""
        import tempfile
        protected = {protected!r}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "store.sqlite")
            asyncio.run(SqliteDatabase(path, SystemClock()).close())
            os.chmod(folder, 0o555 if protected == "folder" else 0o755)
            os.chmod(path, 0o444 if protected == "file" else 0o666)
            if os.getuid() == 0:
                os.chown(folder, 65534, 65534)
                os.seteuid(65534)
            before = open(path, "rb").read()
            try:
                SqliteDatabase(path, SystemClock())
            except PlatformError as error:
                print(error.code, path in str(error), open(path, "rb").read() == before)
            os.seteuid(os.getuid())
            os.chmod(folder, 0o755)
        """
    assert children.run(script, path) == "store_read_only True True"


async def test_a_python_with_an_old_sqlite_is_told_so(path, clock, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 26, 0))
    with pytest.raises(StoreUnavailable, match=r"3\.38\.0 or newer"):
        await SqliteDatabase.open(path, clock)
    assert not path.exists()


async def test_a_file_that_cannot_have_a_log_beside_it_is_refused(clock):
    """As on a network file system; a database in memory has the same lack."""
    with pytest.raises(StoreUnavailable, match="local disk"):
        await SqliteDatabase.open(":memory:", clock)


@pytest.mark.slow
def test_two_processes_that_open_a_new_file_at_once_both_get_it(path):
    script = """
        sys.stdin.read()
        async def main():
            kv = SqliteKV(await SqliteDatabase.open(path, SystemClock()))
            await kv.put(f"from:{os.getpid()}", b"1")
            await kv.close()
        asyncio.run(main())
        """
    for _ in range(3):
        together = [children.start(script, path) for _ in range(3)]
        # All of them have imported everything and wait for the end of their input.
        for child in together:
            children.finish(child)
        with sqlite3.connect(path) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (NEWEST,)
            assert connection.execute("SELECT count(*) FROM records").fetchone() == (3,)
        connection.close()
        path.unlink()


async def test_a_migration_that_fails_leaves_the_schema_before_it(path, clock):
    await make(path, clock)
    broken = Migration(NEWEST + 1, "broken", "CREATE TABLE half (a);\nCREATE TABLE half (a);\n")
    with pytest.raises(StoreUnavailable, match="half"):
        await open_with(path, clock, broken)
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (NEWEST,)
        assert connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'half'").fetchall() == []
    connection.close()


async def test_a_migration_may_ask_for_fields_to_be_read_again(path, clock):
    kv = SqliteKV(await SqliteDatabase.open(path, clock))
    await kv.put("sub:a", b'{"state": "RECEIVED", "skill_name": "Marrow", "updated_at": 1}')
    await kv.put("skill:b", b'{"certification": "SCANNED"}')
    await kv.close()
    alter(
        path,
        "UPDATE records SET searched = NULL, sub_state = NULL, skill_certification = 'kept'",
        "DELETE FROM sub_search",
    )
    again = Migration(NEWEST + 1, "again", "-- derive: sub\nCREATE TABLE later (a);\n")
    kv = SqliteKV(await open_with(path, clock, again))
    page = await kv.select(
        "sub:", where={"state": Is("RECEIVED")}, order_by="updated_at", audiences=EVERYTHING
    )
    assert [entry.key for entry in page.items] == ["sub:a"]
    assert [
        entry.key for entry in (await kv.search("sub:", every_term("marrow"), audiences=EVERYTHING)).items
    ] == ["sub:a"]
    assert await kv.count_by("sub:", "state", audiences=EVERYTHING) == {"RECEIVED": 1}
    assert await kv.count_by("skill:", "certification", audiences=EVERYTHING) == {"kept": 1}
    await kv.close()


async def test_only_the_store_that_knows_the_collections_can_read_their_fields_again(path, clock):
    await make(path, clock)
    again = Migration(NEWEST + 1, "again", "-- derive: sub\n")
    with pytest.raises(SchemaUnknown, match="by the record store first"):
        await asyncio.to_thread(SqliteDatabase, path, clock, migrations=(*MIGRATIONS, again))
