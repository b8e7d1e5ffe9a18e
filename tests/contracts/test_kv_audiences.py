"""Who may read, in the query: every engine finds the records of the reader's audiences and no others, in lists, pages,
searches and counts, while records change hands between two pages.
"""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.manual_clock import ManualClock
from vskill_core.errors import InvalidInput, UnindexedQuery
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC_ONLY
from vskill_platform.domain.skills.search import every_term
from vskill_platform.ledger.kv.collections import SKILLS, SUBMISSIONS, RecordKind
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.ledger.kv.entries import Capability, Delete, Entry, Put
from vskill_platform.ledger.kv.query import Between, Condition, In, Is, Query, evaluate, is_readable

pytestmark = pytest.mark.anyio

SLOW = settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

NAMES = ("public", "ns:a", "ns:b", "ns:b:team", "ns:c", "", "ünï 漢")
#: Of an object that lacks the name, and of what is no text: left out, or wrong.
LACKS = object()
ODD: tuple[object, ...] = (LACKS, None, 5, True, [], {"public": 1}, "a\0b")
#: What is no object has no audience, and no field either.
NO_OBJECTS = (b"", b"not json", b"7", b'["public"]', b'{"audience": "public"')


def skill(audience: object, at: int, category: str, installs: int = 0) -> bytes:
    fields: dict[str, object] = {
        "name": "foo bar",
        "owner": "o" if at % 2 else "p",
        "listing": {"updated_at": at, "installs": installs, "category": category},
    }
    if audience is not LACKS:
        fields["audience"] = audience
    return json.dumps(fields).encode()


readers = st.sampled_from(NAMES)
values = st.one_of(
    st.builds(
        skill,
        st.one_of(readers, readers, readers, st.sampled_from(ODD)),
        st.integers(0, 4),
        st.sampled_from(["data", "design"]),
        st.integers(0, 1),
    ),
    st.sampled_from(NO_OBJECTS),
)
keys = st.tuples(st.sampled_from("mnä"), st.integers(0, 9)).map(lambda one: f"skill:{one[0]}/{one[1]}")
contents = st.dictionaries(keys, values, min_size=1, max_size=25)
audience_sets = st.just(EVERYTHING) | st.frozensets(readers | st.just("ns:nobody"))
wheres = st.sampled_from(
    [
        {},
        {"category": Is("data")},
        {"category": In(("data", "design"))},
        {"owner": In(("o", "p", "q")), "category": Is("design")},
        {"owner": Is("o"), "category": In(("data", "x"))},
        {"category": In(("data",))},
    ]
)
questions = st.tuples(
    wheres, st.sampled_from(["listed_at", "installs", "key"]), st.booleans(), st.integers(1, 5)
)


async def write(kv: KV, values: dict[str, bytes | None]) -> None:
    """None deletes. In one commit where the engine can."""
    operations = [Delete(key) if value is None else Put(key, value) for key, value in values.items()]
    steps = [operations] if Capability.ATOMIC_COMMIT in kv.capabilities else [[one] for one in operations]
    for step in steps:
        await kv.commit(step)


async def read_all(kv: KV, collection: RecordKind = SKILLS) -> tuple[Entry, ...]:
    return (await kv.scan(collection.prefix, limit=10_000, exclude=collection.exclude)).items


async def start(kv: KV, values: dict[str, bytes | None]) -> None:
    found = (await kv.list("")).items
    await write(kv, {**dict.fromkeys(found), **values})


@SLOW
@given(stored=contents, flips=st.lists(contents, max_size=4), asked=questions, readers_of=audience_sets)
async def test_every_page_is_what_reading_every_record_gives_now(kv: KV, stored, flips, asked, readers_of):
    """Records change their audience, their place or both between two pages; the cursor still means its place."""
    where, order_by, descending, limit = asked
    await start(kv, stored)
    after = None
    for changed in (*flips, {}, {}, {}):
        query = Query.of(SKILLS, where, order_by, descending, after, limit, readers_of)
        page = await kv.select(
            "skill:",
            audiences=readers_of,
            where=where,
            order_by=order_by,
            descending=descending,
            after=after,
            limit=limit,
        )
        assert page == evaluate(query, await read_all(kv))
        after = page.after
        if after is None:
            break
        if changed:
            await write(kv, changed)


