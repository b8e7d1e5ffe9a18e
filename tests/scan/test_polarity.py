"""What a sentence says about bad things is told for each place in it as if it were read for that place alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_scan.polarity import AboutSpan, is_about, tells, tells_before


@given(
    st.lists(
        st.sampled_from([b"malware", b"is", b"attack", b"er", b" ", b".", b"scan for", b"run"]), max_size=12
    )
)
def test_what_is_said_before_and_behind_a_place_is_told_as_if_it_were_read_for_that_place(words):
    text = b"".join(words)
    span = AboutSpan.of(text, 0, len(text))
    for offset in range(len(text) + 1):
        assert is_about(text, offset, len(text)) == (span is not None and span.follows(text, offset))
        if not text[offset - 1 : offset + 1].isalpha():
            # Inside a word, what stands before it is no word of the text.
            assert is_about(text[:offset], 0, offset) == (span is not None and span.precedes(text, offset))


@pytest.mark.parametrize("space", [1, 300, *range(960, 1010), 5000])
@pytest.mark.parametrize("before", [b"It is malware.", b"It is malware,", b"Malware: please"])
def test_however_much_space_stands_around_a_word_it_tells_to_do_what_follows(before, space):
    text = before + b" " * space + b"run" + b" " * space
    assert tells(text)
    assert tells_before(b"x" * 10 + text + b"y", 10, 10 + len(text))
