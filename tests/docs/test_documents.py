"""The documents' checks: dead links, missing headings and unlisted decision records are found."""

import re
from pathlib import Path

import pytest

from tools import docs
from tools.files import ROOT, texts
from tools.screenshots import MOST_PICTURE_BYTES


@pytest.fixture
def root(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "glossary.md").write_text(
        "# Glossary\n\n## Dead letter\n\n## Run, again?\n\n## Dead letter\n"
    )
    (tmp_path / "LICENSE").write_text("text")
    return tmp_path


def link_messages(root, text: str, path: str = "README.md") -> list[str]:
    return [str(problem) for problem in docs.check_links(path, text, root)]


@pytest.mark.parametrize(
    "text",
    [
        "[a](docs/glossary.md) and [b](LICENSE)",
        "[a](docs/glossary.md#dead-letter) [b](docs/glossary.md#dead-letter-1) [c](docs/glossary.md#run-again)",
        "# Top\n[up](#top)",
        "[far](https://example.org/none.md) [mail](mailto:a@example.org)",
        "```\n[not](a-link.md)\n```\n`[nor](this.md)`",
    ],
)
def test_links_that_lead_somewhere_pass(root, text):
    (root / "README.md").write_text(text)
    assert link_messages(root, text) == []


def test_a_dead_link_is_reported_with_its_line(root):
    assert link_messages(root, "x\n[a](docs/none.md)") == [
        "README.md:2: links to docs/none.md, which does not exist"
    ]


def test_a_link_is_resolved_from_the_folder_of_its_page(root):
    assert link_messages(root, "[a](../LICENSE) [b](glossary.md)", "docs/index.md") == []
    assert len(link_messages(root, "[a](LICENSE)", "docs/index.md")) == 1


def test_a_missing_heading_is_reported(root):
    (message,) = link_messages(root, "[a](docs/glossary.md#none)")
    assert "no such heading" in message


def record_messages(paths: list[str], index: str) -> list[str]:
    return [problem.message for problem in docs.check_decision_records(paths, index)]


def test_a_listed_decision_record_passes():
    assert record_messages(["docs/adr/0001-x.md", "docs/adr/README.md"], "[x](0001-x.md)") == []


def test_an_unlisted_decision_record_is_reported():
    assert record_messages(["docs/adr/0001-x.md"], "nothing") == ["is not listed in docs/adr/README.md"]


def test_two_decision_records_with_one_number_are_reported():
    index = "[x](0001-x.md) [y](0001-y.md)"
    assert record_messages(["docs/adr/0001-x.md", "docs/adr/0001-y.md"], index) == [
        "has the number of 0001-x.md"
    ]


def test_a_decision_record_with_another_name_is_reported():
    assert record_messages(["docs/adr/notes.md"], "[n](notes.md)") == [
        "is not named like 0001-what-was-decided.md"
    ]


def figures(text: str) -> list[str]:
    """Every number, whatever separates its thousands. The 9 of `kill -9` was measured by nobody."""
    return [one.replace(",", "") for one in re.findall(r"\d[\d,.]*\d|\d", text.replace("kill -9", "kill"))]


def test_every_figure_that_the_readme_claims_was_measured():
    """A run of `make bench` or `make chaos` that changes one changes the README too, or this fails."""
    readme = Path(ROOT, "README.md").read_text("utf-8")
    claimed = readme.partition("(figures: begin")[2].partition("(figures: end")[0].partition(")")[2]
    written = [Path(ROOT, "docs", name).read_text("utf-8") for name in ("benchmarks.md", "reliability.md")]
    measured = {one for text in written for one in figures(text)}
    assert figures(claimed)
    assert [one for one in figures(claimed) if one not in measured] == []


PICTURES = {
    (path, found)
    for path, text in texts()
    if path.endswith(".md")
    for found in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", text)
    if "://" not in found
}


@pytest.mark.parametrize(("page", "picture"), sorted(PICTURES))
def test_every_picture_that_a_document_names_is_there_and_small(page, picture):
    """A reader on a slow line sees it too; `make screenshots` makes those of the pages anew."""
    file = ROOT / Path(page).parent / picture
    assert file.is_file(), f"{page} shows {picture}, which is not there: run 'make screenshots'"
    assert file.stat().st_size < MOST_PICTURE_BYTES


def test_every_screenshot_is_small_and_in_both_themes():
    taken = {one.name for one in (ROOT / "docs" / "images").glob("*.webp")}
    assert {one.replace("-dark-", "-light-") for one in taken} == {one for one in taken if "-light-" in one}
    assert all((ROOT / "docs" / "images" / one).stat().st_size < MOST_PICTURE_BYTES for one in taken)
