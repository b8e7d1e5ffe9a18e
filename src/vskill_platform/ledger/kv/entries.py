"""What goes into a store and what comes out of it: operations, entries, pages. Plain data, shared by the
contract, the query language and every engine."""

import enum
from typing import Generic, TypeVar

import msgspec

from vskill_core.errors import PlatformError
from vskill_platform.domain.messages import Send
from vskill_platform.ledger.kv.collections import Value

T = TypeVar("T")

#: As `if_version`: the key must not exist.
ABSENT = 0


class Capability(enum.Enum):
    """What an engine can do beyond the core."""

    #: `get_many` and `scan` take one round trip per chunk.
    BULK_READS = "bulk reads"
    #: `select` and `count_by` are served by indexes; without it they read every record of the collection.
    INDEXES = "indexes"
    #: `search` is served by a full-text index.
    SEARCH_INDEX = "search index"
    #: `commit` takes any number of operations and applies all or none.
    ATOMIC_COMMIT = "atomic commit"
    #: `Send` is part of the commit; without it the message follows, and recovery covers the gap.
    SEND_IN_COMMIT = "send in commit"
    #: `changes` can be followed and resumed.
    CHANGES = "changes"
    #: `snapshot` shows all records as they are at one moment, while others go on writing.
    SNAPSHOT = "snapshot"
    #: What was committed survives the process and the power.
    DURABLE = "durable"
    #: Several processes may open it at once and see each other's writes.
    SHARED = "shared between processes"


class Entry(msgspec.Struct, frozen=True):
    """A stored value and the version that compare-and-swap names."""

    key: str
    value: bytes
    version: int


class StoredRecord(msgspec.Struct, frozen=True, array_like=True):
    """A record as a snapshot shows it; written as an array where it is kept in a file."""

    key: str
    value: str
    #: Set for caches only; milliseconds of the store's clock.
    expires_at: int | None = None


class Put(msgspec.Struct, frozen=True):
    """Write a value. `if_version`: None writes unconditionally, ABSENT only if the key does not exist."""

    key: str
    value: bytes
    if_version: int | None = None
    #: Emits no change: for renewals, which interest no follower.
    quiet: bool = False
    #: For caches only; durable records never expire.
    ttl_ms: int | None = None


class Delete(msgspec.Struct, frozen=True):
    """Remove a key; a missing key is no error unless a version was given."""

    key: str
    if_version: int | None = None


class Assert(msgspec.Struct, frozen=True):
    """Write nothing unless the key has this version (ABSENT: it does not exist)."""

    key: str
    version: int


class Add(msgspec.Struct, frozen=True):
    """Add to an integer counter, created at 0 if absent; raises the key's version."""

    key: str
    n: int = 1


Operation = Put | Delete | Assert | Add | Send


class Settled(msgspec.Struct, frozen=True):
    """The outcome of many reads: empty, missing and failed are different things."""

    found: dict[str, Entry]
    missing: tuple[str, ...] = ()
    failed: dict[str, PlatformError] = {}


class Page(msgspec.Struct, Generic[T], frozen=True):
    """One page of a listing; `after` is the cursor of the next one, None at the end."""

    items: tuple[T, ...]
    after: str | None = None


class EntryPage(msgspec.Struct, frozen=True):
    """One page of a range scan. Keys whose read failed are named, never dropped."""

    items: tuple[Entry, ...]
    after: str | None = None
    failed: dict[str, PlatformError] = {}


class JoinedPage(msgspec.Struct, frozen=True):
    """One page of a range scan as a single JSON array of pairs, each a key and its stored value. If a value is not
    JSON, neither is the array."""

    pairs: bytes
    #: How many pairs there are.
    count: int
    after: str | None = None
    failed: dict[str, PlatformError] = {}


class SearchCandidate(msgspec.Struct, frozen=True):
    """A record that a search found."""

    key: str
    #: The terms of its searched fields, as `domain.skills.terms.field_terms` writes them, in any order.
    texts: tuple[str, ...]
    #: The values of the requested fields.
    values: tuple[Value, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """What a search found, ordered by points (`domain.skills.search`), then weight, both descending, then key."""

    items: tuple[SearchCandidate, ...]
    truncated: bool = False


class Overlap(msgspec.Struct, frozen=True):
    """A record whose list shares some integers with the requested ones."""

    key: str
    #: How many, not counting those that too many records hold.
    shared: int


class Change(msgspec.Struct, frozen=True):
    """A key changed. The value is read from the store, and may be newer."""

    cursor: str
    key: str
    version: int
    deleted: bool
    at: int
