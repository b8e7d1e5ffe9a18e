"""What a SKILL.md says about itself: strict about safety, lenient about form.

Front matter in plain YAML is read as YAML: no aliases, no tags, no key twice, no deep nesting, and every value stays
the text that was written, so a version `1.10` is not 1.1. Any other front matter is read line by line, in linear time,
as clients do that know no YAML. What is missing or has another form is replaced, and a note says by what and how to
fix it. Only what no client could install is refused: a SKILL.md that is empty, that is not UTF-8 text, or whose front
matter is too large.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import re2
import yaml

from vskill_core.content import (
    DEFAULT_LIMITS,
    ContentLimits,
    SkillFile,
    check_files,
    skill_file_of,
)
from vskill_core.errors import InvalidManifest
from vskill_core.form import SKIPPED_BY_SKILLS, FormNote, NoteCode
from vskill_core.naming import NAME_LENGTH, is_plain_name, plain_name, slugify

MAX_DEPTH = 8
MAX_BYTES = 64 * 1024
DESCRIPTION_LENGTH = 1024

MARKER = "---"
#: Lines after the front matter in which a first paragraph is looked for.
_BODY_LINES = 200
#: Of a name that is shown or compared with the blocklist.
_SHOWN_NAME = 200
#: Fields that are read; of all others nothing is kept.
_TEXTS = ("name", "description", "version", "license", "compatibility")
_REQUIRED = ("name", "description")
_FIELDS = frozenset((*_TEXTS, "allowed-tools", "metadata"))
#: Control characters but tab and line end.
_CONTROLS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])
_KEY_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class Manifest(msgspec.Struct, frozen=True):
    """What the platform knows of a skill from its SKILL.md."""

    #: 1 to 64 of a-z, 0-9 and single hyphens: the front matter's, or the folder's where that has another form or is
    #: missing
    name: str
    #: 1 to 1024 characters
    description: str
    #: As written; `version`, or `metadata.version` where there is no such field.
    version: str | None = None
    license: str | None = None
    compatibility: str | None = None
    allowed_tools: tuple[str, ...] = ()
    #: The scalar entries of `metadata`.
    metadata: dict[str, str] = {}
    #: The name in the front matter, in whatever form; None where there is none.
    declared_name: str | None = None
    #: What the author should correct.
    notes: tuple[FormNote, ...] = ()


def declared_slug(files: Iterable[SkillFile]) -> str | None:
    """What an upload is called: the name in its front matter as a slug; None where there is none."""
    name = read_manifest(skill_file_of(files).data).declared_name
    return slugify(name) if name else None


class _Fields(msgspec.Struct, frozen=True):
    """The fields of a front matter, and where each of them begins."""

    texts: Mapping[str, str] = {}
    allowed_tools: tuple[str, ...] = ()
    metadata: dict[str, str] = {}
    lines: Mapping[str, int] = {}


class _NotPlain(Exception):
    """The front matter is not the part of YAML that is read as such."""

    def __init__(self, line: int, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.line, self.problem, self.fix = line, problem, fix


def admit_skill(files: Sequence[SkillFile], folder: str, limits: ContentLimits = DEFAULT_LIMITS) -> Manifest:
    """The manifest of files that may become a skill. NoSkillFound, InvalidManifest, InvalidInput or LimitExceeded say
    why the registry refuses them, whoever asks: the intake, a worker, or `scan` on the author's machine."""
    check_files(files, limits)
    return read_manifest(skill_file_of(files).data, folder)


def read_manifest(skill_md: bytes, folder: str = "") -> Manifest:
    """The manifest of a SKILL.md in a folder of this name; InvalidManifest names the line and the fix."""
    lines = _decode(skill_md).split("\n")
    notes: list[FormNote] = []
    begin, end = _find_front_matter(lines, notes)
    if not begin:
        name = plain_name(folder or "skill")
        return Manifest(name, _describe_by_text(lines, name), notes=tuple(notes))
    fields = _read_fields(lines[begin:end], begin + 1, notes)
    name = _choose_name(fields, folder, notes)
    metadata = fields.metadata
    return Manifest(
        name=name,
        description=_choose_description(fields, lines[end:], name, notes),
        version=fields.texts.get("version") or metadata.get("version") or None,
        license=fields.texts.get("license"),
        compatibility=fields.texts.get("compatibility"),
        allowed_tools=fields.allowed_tools,
        metadata=metadata,
        declared_name=_shown(fields.texts.get("name", "")) or None,
        notes=tuple(notes),
    )


# From bytes to the lines between the two markers.


def _decode(skill_md: bytes) -> str:
    try:
        text = skill_md.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = skill_md[: error.start].count(b"\n") + 1
        raise _invalid(line, "SKILL.md is not UTF-8 text", "save it as UTF-8") from None
    if not text.strip():
        raise _invalid(1, "SKILL.md is empty", "write the skill's instructions into it")
    return text


