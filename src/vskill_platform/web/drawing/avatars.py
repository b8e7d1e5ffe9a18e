"""Avatars: a pattern of five by five squares, drawn from the name alone. Nothing is fetched, so no other host learns
whose page is viewed, and the same name has the same picture everywhere."""

import hashlib
from functools import lru_cache

import msgspec

SIDE = 5
#: Colours that the stylesheet knows, for both themes.
HUES = 8


class Avatar(msgspec.Struct, frozen=True):
    """A pattern in a box of five by five."""

    #: The squares, as the path of an SVG.
    squares: str
    #: Which of the stylesheet's colours.
    hue: int


@lru_cache(maxsize=1024)
def avatar_of(name: str) -> Avatar:
    """The left half follows from the name's hash, the right half mirrors it."""
    digest = hashlib.sha256(name.encode("utf-8", "replace")).digest()
    half = SIDE // 2 + 1
    squares = []
    for row in range(SIDE):
        left = [digest[row * half + column] % 2 == 1 for column in range(half)]
        line = [*left, *reversed(left[:-1])]
        squares += [f"M{column} {row}h1v1h-1z" for column, filled in enumerate(line) if filled]
    return Avatar("".join(squares), digest[-1] % HUES)
