"""The project's own documents: found in a checkout, found in a wheel, and missed without harm."""

import zipfile

import pytest
from hatchling.build import build_wheel

from vskill_platform.web.documents import DOCUMENTS, read_documents, sections


def test_a_checkout_has_its_documents_with_their_titles():
    assert DOCUMENTS["docs/glossary.md"].title == "Glossary"
    assert {"README.md", "ARCHITECTURE.md"} <= set(DOCUMENTS)


def test_every_document_is_in_exactly_one_section():
    listed = [one.path for _, found in sections() for one in found]
    assert sorted(listed) == sorted(DOCUMENTS)


def test_they_are_grouped_as_the_index_groups_them_with_decisions_last():
    grouped = sections()
    assert [title for title, _ in grouped] == [
        "Tutorial",
        "Write skills",
        "Use it",
        "Run it",
        "When something is wrong",
        "Extend it",
        "Reference",
        "Discussion",
        "The project",
        "Decision records",
    ]
    assert [one.path for one in grouped[0][1]] == ["docs/quickstart.md", "docs/tour.md"]
    assert {one.folder for one in grouped[-1][1]} == {"docs/adr"}


def test_a_document_that_the_index_does_not_name_is_listed_all_the_same(tmp_path):
    (tmp_path / "docs" / "tutorials").mkdir(parents=True)
    (tmp_path / "docs" / "tutorials" / "first.md").write_text("# First steps\n")
    assert [(title, len(found)) for title, found in sections(read_documents(tmp_path))] == [
        ("The project", 1)
    ]


def test_a_wheel_carries_them_and_not_their_pictures(tmp_path, monkeypatch, pytestconfig):
    monkeypatch.chdir(pytestconfig.rootpath)
    name = build_wheel(str(tmp_path))
    with zipfile.ZipFile(tmp_path / name) as wheel:
        names = wheel.namelist()
        wheel.extractall(tmp_path / "installed")
    found = read_documents(tmp_path / "installed" / "vskill_platform" / "documents")
    assert found == DOCUMENTS
    assert not any(one.endswith((".webp", ".png")) for one in names)
    assert {one.split("/")[0] for one in names if ".dist-info" not in one} == {
        "vskill_client",
        "vskill_core",
        "vskill_platform",
        "vskill_scan",
    }


def test_the_marks_around_a_generated_part_are_not_shown(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(
        "# A\n\n<!-- generated: x -->\n| a |\n<!-- end: x -->\n\nb <!-- c -->\n"
    )
    assert read_documents(tmp_path)["docs/a.md"].text == "# A\n\n| a |\n\nb <!-- c -->\n"


@pytest.mark.parametrize("place", ["", "docs-elsewhere"])
def test_without_documents_the_list_is_empty(tmp_path, place):
    assert dict(read_documents(tmp_path / place)) == {}
    assert sections({}) == []
