"""Descriptions where there is room for words alone: their Markdown marks are not shown, and any text takes time by its
length."""

import pytest

from tests.web.test_markdown import busy
from vskill_core.plain_text import plain_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("**Bold**, *it*, ***both***, ~~gone~~ and `code`.", "Bold, it, both, gone and code."),
        ("See [`name`](https://example.org/a_(b)) and [![Build](badge.svg)](ci).", "See name and Build."),
        ("# Title\n\n> Said\nby one\n\n```sh\nls -l\n```\n", "Title Said by one ls -l"),
        (r"Not \*this\* and ``a ` b``", "Not *this* and ``a ` b``"),
        ("これは**太字**です。", "これは太字です。"),
    ],
)
def test_marks_go_and_words_stay(text, shown):
    assert plain_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Reads `**/*.py` and src/**/*.ts, also *.md and lib/**/*.js.",
        "2 * 3 * 4, 5*6*7, 2**8**2",
        "Fills __init__.py and snake_case_names.",
        "An open **mark, a [reference][1], a list[0](1",
        "#1 tool on C:\\Users",
    ],
)
def test_signs_that_are_no_marks_stay(text):
    assert plain_text(text) == text.replace("`", "")


@pytest.mark.parametrize("kind", sorted(busy(0)))
def test_no_text_keeps_it_busy(stopwatch, kind):
    """Four times the text takes about four times as long, where squared would be sixteen."""

    def taken_s(text):
        began = stopwatch()
        plain_text(text)
        return stopwatch() - began

    small, large = (taken_s(busy(size)[kind]) for size in (50_000, 200_000))
    assert large < 10 * small + 0.2
