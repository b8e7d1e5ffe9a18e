"""What a search looks for: the marked terms of a record, and a text as steps, each a wider net than the one before it.

Records and queries are cut here and nowhere else. An engine only finds which records hold which terms, and gives the
first ones in the order of the steps; so every engine gives the same. Beside its words a record has marked terms: a
whole name without its gaps, and the stems of words.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations, pairwise

import msgspec

from vskill_platform.domain.skills.related_words import related_to
from vskill_platform.domain.skills.stems import STEM, form_of, stem, terms_of_form
from vskill_platform.domain.skills.synonyms import synonyms_of
from vskill_platform.domain.skills.terms import MAX_TERM, cut_terms

#: Before a whole name; like the mark of stems, nothing that a word begins with.
WHOLE = "¶"
#: Of longer queries each word is looked for as it is written and by its stem alone: every other word for it is one
#: more look for the engine.
MOST_WIDENED = 12
#: As many words of a query are combined when it is loosened, the most telling ones.
MOST_LOOSENED = 6
#: Which part of the weight of a loosened query a record must hold, the closest first.
_PARTS = ((2, 3), (1, 2), (1, 3))
#: Words of a question that say nothing about the skill, where other words are left.
_FILLERS = """
a about all also am an and any anything are as at be because been being best but by can cannot could couldn d did do
does doesn doing don done each else etc ever every everything for from get getting give go going good got had has have
having hello help here hey how i if in into is isn it its just let lets like ll looking lot m many may me might more
most much my need needed never no not of off on one onto or other our out over own per please re really s same should
skill skills so some somebody someone something such sure t than thanks that the their them then there these they this
those to too up us use used using ve very via want wants was way we were what when where whether which while who whom
whose why will with within without won would you your yours
"""
FILLERS = frozenset(_FILLERS.split())
#: Words that many queries have and that tell little: a skill that lacks them may still be the one.
_LIGHT = """
add app application apply automatically bad basic begin better big build change check clean code complete correct create
custom draft easily easy effective efficient ensure example expert explain fast file find fix full generate great
guide handle helper helpful idea improve improvement keep kind learn list make manage modern new nice old perfect
prepare problem produce professional program project proper properly provide put quick quickly right run safely set
setup show simple simply small software solve start starter step stuff support system take task tell template thing tip
tool try turn understand update work write
"""
LIGHT = frozenset(map(form_of, _LIGHT.split()))


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
    #: Only this many of the records that the reader may read are looked at: the first by weight, then by key. 0: all.
    heaviest: int = 0

    def holds(self, named: Collection[str], terms: Collection[str]) -> bool:
        """Whether a record with these terms, in its most telling field and in all, is in the net."""
        held = named if self.in_name else terms
        return any(all(any(one.is_among(held) for one in part) for part in way) for way in self.ways)


class Loosening(msgspec.Struct, frozen=True):
    """What is known of the words of a query of which some may be missing."""

    #: How telling a word is; 0, and none, is a word that no public skill has.
    weights: Mapping[str, int] = {}
    #: Words that very many skills have.
    common: frozenset[str] = frozenset()
    #: In how many records common words alone are looked for, those with the greatest weight. 0: in all.
    heaviest: int = 0


class WantedWord(msgspec.Struct, frozen=True):
    """One word of a query, and what else counts as it."""

    text: str
    #: It may be the beginning of a word.
    is_last: bool
    #: Of the word itself, and of it and a neighbour written as one: "change log" is also "changelog".
    forms: tuple[str, ...]
    #: Forms of words that mean the same, and of those that may answer it.
    synonyms: tuple[str, ...] = ()
    related: tuple[str, ...] = ()

    @property
    def is_light(self) -> bool:
        return self.forms[0] in LIGHT

    def lexemes(self, *, widely: bool = False) -> AnyOf:
        """The word in all its forms and what means the same; widely, what may answer it too."""
        forms = (*self.forms, *self.synonyms, *(self.related if widely else ()))
        terms = dict.fromkeys(term for form in forms for term in terms_of_form(form) if term != self.text)
        return (Lexeme(self.text, self.is_last), *map(Lexeme, terms))


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


def wanted_words(text: str) -> tuple[WantedWord, ...]:
    """The words of a query that a skill is compared with."""
    words = significant_words(text)
    if len(words) > MOST_WIDENED:
        return tuple(WantedWord(word, word == words[-1], (form_of(word),)) for word in words)
    written = {word: [word] for word in words}
    for pair in pairwise(cut_terms(text)):
        for word in pair:
            written.get(word, []).append("".join(pair)[:MAX_TERM])
    # What the query says itself answers no other word of it.
    said = frozenset(map(form_of, words))
    return tuple(_wanted(written[word], said, is_last=word == words[-1]) for word in words)


def _wanted(written: Sequence[str], said: Collection[str], *, is_last: bool) -> WantedWord:
    forms = tuple(dict.fromkeys(map(form_of, written)))
    synonyms = dict.fromkeys(chain.from_iterable(map(synonyms_of, written)))
    related = dict.fromkeys(chain.from_iterable(map(related_to, written)))
    return WantedWord(
        written[0], is_last, forms, tuple(synonyms), tuple(one for one in related if one not in said)
    )


def telling_words(words: Sequence[WantedWord]) -> tuple[WantedWord, ...]:
    """Those that are not light, unless there are no others."""
    return tuple(word for word in words if not word.is_light) or tuple(words)


def plan_search(text: str, *, loosely: Loosening | None = None) -> tuple[SearchStep, ...]:
    """The steps of a search, the closest first; none where the text has no words.

    A whole name, all words in the name, the beginning of a whole name, all words anywhere, all words by their stems and
    synonyms, and all telling words by what may answer them. The last word may be the beginning of one. Loosely, words
    may be missing, and the last one is no beginning.
    """
    words = wanted_words(text)
    if not words:
        return ()
    if loosely is not None:
        return tuple(_loosened(telling_words(words), loosely))
    wholes = dict.fromkeys((whole(text), "".join(word.text for word in words)[:MAX_TERM]))
    every = (tuple((Lexeme(word.text, word.is_last),) for word in words),)
    meant = tuple(word.lexemes() for word in words)
    answered = tuple(word.lexemes(widely=True) for word in telling_words(words))
    return (
        SearchStep(((tuple(Lexeme(WHOLE + one) for one in wholes),),)),
        SearchStep(every, in_name=True),
        SearchStep(((tuple(Lexeme(WHOLE + one, is_prefix=True) for one in wholes),),)),
        SearchStep(every),
        SearchStep((meant,)),
        *((SearchStep((answered,)),) if answered != meant else ()),
    )


def _loosened(words: Sequence[WantedWord], known: Loosening) -> Iterator[SearchStep]:
    """For each part of the weight, every choice of words that is enough and leaves out as many as it can. A word of
    weight 0 is in no public skill: no record needs it, and one that has it is worth as much as with the heaviest.

    A choice with a rare word has few matches, and an engine finds them by that word. The others come after it and are
    bounded, so that a search costs no more the more records there are. For the same reason the last word is here no
    beginning of others, which can be very many."""
    weighed = [
        (known.weights.get(word.text, 0), msgspec.structs.replace(word, is_last=False)) for word in words
    ]
    heaviest = max(weight for weight, _ in weighed) or 1
    weighed = sorted(weighed, key=lambda pair: -(pair[0] or heaviest))[:MOST_LOOSENED]
    valued = [(weight or heaviest, word) for weight, word in weighed]
    total = sum(weight for weight, _ in weighed) or sum(value for value, _ in valued)
    for part, whole_of in _PARTS:
        least = total * part / whole_of
        choices = [
            tuple(word for _, word in chosen)
            for size in range(1, len(words))
            for chosen in combinations(valued, size)
            if 0 <= sum(value for value, _ in chosen) - least < min(value for value, _ in chosen)
        ]
        are_common = [all(word.text in known.common for word in chosen) for chosen in choices]
        for is_common, most in ((False, 0), (True, known.heaviest)):
            ways = tuple(
                tuple(word.lexemes(widely=True) for word in chosen)
                for chosen, common in zip(choices, are_common, strict=True)
                if common is is_common
            )
            if ways:
                yield SearchStep(ways, heaviest=most)


def step_of(
    steps: Sequence[SearchStep], named: Collection[str], terms: Collection[str], rank: int
) -> int | None:
    """The first step that a record is in; None where it is in none. `rank` counts the records that are heavier."""
    return next(
        (
            place
            for place, step in enumerate(steps)
            if (not step.heaviest or rank < step.heaviest) and step.holds(named, terms)
        ),
        None,
    )
