"""The forms of one word have one stem, and words that only look alike keep theirs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_platform.domain.skills.stems import form_of, stem, terms_of_form

FORMS = [
    ("slid", "slide slides sliding"),
    ("mak", "make makes making"),
    ("test", "test tests testing tested"),
    ("deploy", "deploy deploys deploying deployed deployment deployments"),
    ("migr", "migrate migrates migrated migrating migration migrations"),
    ("transl", "translate translation translations translating translator"),
    ("summar", "summary summaries summarise summarize summarising summarizing"),
    ("optim", "optimise optimize optimising optimisation optimization"),
    ("quer", "query queries querying"),
    ("access", "access accessible accessibility"),
    ("format", "format formats formatted formatting formatter"),
    ("plan", "plan plans planned planning"),
    ("document", "document documents documented documentation"),
    ("class", "class classes"),
    ("box", "box boxes"),
    ("fill", "fill fills filled filling"),
    ("pass", "pass passes passed passing"),
    ("review", "review reviews reviewer reviewing"),
    ("compress", "compress compressed compression"),
    ("careful", "carefully"),
    ("help", "helpful helper helps"),
    ("dark", "darkness"),
    ("saf", "safe safely"),
    ("edit", "edit edition editor editing"),
    ("search", "search searches searching"),
    ("crash", "crash crashes"),
    ("buzz", "buzzes buzzing"),
    ("read", "read readable readability reader"),
    ("manag", "manage manager management"),
    ("cre", "create creates creating creation creator"),
    ("real", "realisation realization"),
]


@pytest.mark.parametrize(("expected", "words"), FORMS, ids=[expected for expected, _ in FORMS])
def test_forms_of_a_word_have_one_stem(expected, words):
    assert {stem(word) for word in words.split()} == {expected}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("pdf", "pdf"),
        ("pdfs", "pdf"),
        ("css", "css"),
        ("aws", "aws"),
        ("ties", "tie"),
        ("flies", "fly"),
        ("status", "status"),
        ("analysis", "analysis"),
        ("string", "string"),
        ("red", "red"),
        ("used", "used"),
        ("sing", "sing"),
        ("being", "being"),
        ("ring", "ring"),
        ("payment", "payment"),
        ("state", "stat"),
        ("table", "tabl"),
        ("bible", "bibl"),
        ("nation", "nation"),
        ("union", "union"),
        ("user", "user"),
        ("color", "color"),
        ("rate", "rat"),
        ("deploy", "deploy"),
        ("play", "play"),
        ("revise", "revis"),
        ("seize", "seiz"),
        ("eating", "eat"),
        ("seeing", "see"),
        ("agreed", "agr"),
        ("adding", "add"),
        ("k8ss", "k8ss"),
        ("résumés", "résumés"),
        ("kubernetes", "kubernet"),
    ],
)
def test_what_has_no_ending_keeps_its_word(word, expected):
    assert stem(word) == expected


@given(st.text(alphabet="abcdeginorstyz", min_size=1, max_size=14))
def test_a_stem_is_the_beginning_of_its_word_or_of_its_form(word):
    found = stem(word)
    assert found
    assert word.startswith(found[:-1])
    assert len(found) <= len(word)


@pytest.mark.parametrize(
    ("words", "form", "terms"),
    [
        ("tests test testing", "≈test", ("test", "≈test")),
        ("pdf pdfs", "pdf", ("pdf", "pdfs")),
        ("rar rars", "rar", ("rar", "rars")),
        ("rare rarely", "≈rar", ("≈rar",)),
        ("note notes", "≈not", ("≈not",)),
        ("not", "not", ("not", "nots")),
        ("k8s", "k8s", ("k8s", "k8ss")),
        ("maps map", "map", ("map", "maps")),
        ("boss", "≈boss", ("boss", "≈boss")),
        ("bus", "bus", ("bus", "buss")),
    ],
)
def test_a_form_is_that_of_one_word_and_of_no_other(words, form, terms):
    assert {form_of(word) for word in words.split()} == {form}
    assert terms_of_form(form) == terms
