"""Changes of other programs' settings files as text: one entry is put in, and every other byte stays as it is.

JSON may hold comments and trailing commas, as these programs allow them: it is looked through and never written anew.
"""

from vskill_core.errors import InvalidInput

#: Where a word ends that stands without quotes.
_WORD_END = frozenset(" \t\r\n\f\v,]}/")


def put_json_entry(text: str, path: tuple[str, ...], entry: str, *, is_item: bool = False) -> tuple[str, str]:
    """The document with an entry more in the object at this path, and what was put in. `entry` is a member (`"key":
    value`), or with `is_item` an item of the array there. Objects and arrays that are missing come with it."""
    if not text.strip():
        text = "{}\n"
    place, left = _find(text, path)
    for number, key in enumerate(reversed(left)):
        is_array = is_item and number == 0
        entry = f'"{key}": [{entry}]' if is_array else f'"{key}": {{{entry}}}'
    rest, after = text[place:], _skip(text, place)
    is_empty = text[after : after + 1] in ("}", "]")
    put = f"\n  {entry}\n" if is_empty else f"\n  {entry},"
    return text[:place] + put + rest, put


def put_section(text: str, section: str) -> tuple[str, str]:
    """The document with a section more at its end, and what was put in: TOML, and the settings of git."""
    put = ("" if not text or text.endswith("\n") else "\n") + ("\n" if text else "") + section
    return text + put, put


def take_out(text: str, put: str) -> str | None:
    """The document without what was put in; None where that is not there any more as it was."""
    return text.replace(put, "", 1) if text.count(put) == 1 else None


def take_out_member(text: str, path: tuple[str, ...], words: str) -> str | None:
    """The document without the member at this path, whose value holds these words; as it is where there is no such
    member, and None where its value is another."""
    at, missing = _find(text, path[:-1])
    value = None if missing else _member(text, at, path[-1])
    if value is None:
        return text
    end = _after_value(text, value)
    if f'"{words}"' not in text[value:end]:
        return None
    start = text.rindex(f'"{path[-1]}"', at, value)
    if text[end:].lstrip().startswith(","):
        end = text.index(",", end) + 1
    else:
        # The last member: the comma before it goes.
        start = len(text[:start].rstrip().removesuffix(","))
    return text[:start].rstrip() + text[end:]


def _find(text: str, path: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    """Where the inside of the innermost object or array begins that is there, and what is missing of the path."""
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        raise _unreadable(at)
    for number, key in enumerate(path):
        value = _member(text, at + 1, key)
        if value is None:
            return at + 1, path[number:]
        if text[value : value + 1] not in ("{", "["):
            raise _unreadable(value)
        at = value
    return at + 1, ()


def _member(text: str, at: int, key: str) -> int | None:
    """Where the value of a member begins, in the object whose inside begins here."""
    while True:
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            return None
        end = _after_string(text, at)
        name = text[at:end]
        at = _skip(text, end)
        if text[at : at + 1] != ":":
            raise _unreadable(at)
        at = _skip(text, at + 1)
        if name == f'"{key}"':
            return at
        at = _after_value(text, at)


def _after_value(text: str, at: int) -> int:
    """Where a value ends, whatever it holds."""
    depth = 0
    while at < len(text):
        if text[at] in "{[":
            depth, at = depth + 1, at + 1
        elif text[at] in "}]":
            depth, at = depth - 1, at + 1
        else:
            at = _after_string(text, at) if text[at] == '"' else _after_word(text, at)
        if depth == 0:
            return at
        at = _skip(text, at)
    raise _unreadable(at)


def _after_string(text: str, at: int) -> int:
    """Where a text in quotes ends that begins here."""
    end = at + 1
    while text[at : at + 1] == '"' and end < len(text):
        if text[end] == '"':
            return end + 1
        end += 2 if text[end] == "\\" else 1
    raise _unreadable(at)


def _after_word(text: str, at: int) -> int:
    end = next((place for place in range(at, len(text)) if text[place] in _WORD_END), len(text))
    if end == at:
        raise _unreadable(at)
    return end


def _skip(text: str, at: int) -> int:
    """Where the next part of a document begins, behind white space, commas and comments."""
    while at < len(text):
        closing = {"//": "\n", "/*": "*/"}.get(text[at : at + 2])
        if closing is not None:
            end = text.find(closing, at + 2)
            if end < 0 and closing == "*/":
                return at
            at = len(text) if end < 0 else end + len(closing)
        elif text[at].isspace() or text[at] == ",":
            at += 1
        else:
            break
    return at


def _unreadable(at: int) -> InvalidInput:
    fix = "correct the file, or add the entry by hand"
    return InvalidInput(f"The file is not JSON with comments at character {at}.", field="file", fix=fix)