def _find_front_matter(lines: Sequence[str], notes: list[FormNote]) -> tuple[int, int]:
    """The first line of the front matter and the first behind its end; both 0 where there is none."""
    first = next(number for number, line in enumerate(lines) if line.strip())
    if lines[first].rstrip() != MARKER:
        problem = "SKILL.md has no front matter; the folder's name and the first paragraph are used"
        fix = "begin it with a line '---', then 'name:' and 'description:', then '---' again"
        _note(notes, NoteCode.FRONT_MATTER_MISSING, "front matter", problem, fix, 1)
        return 0, 0
    if first:
        problem, fix = "There are empty lines above the front matter", "begin SKILL.md with the line '---'"
        _note(notes, NoteCode.FRONT_MATTER_MISSING, "front matter", problem, fix, 1)
    begin = first + 1
    end = next((number for number in range(begin, len(lines)) if lines[number].rstrip() == MARKER), None)
    if end is None:
        problem = "The front matter does not end; it was read up to the first empty line"
        _note(notes, NoteCode.FRONT_MATTER_OPEN, "front matter", problem, "close it with a line '---'", begin)
        end = next((number for number in range(begin, len(lines)) if not lines[number].strip()), len(lines))
    if sum(map(len, lines[begin:end])) > MAX_BYTES:
        raise _invalid(begin + 1, f"the front matter has more than {MAX_BYTES} characters", "shorten it")
    return begin, end


def _read_fields(block: Sequence[str], first_line: int, notes: list[FormNote]) -> _Fields:
    """As YAML where it is plain YAML, otherwise line by line."""
    try:
        return _parse("\n".join(block) + "\n", first_line, notes)
    except _NotPlain as found:
        problem = f"{found.problem}; the fields were read line by line"
        code = NoteCode.FRONT_MATTER_NOT_YAML
        _note(notes, code, "front matter", problem, found.fix, found.line)
    return _read_lines(block, first_line)


# Plain YAML: from the parser's events to the fields. Values are built here, so nothing that is refused is ever
# constructed.

#: A scalar, a sequence or a mapping. Only what a known field holds is looked at.
_Node = str | list["_Node"] | dict[str, "_Node"]


def _parse(block: str, first_line: int, notes: list[FormNote]) -> _Fields:
    items, lines = _Parser(block, first_line).parse()
    texts: dict[str, str] = {}
    for field in _TEXTS:
        value = items.get(field, "")
        problem, fix = f"The field {field!r} is not text", f"write {field!r} as one text, in quotes"
        if isinstance(value, str):
            texts[field] = _clean(value)
        elif field in _REQUIRED:
            raise _NotPlain(lines[field], problem, fix)
        else:
            _note(notes, NoteCode.FIELD_NOT_TEXT, field, f"{problem}; it is ignored", fix, lines[field])
    texts = {field: text for field, text in texts.items() if text}
    found = items.get("metadata")
    metadata = found.items() if isinstance(found, dict) else ()
    entries = {key: value for key, value in metadata if isinstance(value, str)}
    return _Fields(texts, _tools(items.get("allowed-tools")), entries, lines)


