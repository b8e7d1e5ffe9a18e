"""What a search looks for: the marked terms of a record, and a text as steps, each a wider net than the one before it.

Records and queries are cut here and nowhere else. An engine only finds which records hold which terms, and gives the
first ones in the order of the steps; so every engine gives the same. Beside its words a record has marked terms: a
whole name without its gaps, and the stems of words.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations

import msgspec

from vskill_platform.domain.stems import stem
from vskill_platform.domain.synonyms import synonyms_of
from vskill_platform.domain.terms import MAX_TERM, cut_terms

#: No letter or digit, so no word begins with one; beyond ASCII, where SQLite's tokenizer does not split.
WHOLE, STEM = "¶", "≈"
#: More words of a query than this are looked for all together or not at all.
MOST_LOOSENED = 8
#: Words of a question that say nothing about the skill, where other words are left.
_FILLERS = """
a about all am an and any are as at be been best by can could did do does doing done for from get give good had has
have help how i if in into is it its let like looking me my need no not of on one or our out please should skill skills
some so that the their them then there these they this to too up us use using want was way we were what when where which
who why will with without would you your
"""
FILLERS = frozenset(_FILLERS.split())


class Lexeme(msgspec.Struct, frozen=True):
    """A term that a record must hold, or the beginning of one."""

    text: str
    is_prefix: bool = False

    def is_among(self, terms: Collection[str]) -> bool:
        return any(term.startswith(self.text) for term in terms) if self.is_prefix else self.text in terms


#: Any of them.
AnyOf = tuple[Lexeme, ...]


class SearchStep(msgspec.Struct, frozen=True):
    """One net: a record is in it if it meets all parts of one of the ways."""

    ways: tuple[tuple[AnyOf, ...], ...]
    #: Only the most telling field counts.
    in_name: bool = False

    def holds(self, named: Collection[str], terms: Collection[str]) -> bool:
        """Whether a record with these terms, in its most telling field and in all, is in the net."""
        held = named if self.in_name else terms
        return any(all(any(one.is_among(held) for one in part) for part in way) for way in self.ways)


# Records.


def field_terms(text: str, *, is_name: bool) -> tuple[str, ...]:
    """All terms of one searched field; those of a name or a path also by its whole and by its last part."""
    words = cut_terms(text)
    stems = (STEM + stem(word) for word in words if stem(word) != word)
    wholes = (WHOLE + one for one in (whole(text), whole(text.rpartition("/")[2]))) if is_name else ()
    return tuple(dict.fromkeys((*words, *(one for one in wholes if one != WHOLE), *stems)))


def whole(text: str) -> str:
    """A name without its gaps, case and accents: "Code Review", "code-review" and "codereview" are one."""
    return "".join(cut_terms(text))[:MAX_TERM]


# Queries.


def significant_words(text: str) -> tuple[str, ...]:
    """The words of a query without those that say nothing, unless it has no others."""
    words = cut_terms(text)
    return tuple(word for word in words if word not in FILLERS) or words


def plan_search(text: str, *, loosely: bool = False) -> tuple[SearchStep, ...]:
    """The steps of a search, the closest first; none where the text has no words.

    A whole name, all words in the name, the beginning of a whole name, all words anywhere, and all words by their stems
    and synonyms. The last word may be the beginning of one. Loosely, half of the words may be missing.
    """
    words = significant_words(text)
    if not words:
        return ()
    if loosely:
        ways = tuple(_loosened(tuple(_related(word, is_last=word == words[-1]) for word in words)))
        return (SearchStep(ways),) if ways else ()
    wholes = dict.fromkeys((whole(text), "".join(words)[:MAX_TERM]))
    every = (tuple((Lexeme(word, word == words[-1]),) for word in words),)
    related = tuple(_related(word, is_last=word == words[-1]) for word in words)
    return (
        SearchStep(((tuple(Lexeme(WHOLE + one) for one in wholes),),)),
        SearchStep(every, in_name=True),
        SearchStep(((tuple(Lexeme(WHOLE + one, is_prefix=True) for one in wholes),),)),
        SearchStep(every),
        SearchStep((related,)),
    )


def _related(word: str, *, is_last: bool) -> AnyOf:
    """The word, its stem, and what else is called so. A plain term may be the stem itself."""
    stems = dict.fromkeys((stem(word), *synonyms_of(word)))
    plain = (Lexeme(one) for one in stems if one != word)
    return (Lexeme(word, is_last), *plain, *(Lexeme(STEM + one) for one in stems))


def _loosened(parts: Sequence[AnyOf]) -> Iterator[tuple[AnyOf, ...]]:
    """Every choice of parts that is enough: half of them or more."""
    if 1 < len(parts) <= MOST_LOOSENED:
        yield from combinations(parts, (len(parts) + 1) // 2)


def step_of(steps: Sequence[SearchStep], named: Collection[str], terms: Collection[str]) -> int | None:
    """The first step that a record is in; None where it is in none."""
    return next((place for place, step in enumerate(steps) if step.holds(named, terms)), None)
