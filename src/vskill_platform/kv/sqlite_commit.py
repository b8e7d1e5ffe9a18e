"""Commits to the SQLite store, any number of them in one transaction with a fixed number of statements.

One statement reads what the group's commits compare with, Python decides each commit in its turn against what
the ones before it leave behind, and a few statements write the outcome. A commit that is refused leaves nothing.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from vskill_platform.database.rows import Insert
from vskill_platform.database.writer import Tx
from vskill_platform.domain.errors import Conflict, PlatformError, RecordMalformed
from vskill_platform.domain.messages import Send
from vskill_platform.kv.collections import COLLECTIONS
from vskill_platform.kv.entries import ABSENT, Add, Assert, Delete, Operation, Put
from vskill_platform.kv.sqlite_fields import DERIVED_COLUMNS, Columns, derive, search_table, write_terms

#: The watches of this channel wake when a change was written.
CHANGES = "changes"

SendIn = Callable[[Tx, Sequence[Send]], object]

#: For each wanted key that is there: id, version, expiry, hash of its texts; the value only of counters.
_LOAD = """
SELECT version, record, (
    SELECT json_group_array(json_array(r.key, r.id, r.version, r.expires_at, r.searched, iif(w.value, r.value, NULL)))
    FROM json_each(?) AS w JOIN records AS r ON r.key = w.key
) FROM sequence
"""


class Commit(msgspec.Struct, frozen=True):
    """One caller's commit, with everything computed that needs no transaction."""

    operations: tuple[Put | Delete | Assert | Add, ...]
    #: Of each put key.
    columns: dict[str, Columns]
    sends: tuple[Send, ...]


def prepare(operations: Iterable[Operation], sends: Iterable[Send]) -> Commit:
    """Read the fields of what is put. `sends` are the messages that are part of the transaction."""
    kept = tuple(operation for operation in operations if not isinstance(operation, Send))
    columns = {one.key: derive(one.key, one.value) for one in kept if isinstance(one, Put)}
    return Commit(kept, columns, tuple(sends))


class _Known(msgspec.Struct):
    """A key as the group's commits so far have left it."""

    id: int = 0
    #: ABSENT also where it has expired.
    version: int = ABSENT
    #: Hash of the texts that the search index holds.
    searched: int | None = None
    #: Of counters only.
    value: bytes | None = None


