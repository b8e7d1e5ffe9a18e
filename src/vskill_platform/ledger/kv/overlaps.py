"""Records that have many integers of a declared list in common: what each engine reads to answer `KV.overlap`.

SQL engines keep every integer with the record that holds it in a table beside the records, filled by triggers of the
same write, so a query costs one index read per integer. Records of one family are adjacent in that index, so the
asker's own family, which may have thousands of similar records, is skipped without reading it.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from vskill_platform.domain.people.namespace import Audiences, Everything
from vskill_platform.ledger.kv.collections import AUDIENCE, RecordKind, collection_of
from vskill_platform.ledger.kv.entries import Entry, Overlap
from vskill_platform.ledger.kv.fields import column
from vskill_platform.ledger.kv.query import check_audiences, is_readable

#: Integers that more records of other families hold are ignored: they tell nothing and are expensive to read.
MOST_HOLDERS = 500
_MOST = 2**63 - 1


class OverlapQuery(msgspec.Struct, frozen=True):
    """A checked question."""

    collection: RecordKind
    numbers: tuple[int, ...]
    audiences: Audiences
    least: int
    limit: int
    #: the family whose records are left out
    without: str

    @classmethod
    def of(
        cls,
        prefix: str,
        numbers: Collection[int],
        audiences: Audiences,
        least: int,
        limit: int,
        without: str,
    ) -> "OverlapQuery":
        collection = collection_of(prefix)
        collection.check_overlap()
        check_audiences(collection, audiences)
        fitting = tuple(sorted({number for number in numbers if abs(number) <= _MOST}))
        return cls(collection, fitting, audiences, max(least, 1), limit, without)

    def order(self, shared: Mapping[str, int]) -> tuple[Overlap, ...]:
        """Those with the most first, then by key."""
        found = sorted((-count, key) for key, count in shared.items() if count >= self.least)
        return tuple(Overlap(key, -count) for count, key in found[: self.limit])


def evaluate_overlap(query: OverlapQuery, entries: Sequence[Entry]) -> tuple[Overlap, ...]:
    """The answer by reading every record of the collection."""
    collection, wanted = query.collection, frozenset(query.numbers)
    others = [entry for entry in entries if collection.family_of(entry.key) != query.without]
    held = {entry.key: wanted & collection.numbers_of(entry.value) for entry in others}
    holders = Counter(chain.from_iterable(held.values()))
    rare = {number for number, count in holders.items() if count <= MOST_HOLDERS}
    readable = (entry.key for entry in others if is_readable(collection, entry, query.audiences))
    return query.order({key: len(held[key] & rare) for key in readable})


def numbers_table(collection: RecordKind) -> str:
    """Each integer of a collection's lists, with the family and the number of the record that holds it."""
    return f"{collection.name}_numbers"


def _around(select: str) -> str:
    """One SELECT for the index before the family, and one for the index after it: with `<>` the engine would read the
    family too."""
    return " UNION ALL ".join(select.format(side=side) for side in "<>")


def sqlite_overlaps(query: OverlapQuery, now: int) -> tuple[str, list[Any]]:
    """The statement that finds keys and counts in order, and its parameters."""
    collection, table = query.collection, numbers_table(query.collection)
    numbers = msgspec.json.encode(query.numbers).decode()
    parameters: list[Any] = [numbers, query.without, query.least, now, query.limit]
    readable = ""
    if not isinstance(query.audiences, Everything):
        parameters.append(msgspec.json.encode(sorted(query.audiences)).decode())
        readable = f"AND {column(collection, AUDIENCE)} IN (SELECT value FROM json_each(?6)) "  # noqa: S608 - declared names
    holders = _around(f"SELECT 1 FROM {table} WHERE number = wanted.value AND family {{side}} ?2")  # noqa: S608
    held = _around(
        f"SELECT record FROM rare CROSS JOIN {table} AS held ON held.number = rare.number AND family {{side}} ?2"  # noqa: S608
    )
    statement = (
        "WITH rare AS MATERIALIZED (SELECT value AS number FROM json_each(?1) AS wanted WHERE "  # noqa: S608 - declared names
        f"NOT EXISTS (SELECT 1 FROM ({holders}) LIMIT 1 OFFSET {MOST_HOLDERS})), "
        f"shared AS MATERIALIZED (SELECT record, count(*) AS n FROM ({held}) "
        "GROUP BY record HAVING count(*) >= ?3) "
        "SELECT records.key, shared.n FROM shared CROSS JOIN records ON records.id = shared.record "
        f"WHERE (expires_at IS NULL OR expires_at > ?4) {readable}"
        "ORDER BY shared.n DESC, records.key LIMIT ?5"
    )
    return statement, parameters


def postgres_overlaps(query: OverlapQuery, now: int) -> tuple[str, list[object]]:
    """The statement that finds keys and counts in order, and its arguments. Its table names records by key hash."""
    collection, table = query.collection, numbers_table(query.collection)
    arguments: list[object] = [list(query.numbers), query.without, query.least, now, query.limit]
    readable = ""
    if not isinstance(query.audiences, Everything):
        arguments.append(sorted(query.audiences))
        readable = f"AND {column(collection, AUDIENCE)} = ANY ($6::text[]) "
    holders = _around(
        f"SELECT number, record FROM {table} WHERE number = wanted.number AND family {{side}} $2"  # noqa: S608
    )
    statement = (
        "WITH held AS MATERIALIZED ("  # noqa: S608 - declared names
        "SELECT one.number, one.record FROM unnest($1::bigint[]) AS wanted (number) CROSS JOIN LATERAL ("
        f"{holders} LIMIT {MOST_HOLDERS + 1}) AS one), "
        f"rare AS (SELECT number FROM held GROUP BY number HAVING count(*) <= {MOST_HOLDERS}), "
        "shared AS MATERIALIZED ("
        "SELECT record, count(*) AS n FROM held JOIN rare USING (number) GROUP BY record HAVING count(*) >= $3) "
        "SELECT records.key, shared.n FROM shared JOIN records "
        f"ON hashtextextended(records.key, 0) = shared.record AND records.collection = '{collection.name}' "
        f"WHERE (expires_at IS NULL OR expires_at > $4) {readable}"
        "ORDER BY shared.n DESC, records.key LIMIT $5"
    )
    return statement, arguments
