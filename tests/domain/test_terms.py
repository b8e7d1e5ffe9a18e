"""Text cut into search terms: the same words for records and for queries, whatever the script."""

import pytest

from vskill_platform.domain.skills.terms import MAX_TERM, MAX_TERMS, cut_terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Code-Review, CODE!", ("code", "review")),
        ("Größe Å ﬁle", ("grosse", "a", "file")),
        ("réd-ume", ("red", "ume")),
        ("日本語tool 2日", ("日", "本", "語", "tool", "2")),
        ("é ぁa 㐀b \u9fffc \U00020000d", ("e", "ぁ", "a", "㐀", "b", "\u9fff", "c", "\U00020000", "d")),
        ("한국어 слово", ("한국어", "слово")),
        ("… ", ()),
        ("", ()),
    ],
)
def test_words_are_folded_and_stand_once_and_ideographs_stand_alone(text, terms):
    assert cut_terms(text) == terms


@pytest.mark.parametrize("letter", ["x", "ж"])
def test_a_long_word_is_cut(letter):
    assert cut_terms(letter * (MAX_TERM + 1)) == (letter * MAX_TERM,)


@pytest.mark.parametrize("letter", ["x", "ж"])
def test_of_very_many_words_the_first_are_kept(letter):
    words = [f"{letter}{number}" for number in range(MAX_TERMS + 1)]
    assert cut_terms(" ".join(words)) == tuple(words[:-1])
    assert cut_terms(" ".join(words[:-1])) == tuple(words[:-1])
