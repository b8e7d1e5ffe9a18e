"""What a benchmark says: figures with their spread, goals with what was reached, and notes for the reader."""

import enum
import statistics
from collections.abc import Sequence

import msgspec

TIMES = "\N{MULTIPLICATION SIGN}"


class Relation(enum.StrEnum):
    """On which side of its limit a goal lies."""

    AT_LEAST = "≥"
    AT_MOST = "≤"


class Figure(msgspec.Struct, frozen=True):
    """One measured quantity: the median of its rounds, and the least and the most of them."""

    name: str
    unit: str
    median: float
    least: float
    most: float
    rounds: int = 1
    note: str = ""

    @classmethod
    def of(cls, name: str, unit: str, samples: Sequence[float], note: str = "") -> "Figure":
        return cls(name, unit, statistics.median(samples), min(samples), max(samples), len(samples), note)


class Goal(msgspec.Struct, frozen=True):
    """Something that must hold, and how it stands in this run."""

    name: str
    value: float
    relation: Relation
    limit: float
    unit: str = TIMES
    #: Better than what must be; None where there is no such wish.
    wish: float | None = None

    @property
    def met(self) -> bool:
        return self._reaches(self.limit)

    @property
    def wish_met(self) -> bool | None:
        return None if self.wish is None else self._reaches(self.wish)

    def _reaches(self, limit: float) -> bool:
        return self.value >= limit if self.relation is Relation.AT_LEAST else self.value <= limit


class Report(msgspec.Struct, frozen=True):
    """The outcome of one benchmark."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    goals: tuple[Goal, ...]
    notes: tuple[str, ...] = ()


def at_least(name: str, value: float, limit: float, *, wish: float | None = None, unit: str = TIMES) -> Goal:
    return Goal(name, value, Relation.AT_LEAST, limit, unit, wish)


def at_most(name: str, value: float, limit: float, *, unit: str = TIMES) -> Goal:
    return Goal(name, value, Relation.AT_MOST, limit, unit)