class _Parser:
    """One pass over the events of a front matter."""

    def __init__(self, block: str, first_line: int) -> None:
        self._first_line = first_line
        self._events = self._plain_events(block)

    def parse(self) -> tuple[dict[str, _Node], dict[str, int]]:
        """The fields, and the line of each."""
        first = next(self._events, None)
        if not isinstance(first, yaml.MappingStartEvent):
            problem = "The front matter is not a list of fields"
            raise _NotPlain(self._first_line, problem, "write lines such as 'name: my-skill'")
        lines: dict[str, int] = {}
        items = self._table(1, lines)
        for event in self._events:
            raise _NotPlain(
                self._line(event), "The front matter goes on after its end", "write one list of fields only"
            )
        return items, lines

    def _plain_events(self, block: str) -> Iterator[yaml.Event]:
        """The events that carry content; nothing that a manifest never needs."""
        try:
            for event in yaml.parse(block, Loader=yaml.CBaseLoader):
                if isinstance(event, yaml.NodeEvent):
                    self._refuse_extras(event)
                    yield event
                elif isinstance(event, yaml.CollectionEndEvent):
                    yield event
        except yaml.MarkedYAMLError as error:
            # Of an open quote or bracket its beginning is the place to look at, not where the text ended.
            is_open = any(word in (error.context or "") for word in ("quoted", "flow"))
            mark = error.context_mark if is_open else error.problem_mark
            line = self._first_line + (mark.line if mark else 0)
            fix = "put quotes around a value that holds ': ', '#', or begins with a special character"
            raise _NotPlain(line, f"The front matter is not valid YAML ({error.problem})", fix) from None
        except yaml.YAMLError:
            problem = "The front matter holds a character that YAML forbids"
            raise _NotPlain(self._first_line, problem, "remove control characters") from None

    def _refuse_extras(self, event: yaml.NodeEvent) -> None:
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            fix = "write the value out, or quote it"
            raise _NotPlain(self._line(event), "The front matter uses an alias ('&' or '*')", fix)
        # Scalars and collections have one; the stubs know it of neither.
        if getattr(event, "tag", None) is not None:
            fix = "remove the tag, or quote the value"
            raise _NotPlain(self._line(event), "The front matter uses a tag ('!')", fix)

    def _node(self, event: yaml.Event, depth: int) -> _Node:
        if isinstance(event, yaml.ScalarEvent):
            value: str = event.value
            return value
        if depth > MAX_DEPTH:
            problem = f"The front matter nests deeper than {MAX_DEPTH}"
            raise _NotPlain(self._line(event), problem, "flatten it")
        return self._table(depth) if isinstance(event, yaml.MappingStartEvent) else self._list(depth)

    def _table(self, depth: int, lines: dict[str, int] | None = None) -> dict[str, _Node]:
        items: dict[str, _Node] = {}
        for event in self._events:
            if isinstance(event, yaml.MappingEndEvent):
                break
            if not isinstance(event, yaml.ScalarEvent):
                raise _NotPlain(
                    self._line(event), "A field's name is not plain text", "use a word before the ':'"
                )
            if event.value in items:
                problem = f"The field {event.value[:80]!r} is there twice, and the first counts"
                raise _NotPlain(self._line(event), problem, "keep one of them")
            if lines is not None:
                lines[event.value] = self._line(event)
            items[event.value] = self._node(next(self._events), depth + 1)
        return items

    def _list(self, depth: int) -> list[_Node]:
        items: list[_Node] = []
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self._node(event, depth + 1))
        return items

    def _line(self, event: yaml.Event) -> int:
        return self._first_line + (event.start_mark.line if event.start_mark else 0)


#: What a value of YAML's core schema is that stands without quotes and is no text.
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE = re2.compile(r"[-+]?[0-9]{1,15}")
_DECIMAL = re2.compile(r"[-+]?(\.[0-9]{1,15}|[0-9]{1,15}(\.[0-9]{0,15})?)([eE][-+]?[0-9]{1,2})?")


class _TypedParser(_Parser):
    """Reads values as YAML's core schema does: numbers, true, false and null where nothing quotes them."""

    def _node(self, event: yaml.Event, depth: int) -> Any:
        if not isinstance(event, yaml.ScalarEvent) or not event.implicit[0]:
            return super()._node(event, depth)
        text: str = event.value
        if text in _NULLS:
            return None
        if text in _FLAGS:
            return _FLAGS[text]
        if _WHOLE.fullmatch(text):
            return int(text)
        return float(text) if _DECIMAL.fullmatch(text) else text


def read_front_matter(skill_md: bytes) -> dict[str, Any] | None:
    """Every field of the front matter as the author wrote it, as JSON can say it; None where it is not plain YAML."""
    try:
        lines = _decode(skill_md).split("\n")
        begin, end = _find_front_matter(lines, [])
        if not begin:
            return None
        fields: dict[str, Any] = _TypedParser("\n".join(lines[begin:end]), begin + 1).parse()[0]
    except (InvalidManifest, _NotPlain):
        return None
    return fields


def _tools(node: _Node | None) -> tuple[str, ...]:
    """A list, or one text of words with spaces or commas between them."""
    if isinstance(node, list):
        return tuple(item for item in node if isinstance(item, str))
    return tuple(node.replace(",", " ").split()) if isinstance(node, str) else ()


# Everything else: one look at each line, no rules but those that people follow by hand.


def _read_lines(block: Sequence[str], first_line: int) -> _Fields:
    """`key: value` is a field, and the lines below it that are indented belong to it; but an indented line that begins
    with another known key is that field, unless the value above is a table or a block of text."""
    begun: dict[str, int] = {}
    parts: dict[str, list[str]] = {}
    current: list[str] | None = None
    for number, line in enumerate(block):
        key, colon, rest = line.partition(":")
        is_inside = line[:1] in ("", " ", "\t") or line.startswith("- ")
        key = key.strip()
        if current is not None and is_inside and (_is_block(current[0]) or key not in _FIELDS):
            current.append(line.rstrip())
        elif colon and key and _KEY_CHARACTERS.issuperset(key):
            current = [rest.strip()]
            if key in _FIELDS and key not in begun:
                begun[key] = first_line + number
                parts[key] = current
        elif line.strip():
            current = None
    texts = {field: text for field in _TEXTS if field in parts and (text := _join(parts[field]))}
    tools = parts.get("allowed-tools", [""])
    return _Fields(
        texts,
        _tools([_unquote(item.strip(" \t-")) for item in tools[1:] if item.strip()] or _unquote(tools[0])),
        _entries(parts.get("metadata", ())),
        begun,
    )


