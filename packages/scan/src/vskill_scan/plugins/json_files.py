"""The JSON files of a plugin: read as the strictest client reads them, with the lines on which their keys stand.

What one client takes and another refuses is refused here with its fix: a key that stands twice means its first value to
one parser and its last to another.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import msgspec

from vskill_core.content import SkillFile

#: Of one file. Those of real plugins have a few thousand.
LONGEST_JSON = 256 * 1024


class BadJson(Exception):
    """A file that is not read, and what to do about it. `may_count`: a client that is less strict would read it."""

    def __init__(self, sentence: str, fix: str, line: int = 1, *, may_count: bool = True) -> None:
        super().__init__(sentence)
        self.sentence, self.fix, self.line, self.may_count = sentence, fix, line, may_count


class JsonObject(msgspec.Struct, frozen=True):
    """A JSON object, and its text."""

    path: str
    text: str
    data: dict[str, Any]

    def lines_of(self, texts: Iterable[str], after: str = "") -> Iterator[int]:
        """The lines on which these texts stand, one behind the other; of one that is written with escapes, the line
        of the one before it."""
        at = max(self.text.find(json.dumps(after)), 0)
        line = 1 + self.text.count("\n", 0, at)
        for text in texts:
            found = self.text.find(json.dumps(text, ensure_ascii=False), at)
            if found >= 0:
                line += self.text.count("\n", at, found)
                at = found
            yield line


def read_object(file: SkillFile, array: str = "") -> JsonObject:
    """The object in a file; BadJson says why there is none. `array` is the key of an array that may stand for it."""
    if len(file.data) > LONGEST_JSON:
        raise BadJson(
            f"{file.path} has {len(file.data)} bytes, and at most {LONGEST_JSON} are read",
            "keep only what a client needs in it",
        )
    if not file.data:
        fix = "keep a short plain file there"
        raise BadJson(f"{file.path} is empty, a link or too large", fix, may_count=False)
    text = file.data.decode("utf-8", "replace")
    try:
        file.data.decode("utf-8")
        data = json.loads(text, object_pairs_hook=_without_twins, parse_constant=_refuse_constant)
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        line = 1 + file.data.count(b"\n", 0, error.start)
        raise BadJson(f"{file.path} is not UTF-8 text", "save it as UTF-8", line) from None
    except UnicodeEncodeError:
        raise BadJson(f"{file.path} holds half a character", "write each escape of two parts whole") from None
    except json.JSONDecodeError as error:
        # Some clients skip a mark before the text, or comments in it.
        may_count = text.startswith("\ufeff") or "//" in text or "/*" in text
        sentence = f"{file.path} is not JSON: {error.msg}"
        raise BadJson(sentence, "correct it there", error.lineno, may_count=may_count) from None
    except RecursionError:
        raise BadJson(f"{file.path} is nested too deeply", "make it flatter") from None
    except ValueError:
        raise BadJson(f"{file.path} holds a number that is too long", "write a shorter one") from None
    if array and isinstance(data, list):
        data = {array: data}
    if not isinstance(data, dict):
        fix = "put its fields between '{' and '}'"
        raise BadJson(f"{file.path} holds no JSON object", fix, may_count=False)
    return JsonObject(file.path, text, data)


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twin = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise BadJson(
            f"the key {twin[:60]!a} stands twice in one object, and clients differ in which they take",
            "leave one of them out",
        )
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise BadJson(f"{name} is no JSON", "write a number or a text")
