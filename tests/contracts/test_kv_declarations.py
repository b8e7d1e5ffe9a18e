"""What stands between the stores and every engine: declared fields, checked questions, search terms, and what a
commit may hold.
"""

import base64
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_core.errors import InvalidInput, UnindexedQuery
from vskill_platform.domain.messages import Send
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.skills.terms import MAX_TERM, MAX_TERMS, cut_words
from vskill_platform.ledger.kv.checks import MAX_KEY, check_key, check_operations, check_value
from vskill_platform.ledger.kv.collections import (
    COLLECTIONS,
    SKILLS,
    SUBMISSIONS,
    Field,
    collection_holding,
    collection_of,
    integer,
    parse,
    text,
)
from vskill_platform.ledger.kv.entries import Add, Assert, Delete, Entry, Put
from vskill_platform.ledger.kv.query import Between, In, Is, Query, evaluate

# Fields.


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (b'{"a":{"b":"x"}}', "x"),
        (b'{"a":{"b":""}}', ""),
        (b'{"a":{"b":1}}', None),
        (b'{"a":{"b":null}}', None),
        (b'{"a":"x"}', None),
        (b'{"a":["b"]}', None),
        (b"{}", None),
        (b"[]", None),
        (b"null", None),
        (b"", None),
        (b"{", None),
        (b"\xff", None),
        (b"[" * 100_000, None),
    ],
)
def test_AC_US1_02_a_text_field_is_its_text_and_anything_else_is_None(value, read):
    assert text("a", "b").read(value) == read


@pytest.mark.parametrize(
    ("found", "read"),
    [
        (7, 7),
        (-7, -7),
        (0, 0),
        (2**63 - 1, 2**63 - 1),
        (2**63, None),
        (-(2**63), None),
        (True, None),
        (False, None),
        (1.0, None),
        ("7", None),
        ([7], None),
        (None, None),
    ],
)
def test_an_integer_field_is_a_whole_number_of_64_bits_and_anything_else_is_None(found, read):
    assert integer(("n",)).read(json.dumps({"n": found}).encode()) == read


def test_a_field_of_several_paths_takes_the_first_that_fits():
    field = Field((("a", "b"), ("c",)), int)
    assert field.read(b'{"a":{"b":1},"c":2}') == 1
    assert field.read(b'{"a":{"b":"1"},"c":2}') == 2
    assert field.read(b'{"a":null,"c":2}') == 2
    assert field.read(b'{"a":{"b":null}}') is None


def test_what_is_not_json_parses_as_None_like_null():
    assert parse(b"null") is None
    assert parse(b"nul") is None
    assert parse(b'{"a": [1, "x"]}') == {"a": [1, "x"]}


@pytest.mark.parametrize("collection", COLLECTIONS, ids=lambda collection: collection.name)
def test_what_is_indexed_counted_and_searched_is_declared(collection):
    named = {name for index in collection.indexes for name in index} | {
        *collection.counted,
        *collection.searched,
    }
    assert named <= collection.fields.keys()
    assert all(collection.fields[name].kind is str for name in (*collection.counted, *collection.searched))
    assert len(set(collection.indexes)) == len(collection.indexes)


def test_collections_are_found_by_their_prefix_and_by_a_key():
    assert collection_of("sub:") is SUBMISSIONS
    with pytest.raises(UnindexedQuery, match="version:"):
        collection_of("version:")
    assert collection_holding("sub:1") is SUBMISSIONS
    assert collection_holding("skill:o/r/s") is SKILLS
    assert collection_holding("skill:alias:s:o/r/s") is None
    assert collection_holding("subrun:1:1") is None
    assert not SKILLS.holds("sub:1")


def test_only_counted_fields_are_counted():
    assert SUBMISSIONS.counted_field("state") == SUBMISSIONS.fields["state"]
    with pytest.raises(UnindexedQuery, match="'digest'"):
        SUBMISSIONS.counted_field("digest")


def test_search_texts_are_the_terms_of_each_searched_field_in_order():
    value = json.dumps({"skill_name": "PDF-Reader pdf", "repo_url": 7}).encode()
    assert SUBMISSIONS.search_texts(value) == ("pdf reader pdfreader ¶pdfreaderpdf", "")
    assert SUBMISSIONS.search_texts(b"not json") == ("", "")


# Terms.


@pytest.mark.parametrize(
    ("written", "terms"),
    [
        ("", ()),
        (" -_.!\0\ud800", ()),
        ("PDF-reader_2.0", ("pdf", "reader", "2", "0")),
        ("a b a", ("a", "b")),
        ("Café CAFE\u0301", ("cafe",)),
        ("Straße", ("strasse",)),
        ("ﬁﬂ", ("fifl",)),
        ("自然言語", ("自", "然", "言", "語")),
        ("v2で動く", ("v2", "て", "動", "く")),
        ("한국어 도구", ("한국어", "도구")),
        ("x²", ("x2",)),
        ("don't", ("don", "t")),
        ("C++ & C#", ("c",)),
        ("owner/repo@1", ("owner", "repo", "1")),
    ],
)
def test_text_is_cut_into_folded_words(written, terms):
    assert cut_words(written) == terms


def test_words_are_cut_and_texts_are_bounded():
    assert cut_words("x" * 100) == ("x" * MAX_TERM,)
    assert len(cut_words(" ".join(f"w{n}" for n in range(2 * MAX_TERMS)))) == MAX_TERMS


@given(st.text())
def test_a_term_is_letters_and_digits_alone_so_that_no_engine_sees_syntax(written):
    for term in cut_words(written):
        assert 0 < len(term) <= MAX_TERM
        assert term.isalnum()
        assert not any(character.isupper() for character in term if character.isascii())


