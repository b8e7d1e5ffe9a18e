"""Expressions of a policy in CEL, the Common Expression Language: compiled, checked against the declared facts, and
evaluated within bounds.

The library evaluates without a limit of time, so what an expression may cost is bounded before: its length, and its
steps, where each list that it goes through has its greatest length. What would make a step long (patterns, which are
compiled each time) or a list longer may not stand where it is repeated.
"""

import difflib
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from string import ascii_letters, digits
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
import re2

from vskill_platform.domain.verdicts.facts import Facts

#: Characters of an expression.
LONGEST_EXPRESSION = 1_000
#: Entries of the longest list of the facts.
LONGEST_LIST = 100


@cache
def _cel() -> Any:
    """The compiled part of the library alone: importing the package would load a command line of its own, with two
    libraries for terminals."""
    package = find_spec("cel")
    found = PathFinder.find_spec("cel", package.submodule_search_locations) if package else None
    if found is None or found.loader is None:
        raise ModuleNotFoundError("common-expression-language is not installed", name="cel")
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


_MACROS = frozenset({"all", "exists", "exists_one", "filter", "map"})
#: What makes lists longer, or lists of lists.
_GROW = frozenset({"+", "filter", "map"})
_LITERALS = frozenset({"true", "false", "null", "in"})
_WORD = re2.compile(
    r"""(?s)[rRbB]{0,2}"(?:\\.|[^"\\])*"|[rRbB]{0,2}'(?:\\.|[^'\\])*'|//[^\n]*|[A-Za-z_][A-Za-z0-9_]*|[0-9][0-9A-Za-z.]*|\S"""
)
_NAME = re2.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ExpressionError(ValueError):
    """The expression is not valid; the message says why."""


class Expression:
    """One expression, compiled."""

    def __init__(self, source: str, *, is_condition: bool = False) -> None:
        if len(source) > LONGEST_EXPRESSION:
            raise ExpressionError(f"it has {len(source)} characters, and {LONGEST_EXPRESSION} are allowed")
        #: What it costs at most, in steps.
        self.steps = _check_words(source)
        program = _compile(source)
        _check_type(program, is_condition=is_condition)
        # So that no list is handed back where true or false is wanted.
        self._program = _compile(f"({source}\n) ? true : false") if is_condition else program

    def evaluate(self, context: Any) -> Any:
        """Its value for the facts that `context_of` was given; raises whatever is wrong with it."""
        return self._program.execute(context)


def _compile(source: str) -> Any:
    try:
        return _cel().compile(source)
    except ValueError as error:
        problem = _first_line(error).partition("ERROR: <input>:")[2] or _first_line(error)
        raise ExpressionError(f"it is not valid CEL, at {problem[:160]}") from None


def _check_type(program: Any, *, is_condition: bool) -> None:
    """Try it on a skill that has one entry in each list."""
    try:
        value = program.execute(_sample_context())
    except TypeError:
        raise ExpressionError("its types do not fit together") from None
    except RuntimeError as error:
        raise ExpressionError(_first_line(error)) from None
    except Exception:  # noqa: BLE001 - such as a number that is too large: that depends on the skill
        return
    if is_condition and type(value) is not bool:
        raise ExpressionError("it must be true or false")
    entries = value if isinstance(value, list) else [value]
    if not is_condition and not all(type(one) in (str, int, bool) for one in entries):
        raise ExpressionError("it must give a text, a whole number, or a list of these")


def context_of(facts: Facts | dict[str, Any]) -> Any:
    """Make it once per decision: handing the facts over costs more than an expression."""
    return _cel().Context(variables=msgspec.to_builtins(facts))


def describe_failure(error: Exception) -> str:
    """In one line, for a sentence."""
    return f"{type(error).__name__}: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].partition(". C")[0][:200] if lines else "no detail"


# Names: the library knows what an expression refers to only by its first name, and misses what it does not evaluate.


def _check_words(source: str) -> int:
    """The steps that it takes at most, once nothing is repeated that may not be and every fact is declared."""
    found = [one for one in _WORD.findall(source) if not one.startswith("//")]
    # Beyond the ends, so that neighbours need no check.
    words = ["", "", *found, "", "", ""]
    steps = _count_steps(words)
    _check_names(words)
    return steps


def _count_steps(words: list[str]) -> int:
    longest = max(LONGEST_LIST, words.count(",") + 1)
    #: Of each bracket that is open, whether it is a macro's.
    opened: list[bool] = []
    steps = deepest = 0
    for at in range(2, len(words)):
        if words[at] == "(":
            opened.append(words[at - 1] in _MACROS and words[at - 2] == ".")
        elif words[at] == ")" and opened:
            opened.pop()
        elif words[at] == "matches" and any(opened):
            raise ExpressionError("matches cannot stand inside a macro: use contains, startsWith or endsWith")
        deepest = max(deepest, sum(opened))
        steps += longest ** sum(opened)
    if deepest > 1 and (grows := _GROW.intersection(words)):
        raise ExpressionError(f"{min(grows)} cannot stand in an expression whose macros nest")
    return steps


def _check_names(words: list[str]) -> None:
    scope: dict[str, Any] = {**get_type_hints(Facts)}
    #: The path that is being read, and what it leads to; None where that is not known.
    path, kind = "", None
    for at in range(2, len(words) - 3):
        word, before, after = words[at], words[at - 1], words[at + 1]
        if word == ".":
            continue
        if before == "." and word in _MACROS and after == "(":
            scope[words[at + 2]] = get_args(kind)[0] if get_origin(kind) is tuple else None
        if not _NAME.fullmatch(word) or after == "(":
            kind = None
        elif before == ".":
            path, kind = f"{path}.{word}", _member(kind, word, path)
        elif word in _LITERALS:
            kind = None
        elif word in scope:
            path, kind = word, scope[word]
        else:
            raise _unknown(word, list(scope), "")