def _is_block(value: str) -> bool:
    """Whether a value stands on the lines below."""
    return not value or (value[0] in "|>" and not value[1:].strip("+-0123456789"))


def _join(parts: Sequence[str]) -> str:
    """A value that may go on over more lines, as one text."""
    first = "" if _is_block(parts[0]) else parts[0]
    return _clean(_unquote(" ".join(part.strip() for part in (first, *parts[1:]) if part.strip())))


def _entries(parts: Sequence[str]) -> dict[str, str]:
    entries: dict[str, str] = {}
    for line in parts[1:]:
        key, colon, rest = line.strip().partition(":")
        if colon and key and _KEY_CHARACTERS.issuperset(key) and (value := _unquote(rest.strip())):
            entries.setdefault(key, value)
    return entries


def _unquote(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text


def _clean(text: str) -> str:
    """Without space around it, and without control characters but line ends."""
    if text.isprintable():
        return text.strip()
    return text.translate(_CONTROLS).strip()


# What is taken for name and description.


def _choose_name(fields: _Fields, folder: str, notes: list[FormNote]) -> str:
    written = fields.texts.get("name")
    if written is not None and is_plain_name(written):
        return written
    taken = plain_name(folder or written or "skill")
    if written is None:
        problem = "The front matter has no name; the folder's name is used"
        fix = "add a line such as 'name: pdf-tools'"
        _note(notes, NoteCode.NAME_MISSING, "name", problem, fix, fields.lines.get("name", 1))
    else:
        problem = f"The name {_shown(written)!r} is not accepted by every client; the folder's name is used"
        fix = (
            f"write 'name: {plain_name(written)}': 1 to {NAME_LENGTH} of a-z, 0-9 and single hyphens between"
        )
        _note(notes, NoteCode.NAME_INVALID, "name", problem, fix, fields.lines["name"])
    return taken


def _shown(name: str) -> str:
    return " ".join(name[:_SHOWN_NAME].split())


def _choose_description(fields: _Fields, body: Sequence[str], name: str, notes: list[FormNote]) -> str:
    written = fields.texts.get("description")
    if written is None:
        problem = "There is no description; the first paragraph of SKILL.md is used"
        fix = "add 'description:' with what the skill does and when to use it"
        line = fields.lines.get("description", 1)
        _note(notes, NoteCode.DESCRIPTION_MISSING, "description", problem, fix, line)
        return _describe_by_text(body, name)
    if len(written) > DESCRIPTION_LENGTH:
        problem = f"The description has {len(written)} characters; lists show the first {DESCRIPTION_LENGTH}"
        fix = f"use at most {DESCRIPTION_LENGTH} characters"
        line = fields.lines["description"]
        _note(notes, NoteCode.DESCRIPTION_LONG, "description", problem, fix, line)
    return _cut(written)


def _describe_by_text(body: Sequence[str], name: str) -> str:
    return _cut(_first_paragraph(body)) or f"The skill {name}."


def _cut(text: str) -> str:
    """At most as long as a description may be, without half a word at its end."""
    if len(text) <= DESCRIPTION_LENGTH:
        return text
    whole, _, rest = text[: DESCRIPTION_LENGTH - 1].rpartition(" ")
    return f"{(whole if whole and len(rest) < 100 else text[: DESCRIPTION_LENGTH - 1]).rstrip()}…"


def _first_paragraph(body: Sequence[str]) -> str:
    """The first lines of prose, else the first heading."""
    paragraph: list[str] = []
    heading = ""
    is_code = False
    for line in body[:_BODY_LINES]:
        text = _clean(line)
        if text.startswith(("```", "~~~")):
            is_code = not is_code
        is_prose = bool(text.strip("-=*_ ")) and not text.startswith(
            ("#", "```", "~~~", "<", "|", "![", "[![")
        )
        if is_prose and not is_code:
            paragraph.append(text)
        elif paragraph:
            break
        elif not heading and text.startswith("#") and not is_code:
            heading = text.strip("# ")
    return " ".join(paragraph).lstrip(">-*+ ") or heading


# Saying it.


def _note(notes: list[FormNote], code: NoteCode, field: str, problem: str, fix: str, line: int) -> None:
    skipped = " The npm client `skills` does not install it like this." if code in SKIPPED_BY_SKILLS else ""
    notes.append(FormNote(code, field, f"{problem}.{skipped}", f"{fix[0].upper()}{fix[1:]}.", line))


def _invalid(line: int, problem: str, fix: str, field: str = "SKILL.md") -> InvalidManifest:
    return InvalidManifest(f"SKILL.md line {line}: {problem}; {fix}.", line=line, field=field, fix=fix)
