"""The project's own documents: the Markdown files of `docs/` and those at the root, read once.

In a checkout they are where they are written; a wheel carries a copy of `docs/` inside the package. Where neither is
there, the list is empty, and the page says so.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

PACKAGE = Path(__file__).parents[1]
#: Where they may be: inside the package, or two folders above it in a checkout.
PLACES = (PACKAGE / "documents", PACKAGE.parents[1])
ROOT_FILES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
#: What newcomers read first, wherever it lies.
FIRST = ("docs/README.md", "docs/quickstart.md")
#: Sections of the index, each with the folder that fills it.
SECTIONS = {
    "Start here": "",
    "How to": "docs/how-to",
    "Reference": "docs/reference",
    "Discussions": "docs/discussions",
    "More": "docs",
    "Decisions": "docs/adr",
}


class Document(msgspec.Struct, frozen=True):
    """One document."""

    #: From the checkout's root.
    path: str
    title: str
    text: str

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def address(self) -> str:
        return f"/docs/{self.path}"


def read_documents(root: Path) -> Mapping[str, Document]:
    """Every document below a root, by its path; none where this is not the project's root."""
    folder = root / "docs"
    if not folder.is_dir():
        return MappingProxyType({})
    found = [root / name for name in ROOT_FILES if (root / name).is_file()] + sorted(folder.rglob("*.md"))
    made = [_document(path.relative_to(root).as_posix(), path.read_text("utf-8")) for path in found]
    return MappingProxyType({one.path: one for one in made})


def _document(path: str, text: str) -> Document:
    heading = next((line[2:].strip() for line in text.splitlines() if line.startswith("# ")), "")
    # Where a generated part begins and ends is for those who write the page.
    shown = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("<!--"))
    return Document(path, heading or path.rpartition("/")[2].removesuffix(".md"), shown)


def _first(places: tuple[Path, ...]) -> Mapping[str, Document]:
    return next((found for place in places if (found := read_documents(place))), MappingProxyType({}))


DOCUMENTS = _first(PLACES)


def sections(documents: Mapping[str, Document] = DOCUMENTS) -> list[tuple[str, list[Document]]]:
    """The index; a folder that is not named gets a section of its own."""
    folders = {**SECTIONS}
    named = set(folders.values())
    first = [documents[path] for path in FIRST if path in documents]
    for one in documents.values():
        if one.folder not in named:
            named.add(one.folder)
            folders[one.folder.rpartition("/")[2].capitalize()] = one.folder
    grouped = [
        (title, [one for one in documents.values() if one.folder == folder and one not in first])
        for title, folder in folders.items()
    ]
    if first:
        title, found = grouped[0]
        grouped[0] = (title, [*first, *found])
    return [(title, found) for title, found in grouped if found]
