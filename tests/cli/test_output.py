"""How commands print."""

import io
import json
import sys

import pytest
from click import unstyle

from vskill_client.output import print_document, print_table, shown_width
from vskill_platform.cli.progress import Stages


class Interrupted(io.RawIOBase):
    """A pipe whose writes are cut short, as signals do it where stdout is unbuffered."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: object) -> int:
        part = bytes(memoryview(data)[:7])  # type: ignore[arg-type]  # any buffer, as the real one takes
        self.written += part
        return len(part)


def test_a_document_is_written_whole_where_writes_are_cut_short():
    pipe = Interrupted()
    document = json.dumps({"skills": list(range(100))}).encode()
    print_document(document, pipe)  # type: ignore[arg-type]  # raw, as stdout is with PYTHONUNBUFFERED
    assert pipe.written == document + b"\n"


@pytest.mark.parametrize("watched", [True, False])
def test_stages_of_long_work_are_shown_where_somebody_watches(monkeypatch, watched: bool):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return watched

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Stages() as stages:
        stages("records read", 500)
        stages("content read", 3, 7)
    shown = terminal.getvalue()
    assert ("records read" in shown and "500/?" in shown and "3/7" in shown) if watched else shown == ""


def test_a_table_is_folded_to_the_width_of_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    print_table("2 skills", ("name", "about"), [("tidy", "tidies " * 12), ("日本語", "x" * 50)])
    lines = unstyle(terminal.getvalue()).splitlines()
    assert lines[:3] == ["2 skills", "name    about", "tidy    tidies tidies tidies tidies"]
    assert max(map(shown_width, lines)) <= 40
    assert "".join(line.split()[-1] for line in lines if "x" in line) == "x" * 50
