"""The table of clients in the reference says what tests show, and no more."""

from pathlib import Path

import pytest

from tools import client_matrix

HEAD = "import pytest\n\n\n"


def test_every_cell_is_shown_by_a_test_or_says_why_not():
    assert client_matrix.problems() == []


def test_the_page_names_each_client_with_its_locked_version():
    text = client_matrix.render()
    for client, (title, package) in client_matrix.CLIENTS.items():
        version = client_matrix.version_of(client)
        assert bool(version) is bool(package) and f"| {title} {version}".rstrip() in text


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        (
            '@pytest.mark.shows("codex", "add")\ndef test_x(codex):\n    codex.run("a", code=None)\n',
            "exit status",
        ),
        ('@pytest.mark.shows("codex", "add")\ndef test_x(codex):\n    codex.run("a")\n', "compares no file"),
        ('@pytest.mark.shows("codex", "adds")\ndef test_x():\n    read_files()\n', "no such cell"),
        (
            'def look():\n    read_files()\n\n\n@pytest.mark.shows("gemini", "add")\ndef test_x():\n    look()\n',
            "has a reason why not",
        ),
    ],
)
def test_a_claim_that_does_not_count_is_found(tmp_path: Path, test: str, problem: str):
    (tmp_path / "test_some.py").write_text(HEAD + test)
    assert any(problem in one for one in client_matrix.problems(tmp_path))
