"""The order of what a search found, and what to mark in it. Engines give candidates; this decides, for all of them.

The better a skill fits the words, the earlier it stands; of those that fit equally well, the more established and
trusted one comes first. What cannot be installed any more comes last.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from vskill_platform.domain.skills.catalogue import prefer_established
from vskill_platform.domain.skills.search import WantedWord, wanted_words, whole
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.skills.stems import form_of
from vskill_platform.domain.skills.terms import cut_terms

#: How far a word is from being the skill's name, by where and how it occurs.
_AS_WRITTEN, _AS_FORM, _AS_SYNONYM, _AS_ANSWER = 0, 1, 2, 4
#: What is added where it stands in the description, or in the owner's name.
_BESIDE_NAME = 3
#: A skill that lacks a word stands behind all that have it.
_MISSING = 12
#: How much a light word and another one count, where nothing tells how rare they are.
_LIGHT_WEIGHT, _WEIGHT = 1, 3

#: A word as it stands, and its form.
FormedWord = tuple[str, str]


def rank(
    skills: Iterable[PublishedSkill], text: str, weights: Mapping[str, int] | None = None
) -> tuple[PublishedSkill, ...]:
    """The candidates of a query, best first. The weights say how telling each of its words is."""
    words = wanted_words(text)
    known = weights or {}
    weighed = [(known.get(word.text) or _usual_weight(word), word) for word in words]
    names = {whole(text), whole(" ".join(word.text for word in words))}

    def place(skill: PublishedSkill) -> tuple[int, int, str]:
        weight = 0 if skill.listing is None else skill.listing.weight
        return _distance_of(skill, weighed, names), -weight, skill.canonical

    ordered = prefer_established(sorted(skills, key=place))
    return tuple(sorted(ordered, key=lambda skill: skill.listing is None))


def _usual_weight(word: WantedWord) -> int:
    return _LIGHT_WEIGHT if word.is_light else _WEIGHT


def _distance_of(skill: PublishedSkill, weighed: Iterable[tuple[int, WantedWord]], names: set[str]) -> int:
    """0 for the skill that is called so; otherwise more the further the words are from its name."""
    if not names.isdisjoint((whole(skill.name), whole(skill.slug), whole(skill.canonical))):
        return 0
    named = _with_forms(f"{skill.name} {skill.slug}")
    others = _with_forms(f"{skill.canonical} {skill.description}")
    return 1 + sum(weight * _word_distance(word, named, others) for weight, word in weighed)


def _word_distance(word: WantedWord, named: Sequence[FormedWord], others: Sequence[FormedWord]) -> int:
    in_name, beside = _nearest(word, named), _nearest(word, others)
    near = _MISSING if in_name is None else in_name
    return near if beside is None else min(near, beside + _BESIDE_NAME)


def _with_forms(text: str) -> tuple[FormedWord, ...]:
    return tuple((word, form_of(word)) for word in cut_terms(text))


def _nearest(wanted: WantedWord, words: Iterable[FormedWord]) -> int | None:
    """How far the nearest of these words is from it; None where none counts."""
    return min((far for word in words if (far := _distance(wanted, *word)) is not None), default=None)


def _distance(wanted: WantedWord, word: str, form: str) -> int | None:
    if word == wanted.text:
        return _AS_WRITTEN
    if form in wanted.forms or (wanted.is_last and word.startswith(wanted.text)):
        return _AS_FORM
    if form in wanted.synonyms:
        return _AS_SYNONYM
    return _AS_ANSWER if form in wanted.related else None


def mark_words(text: str, query: str) -> tuple[tuple[str, bool], ...]:
    """The text in pieces, and of each whether a search for the query found it."""
    words = wanted_words(query)
    pieces: list[tuple[str, bool]] = []
    for is_word, characters in groupby(text, str.isalnum):
        piece = "".join(characters)
        marked = is_word and any(_nearest(word, _with_forms(piece)) is not None for word in words)
        if pieces and pieces[-1][1] == marked:
            piece = pieces.pop()[0] + piece
        pieces.append((piece, marked))
    return tuple(pieces)
