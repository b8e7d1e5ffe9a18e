"""Questions by field, counts and search: every engine answers what reading every record would answer, whatever
bytes the records hold.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.contracts.minimal_kv import MinimalKV
from tests.support.examples import examples
from tests.support.manual_clock import ManualClock
from vskill_core.errors import InvalidInput, StoreUnavailable, UnindexedQuery
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC_ONLY, Audiences
from vskill_platform.domain.skills.known_words import KnownWords, Vocabulary
from vskill_platform.domain.skills.search import every_term, finding_query, wanted_terms
from vskill_platform.ledger.kv.collections import (
    AUDIENCE,
    COLLECTIONS,
    SKILLS,
    SUBMISSIONS,
    Field,
    RecordKind,
    Value,
)
from vskill_platform.ledger.kv.contract import KV, SEARCH_LIMIT
from vskill_platform.ledger.kv.entries import Capability, Delete, Entry, Put
from vskill_platform.ledger.kv.query import Between, Condition, In, Is, Query, evaluate, is_readable

pytestmark = pytest.mark.anyio

SLOW = settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def record(**fields) -> bytes:
    return json.dumps(fields).encode()


async def write(kv: KV, values: Mapping[str, bytes | None]) -> None:
    """None deletes. In one commit where the engine can."""
    operations = [Delete(key) if value is None else Put(key, value) for key, value in values.items()]
    if Capability.ATOMIC_COMMIT in kv.capabilities:
        await kv.commit(operations)
        return
    for operation in operations:
        await kv.commit([operation])


async def clear(kv: KV) -> None:
    keys = (await kv.list("")).items
    if keys:
        await write(kv, dict.fromkeys(keys))


async def everything(kv: KV, collection: RecordKind) -> tuple[Entry, ...]:
    return (await kv.scan(collection.prefix, limit=10_000, exclude=collection.exclude)).items


# Records and questions of any shape.

STATES = ("RECEIVED", "PUBLISHED", "é", "")
integers = st.one_of(st.integers(-3, 6), st.sampled_from([2**63 - 1, -(2**63) + 1, 2**53 + 1]))
wrong = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([1.0, 2.5, 2**63, -(2**63), 10**30, "1", "", [], [1], {}, {"until": 1}]),
)
texts = st.sampled_from(STATES)
readers = st.sampled_from(["public", "ns:a", "ns:b", ""])


def values_of(field: Field):
    return st.one_of(integers if field.kind is int else texts, wrong)


def records_of(collection: RecordKind):
    """Each top-level member that some field's path begins with is there or not, right or wrong."""
    members = {}
    for name, field in collection.fields.items():
        for path in field.paths:
            value = st.one_of(readers, wrong) if name == AUDIENCE else values_of(field)
            members[path[0]] = (
                value if len(path) == 1 else st.one_of(wrong, st.fixed_dictionaries({path[1]: value}))
            )
    return st.fixed_dictionaries({}, optional=members).map(lambda found: json.dumps(found).encode())


MALFORMED = (
    b"",
    b"not json",
    b"null",
    b"7",
    b'"RECEIVED"',
    b"[]",
    b'[{"state":"RECEIVED"}]',
    b'{"state":"RECEIVED"',
    b'{"state":"RECEIVED"}x',
    b'{"state":"RECEIVED",}',
    b"{'state':'RECEIVED'}",
    b"{state:1}",
    b'{"state":"\\ud800","updated_at":1}',
    b'{"state":"a\\u0000b","updated_at":1}',
    b'{"updated_at":NaN}',
    b'{"updated_at":Infinity}',
    b'{"updated_at":01}',
    b'{"updated_at":+1}',
    b'{"updated_at":1e2,"created_at":1.0}',
    b'{"updated_at":-0,"state":"RECEIVED"}',
    b'{"updated_at":9223372036854775808}',
    b'{"updated_at":1e400,"state":"RECEIVED"}',
    b'{"state":"RECEIVED","state":"PUBLISHED","updated_at":1,"updated_at":2}',
    b'{"sta\\u0074e":"RECEIVED","updated_at":1}',
    b' \n{"state":"RECEIVED","updated_at":1}\t',
    b'\xef\xbb\xbf{"state":"RECEIVED","updated_at":1}',
    b'{"state":"RECEIVED","updated_at":1} // comment',
    b'{"state":"RE\tCEIVED","updated_at":1}',
    b'{"claim":{"until":1,"until":2},"next_attempt_at":3}',
    b'{"claim":[{"until":1}],"next_attempt_at":3,"state":"RECEIVED"}',
    b'{"claim":"{\\"until\\":1}","next_attempt_at":3}',
    b"[" * 900 + b"]" * 900,
    b"[" * 3000 + b"]" * 3000,
    b'{"state":"RECEIVED","updated_at":1,"history":' + b"[" * 900 + b"]" * 900 + b"}",
)


