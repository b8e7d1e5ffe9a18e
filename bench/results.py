"""What a benchmark says: figures with their spread, goals with what was reached, and notes for the reader."""

import enum
import math
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

    @classmethod
    def of(cls, name: str, unit: str, samples: Sequence[float]) -> "Figure":
        return cls(name, unit, statistics.median(samples), min(samples), max(samples), len(samples))

    @property
    def spread(self) -> str:
        """The least and the most of the rounds, in words."""
        if self.rounds == 1 and self.least == self.most:
            return "one round"
        return f"{readable(self.least)} to {readable(self.most)}"


class Goal(msgspec.Struct, frozen=True):
    """Something that must hold, and how it stands in this run."""

    name: str
    value: float
    relation: Relation
    limit: float
    unit: str = TIMES

    @property
    def met(self) -> bool:
        return self.value >= self.limit if self.relation is Relation.AT_LEAST else self.value <= self.limit


class Table(msgspec.Struct, frozen=True):
    """Several facts about each of several rivals, in words."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Report(msgspec.Struct, frozen=True):
    """The outcome of one benchmark."""

    name: str
    title: str
    figures: tuple[Figure, ...]
    goals: tuple[Goal, ...]
    notes: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


def at_least(name: str, value: float, limit: float, *, unit: str = TIMES) -> Goal:
    return Goal(name, value, Relation.AT_LEAST, limit, unit)


def at_most(name: str, value: float, limit: float, *, unit: str = TIMES) -> Goal:
    return Goal(name, value, Relation.AT_MOST, limit, unit)


def readable(value: float) -> str:
    """With as many digits as mean something."""
    if math.isinf(value):
        return "never"
    if value == int(value) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"
