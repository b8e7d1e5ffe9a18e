"""Text cut into search terms: the same words for records and for queries, whatever the script."""

import pytest

from vskill_platform.domain.skills.terms import MAX_TERM, MAX_TERMS, cut_words, field_terms, stem, whole


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
    assert cut_words(text) == terms


@pytest.mark.parametrize("letter", ["x", "ж"])
def test_a_long_word_is_cut(letter):
    assert cut_words(letter * (MAX_TERM + 1)) == (letter * MAX_TERM,)


@pytest.mark.parametrize("letter", ["x", "ж"])
def test_of_very_many_words_the_first_are_kept(letter):
    words = [f"{letter}{number}" for number in range(MAX_TERMS + 1)]
    assert cut_words(" ".join(words)) == tuple(words[:-1])
    assert cut_words(" ".join(words[:-1])) == tuple(words[:-1])


def test_words_that_signs_join_are_also_one_word():
    assert cut_words("Next.js code-review, now", joined=True) == (
        "next",
        "js",
        "nextjs",
        "code",
        "review",
        "codereview",
        "now",
    )


def test_a_field_has_its_stems_and_a_name_its_whole():
    assert field_terms("Sliding slides", is_name=False) == "slide"
    assert field_terms("Code Reviews", is_name=True) == "code review ¶codereviews"
    assert field_terms("o/r/tests", is_name=True) == "o r test ortest ¶ortests ¶tests"
    assert field_terms("…", is_name=True) == whole("…") == ""


def test_stems_are_those_that_are_stored():
    """Another stemmer, or another version of it, needs a migration that derives the searched words again."""
    words = "queries generator organization testing kubernetes easily running news database analyses mcp résumé x2"
    assert [stem(word) for word in words.split()] == [
        "queri",
        "generat",
        "organiz",
        "test",
        "kubernet",
        "easili",
        "run",
        "news",
        "databas",
        "analys",
        "mcp",
        "résumé",
        "x2",
    ]
