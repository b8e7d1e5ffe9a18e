"""Every code block of the documents that looks runnable runs, page by page, as a reader would run it."""

from pathlib import Path

import pytest

from tests.support.worlds import PORT, console_steps, missing_lines, world, write_curl
from tools import blocks
from tools.blocks import Block
from tools.files import ROOT, texts

PAGES = {path: text for path, text in texts() if blocks.is_page(path)}
RUNNABLE = {
    path: found
    for path, text in PAGES.items()
    if (found := [one for one in blocks.blocks(text) if one.is_run])
}
#: A reader forgives a page two or three things that cannot be tried here; more would be a page that nobody tried.
MOST_ILLUSTRATIONS = 3


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(RUNNABLE))
def test_every_block_of_a_page_runs(path, tmp_path):
    with world(tmp_path) as there:
        starts = any("make run" in one.text or " serve" in one.text for one in RUNNABLE[path])
        if not starts and any(
            word in one.text for one in RUNNABLE[path] for word in (f":{PORT}", "vskill-platform ")
        ):
            there.start("vskill-platform serve")
        for block in RUNNABLE[path]:
            try:
                there.run(block)
            except AssertionError as error:
                log = Path(tmp_path, "roles.log")
                roles = log.read_text("utf-8")[-2000:] if log.exists() else ""
                raise AssertionError(f"{path}:{block.line}\n{error}\n{roles}") from None


@pytest.mark.parametrize("path", sorted(PAGES))
def test_illustrations_are_few_and_say_why(path):
    shown = [one for one in blocks.blocks(PAGES[path]) if one.is_illustration]
    assert len(shown) <= MOST_ILLUSTRATIONS
    assert all(len(one.text.splitlines()[0]) > 30 for one in shown), "say why it cannot be run"


@pytest.mark.slow
def test_where_a_machine_has_no_curl_a_stand_in_does_what_pages_ask_of_it(tmp_path):
    with world(tmp_path) as there:
        there.start("vskill-platform serve")
        stand_in = write_curl(tmp_path / "stand-in")
        there.run(Block(1, "sh", f"PATH={stand_in.parent}:$PATH\n"))
        there.run(
            Block(
                2,
                "console",
                "$ curl -fsS -H 'Accept: application/json' http://127.0.0.1:8080/healthz -o up.json\n",
            )
        )
        there.run(
            Block(
                3, "console", '$ python -c \'import json; print(json.load(open("up.json"))["status"])\'\nok\n'
            )
        )
        for options, status in (("", 404), ("-u any:vsk_foreign ", 401)):
            with pytest.raises(AssertionError, match=f"22.*{status}"):
                there.run(Block(4, "sh", f"curl -fsS {options}http://127.0.0.1:8080/api/v1/skills/a/b/c\n"))


def messages(text: str, path: str = "docs/page.md") -> list[str]:
    return [problem.message for problem in blocks.check(path, text)]


def test_a_block_without_a_language_is_reported():
    (message,) = messages("```\nls\n```\n")
    assert "needs a language" in message
    assert messages("```\nls\n```\n", "src/notes.md") == []
    assert messages("````text\n```\n````\n") == []


def test_code_by_indentation_is_reported_but_a_list_is_not_code():
    assert messages("Try:\n\n    ls\n") == ["code by indentation: use a fence with a language"]
    assert messages("- one\n\n    goes on\n\n```text\n\n    x\n```\n") == []


def test_an_illustration_says_so_in_its_first_line():
    shown, ran, silent = blocks.blocks(
        "```sh\n# illustration: needs a mail server\nx\n```\n```sh\nls\n```\n```sh\n# illustration:\nx\n```\n"
    )
    assert (shown.is_run, ran.is_run, silent.is_run) == (False, True, True)


def test_what_is_shown_must_have_been_printed_in_that_order_whatever_the_numbers():
    assert list(console_steps("$ a\none 1\n...\n$ b\n")) == [("a", ["one 1"]), ("b", [])]
    assert missing_lines(["took 5 ms", "end"], "took  17 ms\nmore\nend\n") == []
    assert missing_lines(["end", "took 5 ms"], "took 17 ms\nend\n") == ["took 5 ms"]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("sh", "false"),
        ("python", "raise SystemExit(3)"),
        ("console", "$ echo one\ntwo"),
        ("sh", "make no-such-target"),
    ],
)
def test_a_block_that_fails_fails_its_page(language, text, tmp_path):
    with world(tmp_path) as there, pytest.raises(AssertionError):
        there.run(Block(1, language, text + "\n"))


def test_blocks_of_a_page_share_folder_and_variables(tmp_path):
    with world(tmp_path) as there:
        there.run(Block(1, "sh", "mkdir a\ncd a\nNAME=ann\n"))
        there.run(Block(2, "console", '$ echo "$NAME in $(basename "$PWD")"\nann in a\n'))


def test_make_run_is_what_the_pages_start(tmp_path):
    makefile = Path(ROOT, "Makefile").read_text("utf-8")
    assert "exec $(BIN)/vskill-platform serve --demo $(ARGS)" in makefile