def bytes_of(collection: RecordKind):
    return st.one_of(records_of(collection), records_of(collection), st.sampled_from(MALFORMED))


def keys_of(collection: RecordKind):
    names = st.sampled_from(["1", "2", "3", "ä", "z", "\uffff", "\U0001f600", "a/b", "alias", "alias:x"])
    return names.map(lambda name: collection.prefix + name)


@st.composite
def conditions_on(draw, field: Field, several: bool):
    values = integers if field.kind is int else texts
    if several and draw(st.booleans()):
        return In(tuple(draw(st.lists(values, max_size=3))))
    return Is(draw(st.one_of(st.none(), values)))


@st.composite
def questions_to(draw, collection: RecordKind):
    """A declared index, either all of it by equality, or all but its last field, which orders; and who asks."""
    index = draw(st.sampled_from(((), *collection.indexes)))
    audiences = EVERYTHING
    if AUDIENCE in index:
        index = index[1:]
        audiences = draw(st.just(EVERYTHING) | st.frozensets(readers | st.just("ns:nobody")))
    by_key = not index or draw(st.booleans())
    equal = index if by_key else index[:-1]
    with_several = draw(st.sampled_from(equal)) if equal else None
    where = {
        name: draw(conditions_on(collection.fields[name], name == with_several))
        for name in draw(st.permutations(equal))
    }
    order_by = "key" if by_key else index[-1]
    if not by_key and collection.fields[order_by].kind is int and draw(st.booleans()):
        where[order_by] = Between(draw(st.none() | integers), draw(st.none() | integers))
    return where, order_by, draw(st.booleans()), audiences


async def page_through(
    kv: KV, collection: RecordKind, where, order_by, descending, limit, audiences=EVERYTHING
) -> list[Entry]:
    found: list[Entry] = []
    after = None
    while True:
        page = await kv.select(
            collection.prefix,
            where=where,
            order_by=order_by,
            descending=descending,
            after=after,
            limit=limit,
            audiences=audiences,
        )
        assert page.failed == {}
        assert len(page.items) == limit or page.after is None
        found += page.items
        after = page.after
        if after is None:
            return found


def collections_with(strategy_of: Callable[[RecordKind], st.SearchStrategy]) -> st.SearchStrategy:
    """A collection, and what the strategy draws for it. Drawn before the event loop runs."""
    return st.sampled_from(COLLECTIONS).flatmap(
        lambda collection: st.tuples(st.just(collection), strategy_of(collection))
    )


def contents_of(collection: RecordKind):
    return st.dictionaries(keys_of(collection), bytes_of(collection), min_size=1, max_size=10)


@SLOW
@given(
    case=collections_with(
        lambda collection: st.tuples(
            contents_of(collection),
            st.lists(st.tuples(questions_to(collection), st.integers(1, 4)), min_size=1, max_size=5),
        )
    )
)
async def test_a_question_paged_through_gives_what_reading_every_record_gives(kv: KV, case):
    collection, (contents, questions) = case
    await clear(kv)
    await write(kv, contents)
    entries = await everything(kv, collection)
    for (where, order_by, descending, audiences), limit in questions:
        query = Query.of(collection, where, order_by, descending, None, 10_000, audiences)
        found = await page_through(kv, collection, where, order_by, descending, limit, audiences)
        assert found == list(evaluate(query, entries).items)


