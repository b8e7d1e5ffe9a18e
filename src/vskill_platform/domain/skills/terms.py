"""Text cut into search terms: one function for records and queries alike, so that every engine matches the
same.

Engines see terms only (letters and digits, folded and stemmed), never foreign text, so nothing that a person types
reaches an engine's query syntax.
"""

import unicodedata
from functools import lru_cache

#: Longer words are cut; more words of one text are left out. Both bound what one record can put in an index.
MAX_TERM = 40
MAX_TERMS = 500
#: Before a whole name. No letter or digit, so no word begins with it; beyond ASCII, where SQLite's tokenizer does not
#: split.
WHOLE = "¶"

#: Kana, and the two blocks of ideographs.
_WITHOUT_SPACES = (("\u3040", "\u30ff"), ("\u3400", "\u9fff"), ("\U00020000", "\U0003ffff"))
#: Plain ASCII, which most texts are, is cut by two calls instead of a loop over its characters.
_ASCII_TO_SPACES = {code: " " for code in range(128) if not chr(code).isalnum()}


def cut_words(text: str, *, joined: bool = False) -> tuple[str, ...]:
    """Folded words in the order of the text, each once; ideographs are words of their own. Joined, words between which
    only signs stand ("Next.js", "code-review") are also one word ("nextjs")."""
    words: dict[str, None] = {}
    for piece in _fold(text).split():
        parts = _cut(piece)
        if joined and len(parts) > 1 and piece.isascii():
            parts.append("".join(parts))
        for word in parts:
            words.setdefault(word[:MAX_TERM])
            if len(words) == MAX_TERMS:
                return tuple(words)
    return tuple(words)


def whole(text: str) -> str:
    """The term of a whole name, without its gaps, case and accents: "Code Review", "code-review" and "codereview" are
    one; empty where the text has no letters or digits."""
    joined = "".join(_cut(_fold(text)))[:MAX_TERM]
    return WHOLE + joined if joined else ""


def field_terms(text: str, *, is_name: bool) -> str:
    """The terms of one searched field, each once, between spaces; a name or a path also by its whole and by the whole
    of its last part."""
    wholes = (whole(text), whole(text.rpartition("/")[2])) if is_name else ()
    return " ".join(dict.fromkeys([*map(stem, cut_words(text, joined=True)), *filter(None, wholes)]))


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """What the forms of an English word share: "slide", "slides" and "sliding" are "slide". The stemmer keeps a state,
    so that each call has its own."""
    # The package loads the stemmers of thirty languages, for which a command that stems nothing need not wait.
    from snowballstemmer.english_stemmer import EnglishStemmer  # noqa: PLC0415

    return str(EnglishStemmer().stemWord(word)) if word.isascii() and word.isalpha() else word


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(c for c in decomposed if not unicodedata.combining(c))
    return unicodedata.normalize("NFKC", kept).casefold()


def _cut(folded: str) -> list[str]:
    if folded.isascii():
        return folded.translate(_ASCII_TO_SPACES).split()
    spaced = (" " if not c.isalnum() else f" {c} " if _stands_alone(c) else c for c in folded)
    return "".join(spaced).split()


def _stands_alone(character: str) -> bool:
    """Scripts written without spaces: each character is a term."""
    return any(first <= character <= last for first, last in _WITHOUT_SPACES)