@SLOW
@given(stored=contents, pages=st.lists(audience_sets, min_size=1, max_size=4), asked=questions)
async def test_a_cursor_goes_on_for_a_reader_who_gained_or_lost_an_audience(kv: KV, stored, pages, asked):
    where, order_by, descending, limit = asked
    await start(kv, stored)
    entries = await read_all(kv)
    after = None
    for audiences in pages:
        query = Query.of(SKILLS, where, order_by, descending, after, limit, audiences)
        page = await kv.select(
            "skill:",
            audiences=audiences,
            where=where,
            order_by=order_by,
            descending=descending,
            after=after,
            limit=limit,
        )
        assert page == evaluate(query, entries)
        if page.after is None:
            break
        after = page.after


@SLOW
@given(stored=contents, under=st.sampled_from(["", "m", "m/", "n/1", "ä/", "z"]), readers_of=audience_sets)
async def test_the_keys_under_a_prefix_are_paged_through_in_order(kv: KV, stored, under, readers_of):
    await start(kv, stored)
    entries = [entry for entry in await read_all(kv) if entry.key.startswith(f"skill:{under}")]
    expected = [entry.key for entry in entries if is_readable(SKILLS, entry, readers_of)]
    for descending in (False, True):
        found: list[str] = []
        after = None
        while True:
            page = await kv.select(
                "skill:", audiences=readers_of, under=under, descending=descending, after=after, limit=3
            )
            found += [entry.key for entry in page.items]
            after = page.after
            if after is None:
                break
        assert found == (expected[::-1] if descending else expected)


@SLOW
@given(batches=st.lists(contents, min_size=1, max_size=3), readers_of=audience_sets)
async def test_searches_and_counts_follow_every_flip(kv: KV, batches, readers_of):
    await start(kv, {})
    for stored in batches:
        await write(kv, stored)
        read = [entry for entry in await read_all(kv) if is_readable(SKILLS, entry, readers_of)]
        found = await kv.search("skill:", every_term("foo"), audiences=readers_of, where={"installs": Is(0)})
        assert {entry.key for entry in found.items} == {
            entry.key for entry in read if SKILLS.fields["installs"].read(entry.value) == 0
        }
        counted = await kv.count_by("skill:", "audience", audiences=readers_of)
        assert sum(counted.values()) == len(read)
        assert readers_of is EVERYTHING or counted.keys() <= readers_of


@pytest.mark.parametrize("odd", [*ODD[1:], *NO_OBJECTS], ids=repr)
async def test_an_audience_that_is_no_text_is_read_by_the_system_alone(kv: KV, odd):
    value = odd if isinstance(odd, bytes) else skill(odd, 1, "data")
    await write(kv, {"skill:odd": value, "skill:public": skill(LACKS, 1, "data")})
    wide = frozenset({*NAMES, "None", "null", "5", "1"})
    for audiences, expected in ((EVERYTHING, 2), (wide, 1), (PUBLIC_ONLY, 1)):
        assert len((await kv.select("skill:", audiences=audiences)).items) == expected
        counted = await kv.count_by("skill:", "audience", audiences=audiences)
        assert counted == ({"public": 1, None: 1} if expected == 2 else {"public": 1})
        assert len((await kv.search("skill:", every_term("foo"), audiences=PUBLIC_ONLY)).items) == 1


async def test_more_audiences_than_a_statement_has_parameters_or_parts(kv: KV):
    """A reader in very many namespaces, most of which have no skill."""
    await write(kv, {f"skill:{n:03}": skill(f"ns:{n}", n, "data") for n in range(0, 40, 3)})
    many = frozenset(f"ns:{n}" for n in range(3_000)) - {"ns:3"}
    page = await kv.select("skill:", audiences=many, order_by="listed_at", descending=True, limit=4)
    assert [entry.key for entry in page.items] == ["skill:039", "skill:036", "skill:033", "skill:030"]
    assert await kv.count_by("skill:", "category", audiences=many) == {"data": 13}
    assert len((await kv.search("skill:", every_term("foo"), audiences=many)).items) == 13


