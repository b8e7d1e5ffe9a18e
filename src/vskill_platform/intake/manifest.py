"""What a SKILL.md says about itself in its front matter: read strictly, as text, before anything is scanned.

Only the plain part of YAML is taken: no aliases, no tags, no key twice, no deep nesting. Every value stays
the text that was written, so a version `1.10` is not 1.1. An error names the line of SKILL.md and the fix.
"""

from collections.abc import Iterator

import msgspec
import yaml

from vskill_platform.domain.errors import InvalidManifest

MAX_DEPTH = 8
MAX_BYTES = 64 * 1024
NAME_LENGTH = 64
DESCRIPTION_LENGTH = 1024

_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


class Text(msgspec.Struct, frozen=True):
    """A scalar, exactly as written."""

    line: int
    value: str


class List(msgspec.Struct, frozen=True):
    """A sequence."""

    line: int
    items: tuple["Text | List | Table", ...]


class Table(msgspec.Struct, frozen=True):
    """A mapping."""

    line: int
    items: dict[str, "Text | List | Table"]


class Manifest(msgspec.Struct, frozen=True):
    """The front matter's fields that the platform knows."""

    name: str
    description: str
    #: As written; `version`, or `metadata.version` where there is no such field.
    version: str | None = None
    license: str | None = None
    compatibility: str | None = None
    allowed_tools: tuple[str, ...] = ()
    #: The scalar entries of `metadata`.
    metadata: dict[str, str] = {}


def read_manifest(skill_md: bytes) -> Manifest:
    """The manifest of a SKILL.md; InvalidManifest names the line and the fix."""
    table = _parse(_block(_decode(skill_md)))
    metadata = _metadata(table)
    return Manifest(
        name=_name(table),
        description=_description(table),
        version=_text(table, "version") or metadata.get("version") or None,
        license=_text(table, "license"),
        compatibility=_text(table, "compatibility"),
        allowed_tools=_words(table, "allowed-tools"),
        metadata=metadata,
    )


# From bytes to the lines between the two markers.


def _decode(skill_md: bytes) -> str:
    try:
        return skill_md.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = skill_md[: error.start].count(b"\n") + 1
        raise _invalid(line, "SKILL.md is not UTF-8 text", "save it as UTF-8") from None


def _block(text: str) -> str:
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        raise _invalid(1, "SKILL.md has no front matter", "begin it with a line '---' and its fields")
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() == "---":
            block = "\n".join(lines[1:number]) + "\n"
            if len(block) > MAX_BYTES:
                raise _invalid(2, f"the front matter has more than {MAX_BYTES} characters", "shorten it")
            return block
    raise _invalid(1, "the front matter does not end", "close it with a line '---'")


# From YAML's events to nodes. Values are built here, so nothing that is refused is ever constructed.


def _parse(block: str) -> Table:
    events = _plain_events(block)
    first = next(events, None)
    if not isinstance(first, yaml.MappingStartEvent):
        raise _invalid(2, "the front matter is not a list of fields", "write lines such as 'name: my-skill'")
    table = _table(events, first, 1)
    for event in events:
        raise _invalid(
            _line(event), "the front matter goes on after its end", "write one list of fields only"
        )
    return table


def _plain_events(block: str) -> Iterator[yaml.Event]:
    """The events that carry content; refuses what a manifest never needs."""
    try:
        for event in yaml.parse(block, Loader=yaml.CBaseLoader):
            if isinstance(event, yaml.NodeEvent):
                _refuse_extras(event)
                yield event
            elif isinstance(event, yaml.CollectionEndEvent):
                yield event
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 2
        raise _invalid(
            line, f"the front matter is not valid YAML: {error.problem}", "correct that line"
        ) from None
    except yaml.YAMLError:
        raise _invalid(2, "the front matter holds a character that YAML forbids", "remove it") from None


