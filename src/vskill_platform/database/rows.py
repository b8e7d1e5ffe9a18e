"""Many rows in one statement: every call of SQLite gives the interpreter's lock away and has to wait for it."""

from collections.abc import Sequence
from itertools import chain

from vskill_platform.database.writer import Tx

#: So few texts are ever compiled, whatever the number of rows.
_SIZES = (128, 64, 32, 16, 8, 4, 2, 1)


class Insert:
    """An INSERT of any number of rows, in one statement per power of two."""

    def __init__(self, head: str, width: int, tail: str = "") -> None:
        row = "(" + ", ".join("?" * width) + ")"
        self._statements = tuple((size, f"{head} VALUES {', '.join([row] * size)} {tail}") for size in _SIZES)

    def into(self, tx: Tx, rows: Sequence[Sequence[object]]) -> None:
        start = 0
        for size, statement in self._statements:
            while len(rows) - start >= size:
                tx.execute(statement, list(chain.from_iterable(rows[start : start + size])))
                start += size