def _member(kind: Any, name: str, path: str) -> Any:
    if kind is None:
        return None
    fields = get_type_hints(kind) if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else {}
    if name not in fields:
        raise _unknown(name, list(fields), path)
    return fields[name]


def _unknown(name: str, known: list[str], path: str) -> ExpressionError:
    whole = f"{path}.{name}" if path else name
    if not known:
        return ExpressionError(f"there is no fact {whole}: {path} has no fields")
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
    return ExpressionError(f"there is no fact {whole}; the nearest is {f'{path}.{near}' if path else near}")


@cache
def _sample_context() -> Any:
    return _cel().Context(variables={name: _sample(kind) for name, kind in get_type_hints(Facts).items()})


def _sample(kind: Any) -> Any:
    if get_origin(kind) is tuple:
        return [_sample(get_args(kind)[0])]
    if issubclass(kind, msgspec.Struct):
        return {name: _sample(of) for name, of in get_type_hints(kind).items()}
    return kind(1)


# What an expression reads: so that a trial of many skills hands over no more.

#: A fact, or a list in it; fields that are read of it or of the list's entries; and how the list is gone through.
_Use = tuple[tuple[str, ...], frozenset[str], frozenset[str]]


def facts_read(source: str) -> list[_Use] | None:
    """The single fields that a valid expression reads; None where it may read more: something is compared, listed or
    handed on whole, or it is written in a way that is not followed here."""
    if '"""' in source or "'''" in source:
        return None
    words = [one for one in _WORD.findall(source) if not one.startswith("//")]
    try:
        return _FieldReader(["", "", *words, *[""] * 6]).read()
    except _NotFollowed:
        return None


class _NotFollowed(Exception):
    """The expression may read more than single fields."""


class _FieldReader:
    """Goes once through the words of an expression, with the variables of the macros that it is in."""

    def __init__(self, words: list[str]) -> None:
        self._words, self._uses = words, list[_Use]()
        self._ends = _closing(words)
        #: Where a macro stands, or where the brackets of a filter end: the list that it goes through.
        self._lists: dict[int, tuple[str, ...]] = {}
        #: Variables with the list whose entry each is, and where they end; None is a list of plain values.
        self._scopes: list[tuple[str, tuple[str, ...] | None, int]] = []
        self._declared: set[int] = set()

    def read(self) -> list[_Use]:
        for at in range(2, len(self._words) - 6):
            before, word, after = self._words[at - 1 : at + 2]
            if before == "." and word in _MACROS and after == "(":
                self._macro(at, word)
            elif before == "." and not self._words[at - 2].endswith(
                (*")]}\"'", *ascii_letters, *digits, "_")
            ):
                # Of the outermost scope, whatever a variable is called.
                raise _NotFollowed
            elif before == "." or at in self._declared or not _NAME.fullmatch(word):
                continue
            elif scope := next(
                (one for one in reversed(self._scopes) if one[0] == word and at < one[2]), None
            ):
                if scope[1] is not None:
                    self._uses.append((scope[1], self._field(at, _entry_of(scope[1])), frozenset()))
            elif word in Facts.__struct_fields__:
                self._fact(at, word)
        return self._uses

    def _fact(self, at: int, name: str) -> None:
        kind = get_type_hints(Facts)[name]
        if name in ("card", "gained"):
            (part,) = self._field(at, kind)
            self._list(at + 2, (name, part))
        elif get_origin(kind) is tuple:
            self._list(at, (name,))
        elif issubclass(kind, msgspec.Struct):
            self._uses.append(((name,), self._field(at, kind), frozenset()))
        else:
            self._uses.append(((name,), frozenset(), frozenset()))

    def _field(self, at: int, kind: Any) -> frozenset[str]:
        """The field that stands behind a name."""
        dot, field, behind = self._words[at + 1 : at + 4]
        if dot != "." or field not in kind.__struct_fields__ or behind == "(":
            raise _NotFollowed
        return frozenset((field,))

    def _list(self, at: int, path: tuple[str, ...]) -> None:
        """What is done with a list of entries, whose name or whose filter ends here."""
        dot, way, bracket = self._words[at + 1 : at + 4]
        if dot != "." or bracket != "(" or way not in {*_MACROS, "size"}:
            raise _NotFollowed
        self._uses.append((path, frozenset(), frozenset((way,))))
        if way != "size":
            self._lists[at + 2] = path

    def _macro(self, at: int, name: str) -> None:
        path, variable, end = self._lists.get(at), at + 2, self._ends.get(at + 1)
        if end is None or self._words[variable + 1] != "," or not _NAME.fullmatch(self._words[variable]):
            raise _NotFollowed
        self._declared.add(variable)
        self._scopes.append((self._words[variable], path, end))
        if path is not None and name == "filter":
            self._list(end, path)


def _entry_of(path: tuple[str, ...]) -> Any:
    kind: Any = Facts
    for name in path:
        kind = get_type_hints(kind)[name]
    return get_args(kind)[0]


def _closing(words: list[str]) -> dict[int, int]:
    """Where each bracket is closed."""
    opened: list[int] = []
    ends: dict[int, int] = {}
    for at, word in enumerate(words):
        if word in "([{" and word:
            opened.append(at)
        elif word in ")]}" and word and opened:
            ends[opened.pop()] = at
    return ends
