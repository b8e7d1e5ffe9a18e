"""The documents as pages: every link of theirs leads somewhere, on disk, at `/docs` and in the site of `make docs`."""

import posixpath
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from tools.docs import _links
from tools.files import ROOT
from tools.site import build, page_of
from vskill_platform.web.documents import DOCUMENTS
from vskill_platform.web.markdown import MOST_CHARACTERS, Style, render_markdown
from vskill_platform.web.pages.docs import ENDPOINTS

KNOWN = frozenset(DOCUMENTS)


class Page(HTMLParser):
    """The links, pictures and headings of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids.add(given.get("id") or "")
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("img", "link", "script"):
            self.loaded.append(given.get("src") or given.get("href") or "")


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
    assert {one.path for one in ENDPOINTS} == {"/docs", "/docs/{path:path}"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    pages = build(ROOT, folder)
    return folder, {path: Page((folder / path).read_text("utf-8")) for path in pages}


def test_the_site_has_a_page_for_every_document_and_a_first_page(site):
    folder, pages = site
    assert set(pages) == {page_of(path) for path in DOCUMENTS}
    assert "docs/README.html" in (folder / "index.html").read_text("utf-8")


def test_every_link_and_picture_of_the_site_leads_somewhere_inside_it(site):
    folder, pages = site
    for path, page in pages.items():
        for link in (*page.links, *page.loaded):
            if re.match(r"[a-z]+:", link):
                assert link.startswith(("https://", "http://127.0.0.1", "mailto:")), f"{path}: {link}"
                continue
            name, _, fragment = link.partition("#")
            target = (
                posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(name))) if name else path
            )
            assert (folder / target).is_file(), f"{path} -> {link}"
            if fragment and target in pages:
                assert fragment in pages[target].ids, f"{path} -> {link}"


def test_the_site_loads_nothing_from_elsewhere_and_shows_our_pictures(site):
    _, pages = site
    assert not [one for page in pages.values() for one in page.loaded if "//" in one]
    assert "states.svg" in pages["docs/reference/states.html"].loaded
    assert any(one.endswith(".webp") for one in pages["README.html"].loaded)


def test_a_long_page_is_there_to_its_end(site):
    folder, _ = site
    last = DOCUMENTS["docs/reference/rules.md"].text.rstrip().rsplit("### ", 1)[1].split(":")[0]
    assert last in (folder / "docs/reference/rules.html").read_text("utf-8")