@pytest.mark.parametrize("value", MALFORMED)
async def test_a_malformed_record_reads_the_same_on_every_engine(kv: KV, value):
    """It is still listed, found by each of its fields that reads as None, and counted."""
    await write(kv, {"sub:good": record(state="RECEIVED", updated_at=1, due_at=1), "sub:odd": value})
    entries = await everything(kv, SUBMISSIONS)
    assert [entry.key for entry in entries] == ["sub:good", "sub:odd"]
    states = {SUBMISSIONS.fields["state"].read(value), "RECEIVED", "PUBLISHED", None}
    for state in states:
        for order_by in ("updated_at", "due_at"):
            query = Query.of(SUBMISSIONS, {"state": Is(state)}, order_by, False, None, 10, EVERYTHING)
            page = await kv.select(
                "sub:", where={"state": Is(state)}, order_by=order_by, audiences=EVERYTHING
            )
            assert page.items == evaluate(query, entries).items
    assert await kv.count_by("sub:", "state", audiences=EVERYTHING) == recount(SUBMISSIONS, "state", entries)
    digest = await kv.select("sub:", where={"digest": Is(None)}, audiences=EVERYTHING)
    assert [entry.key for entry in digest.items] == ["sub:good", "sub:odd"]


async def test_E3_a_question_for_several_states_merges_them_in_one_order(kv: KV):
    values = {f"sub:{n}": record(state=STATES[n % 3], updated_at=n // 2) for n in range(12)}
    await write(kv, values)
    page = await kv.select(
        "sub:",
        where={"state": In(STATES[:2]), "updated_at": Between(1, 4)},
        order_by="updated_at",
        limit=100,
        audiences=EVERYTHING,
    )
    assert [entry.key for entry in page.items] == ["sub:3", "sub:4", "sub:6", "sub:7", "sub:9"]


async def test_due_at_is_the_claims_end_or_else_the_next_attempt(kv: KV):
    await write(
        kv,
        {
            "sub:claimed": record(state="S", claim={"until": 5}, next_attempt_at=1),
            "sub:waiting": record(state="S", claim=None, next_attempt_at=2),
            "sub:neither": record(state="S", claim={}, next_attempt_at=None),
        },
    )
    page = await kv.select(
        "sub:", where={"state": Is("S"), "due_at": Between(None, 5)}, order_by="due_at", audiences=EVERYTHING
    )
    assert [entry.key for entry in page.items] == ["sub:waiting", "sub:claimed"]


async def test_a_question_by_key_pages_through_the_whole_collection(kv: KV):
    await write(kv, {f"sub:{n:03}": record(n=n) for n in range(25)} | {"subrun:1": b"{}", "skill:1": b"{}"})
    found = await page_through(kv, SUBMISSIONS, {}, "key", False, 10)
    assert [entry.key for entry in found] == [f"sub:{n:03}" for n in range(25)]
    backwards = await page_through(kv, SUBMISSIONS, {}, "key", True, 10)
    assert backwards == found[::-1]


async def test_aliases_are_no_skills_to_any_question(kv: KV):
    skill = record(name="foo", listing={"updated_at": 1}, certification="SCANNED")
    await write(kv, {"skill:foo": skill, "skill:alias:foo:foo": skill, "skill:aliased": skill})
    page = await kv.select("skill:", order_by="listed_at", audiences=EVERYTHING)
    assert [entry.key for entry in page.items] == ["skill:aliased", "skill:foo"]
    assert [entry.key for entry in (await kv.select("skill:", audiences=EVERYTHING)).items] == [
        "skill:aliased",
        "skill:foo",
    ]
    assert await kv.count_by("skill:", "certification", audiences=EVERYTHING) == {"SCANNED": 2}
    assert {
        entry.key for entry in (await kv.search("skill:", every_term("foo"), audiences=EVERYTHING)).items
    } == {
        "skill:aliased",
        "skill:foo",
    }


async def test_C2_an_updated_record_leaves_its_old_place_at_once(kv: KV):
    await kv.put("sub:1", record(state="RECEIVED", updated_at=1))
    await kv.put("sub:1", record(state="PUBLISHED", updated_at=2))
    assert (
        await kv.select("sub:", where={"state": Is("RECEIVED")}, order_by="updated_at", audiences=EVERYTHING)
    ).items == ()
    (entry,) = (
        await kv.select("sub:", where={"state": Is("PUBLISHED")}, order_by="updated_at", audiences=EVERYTHING)
    ).items
    assert entry == await kv.get("sub:1")
    await kv.delete("sub:1")
    assert (await kv.select("sub:", audiences=EVERYTHING)).items == ()


async def test_an_expired_entry_is_in_no_answer(kv: KV, clock: ManualClock):
    await kv.put("sub:1", record(state="RECEIVED", updated_at=1, skill_name="foo"), ttl_ms=10)
    clock.advance(10)
    assert (
        await kv.select("sub:", where={"state": Is("RECEIVED")}, order_by="updated_at", audiences=EVERYTHING)
    ).items == ()
    assert (await kv.select("sub:", audiences=EVERYTHING)).items == ()
    assert (await kv.search("sub:", every_term("foo"), audiences=EVERYTHING)).items == ()


@pytest.mark.parametrize(
    ("where", "order_by"),
    [
        ({"skill_name": Is("x")}, "key"),
        ({"digest": Is("x")}, "created_at"),
        ({"state": Is("x")}, "key"),
        ({}, "updated_at"),
        ({"nothing": Is("x")}, "key"),
        ({}, "nothing"),
        ({"state": Is("x"), "updated_at": Between(1, 2)}, "due_at"),
        ({"created_at": Between(1, 2)}, "key"),
        ({"created_at": Is(1)}, "created_at"),
        ({"state": In(("x",)), "updated_at": In((1,))}, "key"),
    ],
)
async def test_a_question_that_no_declared_index_serves_is_refused_on_every_engine(kv: KV, where, order_by):
    with pytest.raises(UnindexedQuery):
        await kv.select("sub:", where=where, order_by=order_by, audiences=EVERYTHING)


@pytest.mark.parametrize("condition", [Is("\ud800"), In(("RECEIVED", "a\udfff"))])
async def test_a_value_that_cannot_be_encoded_is_bad_input(kv: KV, condition):
    with pytest.raises(InvalidInput) as caught:
        await kv.select("sub:", where={"state": condition}, order_by="updated_at", audiences=EVERYTHING)
    assert caught.value.field == "state"
    with pytest.raises(InvalidInput):
        await kv.search("sub:", every_term("x"), where={"state": condition}, audiences=EVERYTHING)


@pytest.mark.parametrize("prefix", ["", "sub", "sub:1", "version:", "skill:alias:"])
async def test_only_a_declared_collection_can_be_asked(kv: KV, prefix):
    with pytest.raises(UnindexedQuery):
        await kv.select(prefix, audiences=EVERYTHING)
    with pytest.raises(UnindexedQuery):
        await kv.count_by(prefix, "state", audiences=EVERYTHING)
    with pytest.raises(UnindexedQuery):
        await kv.search(prefix, every_term("x"), audiences=EVERYTHING)


@pytest.mark.parametrize(
    "cursor", ["", "x", "é", "\ud800", "W10=", "bnVsbA==", "WzEsMl0=", "WyJ4IiwiayJd", "W251bGwsImsiXQ=="]
)
async def test_a_cursor_that_is_none_of_ours_is_bad_input(kv: KV, cursor):
    with pytest.raises(InvalidInput) as caught:
        await kv.select("sub:", order_by="created_at", after=cursor, audiences=EVERYTHING)
    assert caught.value.field == "after"


# Counts.


def recount(collection: RecordKind, field: str, entries) -> dict[Value, int]:
    return dict(Counter(collection.fields[field].read(entry.value) for entry in entries))


#: Few and many of the audiences that there are, so that both ways of summing are taken.
READERS: tuple[Audiences, ...] = (
    EVERYTHING,
    frozenset(),
    PUBLIC_ONLY,
    frozenset({"ns:a", "ns:b"}),
    frozenset({"public", "ns:a", "ns:b", *(f"ns:{n}" for n in range(20))}),
    frozenset({"", *(f"ns:{n}" for n in range(20))}),
)


def writes_of(collection: RecordKind):
    writes = st.dictionaries(keys_of(collection), st.none() | bytes_of(collection), min_size=1, max_size=6)
    return st.lists(writes, min_size=1, max_size=4)


@SLOW
@given(case=collections_with(writes_of))
async def test_C2_counts_are_a_recount_after_any_writes(kv: KV, case):
    collection, batches = case
    await clear(kv)
    assert await kv.count_by(collection.prefix, collection.counted[0], audiences=EVERYTHING) == {}
    for writes in batches:
        await write(kv, writes)
        entries = await everything(kv, collection)
        for audiences in READERS if collection.has_audience else (EVERYTHING,):
            read = [entry for entry in entries if is_readable(collection, entry, audiences)]
            expected = {field: recount(collection, field, read) for field in collection.counted}
            assert await kv.count_all(collection.prefix, audiences=audiences) == expected
            for field in collection.counted:
                found = await kv.count_by(collection.prefix, field, audiences=audiences)
                assert found == expected[field]


async def test_A6_counts_have_no_cap(kv: KV):
    await write(kv, {f"sub:{n:05}": record(state=STATES[n % 2]) for n in range(5_200)})
    assert await kv.count_by("sub:", "state", audiences=EVERYTHING) == {"RECEIVED": 2_600, "PUBLISHED": 2_600}


async def test_counting_by_another_field_is_refused(kv: KV):
    with pytest.raises(UnindexedQuery):
        await kv.count_by("sub:", "digest", audiences=EVERYTHING)


async def test_C4_a_count_over_a_failed_read_raises_instead_of_lying(clock: ManualClock):
    kv = MinimalKV(clock)
    await write(kv, {"sub:1": record(state="A", skill_name="foo"), "sub:2": record(state="B")})
    kv.probe.failing = {"sub:1": StoreUnavailable("down")}
    with pytest.raises(StoreUnavailable):
        await kv.count_by("sub:", "state", audiences=EVERYTHING)
    with pytest.raises(StoreUnavailable):
        await kv.search("sub:", every_term("foo"), audiences=EVERYTHING)
    page = await kv.select("sub:", audiences=EVERYTHING)
    assert [entry.key for entry in page.items] == ["sub:2"]
    assert page.failed.keys() == {"sub:1"}


# Search.


async def found_by(kv: KV, text: str, **options) -> set[str]:
    """By everybody and by the system: the records here are public, and what is not JSON has no words."""
    found = {
        entry.key
        for entry in (await kv.search("skill:", every_term(text), audiences=EVERYTHING, **options)).items
    }
    public = await kv.search("skill:", every_term(text), audiences=PUBLIC_ONLY, **options)
    assert {entry.key for entry in public.items} == found
    return found


async def test_every_term_must_match_and_the_last_one_may_be_a_beginning(kv: KV):
    await write(
        kv,
        {
            "skill:1": record(name="pdf-reader", description="Reads PDF files and forms"),
            "skill:2": record(name="pdf_writer", description="writes documents"),
            "skill:3": record(name="readerless"),
        },
    )
    assert await found_by(kv, "pdf") == {"skill:1", "skill:2"}
    assert await found_by(kv, "reader") == {"skill:1", "skill:3"}
    assert await found_by(kv, "pdf read") == {"skill:1"}
    assert await found_by(kv, "eade pdf") == set()
    assert await found_by(kv, "forms pdf reads") == {"skill:1"}
    assert await found_by(kv, "PDF   READER") == {"skill:1"}
    assert await found_by(kv, "pdf-reader") == {"skill:1"}
    assert await found_by(kv, "do") == {"skill:2"}
    assert await found_by(kv, "eader") == set()


async def test_terms_may_stand_in_different_fields(kv: KV):
    await kv.put("skill:1", record(name="alpha", description="omega"))
    assert await found_by(kv, "alpha om") == {"skill:1"}


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("Café", "cafe"),
        ("cafe", "CAFÉ"),
        ("cafe\u0301", "café"),
        ("Straße", "STRASSE"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("ﬁle", "file"),
        ("\uff26\uff55\uff4c\uff4c", "full"),
        ("İstanbul", "istanbul"),
        ("x²", "x2"),
        ("한국어", "한국어"),
        ("данные", "ДАННЫЕ"),
    ],
)
async def test_case_accents_and_forms_of_a_letter_do_not_matter(kv: KV, written, asked):
    await kv.put("skill:1", record(name=written))
    assert await found_by(kv, asked) == {"skill:1"}


async def test_ideographs_are_found_inside_a_text_without_spaces(kv: KV):
    await write(
        kv,
        {
            "skill:1": record(name="自然言語処理ツール"),
            "skill:2": record(name="中文分析"),
            "skill:3": record(name="语言"),
        },
    )
    assert await found_by(kv, "言語") == {"skill:1"}
    assert await found_by(kv, "分析") == {"skill:2"}
    assert await found_by(kv, "ツ") == {"skill:1"}
    assert await found_by(kv, "中語") == set()


HOSTILE = [
    '" OR *',
    "NEAR(",
    "NEAR(foo bar)",
    "foo OR bar",
    "foo AND",
    "NOT foo",
    'foo"',
    '"foo',
    "'foo",
    "foo*",
    "^foo",
    "name:foo",
    "name : foo",
    "{name} : foo",
    "-foo",
    "foo)",
    "((((",
    "foo\0bar",
    "\0",
    "%",
    "_",
    "; DROP TABLE records",
    "\ud800",
    "foo\ud800",
    "\u202efoo",
    "é" * 1000,
    "foo " * 1000,
    "x" * 10_000,
    " ".join(f"t{n}" for n in range(2_000)),
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
async def test_whatever_a_person_types_is_text_and_never_syntax(kv: KV, text):
    await write(
        kv, {"skill:1": record(name="foo", description="bar"), "skill:2": record(name="or and not near")}
    )
    entries = await everything(kv, SKILLS)
    assert await found_by(kv, text) == reference_hits(entries, text)


def reference_hits(entries, text: str) -> set[str]:
    query = every_term(text)
    return {one.key for one in entries if query.points(SKILLS.search_texts(one.value)) is not None}


letters = st.text(st.characters(codec="utf-8"), max_size=8)
words = st.sampled_from(
    [
        "foo",
        "fo",
        "bar",
        "Foo-Bar",
        "foo_bar",
        "føø",
        "ö",
        "中文",
        "x2",
        "½",
        "ǅ",
        "ﷺ",
        "a.b",
        "OR",
        "\U0001d518",
        "ก็",
        "हिन्दी",
    ]
)
phrases = st.lists(st.one_of(words, words, letters), max_size=4).map(" ".join)


@SLOW
@given(
    records=st.lists(
        st.one_of(
            st.fixed_dictionaries({}, optional=dict.fromkeys(SKILLS.searched, phrases)).map(
                lambda found: json.dumps(found).encode()
            ),
            st.sampled_from(MALFORMED),
        ),
        max_size=6,
    ),
    asked=st.lists(phrases, min_size=1, max_size=4),
)
@example(records=[b'{"name":"\\ud83d"}', b'{"name":"a\\u0000b"}'], asked=["a", "b", "ab", "\U0001f600"])
async def test_search_finds_what_reading_every_record_finds(kv: KV, records, asked):
    await clear(kv)
    await write(kv, {f"skill:{n}": value for n, value in enumerate(records)} or {"skill:0": b"{}"})
    entries = await everything(kv, SKILLS)
    for text in asked:
        assert await found_by(kv, text) == reference_hits(entries, text)


weighed = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["pdf", "PDF", "pdf-tools", "tools", "testing"]),
        "canonical": st.sampled_from(["o/r/pdf", "o/r/tool"]),
        "description": st.sampled_from(["make slides from a pdf", "tests", "a tested pdf tool", "k8s"]),
        "listing": st.fixed_dictionaries({"weight": st.sampled_from([0, 1, 63, None, "1"])}),
        "audience": st.sampled_from(["public", "ns:a", "ns:b"]),
    },
)


