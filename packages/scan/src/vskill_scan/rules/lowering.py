"""Patterns for which upper and lower case are the same, written for a text in lower case.

The search engine looks for every spelling of a word otherwise, in tables many times as large. A lower-case text keeps
its length, so what is found stands at the same place in the text as it was written.
"""

from collections.abc import Iterator

_UPPER = range(ord("A"), ord("Z") + 1)
_HEX_DIGITS = 2


def lower_pattern(pattern: str) -> str | None:
    """The same pattern for a text in lower case; None where that cannot be told."""
    written: list[str] = []
    in_class = False
    parts = list(_read(pattern))
    for number, part in enumerate(parts):
        if part == "[" and not in_class:
            in_class = True
        elif part == "]" and in_class and parts[number - 1] not in {"[", "^"}:
            in_class = False
        elif part == "-" and in_class and not _keeps(parts[number - 1], parts[number + 1]):
            return None
        if part == "?" and parts[number - 1] == "(" and parts[number + 1] not in {":", "m"}:
            return None
        if _is_upper(part):
            written.append(_lower(part))
        else:
            written.append(part)
    return "".join(written)


def _read(pattern: str) -> Iterator[str]:
    r"""Characters, and escapes as a whole: `\s`, `\x27`."""
    at = 0
    while at < len(pattern):
        size = 1
        if pattern[at] == "\\":
            size = 2 + _HEX_DIGITS if pattern[at + 1 : at + 2] == "x" else 2
        yield pattern[at : at + size]
        at += size


def _code(part: str) -> int | None:
    """The character that a part stands for; None for one that stands for several."""
    if len(part) == 1:
        return ord(part)
    if part[1] == "x":
        return int(part[-_HEX_DIGITS:], 16)
    return None if part[1].isalnum() else ord(part[1])


def _is_upper(part: str) -> bool:
    return _code(part) in _UPPER


def _lower(part: str) -> str:
    return chr((_code(part) or 0) + 32)


def _keeps(first: str, last: str) -> bool:
    """Whether a range means the same with its ends in lower case. At the edge of a class the mark is only itself."""
    if first in {"[", "^"} or last == "]":
        return True
    low, high = _code(first), _code(last)
    if low is None or high is None:
        return False
    both = low in _UPPER and high in _UPPER
    return both or low > _UPPER[-1] or high < _UPPER[0]
