"""Many rows in one statement: every call of SQLite gives the interpreter's lock away and has to wait for it."""

from collections.abc import Sequence
from itertools import chain

from vskill_platform.ledger.database.writer import Tx

#: Up to so many rows are one statement of just that size; more are cut into statements of so many.
_WHOLE = 32


class Insert:
    """An INSERT of any number of rows. Each size is compiled once, when it first occurs."""

    def __init__(self, head: str, width: int, tail: str = "") -> None:
        self._head = head
        self._row = "(" + ", ".join("?" * width) + ")"
        self._tail = tail
        self._statements: dict[int, str] = {}

    def into(self, tx: Tx, rows: Sequence[Sequence[object]]) -> None:
        for start in range(0, len(rows), _WHOLE):
            some = rows[start : start + _WHOLE]
            tx.execute(self._statement(len(some)), list(chain.from_iterable(some)))

    def _statement(self, size: int) -> str:
        statement = self._statements.get(size)
        if statement is None:
            values = ", ".join([self._row] * size)
            statement = self._statements[size] = f"{self._head} VALUES {values} {self._tail}"
        return statement