@SLOW
@given(
    records=st.lists(weighed, max_size=12),
    text=st.sampled_from(
        [
            "pdf",
            "p",
            "tools",
            "test",
            "pdf test",
            "make slide decks",
            "kubernetes",
            "a tool to test the pdf",
            "o r pdf",
            "write a test tool for pdf slides",
            "pod tests tool decks",
        ]
    ),
    readers=st.sampled_from([EVERYTHING, PUBLIC_ONLY, frozenset({"ns:a", "public"})]),
    known=st.sampled_from([Vocabulary(), Vocabulary({}, {"pdf": 3, "test": 1, "tool": 2}, 6)]),
    limit=st.integers(1, 12),
)
async def test_search_has_one_order_on_every_engine(kv: KV, records, text, readers, known, limit):
    """Points, then the greatest weight, then the key; and a limit takes the first of that order."""
    await clear(kv)
    await write(kv, {f"skill:{n}": record(**one) for n, one in enumerate(records)} or {"skill:0": b"{}"})
    known_words = KnownWords(known)
    query = finding_query(wanted_terms(text, known_words), known_words)
    hits = []
    for entry in await everything(kv, SKILLS):
        points = query.points(SKILLS.search_texts(entry.value))
        if points is not None and is_readable(SKILLS, entry, readers):
            weight, owner = SKILLS.weight_of(entry.value), SKILLS.fields["owner"].read(entry.value)
            hits.append((-points, weight is None, -(weight or 0), entry.key, (weight, owner)))
    hits.sort(key=lambda hit: hit[:-1])
    found = await kv.search("skill:", query, audiences=readers, fields=("weight", "owner"), limit=limit)
    assert [(one.key, one.values) for one in found.items] == [hit[-2:] for hit in hits[:limit]]
    assert found.truncated == (len(hits) > limit)
    for one in found.items:
        stored = await kv.get(one.key)
        texts = SKILLS.search_texts(stored.value if stored else b"")
        assert [set(text.split()) for text in one.texts] == [set(text.split()) for text in texts]