class Group:
    """The commits of one transaction."""

    def __init__(self, tx: Tx, commits: Sequence[Commit], now: int) -> None:
        self._tx = tx
        self._now = now
        self._version = 0
        self._record = 0
        self._known: dict[str, _Known] = {}
        self._rows: dict[int, tuple[object, ...]] = {}
        self._deleted: set[int] = set()
        #: By record id, where the texts changed: the collection's name and the value.
        self._texts: dict[int, tuple[str, bytes]] = {}
        self._changes: list[tuple[str, int, int, int]] = []
        self._sends: list[Send] = []
        self._load(commits)

    def _load(self, commits: Sequence[Commit]) -> None:
        wanted = {one.key: 0 for commit in commits for one in commit.operations}
        wanted.update({one.key: 1 for commit in commits for one in commit.operations if isinstance(one, Add)})
        ((self._version, self._record, found),) = self._tx.execute(
            _LOAD, (msgspec.json.encode(wanted).decode(),)
        )
        for key, *row in msgspec.json.decode(found):
            self._known[key] = self._as_known(*row)

    def _as_known(
        self, number: int, version: int, expires_at: int | None, searched: int | None, value: str | None
    ) -> _Known:
        if expires_at is not None and expires_at <= self._now:
            return _Known(number, ABSENT, searched)
        return _Known(number, version, searched, None if value is None else value.encode())

    # Deciding.

    def apply(self, commit: Commit) -> int | PlatformError:
        """The commit's version, or why it is refused."""
        for operation in commit.operations:
            refusal = self._check(operation)
            if refusal is not None:
                return refusal
        self._version += 1
        for operation in commit.operations:
            self._write(operation, commit)
        self._sends.extend(commit.sends)
        return self._version

    def _check(self, operation: Put | Delete | Assert | Add) -> PlatformError | None:
        match operation:
            case Put(key=key, if_version=wanted) | Delete(key=key, if_version=wanted) if wanted is not None:
                return self._check_version(key, wanted)
            case Assert(key=key, version=wanted):
                return self._check_version(key, wanted)
            case Add(key=key):
                return self._check_counter(key)
            case _:
                return None

    def _check_version(self, key: str, wanted: int) -> Conflict | None:
        known = self._known.get(key)
        actual = ABSENT if known is None else known.version
        if actual == wanted:
            return None
        return Conflict(f"{key} is at version {actual}, not {wanted}", key=key, version=actual)

    def _check_counter(self, key: str) -> RecordMalformed | None:
        try:
            self._counter(key)
        except ValueError:
            return RecordMalformed(f"{key} is no counter", key=key, reason="not an integer")
        return None

    def _counter(self, key: str) -> int:
        known = self._known.get(key)
        return 0 if known is None or known.version == ABSENT else int(known.value or b"")

    def _write(self, operation: Put | Delete | Assert | Add, commit: Commit) -> None:
        match operation:
            case Put(key=key, value=value, quiet=quiet, ttl_ms=ttl_ms):
                self._put(key, value, commit.columns[key], None if ttl_ms is None else self._now + ttl_ms)
                if not quiet:
                    self._changes.append((key, self._version, 0, self._now))
            case Add(key=key, n=n):
                value = b"%d" % (self._counter(key) + n)
                self._put(key, value, derive(key, value), None)
                self._changes.append((key, self._version, 0, self._now))
            case Delete(key=key):
                self._delete(key)
            case _:
                pass

    def _put(self, key: str, value: bytes, columns: Columns, expires_at: int | None) -> None:
        known = self._known.get(key)
        if known is None:
            self._record += 1
            known = self._known[key] = _Known(self._record)
        searched, collection = columns[0], columns[1]
        if isinstance(searched, int) and isinstance(collection, str) and searched != known.searched:
            self._texts[known.id] = (collection, value)
            known.searched = searched
        known.version = self._version
        known.value = value
        self._deleted.discard(known.id)
        self._rows[known.id] = (known.id, key, self._version, expires_at, *columns, value.decode())

    def _delete(self, key: str) -> None:
        known = self._known.get(key)
        if known is None or known.version == ABSENT:
            return
        self._rows.pop(known.id, None)
        self._texts.pop(known.id, None)
        self._deleted.add(known.id)
        self._changes.append((key, self._version, 1, self._now))
        known.version, known.searched, known.value = ABSENT, None, None

    # Writing.

    def flush(self, send_in: SendIn | None) -> None:
        """Write what the accepted commits amount to."""
        if self._deleted:
            delete_records(self._tx, self._deleted)
        if self._rows:
            _RECORDS.into(self._tx, list(self._rows.values()))
        if self._texts:
            self._write_texts()
        if self._changes:
            _CHANGES.into(self._tx, self._changes)
            self._tx.signals.add(CHANGES)
        if self._sends and send_in is not None:
            send_in(self._tx, self._sends)
        self._tx.execute("UPDATE sequence SET version = ?, record = ?", (self._version, self._record))

    def _write_texts(self) -> None:
        for collection in COLLECTIONS:
            rows = [
                (number, value) for number, (name, value) in self._texts.items() if name == collection.name
            ]
            if rows:
                write_terms(self._tx.connection, collection, rows)


def delete_records(tx: Tx, ids: Iterable[int]) -> None:
    """Remove records and what the search index knows of them."""
    numbers = msgspec.json.encode(list(ids)).decode()
    tx.execute("DELETE FROM records WHERE id IN (SELECT value FROM json_each(?))", (numbers,))
    for collection in COLLECTIONS:
        if collection.searched:
            table = search_table(collection)
            tx.execute(f"DELETE FROM {table} WHERE rowid IN (SELECT value FROM json_each(?))", (numbers,))  # noqa: S608


_COLUMNS = ("id", "key", "version", "expires_at", *DERIVED_COLUMNS, "value")
_RECORDS = Insert(
    f"INSERT INTO records ({', '.join(_COLUMNS)})",
    len(_COLUMNS),
    "ON CONFLICT DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS[2:]),
)
_CHANGES = Insert("INSERT INTO changes (key, version, deleted, at)", 4)
