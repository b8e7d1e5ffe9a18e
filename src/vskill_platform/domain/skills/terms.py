"""Text cut into search terms: one function for records and queries alike, so that every engine matches the
same.

Engines see terms only (letters and digits, folded), never foreign text, so nothing that a person types
reaches an engine's query syntax.
"""

import unicodedata

#: Longer words are cut; more words of one text are left out. Both bound what one record can put in an index.
MAX_TERM = 40
MAX_TERMS = 500

#: Kana, and the two blocks of ideographs.
_WITHOUT_SPACES = (("\u3040", "\u30ff"), ("\u3400", "\u9fff"), ("\U00020000", "\U0003ffff"))


#: Plain ASCII, which most texts are, is cut by two calls instead of a loop over its characters.
_ASCII_TO_SPACES = {code: " " for code in range(128) if not chr(code).isalnum()}


def cut_terms(text: str) -> tuple[str, ...]:
    """Folded words in the order in which they stand, each once; ideographs stand for themselves."""
    terms: dict[str, None] = {}
    words = text.lower().translate(_ASCII_TO_SPACES).split() if text.isascii() else _words(_fold(text))
    for word in words:
        terms.setdefault(word[:MAX_TERM])
        if len(terms) == MAX_TERMS:
            break
    return tuple(terms)


def _fold(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(c for c in decomposed if not unicodedata.combining(c))
    return unicodedata.normalize("NFKC", kept).casefold()


def _words(folded: str) -> list[str]:
    words: list[str] = []
    current: list[str] = []
    for character in folded:
        if character.isalnum() and not _stands_alone(character):
            current.append(character)
            continue
        if current:
            words.append("".join(current))
            current = []
        if character.isalnum():
            words.append(character)
    if current:
        words.append("".join(current))
    return words


def _stands_alone(character: str) -> bool:
    """Scripts written without spaces: each character is a term, and a query for several needs them all."""
    return any(first <= character <= last for first, last in _WITHOUT_SPACES)
