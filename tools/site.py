"""`make docs`: the documents as a folder of HTML pages in `build/docs`, by the renderer of the server's own `/docs`.

Nothing is loaded from anywhere, so the folder can be opened from a disk or put on any web server. Links between
documents become relative ones to pages; pictures of ours are shown, where the server only links to them.
"""

import posixpath
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

from tools.files import ROOT
from vskill_platform.web.documents import Document, read_documents, sections
from vskill_platform.web.markdown import MOST_CHARACTERS, Style, render_markdown

TARGET = "build/docs"
PICTURES = (".svg", ".webp", ".png")
_BASE = "https://documents.invalid/"

_LINK = re.compile(r'href="' + re.escape(_BASE) + r'([^"#]+)(#[^"]*)?"( rel="[^"]*")?')
_PICTURE = re.compile(r'<a class="image-link" href="([^"]+)"(?: rel="[^"]*")?>Image: ([^<]*)</a>')

_STYLE = """\
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 76rem; padding: 1rem; font: 16px/1.55 system-ui, sans-serif; display: grid;
  grid-template-columns: 15rem minmax(0, 1fr); gap: 2rem; }
nav { font-size: .9rem; } nav ul { list-style: none; padding: 0; } nav h2 { font-size: .8rem; margin: 1rem 0 .2rem; }
nav [aria-current] { font-weight: 700; } img { max-width: 100%; height: auto; }
pre { overflow-x: auto; padding: .8rem; background: color-mix(in srgb, currentColor 7%, transparent); }
code { font-size: .92em; } .table-scroll { overflow-x: auto; } table { border-collapse: collapse; }
th, td { border: 1px solid color-mix(in srgb, currentColor 25%, transparent); padding: .3rem .6rem; text-align: left; }
@media (max-width: 50rem) { body { grid-template-columns: 1fr; } nav { order: 2; } }
"""


def build(root: Path, target: Path) -> list[str]:
    """Every document as a page; the paths of the pages, from the target."""
    documents = read_documents(root)
    pictures = frozenset(_pictures(root))
    shutil.rmtree(target, ignore_errors=True)
    for path in pictures:
        _write(target / path, (root / path).read_bytes())
    _write(target / "style.css", _STYLE.encode())
    for document in documents.values():
        text = _page(document, documents, pictures)
        _write(target / page_of(document.path), text.encode())
    _write(target / "index.html", _index(documents).encode())
    return [page_of(path) for path in documents]


def page_of(path: str) -> str:
    return path.removesuffix(".md") + ".html" if path.endswith(".md") else path


def _pictures(root: Path) -> Iterator[str]:
    for path in sorted((root / "docs").rglob("*")):
        if path.suffix in PICTURES:
            yield path.relative_to(root).as_posix()


def _page(document: Document, documents: Mapping[str, Document], pictures: frozenset[str]) -> str:
    style = Style(base=_BASE, folder=document.folder, anchors=True, known=frozenset(documents) | pictures)
    parts = [render_markdown(part, style).html for part in _parts(document.text)]
    body = "".join(parts)
    body = _LINK.sub(lambda link: f'href="{_relative(document.path, link[1])}{link[2] or ""}"', body)
    body = _PICTURE.sub(lambda shown: f'<img src="{shown[1]}" alt="{shown[2]}">', body)
    return _html(document.title, body, document.path, documents)


def _parts(text: str) -> Iterator[str]:
    """The renderer shows so much of one text; a longer one is cut before headings, outside fences."""
    part: list[str] = []
    size, fence = 0, ""
    for line in text.splitlines(keepends=True):
        mark = line[: len(line) - len(line.lstrip("`"))]
        if len(mark) >= 3:
            fence = "" if fence and mark.startswith(fence) else fence or mark
        if size > MOST_CHARACTERS // 2 and not fence and line.startswith("#"):
            yield "".join(part)
            part, size = [], 0
        part.append(line)
        size += len(line)
    yield "".join(part)


def _relative(source: str, target: str) -> str:
    return posixpath.relpath(page_of(target), posixpath.dirname(source) or ".")


def _html(title: str, body: str, path: str, documents: Mapping[str, Document]) -> str:
    style = posixpath.relpath("style.css", posixpath.dirname(path) or ".")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="{style}">'
        f"</head><body>{_menu(path, documents)}<main>{body}</main></body></html>\n"
    )


def _menu(path: str, documents: Mapping[str, Document]) -> str:
    parts = ['<nav aria-label="Documents">']
    for title, found in sections(documents):
        parts.append(f"<h2>{escape(title)}</h2><ul>")
        for one in found:
            current = ' aria-current="page"' if one.path == path else ""
            parts.append(f'<li><a href="{_relative(path, one.path)}"{current}>{escape(one.title)}</a></li>')
        parts.append("</ul>")
    return "".join([*parts, "</nav>"])


def _index(documents: Mapping[str, Document]) -> str:
    """The first page leads to the documentation's own index."""
    first = page_of("docs/README.md") if "docs/README.md" in documents else page_of("README.md")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Documentation</title>'
        f'<meta http-equiv="refresh" content="0; url={first}"></head><body><a href="{first}">Documentation</a>'
        "</body></html>\n"
    )


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


if __name__ == "__main__":
    pages = build(ROOT, ROOT / TARGET)
    sys.stdout.write(f"docs: {len(pages)} pages; open {TARGET}/index.html\n")
