"""The project's own documents: the Markdown files of `docs/` and those at the root, read once.

In a checkout they are where they are written; a wheel carries a copy of all of them inside the package. Where neither
is there, the list is empty, and the page says so.
"""

import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec
import re2

from vskill_core.release import release_numbers

PACKAGE = Path(__file__).parents[1]
#: Where they may be: inside the package, or two folders above it in a checkout.
PLACES = (PACKAGE / "documents", PACKAGE.parents[1])
#: The index that people write: its headings and their order group the documents here too.
INDEX = "docs/README.md"
#: The last two groups: what the index does not name, and the decision records.
OTHERS, DECISIONS = "The project", "Decision records"
CHANGELOG = "CHANGELOG.md"
#: In the changelog, below what is new in a release: what operators have to do.
UPGRADE = "### When you upgrade\n"
_LINK = re2.compile(r"\]\(([^()#]+\.md)")


class Document(msgspec.Struct, frozen=True):
    """One document."""

    #: From the checkout's root.
    path: str
    title: str
    text: str
    #: The title, the other headings and the text, as a search compares them.
    folded: tuple[str, str, str]

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
    found = sorted(root.glob("*.md")) + sorted(folder.rglob("*.md"))
    made = [_document(path.relative_to(root).as_posix(), path.read_text("utf-8")) for path in found]
    return MappingProxyType({one.path: one for one in made})


def _document(path: str, text: str) -> Document:
    heading = next((line[2:].strip() for line in text.splitlines() if line.startswith("# ")), "").replace(
        "`", ""
    )
    # Drop the markers of generated parts.
    shown = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("<!--"))
    title = heading or path.rpartition("/")[2].removesuffix(".md")
    headings = "\n".join(line for line in text.splitlines() if line.startswith("##"))
    return Document(path, title, shown, (title.casefold(), headings.casefold(), shown.casefold()))


DOCUMENTS: Mapping[str, Document] = next(filter(None, map(read_documents, PLACES)), MappingProxyType({}))


class ReleaseNotes(msgspec.Struct, frozen=True):
    """What the changelog says about one release."""

    release: str
    text: str

    @property
    def to_do(self) -> str:
        """What operators have to do, in one line; empty where that is nothing."""
        listed = self.text.partition(UPGRADE)[2].partition("\n#")[0]
        return " ".join(line.strip().removeprefix("- ") for line in listed.splitlines()).strip()


def notes_since(release: str) -> list[ReleaseNotes]:
    """Of every release after this one, newest first; none where the changelog is not there."""
    changelog = DOCUMENTS[CHANGELOG].text if CHANGELOG in DOCUMENTS else ""
    parts = (part.partition("\n") for part in changelog.split("\n## ")[1:])
    notes = [ReleaseNotes(heading.partition(",")[0].strip(), text.strip()) for heading, _, text in parts]
    return [one for one in notes if release_numbers(one.release) > release_numbers(release)]


def find_documents(words: Sequence[str]) -> list[Document]:
    """The documents that have every word, those first that have all in the title or in headings, then by how often."""
    found = [
        one for one in DOCUMENTS.values() if all(any(word in part for part in one.folded) for word in words)
    ]

    def rank(one: Document) -> tuple[int, int]:
        title, headings, text = one.folded
        places = (all(word in part for word in words) for part in (title, headings))
        return (next((at for at, is_there in enumerate(places) if is_there), 2), -sum(map(text.count, words)))

    return sorted(found, key=rank)


def sections(documents: Mapping[str, Document] = DOCUMENTS) -> list[tuple[str, list[Document]]]:
    """Every document, grouped as the index groups them."""
    grouped: dict[str, list[Document]] = {}
    title, seen = OTHERS, set[str]()
    for line in documents[INDEX].text.splitlines() if INDEX in documents else ():
        if line.startswith("## "):
            title = line.removeprefix("## ").partition(":")[0]
        elif line.endswith(":") and not line.startswith("- "):
            title = line.removesuffix(":")
        for found in _LINK.finditer(line) if line.startswith("- ") else ():
            path = posixpath.normpath(f"docs/{found[1]}")
            if path in documents and path not in seen and documents[path].folder != "docs/adr":
                seen.add(path)
                grouped.setdefault(title, []).append(documents[path])
    for one in documents.values():
        if one.path not in seen:
            grouped.setdefault(DECISIONS if one.folder == "docs/adr" else OTHERS, []).append(one)
    last = (OTHERS, DECISIONS)
    return sorted(grouped.items(), key=lambda group: last.index(group[0]) if group[0] in last else -1)
