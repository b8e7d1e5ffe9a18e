"""The order of what a search found, and what to mark in it. Engines give candidates; this decides, for all of them.

BM25 over the searched fields, the name before the description before the path. What is called exactly so comes first.
Of skills that fit equally well the more established and trusted one comes first, and what cannot be installed any more
comes last (`store.skills.catalogue`).
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

from vskill_platform.domain.skills.search import STOP_WORDS, WantedTerm
from vskill_platform.domain.skills.terms import WHOLE, cut_words, stem

#: Of name, path and description: how much a field counts, and how many terms it usually has.
_FIELDS = ((10.0, 4), (1.0, 9), (2.0, 25))
#: The usual constants of BM25: how soon more of a term stops counting, and how much the length of a field matters.
_K1, _B = 1.2, 0.75
#: Being shorter than this part of the usual length counts no more: a name stays before any description.
_SHORTEST = 0.5
#: What the beginning of a word counts beside the word itself.
_BEGINNING = 0.5


def score(texts: Sequence[str], terms: Iterable[WantedTerm]) -> float:
    """How well a record with these searched fields fits; infinite for what has this very name. One digit: smaller
    differences are left to what orders skills that fit equally well."""
    padded = [(f" {text} ", text.count(" ") + 1) for text in texts]
    total = 0.0
    for term in terms:
        held = 0.0
        for (text, length), (weight, usual) in zip(padded, _FIELDS, strict=True):
            if term.is_in(text):
                share = 1.0 if f" {term.text} " in text else _BEGINNING
                held += share * weight / (1 - _B + _B * max(length / usual, _SHORTEST))
        if held and term.text.startswith(WHOLE):
            return float("inf")
        total += term.weight * held * (_K1 + 1) / (_K1 + held)
    return round(total, 1)


def mark_words(text: str, query: str) -> tuple[tuple[str, bool], ...]:
    """The text in pieces, and of each whether a search for the query looks for it."""
    words = cut_words(query)
    wanted = {stem(word) for word in words if word not in STOP_WORDS} or set(map(stem, words))
    pieces: list[tuple[str, bool]] = []
    for is_word, characters in groupby(text, str.isalnum):
        piece = "".join(characters)
        marked = is_word and any(
            stem(word) in wanted or word.startswith(words[-1:]) for word in cut_words(piece)
        )
        if pieces and pieces[-1][1] == marked:
            piece = pieces.pop()[0] + piece
        pieces.append((piece, marked))
    return tuple(pieces)