async def test_A12_a_new_an_updated_and_a_deleted_record_are_found_or_not_at_once(kv: KV):
    await kv.put("skill:1", record(name="before"))
    assert await found_by(kv, "before") == {"skill:1"}
    await kv.put("skill:1", record(name="after"))
    assert await found_by(kv, "before") == set()
    assert await found_by(kv, "after") == {"skill:1"}
    await kv.put("skill:1", b"not json any more")
    assert await found_by(kv, "after") == set()
    await kv.put("skill:1", record(name="again"))
    assert await found_by(kv, "again") == {"skill:1"}
    await kv.delete("skill:1")
    assert await found_by(kv, "again") == set()


async def test_submissions_are_searched_apart_from_skills(kv: KV):
    await write(
        kv,
        {
            "sub:1": record(skill_name="foo", repo_url="https://git.example/o/my-repo"),
            "skill:1": record(name="foo"),
            "version:1": record(name="foo"),
        },
    )
    assert [
        entry.key for entry in (await kv.search("sub:", every_term("foo"), audiences=EVERYTHING)).items
    ] == ["sub:1"]
    assert [
        entry.key for entry in (await kv.search("sub:", every_term("my-repo"), audiences=EVERYTHING)).items
    ] == ["sub:1"]
    assert await found_by(kv, "foo") == {"skill:1"}


