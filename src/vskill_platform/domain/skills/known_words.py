"""The words of public skills: how rare each is, and which of them somebody probably meant who mistyped one.

What only some may read is no part of it, so that it moves nothing in anybody's search.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from itertools import accumulate

import msgspec

from vskill_platform.domain.skills.terms import cut_words, stem

#: The most frequent words, and as many stems; rarer ones are seldom meant, and all equally rare.
MOST_WORDS = 20_000
#: Shorter words have too many neighbours to be slips of one.
_SHORTEST = 4
#: The parts of a word that was split.
_SHORTEST_PART = 3
#: From this length on, a word may have two slips.
_LONG = 7
_VOWELS = "aeiou"


class Vocabulary(msgspec.Struct, frozen=True):
    """The record at `control:vocabulary`: in how many public skills a word occurs."""

    words: dict[str, int] = {}
    #: The same of the stems of words.
    stems: dict[str, int] = {}
    #: How many skills were counted.
    skills: int = 0


class WordCounts:
    """Counts the words of skills, one skill after the other, within a bounded memory."""

    #: More different words than this are cut to the frequent ones on the way.
    _MOST = 200_000

    def __init__(self) -> None:
        self._words: Counter[str] = Counter()
        self._stems: Counter[str] = Counter()
        self.skills = 0

    def add(self, texts: Iterable[str]) -> None:
        words = {word for text in texts for word in cut_words(text, joined=True)}
        self._words = self._bounded(self._words, words)
        self._stems = self._bounded(self._stems, {stem(word) for word in words})
        self.skills += 1

    def vocabulary(self) -> Vocabulary:
        return Vocabulary(_most_frequent(self._words), _most_frequent(self._stems), self.skills)

    def _bounded(self, counts: Counter[str], added: set[str]) -> Counter[str]:
        counts.update(added)
        return counts if len(counts) <= self._MOST else Counter(dict(counts.most_common(self._MOST // 2)))


def _most_frequent(counts: Counter[str]) -> dict[str, int]:
    """The most frequent words; of equals, the first of the alphabet."""
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_WORDS])


class KnownWords:
    """What a vocabulary knows; made once for each."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._words = vocabulary.words
        self._stems = vocabulary.stems
        self.skills = vocabulary.skills

    # How rare.

    def weigh(self, term: str) -> float:
        """How much a term tells (BM25's inverse document frequency); the most where no public skill has it."""
        count = min(self._stems.get(term, 0), self.skills)
        return math.log(1 + (self.skills - count + 0.5) / (count + 0.5))

    def count_holders(self, term: str, beginning: str) -> int:
        """How many public skills hold a term or a word that begins so, at the most."""
        if not beginning:
            return self._stems.get(term, 0)
        ordered, sums = self._sums
        first, end = bisect_left(ordered, beginning), bisect_left(ordered, beginning + "\U0010ffff")
        return sums[end] - sums[first] + (0 if term.startswith(beginning) else self._stems.get(term, 0))

    @cached_property
    def _sums(self) -> tuple[list[str], list[int]]:
        """The stems in order, and how often those before each occur."""
        ordered = sorted(self._stems)
        return ordered, [0, *accumulate(self._stems[term] for term in ordered)]

    # Spelling.

    def correct(self, text: str) -> dict[str, str]:
        """The words of a text that no word of a public skill begins with, with what was probably meant. Nothing where
        one of them is near no known word: then the text is of another language, and what looks like a slip is none."""
        words = cut_words(text)
        unknown = [
            word for word in words if len(word) >= _SHORTEST and not self.count_holders(stem(word), word)
        ]
        meant = {word: self._meant(word) for word in unknown if text.isascii()}
        return meant if all(meant.values()) else {}

    def _meant(self, word: str) -> str:
        return self._near(word, 1) or self._split(word) or (self._near(word, 2) if len(word) >= _LONG else "")

    def _near(self, word: str, slips: int) -> str:
        """The most frequent known word with this many slips, rather one with the same first letter; empty if none.
        Another last vowel is no slip: "electronico" is a word of its own."""
        letters = _letters(word)
        near = [
            (known[0] != word[0], -self._words[known], known)
            for length in range(len(word) - slips, len(word) + slips + 1)
            for known, bits in self._by_length.get(length, ())
            if (letters ^ bits).bit_count() <= 2 * slips
            and (word[-1] == known[-1] or word[-1] not in _VOWELS)
            and count_slips(word, known) == slips
        ]
        return min(near)[2] if near else ""

    def _split(self, word: str) -> str:
        """Two known words, the first as long as possible; empty if there are none."""
        places = range(len(word) - _SHORTEST_PART, _SHORTEST_PART - 1, -1)
        pairs = ((word[:place], word[place:]) for place in places)
        return next(
            (" ".join(pair) for pair in pairs if all(self._stems.get(stem(part)) for part in pair)), ""
        )

    @cached_property
    def _by_length(self) -> dict[int, list[tuple[str, int]]]:
        """With the letters of each word as bits: most words are ruled out by comparing two numbers."""
        grouped: dict[int, list[tuple[str, int]]] = {}
        for word in self._words:
            grouped.setdefault(len(word), []).append((word, _letters(word)))
        return grouped


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
