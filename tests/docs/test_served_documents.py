"""The documents as pages: every link of theirs leads somewhere, on disk and at `/docs`."""

import posixpath
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from tools.docs import _links
from vskill_platform.web.documents import DOCUMENTS
from vskill_platform.web.drawing.markdown import MOST_CHARACTERS, Style, render_markdown
from vskill_platform.web.pages.docs import ENDPOINTS

KNOWN = frozenset(DOCUMENTS)


class Page(HTMLParser):
    """The links and headings of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])


def served(path: str) -> Page:
    """As the server's own view renders it."""
    document = DOCUMENTS[path]
    style = Style(base="/docs/", folder=document.folder, anchors=True, known=KNOWN)
    return Page(render_markdown(document.text, style).html)


@pytest.mark.parametrize("path", sorted(DOCUMENTS))
def test_a_link_between_documents_works_at_docs_as_it_does_on_disk(path):
    page = served(path)
    for _, target in _links(DOCUMENTS[path].text):
        name, _, fragment = target.partition("#")
        joined = posixpath.normpath(posixpath.join(DOCUMENTS[path].folder, unquote(name))) if name else path
        if joined not in DOCUMENTS:
            continue
        is_cut = len(DOCUMENTS[path].text) > MOST_CHARACTERS
        assert is_cut or any(link.endswith((joined, f"#{fragment}")) for link in page.links), target
        if fragment and len(DOCUMENTS[joined].text) <= MOST_CHARACTERS:
            assert fragment in served(joined).ids, target


@pytest.mark.parametrize("path", sorted(DOCUMENTS))
def test_every_link_that_docs_shows_leads_to_a_document(path):
    for link in served(path).links:
        if link.startswith("/docs/"):
            assert unquote(link.removeprefix("/docs/").partition("#")[0]) in DOCUMENTS


def test_pages_of_the_project_link_to_addresses_of_docs_that_exist():
    assert {one.path for one in ENDPOINTS} == {"/docs", "/docs/clients", "/docs/{path:path}"}
