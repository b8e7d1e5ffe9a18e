"""What a search asks an engine for: terms, of which a record must hold any or every one.

An engine only finds candidates, in one order for all engines (`TermQuery.points`); `domain.skills.ranking` decides
which fit best. Which terms find candidates and how much each counts follows from the words of public skills alone, so
that what a reader may not read moves nothing.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from vskill_platform.domain.skills.known_words import KnownWords
from vskill_platform.domain.skills.terms import cut_words, stem, whole

#: Of longer queries the rarest terms count.
MOST_TERMS = 16
#: Of as many skills all may be candidates, and no more than so many of any number, but for a single word.
_FEW, _MANY = 100, 10_000
#: Shorter last words are no beginnings: too many words begin so.
_SHORTEST_BEGINNING = 2
#: From this length on, a word in the middle may be a beginning.
_LONG = 4
#: Words that a question is made of; they say nothing about the skill, where other words are left.
_STOP_WORDS = """
a about all am an and any are as at be been but by can could did do does doing for from had has have how i if in into is
it its me my no not of on or our please should so some than that the their them then there these they this those to us
was we were what when where which while who why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


class WantedTerm(msgspec.Struct, frozen=True, order=True):
    """A term that a record may hold."""

    text: str
    #: A word that begins so counts as it, while somebody is still typing; empty: none does.
    beginning: str = ""
    #: How rare it is among public skills.
    weight: float = 0

    def is_in(self, padded: str) -> bool:
        """Whether a field holds it, given as its terms between spaces, with one before and behind."""
        return f" {self.text} " in padded or (bool(self.beginning) and f" {self.beginning}" in padded)

    @property
    def points(self) -> int:
        """A whole number, which every engine adds up alike."""
        return round(self.weight * 100)


class TermQuery(msgspec.Struct, frozen=True):
    """The terms that records are found by."""

    terms: tuple[WantedTerm, ...]
    #: A record must hold every term, not only one.
    every: bool = False

    def points(self, texts: Sequence[str]) -> int | None:
        """The place of a record among the candidates, the most first, by its searched fields; None where it is none.
        Each held term counts, and a name that has any of them as much as the rarest."""
        padded = [f" {text} " for text in texts]
        held = [term for term in self.terms if any(map(term.is_in, padded))]
        if not held or (self.every and len(held) < len(self.terms)):
            return None
        is_named = any(term.is_in(padded[0]) for term in held)
        return sum(term.points for term in held) + (self.name_points if is_named else 0)

    @property
    def name_points(self) -> int:
        return max(term.points for term in self.terms)


def every_term(text: str) -> TermQuery:
    """All words of a text; the last may be a beginning."""
    words = cut_words(text)
    terms = tuple(WantedTerm(stem(word), _beginning(word, is_open=word == words[-1])) for word in words)
    return TermQuery(terms, every=True)


def wanted_terms(text: str, known: KnownWords) -> tuple[WantedTerm, ...]:
    """What a skill is compared with: the words of a text and its whole, as if it were a name; the rarest first."""
    words = cut_words(text, joined=True)
    last = {*words[-1:], *cut_words(text)[-1:]}
    told = [word for word in words if word not in STOP_WORDS] or words
    # Also a longer word that no public skill has may be a beginning: "mongo" of "mongodb".
    unknown = {word for word in told if len(word) >= _LONG and not known.count_holders(stem(word), "")}
    terms = {stem(word): _beginning(word, is_open=word in last | unknown) for word in told}
    if named := whole(text):
        terms[named] = ""
    weighed = [WantedTerm(term, begins, known.weigh(term)) for term, begins in terms.items()]
    return tuple(sorted(weighed, key=lambda term: -term.weight)[:MOST_TERMS])


def finding_query(terms: Sequence[WantedTerm], known: KnownWords) -> TermQuery:
    """The rarest terms, as many as a tenth of the skills hold: what has only the others is one of very many. At least
    one that is known, however common."""
    most = min(max(known.skills // 10, _FEW), _MANY)
    chosen: list[WantedTerm] = []
    holders = 0
    for count, term in sorted((known.count_holders(term.text, term.beginning), term) for term in terms):
        if holders and holders + count > most:
            break
        chosen.append(term)
        holders += count
    return TermQuery(tuple(chosen))


def holds_any(words: Iterable[str], texts: Sequence[str]) -> bool:
    """Whether one of the searched fields has one of these words."""
    return any(f" {stem(word)} " in f" {text} " for text in texts for word in words)


def replace_words(text: str, meant: Mapping[str, str]) -> str:
    return " ".join(meant.get(word, word) for word in cut_words(text))


def _beginning(word: str, *, is_open: bool) -> str:
    return word if is_open and len(word) >= _SHORTEST_BEGINNING else ""