def _refuse_extras(event: yaml.NodeEvent) -> None:
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise _invalid(_line(event), "the front matter uses an alias ('&' or '*')", "write the value out")
    # Scalars and collections have one; the stubs know it of neither.
    if getattr(event, "tag", None) is not None:
        raise _invalid(
            _line(event), "the front matter uses a tag ('!')", "remove the tag, or quote the value"
        )


def _node(events: Iterator[yaml.Event], event: yaml.Event, depth: int) -> "Text | List | Table":
    if isinstance(event, yaml.ScalarEvent):
        return Text(_line(event), event.value)
    if depth > MAX_DEPTH:
        raise _invalid(_line(event), f"the front matter nests deeper than {MAX_DEPTH}", "flatten it")
    if isinstance(event, yaml.MappingStartEvent):
        return _table(events, event, depth)
    return _list(events, event, depth)


def _table(events: Iterator[yaml.Event], start: yaml.Event, depth: int) -> Table:
    items: dict[str, Text | List | Table] = {}
    for event in events:
        if isinstance(event, yaml.MappingEndEvent):
            break
        if not isinstance(event, yaml.ScalarEvent):
            raise _invalid(_line(event), "a field's name is not plain text", "use a word before the ':'")
        if event.value in items:
            raise _invalid(_line(event), f"the field {event.value!r} stands there twice", "keep one of them")
        items[event.value] = _node(events, next(events), depth + 1)
    return Table(_line(start), items)


def _list(events: Iterator[yaml.Event], start: yaml.Event, depth: int) -> List:
    items: list[Text | List | Table] = []
    for event in events:
        if isinstance(event, yaml.SequenceEndEvent):
            break
        items.append(_node(events, event, depth + 1))
    return List(_line(start), tuple(items))


def _line(event: yaml.Event) -> int:
    """The line of SKILL.md: the block begins on its second."""
    return event.start_mark.line + 2 if event.start_mark else 2


# The fields.


def _name(table: Table) -> str:
    name = _read_required(table, "name", "the skill's name, such as 'pdf-tools'")
    fix = f"use 1 to {NAME_LENGTH} of a-z, 0-9 and single hyphens between them"
    parts = name.split("-")
    if len(name) > NAME_LENGTH or not set(name) <= _NAME_CHARACTERS or not all(parts):
        raise _invalid(table.items["name"].line, f"the name {name[:80]!r} is not accepted", fix, field="name")
    return name


def _description(table: Table) -> str:
    text = _read_required(table, "description", "what the skill does and when to use it")
    if len(text) > DESCRIPTION_LENGTH:
        problem = f"the description has {len(text)} characters"
        fix = f"use at most {DESCRIPTION_LENGTH}"
        raise _invalid(table.items["description"].line, problem, fix, field="description")
    return text


def _read_required(table: Table, field: str, meaning: str) -> str:
    value = _text(table, field)
    if value is None:
        line = table.items[field].line if field in table.items else table.line
        raise _invalid(
            line, f"the front matter has no {field}", f"add '{field}:' with {meaning}", field=field
        )
    return value


def _text(table: Table, field: str) -> str | None:
    """A field's text without surrounding space; None where it is absent or empty."""
    node = table.items.get(field)
    if node is None:
        return None
    if not isinstance(node, Text):
        raise _invalid(node.line, f"the field {field!r} is not text", "write it on one line", field=field)
    return node.value.strip() or None


def _words(table: Table, field: str) -> tuple[str, ...]:
    """A list, or one text of words with spaces or commas between them."""
    node = table.items.get(field)
    if isinstance(node, List):
        return tuple(item.value for item in node.items if isinstance(item, Text))
    return tuple((_text(table, field) or "").replace(",", " ").split())


def _metadata(table: Table) -> dict[str, str]:
    node = table.items.get("metadata")
    if not isinstance(node, Table):
        return {}
    return {key: value.value for key, value in node.items.items() if isinstance(value, Text)}


def _invalid(line: int, problem: str, fix: str, field: str = "SKILL.md") -> InvalidManifest:
    return InvalidManifest(f"SKILL.md line {line}: {problem}; {fix}.", line=line, field=field, fix=fix)