async def test_several_states_of_several_audiences_are_one_list(kv: KV):
    states = ("RECEIVED", "PUBLISHED", "BLOCKED")
    await write(
        kv,
        {
            f"sub:{n:02}": json.dumps(
                {"state": states[n % 3], "audience": ("public", "ns:a")[n % 2], "updated_at": n // 4}
            ).encode()
            for n in range(36)
        },
    )
    where: dict[str, Condition] = {"state": In(states[:2]), "updated_at": Between(1, 7)}
    for audiences in (EVERYTHING, PUBLIC_ONLY, frozenset({"public", "ns:a"})):
        query = Query.of(SUBMISSIONS, where, "updated_at", True, None, 7, audiences)
        page = await kv.select(
            "sub:", audiences=audiences, where=where, order_by="updated_at", descending=True, limit=7
        )
        assert page == evaluate(query, await read_all(kv, SUBMISSIONS))


async def test_expired_records_take_no_place_on_a_page(kv: KV, clock: ManualClock):
    for n in range(12):
        # The newest of every audience, and some between others.
        expires = n >= 8 or n % 3 == 0
        value = skill(f"ns:{n % 4}", n, "data")
        await kv.put(f"skill:{n:02}", value, ttl_ms=10 if expires else None)
    clock.advance(10)
    readers_of = frozenset(f"ns:{n}" for n in range(4))
    first = await kv.select("skill:", audiences=readers_of, order_by="listed_at", descending=True, limit=3)
    assert [entry.key for entry in first.items] == ["skill:07", "skill:05", "skill:04"]
    rest = await kv.select(
        "skill:", audiences=readers_of, order_by="listed_at", descending=True, limit=3, after=first.after
    )
    assert [entry.key for entry in rest.items] == ["skill:02", "skill:01"]
    assert rest.after is None


async def test_what_has_no_audience_is_asked_by_the_system_alone(kv: KV):
    with pytest.raises(UnindexedQuery, match="no audiences"):
        await kv.select("task:", audiences=PUBLIC_ONLY)
    with pytest.raises(UnindexedQuery, match="no audiences"):
        await kv.count_by("task:", "state", audiences=PUBLIC_ONLY)
    with pytest.raises(UnindexedQuery, match="no audiences"):
        await kv.search("task:", every_term("x"), audiences=PUBLIC_ONLY)


@pytest.mark.parametrize(
    ("where", "order_by"),
    [({"digest": Is("d")}, "key"), ({}, "due_at"), ({}, "key"), ({}, "audience")],
)
async def test_a_readers_question_is_served_by_an_index_that_begins_with_the_audience(
    kv: KV, where, order_by
):
    """Walking another index and leaving out what may not be read costs whatever is hidden."""
    with pytest.raises(UnindexedQuery):
        await kv.select("sub:", audiences=PUBLIC_ONLY, where=where, order_by=order_by)


async def test_the_audience_is_no_condition(kv: KV):
    for ask in (
        kv.select("skill:", audiences=EVERYTHING, where={"audience": Is("public")}, order_by="listed_at"),
        kv.search("skill:", every_term("x"), audiences=EVERYTHING, where={"audience": Is("public")}),
    ):
        with pytest.raises(UnindexedQuery, match="audiences"):
            await ask


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
async def test_an_audience_that_no_record_can_have_is_bad_input(kv: KV, name):
    for ask in (
        kv.select("skill:", audiences=frozenset({name})),
        kv.search("skill:", every_term("x"), audiences=frozenset({name})),
        kv.count_by("skill:", "trust", audiences=frozenset({name})),
    ):
        with pytest.raises(InvalidInput) as caught:
            await ask
        assert caught.value.field == "audiences"


async def test_only_the_order_of_keys_has_a_beginning(kv: KV):
    with pytest.raises(UnindexedQuery, match="under"):
        await kv.select("skill:", audiences=PUBLIC_ONLY, order_by="listed_at", under="acme/")
