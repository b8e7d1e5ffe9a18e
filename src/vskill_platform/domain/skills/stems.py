"""The stem of an English word: what "slide", "slides" and "sliding" share. Search compares stems where words differ.

A stem is no word, and only compared with other stems. Endings are taken off in one fixed order, each only where enough
of the word is left; a word of another language or with digits mostly stays as it is.
"""

from functools import lru_cache

#: Before a stem that stands for all forms of a word. No letter or digit, so no word begins with it; beyond ASCII, where
#: SQLite's tokenizer does not split.
STEM = "≈"
#: Shorter words have no ending that could be told from the word itself.
_SHORTEST = 4
_VOWELS = frozenset("aeiouy")
#: Endings, and how much of the word must be left; the first that fits is taken off.
_ENDINGS = (
    ("ibility", 4),
    ("ability", 4),
    ("isation", 4),
    ("ization", 4),
    ("ation", 3),
    ("ition", 4),
    ("ment", 5),
    ("ible", 4),
    ("able", 4),
    ("ness", 4),
    ("ful", 4),
    ("ion", 4),
    ("ate", 3),
    ("ise", 5),
    ("ize", 5),
    ("ly", 4),
    ("ator", 3),
    ("er", 4),
    ("or", 4),
)


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The word without its ending; the same for most forms of one word."""
    if len(word) < _SHORTEST or not word.isascii() or not word.isalpha():
        return word
    word = _without_participle(_without_plural(word))
    for ending, least in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least:
            word = _single(word.removesuffix(ending))
            break
    return _without_vowel(word)


def form_of(word: str) -> str:
    """The same for all forms of one word, and for no other word. A short word has only its plural: "rar" is not what
    "rare" begins with, and "not" no form of "note"."""
    if len(word) < _SHORTEST:
        return word
    if len(word) == _SHORTEST and word.endswith("s") and stem(word) == word[:-1]:
        return word[:-1]
    return STEM + stem(word)


def terms_of_form(form: str) -> tuple[str, ...]:
    """The terms by which a record has a word of this form: stems are marked, but for words that are their own stem."""
    if not form.startswith(STEM):
        return (form, f"{form}s")
    stemmed = form.removeprefix(STEM)
    return (stemmed, form) if len(stemmed) >= _SHORTEST else (form,)


def _without_plural(word: str) -> str:
    if word.endswith("ies") and len(word) > _SHORTEST:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _without_participle(word: str) -> str:
    """Without "ing" or "ed", where a vowel is left: "string" and "red" are no participles."""
    for ending in ("ing", "ed"):
        left = word.removesuffix(ending)
        if left != word and len(left) > 2 and not _VOWELS.isdisjoint(left):
            # Of verbs in -ate, -ise and -ize the "e" has gone with it.
            return f"{left}e" if left.endswith(("at", "is", "iz")) else _single(left)
    return word


def _single(word: str) -> str:
    """Without a doubled last consonant: "formatt", "plann"; "fill" and "pass" have theirs of their own."""
    doubled = len(word) > _SHORTEST and word[-1] == word[-2] and word[-1] not in "lsz"
    return word[:-1] if doubled and word[-1] not in _VOWELS else word


def _without_vowel(word: str) -> str:
    """Without a last "e", or a last "y" after a consonant."""
    if len(word) < _SHORTEST:
        return word
    if word[-1] == "e" or (word[-1] == "y" and word[-2] not in _VOWELS):
        return word[:-1]
    return word
