"""The order of what a search found, and what to mark in it. Engines give candidates; this decides, for all of them.

The better a skill fits the words, the earlier it stands; of those that fit equally well, the more established and
trusted one comes first. What cannot be installed any more comes last.
"""

from collections.abc import Iterable
from itertools import groupby

import msgspec

from vskill_platform.domain.catalogue import prefer_established
from vskill_platform.domain.search import significant_words, whole
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.domain.stems import stem
from vskill_platform.domain.synonyms import synonyms_of
from vskill_platform.domain.terms import cut_terms

#: How far a word is from being the skill's name, by where and how it occurs; a fit by a synonym is one further.
_AS_WRITTEN, _AS_FORM, _AS_SYNONYM = 0, 1, 2
#: What is added where it stands in the description, or in the owner's name.
_BESIDE_NAME = 3
#: A skill that lacks a word stands behind all that have it.
_MISSING = 12


class WantedWord(msgspec.Struct, frozen=True):
    """One word of a query, and what else counts as it."""

    text: str
    stem: str
    synonyms: frozenset[str]
    #: It may be the beginning of a word.
    is_last: bool

    def distance(self, words: Iterable[str]) -> int | None:
        """How far the nearest of these words is from it; None where none counts."""
        return min((found for word in words if (found := self._distance(word)) is not None), default=None)

    def _distance(self, word: str) -> int | None:
        if word == self.text:
            return _AS_WRITTEN
        stemmed = stem(word)
        if stemmed == self.stem or (self.is_last and word.startswith(self.text)):
            return _AS_FORM
        return _AS_SYNONYM if stemmed in self.synonyms else None


def wanted_words(text: str) -> tuple[WantedWord, ...]:
    """The words of a query that a skill is compared with."""
    words = significant_words(text)
    return tuple(
        WantedWord(word, stem(word), frozenset(synonyms_of(word)), is_last=word == words[-1])
        for word in words
    )


def rank(skills: Iterable[PublishedSkill], text: str) -> tuple[PublishedSkill, ...]:
    """The candidates of a query, best first."""
    words = wanted_words(text)
    names = {whole(text), whole(" ".join(word.text for word in words))}

    def place(skill: PublishedSkill) -> tuple[int, int, str]:
        weight = 0 if skill.listing is None else skill.listing.weight
        return _distance_of(skill, words, names), -weight, skill.canonical

    ordered = prefer_established(sorted(skills, key=place))
    return tuple(sorted(ordered, key=lambda skill: skill.listing is None))


def _distance_of(skill: PublishedSkill, words: Iterable[WantedWord], names: set[str]) -> int:
    """0 for the skill that is called so; otherwise more the further the words are from its name."""
    if not names.isdisjoint((whole(skill.name), whole(skill.slug), whole(skill.canonical))):
        return 0
    named = cut_terms(f"{skill.name} {skill.slug}")
    others = cut_terms(f"{skill.canonical} {skill.description}")
    return 1 + sum(_word_distance(word, named, others) for word in words)


def _word_distance(word: WantedWord, named: Iterable[str], others: Iterable[str]) -> int:
    in_name, beside = word.distance(named), word.distance(others)
    near = _MISSING if in_name is None else in_name
    return near if beside is None else min(near, beside + _BESIDE_NAME)


def mark_words(text: str, query: str) -> tuple[tuple[str, bool], ...]:
    """The text in pieces, and of each whether a search for the query found it."""
    words = wanted_words(query)
    pieces: list[tuple[str, bool]] = []
    for is_word, characters in groupby(text, str.isalnum):
        piece = "".join(characters)
        marked = is_word and any(word.distance(cut_terms(piece)) is not None for word in words)
        if pieces and pieces[-1][1] == marked:
            piece = pieces.pop()[0] + piece
        pieces.append((piece, marked))
    return tuple(pieces)
