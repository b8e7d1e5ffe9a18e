"""Slips of the keyboard: the known word that somebody probably meant. The vocabulary is made of the names and
descriptions of public skills alone, and only suggests: a search never leaves anything out because of it.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from vskill_platform.domain.search import FILLERS
from vskill_platform.domain.stems import stem
from vskill_platform.domain.synonyms import synonyms_of
from vskill_platform.domain.terms import cut_terms

#: The most frequent words; rarer ones are seldom meant.
MOST_WORDS = 20_000
#: Shorter words have too many neighbours.
SHORTEST = 4
#: From this length on, a word may have two slips.
_LONG = 7


class Vocabulary(msgspec.Struct, frozen=True):
    """The record at `control:vocabulary`: in how many public skills a word occurs."""

    words: dict[str, int] = {}


def count_words(counts: Counter[str], texts: Iterable[str]) -> None:
    """Add the words of one skill, each once."""
    counts.update({word for text in texts for word in cut_terms(text) if len(word) >= SHORTEST})


def vocabulary_of(counts: Counter[str]) -> Vocabulary:
    """The most frequent words; of equals, the first of the alphabet."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return Vocabulary(dict(ordered[:MOST_WORDS]))


class Speller:
    """Finds near words; made once for a vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._words = vocabulary.words
        self._stems = frozenset(map(stem, vocabulary.words))
        #: By length, with the letters of each as bits: most words are ruled out by comparing two numbers.
        self._by_length: dict[int, list[tuple[str, int]]] = {}
        for word in vocabulary.words:
            self._by_length.setdefault(len(word), []).append((word, _letters(word)))

    def correct(self, text: str) -> str:
        """The text with the words that were probably meant; empty where nothing better is known."""
        words = cut_terms(text)
        meant = [self._meant(word, is_last=word == words[-1]) for word in words]
        return " ".join(meant) if meant != list(words) else ""

    def _meant(self, word: str, *, is_last: bool) -> str:
        if len(word) < SHORTEST or word in FILLERS or stem(word) in self._stems or synonyms_of(word):
            return word
        if is_last and any(known.startswith(word) for known in self._words):
            return word
        most = 1 if len(word) < _LONG else 2
        letters = _letters(word)
        near = [
            (slips, -self._words[known], known)
            for length in range(len(word) - most, len(word) + most + 1)
            for known, bits in self._by_length.get(length, ())
            if (letters ^ bits).bit_count() <= 2 * most and (slips := count_slips(word, known)) <= most
        ]
        return min(near)[2] if near else word


def _letters(word: str) -> int:
    bits = 0
    for character in word:
        bits |= 1 << (ord(character) % 64)
    return bits


def count_slips(written: str, meant: str) -> int:
    """How many letters were left out, added, mistyped or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(meant) + 1))
    for i, letter in enumerate(written, 1):
        above, before, row = before, row, [i]
        for j, other in enumerate(meant, 1):
            slips = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if above and j > 1 and letter == meant[j - 2] and written[i - 2] == other:
                slips = min(slips, above[j - 2] + 1)
            row.append(slips)
    return row[-1]
