"""The declared fields of each kind of record: engines index, count and search them in the same write.

This is the one declaration: the columns, indexes, triggers and search tables of the databases are generated from it
(`tools/declared_schema.py`). Fields are read out of the stored JSON, and anything unexpected (not JSON, another type,
missing) reads as None, on every engine.
"""

from typing import Any

import msgspec

from vskill_core.errors import UnindexedQuery
from vskill_platform.domain.people.namespace import PUBLIC
from vskill_platform.domain.skills.terms import field_terms

Value = str | int | None

_MAX_INTEGER = 2**63 - 1

#: The field that says who may read a record. Queries name it by `audiences`, never as a condition.
AUDIENCE = "audience"


class Field(msgspec.Struct, frozen=True):
    """A value inside the record: the first of these paths that holds one of the right type."""

    paths: tuple[tuple[str, ...], ...]
    kind: type[str] | type[int] = str
    #: The value if the name is missing; only for a field of one path with one name.
    default: Value = None

    def read(self, value: bytes) -> Value:
        """The field of a stored value, or None."""
        return self.of(parse(value))

    def of(self, record: Any) -> Value:
        """The field of a parsed record, or None."""
        for path in self.paths:
            found = _follow(record, path)
            if self.fits(found):
                return found  # type: ignore[no-any-return]
        if self.default is not None and isinstance(record, dict) and self.paths[0][0] not in record:
            return self.default
        return None

    def fits(self, found: Any) -> bool:
        """Whether this is a value of the field's kind that every engine can hold."""
        if self.kind is int:
            return type(found) is int and -_MAX_INTEGER <= found <= _MAX_INTEGER
        # Some engines cannot store a NUL in text, so no engine does.
        return type(found) is str and "\0" not in found


def text(*path: str) -> Field:
    return Field((path,), str)


def integer(*paths: tuple[str, ...]) -> Field:
    return Field(paths, int)


class NumbersField(Field, frozen=True):
    """A list of integers. Its value is the JSON of those that every engine can hold, in order and each once, so that
    engines need not read the record."""

    def of(self, record: Any) -> Value:
        found = _follow(record, self.paths[0])
        if not isinstance(found, list):
            return None
        fitting = {one for one in found if type(one) is int and -_MAX_INTEGER <= one <= _MAX_INTEGER}
        return msgspec.json.encode(sorted(fitting)).decode()


class JoinedField(Field, frozen=True):
    """All the texts at its paths, one behind the other; only for a searched field."""

    def of(self, record: Any) -> Value:
        found = [text for path in self.paths if self.fits(text := _follow(record, path)) and text]
        return " ".join(found) or None


_READERS = Field(((AUDIENCE,),), str, PUBLIC)
#: How many of the searched fields are names.
_NAMES = 2


class RecordKind(msgspec.Struct, frozen=True):
    """A kind of record: its key prefix and what may be asked of it."""

    name: str
    prefix: str
    fields: dict[str, Field]
    #: Each serves equality on all but its last field, and order or range on its last; keys break ties. An index that
    #: begins with the audience serves every reader; others serve only the system, which asks for everything.
    indexes: tuple[tuple[str, ...], ...]
    counted: tuple[str, ...] = ()
    #: Searched fields, the most important first; the first two are names, which are also found as a whole.
    searched: tuple[str, ...] = ()
    #: The integer field that orders equally good search results, the greatest first.
    weighed: str = ""
    #: Fields that may filter a query that an index on other fields serves: each entry on the way is tested.
    facets: tuple[str, ...] = ()
    #: The field with a list of integers, by which records that share many of them are found (`KV.overlap`).
    numbers: str = ""
    #: Prefixes of keys that are not records of this kind.
    exclude: tuple[str, ...] = ()

    @property
    def has_audience(self) -> bool:
        """Whether its records say who may read them; those of other kinds are the system's own."""
        return AUDIENCE in self.fields

    def audience_of(self, value: bytes) -> str | None:
        """The audience of a stored record; None where it has none that we understand."""
        found = self.fields[AUDIENCE].read(value) if self.has_audience else None
        return found if isinstance(found, str) else None

    def counted_field(self, field: str) -> Field:
        if field not in self.counted:
            raise UnindexedQuery(f"{self.prefix}* is not counted by {field!r}; counted: {self.counted}")
        return self.fields[field]

    def holds(self, key: str) -> bool:
        """Whether this key is a record of this kind."""
        return key.startswith(self.prefix) and not key.startswith(self.exclude or ("\x00",))

    def family_of(self, key: str) -> str:
        """The part of a record's key between the prefix and the first slash."""
        return key.removeprefix(self.prefix).partition("/")[0]

    def numbers_of(self, value: bytes) -> frozenset[int]:
        """The integers of a stored record that every engine can hold; empty if it has no list."""
        found = self.fields[self.numbers].read(value) if self.numbers else None
        return (
            frozenset(msgspec.json.decode(found, type=list[int])) if isinstance(found, str) else frozenset()
        )

    def check_overlap(self) -> None:
        """Raise UnindexedQuery where no list of integers is declared."""
        if not self.numbers:
            raise UnindexedQuery(f"{self.prefix}* has no list of integers to compare")

    def search_texts(self, value: bytes) -> tuple[str, ...]:
        """The searched fields' terms, one string per field, tokenised as queries are."""
        record = parse(value)
        texts = (self.fields[name].of(record) for name in self.searched)
        return tuple(
            field_terms(found, is_name=place < _NAMES) if isinstance(found, str) else ""
            for place, found in enumerate(texts)
        )

    def weight_of(self, value: bytes) -> int | None:
        """The rank of a stored record among equally good search results."""
        found = self.fields[self.weighed].read(value)
        return found if isinstance(found, int) else None


