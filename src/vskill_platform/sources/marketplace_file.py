"""The file of a marketplace in a repository: which plugins it names that are not among the repository's own places.

What it names and the repository holds is found by its own manifest, so the file is only read for what it names beyond
that, and nothing is fetched because of it.
"""

import posixpath
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from vskill_core.content import SkillFile
from vskill_scan.plugins.json_files import BadJson, read_object

MARKETPLACE = ".claude-plugin/marketplace.json"
#: Entries that are looked at, and characters of a name that is shown.
MOST_ENTRIES, SHOWN = 200, 60


def named_elsewhere(
    files: Mapping[str, bytes | None], folder: str, places: Collection[str]
) -> tuple[str, ...]:
    """A sentence for each plugin that a marketplace in this folder names and no place holds; nothing without a file."""
    data = next(iter(files.values()), b"{}")
    if data is None:
        return (f"{MARKETPLACE} is a link or too large, and was not read; keep a short plain file there.",)
    try:
        document = read_object(SkillFile(MARKETPLACE, "100644", data)).data
    except BadJson as error:
        return (f"{error.sentence}; {error.fix}.",)
    entries, about = document.get("plugins"), document.get("metadata")
    root = about.get("pluginRoot", ".") if isinstance(about, dict) else "."
    given = entries if isinstance(entries, list) else []
    most = [f"{MARKETPLACE} names {len(given)} plugins, and {MOST_ENTRIES} were looked at."]
    told = _tell(given[:MOST_ENTRIES], folder, str(root), frozenset(places))
    return (*told, *(most if len(given) > MOST_ENTRIES else ()))


def _tell(entries: list[Any], folder: str, root: str, places: frozenset[str]) -> Iterator[str]:
    for number, entry in enumerate(entries, 1):
        name = entry.get("name") if isinstance(entry, dict) else None
        source = entry.get("source") if isinstance(entry, dict) else None
        said = f"The plugin {name[:SHOWN]!a}" if isinstance(name, str) else f"Plugin {number}"
        said = f"{said} of {MARKETPLACE}"
        if not isinstance(source, str):
            yield f"{said} lies in another repository or package; submit that one."
            continue
        # A client resolves the path from the marketplace's folder.
        path = posixpath.normpath(posixpath.join(folder or ".", root, source))
        path = "" if path == "." else path
        if path.startswith(("..", "/")):
            yield f"{said} names a folder outside the repository; keep it inside."
        elif path not in places and not any(one.startswith(f"{path}/") for one in places if path):
            yield f"{said} has no manifest in its folder; add plugin.json there."
