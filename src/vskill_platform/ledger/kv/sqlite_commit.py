"""Commits to the SQLite store, any number of them in one transaction with a fixed number of statements.

One statement reads what the group's commits compare with, Python decides the commits one after another, each against
the state that the earlier ones leave, and a few statements write the outcome. A refused commit leaves nothing.

SQLite updates every index on an assigned column, even if the value does not change. So an existing record is written by
a statement that assigns only the columns that differ.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import compress
from operator import ne

import msgspec

from vskill_core.errors import Conflict, PlatformError, RecordMalformed
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.database.writer import Insert, Tx
from vskill_platform.ledger.kv.collections import COLLECTIONS, Value
from vskill_platform.ledger.kv.entries import ABSENT, Add, Assert, Delete, Operation, Put
from vskill_platform.ledger.kv.fields import DERIVED_COLUMNS, Columns, derive
from vskill_platform.ledger.kv.sqlite_fields import STORED_FIELDS, columns_from, search_table, write_terms

#: The watches of this channel wake when a change was written.
CHANGES = "changes"

SendIn = Callable[[Tx, Sequence[Send]], object]

#: For each wanted key that exists: id, version, expiry, hash of its texts, its fields; the value only of counters.
_LOAD = f"""
SELECT version, record, (
    SELECT json_group_array(json_array(
        r.key, r.id, r.version, r.expires_at, r.searched, r.collection, json({STORED_FIELDS}),
        iif(w.value, r.value, NULL)
    ))
    FROM json_each(?) AS w JOIN records AS r ON r.key = w.key
) FROM sequence
"""  # noqa: S608 - declared names only


class Commit(msgspec.Struct, frozen=True):
    """One caller's commit, with everything that can be computed outside the transaction."""

    operations: tuple[Put | Delete | Assert | Add, ...]
    #: By put key.
    columns: dict[str, Columns]
    sends: tuple[Send, ...]


def prepare(operations: Iterable[Operation], sends: Iterable[Send]) -> Commit:
    """Compute the columns of the put records. `sends` are the messages that are part of the transaction."""
    kept: list[Put | Delete | Assert | Add] = []
    columns: dict[str, Columns] = {}
    for one in operations:
        if isinstance(one, Put):
            columns[one.key] = derive(one.key, one.value)
        elif isinstance(one, Send):
            continue
        kept.append(one)
    return Commit(tuple(kept), columns, tuple(sends))


class _Known(msgspec.Struct):
    """A key as the group's commits so far have left it."""

    id: int = 0
    #: ABSENT also if it has expired.
    version: int = ABSENT
    #: Hash of the texts that the search index holds.
    searched: Value = None
    #: For counters only.
    value: bytes | None = None
    #: The columns of `_COMPARED` as the file has them; None where the group makes the record.
    stored: Columns | None = None


