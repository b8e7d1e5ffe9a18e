"""How much of a text rules are looked for in: all of it, unless the text is flooded with the words that are costly to
look behind.

A dozen rules ask what follows a word that downloads, each for some hundred characters. That is fine for any honest
text, and takes seconds where the word stands thousands of times, which uses up the time of the scan. Such a text is
searched up to a point, and the report says that the rest was not looked at, so it is never called clean.
"""

import re2

#: More than one in fifty bytes of the largest text that is read whole.
MOST_DOWNLOADS = 2000
_DOWNLOADS = re2.compile(rb"(?i)curl|wget")
_SHORTEST = len(b"curl")


def searchable(text: bytes) -> bytes:
    """The text, or as much of it as stands before one download too many."""
    if len(text) <= MOST_DOWNLOADS * _SHORTEST:
        return text
    lowered = text.lower()
    if lowered.count(b"curl") + lowered.count(b"wget") <= MOST_DOWNLOADS:
        return text
    for count, match in enumerate(_DOWNLOADS.finditer(text)):
        if count == MOST_DOWNLOADS:
            return text[: match.start()]
    return text
