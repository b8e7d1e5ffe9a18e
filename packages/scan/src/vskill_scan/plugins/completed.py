"""A plugin's files with a SKILL.md, for clients that know skills alone: it says what the plugin does, names its skills
with their files, and tells what such a client does not start.

It becomes part of the content, so whatever is handed out, scanned, compared and signed is the same everywhere.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from vskill_core.content import SkillFile
from vskill_core.errors import InvalidManifest
from vskill_core.identity import SKILL_FILE
from vskill_core.kind import MADE_HERE, STANDARD, Kind, is_made_here
from vskill_core.naming import plain_name
from vskill_scan.plugins.parts import read_plugin
from vskill_scan.plugins.plugin import Part, PartKind, Plugin
from vskill_scan.reading.manifest import DESCRIPTION_LENGTH

#: Skills that a made SKILL.md names, and characters of what it says of one.
MOST_NAMED, LONGEST_SAID = 100, 300
#: Parts that a client without plugins does not start or follow, as they are counted.
_LEFT_OUT = (PartKind.SERVER, PartKind.HOOK, PartKind.COMMAND, PartKind.AGENT)


def complete(files: Sequence[SkillFile], folder: str, kind: Kind) -> tuple[SkillFile, ...]:
    """The files as they are published: those of a plugin with a SKILL.md. InvalidManifest says why no client would take
    the plugin, and what to do."""
    files = tuple(files)
    if kind is Kind.SKILL:
        return files
    own = tuple(file for file in files if not is_made_here(file))
    plugin = read_plugin(own)
    if plugin is None:
        fix = "write a plugin.json at its root, or submit it as a skill"
        raise InvalidManifest(f"There is no manifest of a plugin; {fix}.", field=STANDARD, fix=fix)
    if plugin.fatal is not None:
        raise InvalidManifest(plugin.fatal.told, field=plugin.fatal.file, fix=plugin.fatal.fix)
    if not plugin.parts:
        fix = "put its skills into skills/NAME/SKILL.md"
        raise InvalidManifest(
            f"The plugin has no part that a client would use; {fix}.", field=STANDARD, fix=fix
        )
    if any(file.path == SKILL_FILE for file in own):
        return own
    made = SkillFile(SKILL_FILE, "100644", _skill_md(plugin, plain_name(folder)).encode())
    return tuple(sorted((*own, made), key=lambda file: file.path))


def skills_in(plugin: Plugin) -> tuple[Part, ...]:
    """Its skills, each at another address, by path."""
    found = {part.path: part for part in plugin.parts if part.kind is PartKind.SKILL and part.path}
    return tuple(found[path] for path in sorted(found))


def spoken_words(plugin: Plugin) -> str:
    """By which a search finds the plugin: the names and descriptions of its skills."""
    return " ".join(f"{_name(part)} {_said(part)}".strip() for part in skills_in(plugin)[:MOST_NAMED])


def rest_of(plugin: Plugin) -> str:
    """What it has beside skills, such as `2 servers and 1 hook`; empty where that is nothing."""
    counts = Counter(part.kind for part in plugin.parts)
    told = [f"{counts[kind]} {kind}{'s' if counts[kind] > 1 else ''}" for kind in _LEFT_OUT if counts[kind]]
    return " and ".join(filter(None, (", ".join(told[:-1]), *told[-1:])))


def _name(part: Part) -> str:
    return part.path.rpartition("/")[2]


def _said(part: Part) -> str:
    text = " ".join(part.description.split())
    return text if len(text) <= LONGEST_SAID else f"{text[:LONGEST_SAID]}…"


def _skill_md(plugin: Plugin, name: str) -> str:
    rest, skills = rest_of(plugin), skills_in(plugin)
    about = " ".join(plugin.description.split()) or f"The plugin {name}."
    more = f" This plugin also has {rest}, which only clients of plugins use." if rest else ""
    described = about[: DESCRIPTION_LENGTH - len(more)] + more
    head = {"name": name, "description": described, "version": plugin.version, "license": plugin.license}
    # Text in JSON is text in YAML.
    lines = [f"{field}: {json.dumps(text, ensure_ascii=False)}" for field, text in head.items() if text]
    before = ["---", *lines, "---", "", f"# {name}", "", about, ""]
    return "\n".join([*before, *_listed(skills), *_told(rest), MADE_HERE, ""])


def _listed(skills: Sequence[Part]) -> Iterator[str]:
    if not skills:
        return
    yield "This plugin holds these skills. Read the file of one before you do what it is for:"
    yield ""
    for part in skills[:MOST_NAMED]:
        yield f"- `{part.file}`: {_said(part)}"
    if len(skills) > MOST_NAMED:
        yield f"- and {len(skills) - MOST_NAMED} more below `skills/`"
    yield ""


def _told(rest: str) -> Iterator[str]:
    if rest:
        yield f"It also has {rest}. A client that knows skills alone uses none of them: install the plugin in one that"
        yield "takes plugins."
        yield ""