class CommitGroup:
    """The commits of one transaction."""

    def __init__(self, tx: Tx, commits: Sequence[Commit], now: int) -> None:
        self._tx = tx
        self._now = now
        self._version = 0
        self._record = 0
        self._known: dict[str, _Known] = {}
        #: By record id: the columns of `_COLUMNS`, and those of `_COMPARED` as the file has them.
        self._rows: dict[int, tuple[tuple[object, ...], Columns | None]] = {}
        self._deleted: set[int] = set()
        #: By record id, where the texts changed: the collection's name and the value.
        self._texts: dict[int, tuple[str, bytes]] = {}
        self._changes: list[tuple[str, int, int, int]] = []
        self._sends: list[Send] = []
        self._load(commits)

    def _load(self, commits: Sequence[Commit]) -> None:
        wanted: dict[str, int] = {}
        for commit in commits:
            for one in commit.operations:
                if isinstance(one, Add):
                    wanted[one.key] = 1
                else:
                    wanted.setdefault(one.key, 0)
        ((self._version, self._record, found),) = self._tx.execute(
            _LOAD, (msgspec.json.encode(wanted).decode(),)
        )
        for key, *row in msgspec.json.decode(found):
            self._known[key] = self._as_known(*row)

    def _as_known(
        self,
        number: int,
        version: int,
        expires_at: int | None,
        searched: int | None,
        collection: str | None,
        fields: list[Value] | None,
        value: str | None,
    ) -> _Known:
        stored = (expires_at, *columns_from(searched, collection, fields))
        if expires_at is not None and expires_at <= self._now:
            return _Known(number, ABSENT, searched, stored=stored)
        return _Known(number, version, searched, None if value is None else value.encode(), stored)

    # Deciding.

    def apply(self, commit: Commit) -> int | PlatformError:
        """The commit's version, or why it is refused."""
        for operation in commit.operations:
            refusal = self._check(operation)
            if refusal is not None:
                return refusal
        self._version += 1
        for operation in commit.operations:
            key = operation.key
            if isinstance(operation, Put):
                expires_at = None if operation.ttl_ms is None else self._now + operation.ttl_ms
                self._write(key, operation.value, commit.columns[key], expires_at, quiet=operation.quiet)
            elif isinstance(operation, Add):
                value = b"%d" % (self._counter(key) + operation.n)
                self._write(key, value, derive(key, value), None)
            elif isinstance(operation, Delete):
                self._delete(key)
        self._sends.extend(commit.sends)
        return self._version

    def _check(self, operation: Put | Delete | Assert | Add) -> PlatformError | None:
        key = operation.key
        if isinstance(operation, Add):
            try:
                self._counter(key)
            except ValueError:
                return RecordMalformed(f"{key} is no counter", key=key, reason="not an integer")
            return None
        wanted = operation.version if isinstance(operation, Assert) else operation.if_version
        known = self._known.get(key)
        actual = ABSENT if known is None else known.version
        if wanted is None or actual == wanted:
            return None
        return Conflict(f"{key} is at version {actual}, not {wanted}", key=key, version=actual)

    def _counter(self, key: str) -> int:
        known = self._known.get(key)
        return 0 if known is None or known.version == ABSENT else int(known.value or b"")

    def _write(
        self, key: str, value: bytes, columns: Columns, expires_at: int | None, *, quiet: bool = False
    ) -> None:
        known = self._known.get(key)
        if known is None:
            self._record += 1
            known = self._known[key] = _Known(self._record)
        searched, collection = columns[0], columns[1]
        if searched is not None and isinstance(collection, str) and searched != known.searched:
            self._texts[known.id] = (collection, value)
            known.searched = searched
        known.version = self._version
        known.value = value
        self._deleted.discard(known.id)
        row = (known.id, key, self._version, value.decode(), expires_at, *columns)
        self._rows[known.id] = (row, known.stored)
        if not quiet:
            self._changes.append((key, self._version, 0, self._now))

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
        """Write the combined result of the accepted commits."""
        if self._deleted:
            delete_records(self._tx, self._deleted)
        self._write_rows()
        if self._texts:
            self._write_texts()
        if self._changes:
            _CHANGES.into(self._tx, self._changes)
            self._tx.signals.add(CHANGES)
        if self._sends and send_in is not None:
            send_in(self._tx, self._sends)
        self._tx.execute("UPDATE sequence SET version = ?, record = ?", (self._version, self._record))

    def _write_rows(self) -> None:
        """One statement for new records outside collections, which have no fields; for the others one statement per
        set of differing columns."""
        plain: list[tuple[object, ...]] = []
        by_columns: dict[tuple[str, ...], list[tuple[object, ...]]] = {}
        for row, stored in self._rows.values():
            if stored is None and row[_COLLECTION] is None:
                plain.append(row[:_COLLECTION])
            else:
                by_columns.setdefault(_differing(row, stored), []).append(row)
        if plain:
            _PLAIN.into(self._tx, plain)
        for columns, rows in by_columns.items():
            _upsert(columns).into(self._tx, rows)

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


#: Compared with what is stored; the columns before these are always written.
_COMPARED = ("expires_at", *DERIVED_COLUMNS)
_COLUMNS = ("id", "key", "version", "value", *_COMPARED)
_ALWAYS = len(_COLUMNS) - len(_COMPARED)
_COLLECTION = _COLUMNS.index("collection")


def _differing(row: tuple[object, ...], stored: Columns | None) -> tuple[str, ...]:
    """The columns that differ from the stored row; none for a new row, which is inserted whole."""
    if stored is None:
        return ()
    return tuple(compress(_COMPARED, map(ne, row[_ALWAYS:], stored)))


@lru_cache(maxsize=64)
def _upsert(columns: tuple[str, ...]) -> Insert:
    """Inserts new records whole; of existing ones it updates version, value and these columns."""
    assigned = ", ".join(f"{name} = excluded.{name}" for name in ("version", "value", *columns))
    return Insert(
        f"INSERT INTO records ({', '.join(_COLUMNS)})", len(_COLUMNS), f"ON CONFLICT DO UPDATE SET {assigned}"
    )


_PLAIN = Insert(f"INSERT INTO records ({', '.join(_COLUMNS[:_COLLECTION])})", _COLLECTION)
_CHANGES = Insert("INSERT INTO changes (key, version, deleted, at)", 4)