SUBMISSIONS = RecordKind(
    name="sub",
    prefix="sub:",
    fields={
        "state": text("state"),
        "updated_at": integer(("updated_at",)),
        "created_at": integer(("created_at",)),
        #: When somebody must look at it next: the claim's end, or the next attempt.
        "due_at": integer(("claim", "until"), ("next_attempt_at",)),
        "digest": text("digest"),
        "skill_name": text("skill_name"),
        "repo_url": text("repo_url"),
        "submitter": text("submitter"),
        AUDIENCE: _READERS,
    },
    indexes=(
        (AUDIENCE, "state", "updated_at"),
        (AUDIENCE, "created_at"),
        (AUDIENCE, "submitter", "created_at"),
        # A position in the line counts only what the reader may read.
        (AUDIENCE, "state", "due_at"),
        # Queries of the system only: recovery and the line by due time; health, statistics and reviewers by the last
        # change in a dozen states, which would need one run per audience; suppressions by content.
        ("state", "due_at"),
        ("state", "updated_at"),
        ("digest",),
    ),
    counted=("state", AUDIENCE),
    facets=("state",),
    searched=("skill_name", "repo_url"),
    weighed="created_at",
)

_SKILL_FACETS = (
    *("category", "licence", "agent", "trust", "certification"),
    *("without", "provenance", "min_installs", "min_age"),
)
SKILLS = RecordKind(
    name="skill",
    prefix="skill:",
    exclude=("skill:alias:",),
    fields={
        "name": text("name"),
        #: What a plugin does, and what its skills do.
        "description": JoinedField((("description",), ("part_words",))),
        "owner": text("owner"),
        "repo": text("repo"),
        "certification": text("certification"),
        "current_digest": text("current_digest"),
        "canonical": text("canonical"),
        #: Fields for lists: an entry without a live version lacks them, so no list has to skip it.
        "listed_at": integer(("listing", "updated_at")),
        "first_at": integer(("listing", "created_at")),
        "installs": integer(("listing", "installs")),
        "category": text("listing", "category"),
        "licence": text("listing", "licence"),
        "agent": text("listing", "agent"),
        "trust": text("listing", "trust_tier"),
        "weight": integer(("listing", "weight")),
        "without": text("listing", "without"),
        "provenance": text("listing", "provenance"),
        "min_installs": text("listing", "min_installs"),
        "min_age": text("listing", "min_age"),
        AUDIENCE: _READERS,
    },
    indexes=(
        (AUDIENCE,),
        (AUDIENCE, "listed_at"),
        (AUDIENCE, "first_at"),
        (AUDIENCE, "installs"),
        (AUDIENCE, "owner", "listed_at"),
        (AUDIENCE, "category", "listed_at"),
        (AUDIENCE, "licence", "listed_at"),
        (AUDIENCE, "agent", "listed_at"),
        (AUDIENCE, "trust", "listed_at"),
        (AUDIENCE, "certification", "listed_at"),
        (AUDIENCE, "without", "listed_at"),
        # A query of the system only: which skills have this content.
        ("current_digest",),
    ),
    counted=(*_SKILL_FACETS, AUDIENCE),
    facets=("owner", *_SKILL_FACETS),
    searched=("name", "canonical", "description"),
    weighed="weight",
)

TASKS = RecordKind(
    name="task",
    prefix="task:",
    fields={
        "state": text("state"),
        "kind": text("kind"),
        "updated_at": integer(("updated_at",)),
        "due_at": integer(("claim", "until"), ("next_attempt_at",)),
    },
    indexes=(("state", "due_at"), ("kind", "updated_at")),
    counted=("state",),
)

#: Sketches of skills' texts, which find copies (`domain.verdicts.copies`). Kept apart from the skill's record, which
#: every list decodes.
SKETCHES = RecordKind(
    name="sketch",
    prefix="sketch:",
    fields={"hashes": NumbersField((("hashes",),)), AUDIENCE: _READERS},
    indexes=((AUDIENCE,),),
    counted=(AUDIENCE,),
    numbers="hashes",
)

COLLECTIONS = (SUBMISSIONS, SKILLS, TASKS, SKETCHES)


def collection_of(prefix: str) -> RecordKind:
    """The collection with this prefix; only declared ones can be queried by field."""
    for collection in COLLECTIONS:
        if collection.prefix == prefix:
            return collection
    raise UnindexedQuery(f"no collection is declared for {prefix!r}")


def collection_holding(key: str) -> RecordKind | None:
    """The collection that this key is a record of, if any."""
    return next((collection for collection in COLLECTIONS if collection.holds(key)), None)


def parse(value: bytes) -> Any:
    """The record as plain data, or None where it is not JSON."""
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _follow(record: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if not isinstance(record, dict):
            return None
        record = record.get(step)
    return record