async def test_a_search_can_be_narrowed_by_declared_fields(kv: KV):
    await write(
        kv,
        {
            "skill:1": record(name="foo", certification="VERIFIED", listing={"updated_at": 5}),
            "skill:2": record(name="foo", certification="SCANNED", listing={"updated_at": 6}),
            "skill:3": record(name="foo", listing={"updated_at": 7}),
            "skill:4": record(name="bar", certification="VERIFIED"),
        },
    )
    assert await found_by(kv, "foo", where={"certification": Is("VERIFIED")}) == {"skill:1"}
    assert await found_by(kv, "foo", where={"certification": In(("VERIFIED", "SCANNED"))}) == {
        "skill:1",
        "skill:2",
    }
    assert await found_by(kv, "foo", where={"certification": Is(None)}) == {"skill:3"}
    assert await found_by(kv, "foo", where={"listed_at": Between(6, None)}) == {"skill:2", "skill:3"}
    assert await found_by(
        kv, "foo", where={"listed_at": Between(None, 6), "certification": Is("SCANNED")}
    ) == {"skill:2"}
    with pytest.raises(UnindexedQuery):
        await kv.search("skill:", every_term("foo"), where={"nothing": Is("x")}, audiences=EVERYTHING)


async def test_facets_narrow_what_one_index_serves_page_by_page(kv: KV):
    """Several filters of the marketplace at once; what is not listed is in no such list and in no count."""

    def skill(n: int, category: str, agent: str) -> bytes:
        facts = {"category": category, "agent": agent, "updated_at": n, "installs": 100 - n}
        return record(name="foo", owner="o", listing=facts)

    kinds = [("data", "any"), ("data", "claude"), ("design", "any")]
    stored = {f"skill:o/r/{n:02}": skill(n, *kinds[n % 3]) for n in range(30)}
    await write(kv, {**stored, "skill:o/r/gone": record(name="foo", owner="o", listing=None)})
    where: dict[str, Condition] = {"category": Is("data"), "agent": In(("claude", "codex")), "owner": Is("o")}
    seen, after = [], None
    while True:
        page = await kv.select(
            "skill:",
            where=where,
            order_by="listed_at",
            descending=True,
            after=after,
            limit=4,
            audiences=EVERYTHING,
        )
        seen += [entry.key for entry in page.items]
        after = page.after
        if after is None:
            break
    assert seen == [f"skill:o/r/{n:02}" for n in range(28, 0, -3)]
    by_installs = await kv.select(
        "skill:", where={"agent": Is("claude")}, order_by="installs", limit=2, audiences=EVERYTHING
    )
    assert [entry.key for entry in by_installs.items] == ["skill:o/r/28", "skill:o/r/25"]
    assert await kv.count_by("skill:", "category", audiences=EVERYTHING) == {
        "data": 20,
        "design": 10,
        None: 1,
    }
    counted = await kv.count_all("skill:", audiences=EVERYTHING)
    assert counted == {
        field: await kv.count_by("skill:", field, audiences=EVERYTHING) for field in SKILLS.counted
    }
    with pytest.raises(UnindexedQuery):
        await kv.select(
            "skill:", where={"name": Is("foo"), "owner": Is("o")}, order_by="listed_at", audiences=EVERYTHING
        )


async def test_no_terms_find_nothing(kv: KV):
    await kv.put("skill:1", record(name="foo"))
    for text in ("", "  ", "!?", "\0"):
        found = await kv.search("skill:", every_term(text), audiences=EVERYTHING)
        assert (found.items, found.truncated) == ((), False)


async def test_A6_a_search_that_leaves_something_out_says_so(kv: KV):
    await write(kv, {f"skill:{n:04}": record(name="foo") for n in range(SEARCH_LIMIT + 1)})
    few = await kv.search("skill:", every_term("foo"), limit=3, audiences=EVERYTHING)
    assert (len(few.items), few.truncated) == (3, True)
    many = await kv.search("skill:", every_term("foo"), limit=5_000, audiences=EVERYTHING)
    assert (len(many.items), many.truncated) == (SEARCH_LIMIT, True)
    await kv.delete("skill:0000")
    exact = await kv.search("skill:", every_term("foo"), limit=5_000, audiences=EVERYTHING)
    assert (len(exact.items), exact.truncated) == (SEARCH_LIMIT, False)