@given(st.text(max_size=60))
def test_cutting_what_was_cut_changes_nothing(written):
    """Terms that are stored joined by spaces and cut again are the same terms."""
    terms = cut_words(written)
    assert cut_words(" ".join(terms)) == terms


@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_plain_ascii_is_cut_as_it_is_beside_other_letters(written):
    assert {*cut_words(written), "e"} == {*cut_words(written + " é")}


# Questions.


def ask(where=None, order_by="key", descending=False, after=None, limit=10, collection=SUBMISSIONS) -> Query:
    return Query.of(collection, where or {}, order_by, descending, after, limit, EVERYTHING)


def test_conditions_stand_in_the_order_of_the_index_that_serves_them():
    query = ask({"updated_at": Is(1), "state": In(("A", "B"))})
    assert [name for name, _ in query.equal] == ["state", "updated_at"]
    assert query.within is None


def test_a_range_belongs_to_the_order():
    query = ask({"updated_at": Between(1, 2), "state": Is("A")}, "updated_at")
    assert query.within == Between(1, 2)
    assert query.equal == (("state", Is("A")),)


@pytest.mark.parametrize(
    ("where", "order_by", "said"),
    [
        ({"nothing": Is("x")}, "key", "nothing"),
        ({"skill_name": Is("x")}, "key", "skill_name"),
        ({"updated_at": Between(1)}, "due_at", "range"),
        ({"created_at": Is(1)}, "created_at", "created_at"),
        ({}, "state", "state"),
        ({"state": In(("a",)), "updated_at": In((1,))}, "key", "several"),
    ],
)
def test_a_question_without_an_index_is_refused_with_what_is_missing(where, order_by, said):
    with pytest.raises(UnindexedQuery, match=said):
        ask(where, order_by)


def test_conditions_hold_for_what_they_say():
    assert Is(None).holds(None)
    assert not Is(None).holds("")
    assert In((1, 2)).holds(2)
    assert not In(()).holds(None)
    assert Between().holds(0)
    assert Between(1, 2).holds(1)
    assert Between(1, 2).holds(2)
    assert not Between(1, 2).holds(3)
    assert not Between(1, 2).holds(0)
    assert not Between().holds(None)
    assert not Between().holds("1")


def entries(*values: dict) -> list[Entry]:
    return [Entry(f"sub:{n}", json.dumps(value).encode(), n + 1) for n, value in enumerate(values)]


def test_a_page_goes_on_after_the_last_entry_even_among_equal_values():
    stored = entries(*({"created_at": n // 3} for n in range(7)))
    seen, after = [], None
    while True:
        page = evaluate(ask(order_by="created_at", descending=True, after=after, limit=2), stored)
        seen += [entry.key for entry in page.items]
        after = page.after
        if after is None:
            break
    assert seen == [f"sub:{n}" for n in (6, 5, 4, 3, 2, 1, 0)]


def cursor_of(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    ("order_by", "place"),
    [
        ("created_at", ["1", "sub:1"]),
        ("created_at", [None, "sub:1"]),
        ("created_at", [1.5, "sub:1"]),
        ("created_at", [True, "sub:1"]),
        ("created_at", [2**63, "sub:1"]),
        ("digest", [1, "sub:1"]),
        ("key", [1, "sub:1"]),
        ("key", ["x", "sub:1"]),
        ("key", [None, 1]),
        ("key", [None]),
        ("key", {}),
    ],
)
def test_a_cursor_that_was_tampered_with_is_bad_input_and_never_a_crash(order_by, place):
    with pytest.raises(InvalidInput) as caught:
        ask(order_by=order_by, after=cursor_of(place))
    assert caught.value.field == "after"


def test_a_deeply_nested_cursor_is_bad_input():
    with pytest.raises(InvalidInput):
        ask(after=base64.urlsafe_b64encode(b"[" * 100_000).decode())


@given(st.text(max_size=30))
def test_no_text_given_as_a_cursor_crashes(after):
    with suppress(InvalidInput):
        ask(after=after)


# What a commit may hold.


def test_a_commit_of_any_operations_on_different_keys_passes():
    check_operations(
        [Put("a", b"1"), Delete("b"), Add("c"), Assert("a", 1), Assert("a", 1), Send(b"\0"), Send(b"")]
    )
    check_operations([])


def test_a_key_written_twice_is_named():
    with pytest.raises(InvalidInput, match=r"^a is written twice"):
        check_operations([Put("a", b"1"), Assert("a", 1), Delete("a")])


@given(st.text(max_size=20))
def test_a_key_passes_if_and_only_if_it_is_text_without_NUL(key):
    fine = bool(key) and "\0" not in key and key.encode(errors="ignore").decode() == key
    if fine:
        check_key(key)
    else:
        with pytest.raises(InvalidInput):
            check_key(key)


@pytest.mark.parametrize("key", ["x" * MAX_KEY, "é" * (MAX_KEY // 2)])
def test_the_longest_key_passes_and_one_byte_more_does_not(key):
    check_key(key)
    with pytest.raises(InvalidInput, match="too long"):
        check_key(key + "x")


@given(st.binary(max_size=20))
def test_a_value_passes_if_and_only_if_it_is_utf8_without_NUL(value):
    try:
        fine = "\0" not in value.decode()
    except UnicodeDecodeError:
        fine = False
    if fine:
        check_value("k", value)
    else:
        with pytest.raises(InvalidInput, match="k"):
            check_value("k", value)
