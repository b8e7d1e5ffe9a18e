"""What somebody probably meant: the known word beside a slip of the keyboard, two known words that were written as
one, and how telling each word is. The vocabulary is made of the names and descriptions of public skills alone, and only
suggests: a search never leaves anything out because of it.
"""

from collections import Counter
from collections.abc import Iterable

import msgspec

from vskill_platform.domain.skills.related_words import ASKED, related_to
from vskill_platform.domain.skills.search import FILLERS, Loosening, WantedWord, wanted_words
from vskill_platform.domain.skills.stems import form_of
from vskill_platform.domain.skills.synonyms import GROUPED, synonyms_of
from vskill_platform.domain.skills.terms import cut_terms

#: The most frequent words; rarer ones are seldom meant.
MOST_WORDS = 20_000
#: Shorter words have too many neighbours to be slips of one.
SHORTEST = 4
#: Letters and digits of one are no words.
_SHORTEST_COUNTED = 2
#: The parts of a word that was split.
_SHORTEST_PART = 3
#: From this length on, a word may be meant that no skill has, and from that on, it may have two slips.
_MIDDLING, _LONG = 5, 7
#: A word in every skill weighs one; each time that half as many have it, one more, up to this.
_HEAVIEST = 8
#: A word that more skills than this have is common.
MOST_RARE = 10_000
#: Common words alone are looked for in this many records: what has no rare word of a query is one of very many.
HEAVIEST = 5_000


class Vocabulary(msgspec.Struct, frozen=True):
    """The record at `control:vocabulary`: in how many public skills a word occurs."""

    words: dict[str, int] = {}


def count_words(counts: Counter[str], texts: Iterable[str]) -> None:
    """Add the words of one skill, each once."""
    counts.update({word for text in texts for word in cut_terms(text) if len(word) >= _SHORTEST_COUNTED})


def vocabulary_of(counts: Counter[str]) -> Vocabulary:
    """The most frequent words; of equals, the first of the alphabet."""
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return Vocabulary(dict(ordered[:MOST_WORDS]))


class Speller:
    """Finds near words and weighs them; made once for a vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._words = vocabulary.words
        self._most = max(vocabulary.words.values(), default=0)
        #: In how many skills a word occurs in its most frequent form.
        self._forms: dict[str, int] = {}
        #: In how many skills a word occurs in any form, at the most.
        self._holders: Counter[str] = Counter()
        #: By length, with the letters of each as bits: most words are ruled out by comparing two numbers.
        self._by_length: dict[int, list[tuple[str, int]]] = {}
        for word, count in vocabulary.words.items():
            self._forms[form_of(word)] = max(count, self._forms.get(form_of(word), 0))
            self._holders[form_of(word)] += count
        # What means a known word is known too.
        for word in dict.fromkeys((*vocabulary.words, *GROUPED, *ASKED)):
            self._by_length.setdefault(len(word), []).append((word, _letters(word)))

    def correct(self, text: str) -> str:
        """The text with the words that were probably meant; empty where nothing better is known."""
        words = cut_terms(text)
        meant = [self._meant(word, is_last=word == words[-1]) for word in words]
        return " ".join(meant) if meant != list(words) else ""

    def loosen(self, text: str, heaviest: int = HEAVIEST) -> Loosening:
        """What a search needs to know of the words of a query of which some may be missing."""
        words = wanted_words(text)
        common = frozenset(word.text for word in words if self._count_holders(word) > MOST_RARE)
        return Loosening(self.weigh(text), common, heaviest)

    def _count_holders(self, word: WantedWord) -> int:
        """In how many skills a word or what counts as it occurs, at the most."""
        return sum(self._holders[form] for form in (*word.forms, *word.synonyms, *word.related))

    def weigh(self, text: str) -> dict[str, int]:
        """How telling each word of a query is: the rarer, the more; 0 where no public skill has it or what means it."""
        return {word.text: self._weight(word) for word in wanted_words(text)}

    def _weight(self, word: WantedWord) -> int:
        if word.is_light:
            return 1
        count = max(self._forms.get(one, 0) for one in word.forms) or max(
            (self._forms.get(one, 0) for one in (*word.synonyms, *word.related)), default=0
        )
        return min((self._most // count).bit_length(), _HEAVIEST) if count else 0

    def _is_known(self, word: str) -> bool:
        return bool(form_of(word) in self._forms or synonyms_of(word) or related_to(word))

    def _meant(self, word: str, *, is_last: bool) -> str:
        if len(word) < SHORTEST or word in FILLERS or self._is_known(word):
            return word
        if is_last and any(known.startswith(word) for known in self._words):
            return word
        return (
            self._near(word, 1)
            or self._split(word)
            or (self._near(word, 2) if len(word) >= _LONG else "")
            or word
        )

    def _near(self, word: str, slips: int) -> str:
        """The most frequent known word with so many slips, rather one with the same first letter; empty if none."""
        letters = _letters(word)
        near = [
            (known[0] != word[0], -self._words.get(known, 0), known)
            for length in range(len(word) - slips, len(word) + slips + 1)
            for known, bits in self._by_length.get(length, ())
            if (letters ^ bits).bit_count() <= 2 * slips
            and (len(word) >= _MIDDLING or known in self._words)
            and count_slips(word, known) == slips
        ]
        return min(near)[2] if near else ""

    def _split(self, word: str) -> str:
        """Two known words, the first as long as possible, or a known one before a number; empty if there are none."""
        if self._is_known(name := word.rstrip("0123456789")):
            return name
        places = range(len(word) - _SHORTEST_PART, _SHORTEST_PART - 1, -1)
        pairs = ((word[:place], word[place:]) for place in places)
        return next((" ".join(pair) for pair in pairs if all(map(self._is_known, pair))), "")


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
