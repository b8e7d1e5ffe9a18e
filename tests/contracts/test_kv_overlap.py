"""Records that have many integers in common: every engine answers what reading every record would answer, whatever
bytes the records hold."""

import json
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contracts.test_kv_queries import MALFORMED, READERS, clear, everything, write
from tests.support.examples import examples
from vskill_core.errors import UnindexedQuery
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC_ONLY
from vskill_platform.ledger.kv.collections import SKETCHES
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.ledger.kv.entries import Overlap
from vskill_platform.ledger.kv.overlaps import MOST_HOLDERS, OverlapQuery, evaluate_overlap

pytestmark = pytest.mark.anyio

numbers = st.one_of(st.integers(0, 9), st.sampled_from([2**63 - 1, -(2**63) + 1, 2**53 + 1]))
wrong = st.sampled_from([None, True, 1.0, 2**63, -(2**63), "1", [1], {"a": 1}])
lists = st.one_of(st.lists(st.one_of(numbers, wrong), max_size=8), wrong)
audiences = st.sampled_from(["public", "ns:a", "ns:b", "", None, 7])
sketches = st.fixed_dictionaries({}, optional={"hashes": lists, "audience": audiences})
ODD = (
    *MALFORMED,
    b'{"hashes":[1,2],"hashes":[3]}',
    b'{"hashes":[1,2,2,1]}',
    b'{"hashes":"[1,2]"}',
    b'{"hashes":{"0":1}}',
    b'{"hashes":[1],"audience":"\\ud800"}',
)
values = st.one_of(sketches.map(lambda one: json.dumps(one).encode()), st.sampled_from(ODD))
names = st.sampled_from(["a/b/c", "a/b/d", "a-b/c", "a", "/c", "ä", "\U0001f600/a"]).map(
    lambda name: SKETCHES.prefix + name
)


#: Those of the names, and one that has no record.
FAMILIES = ("a", "a-b", "", "ä", "\U0001f600", "b")


def sketch(*hashes: int, audience: str = "public") -> bytes:
    return json.dumps({"hashes": hashes, "audience": audience}).encode()


@pytest.mark.slow
@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    batches=st.lists(
        st.dictionaries(names, st.none() | values, min_size=1, max_size=5), min_size=1, max_size=4
    ),
    wanted=st.lists(st.one_of(numbers, st.just(2**63)), max_size=8),
    least=st.integers(0, 4),
)
async def test_what_is_shared_is_what_reading_everything_gives_after_any_writes(
    kv: KV, batches, wanted, least
):
    await clear(kv)
    for writes in batches:
        await write(kv, writes)
        entries = await everything(kv, SKETCHES)
        for readers in READERS:
            for without in FAMILIES:
                query = OverlapQuery.of(SKETCHES.prefix, wanted, readers, least, 3, without)
                ask = partial(kv.overlap, SKETCHES.prefix, wanted, audiences=readers, least=least, limit=3)
                assert await ask(without=without) == evaluate_overlap(query, entries)


async def test_those_with_the_most_in_common_come_first_and_only_readable_ones(kv: KV):
    records = {
        "sketch:b": sketch(1, 2, 3),
        "sketch:a": sketch(1, 2, 3, 9),
        "sketch:c": sketch(1, 2, 3, 4, audience="ns:x"),
        "sketch:d": sketch(1, 8),
    }
    await write(kv, records)
    ask = partial(kv.overlap, "sketch:", (1, 2, 3, 4), least=2, without="")
    found = await ask(audiences=PUBLIC_ONLY, limit=5)
    assert found == (Overlap("sketch:a", 3), Overlap("sketch:b", 3))
    assert await ask(audiences=EVERYTHING, limit=1) == (Overlap("sketch:c", 4),)


async def test_a_family_is_left_out_before_the_best_are_chosen_and_makes_no_integer_common(kv: KV):
    await write(kv, {f"sketch:mia/{number}": sketch(1, 2, 3) for number in range(MOST_HOLDERS + 1)})
    await write(kv, {"sketch:ann/x": sketch(1, 2), "sketch:mib": sketch(1)})
    ask = partial(kv.overlap, "sketch:", (1, 2, 3), audiences=EVERYTHING, least=1, limit=2)
    assert await ask(without="mia") == (Overlap("sketch:ann/x", 2), Overlap("sketch:mib", 1))
    assert await ask(without="ann") == ()


async def test_an_integer_that_very_many_records_hold_does_not_count(kv: KV):
    common = {f"sketch:{number:04}": sketch(1, 10_000 + number) for number in range(MOST_HOLDERS)}
    await write(kv, common)
    ask = partial(kv.overlap, "sketch:", audiences=EVERYTHING, least=1, limit=2, without="")
    assert len(await ask((1,))) == 2
    await write(kv, {"sketch:one-more": sketch(1, 2)})
    assert await ask((1,)) == ()
    assert await ask((1, 2)) == (Overlap("sketch:one-more", 1),)


async def test_holders_before_and_behind_the_family_that_is_left_out_count_together(kv: KV):
    half = MOST_HOLDERS // 2
    await write(kv, {f"sketch:{side}{number}": sketch(1) for side in "az" for number in range(half)})
    await write(kv, {f"sketch:mia/{number}": sketch(1) for number in range(3)})
    ask = partial(kv.overlap, "sketch:", (1,), audiences=EVERYTHING, least=1, limit=9, without="mia")
    assert len(await ask()) == 9
    await write(kv, {"sketch:z-one-more": sketch(1)})
    assert await ask() == ()


@pytest.mark.parametrize("prefix", ["sub:", "skill:", "version:"])
async def test_only_a_collection_with_a_list_of_integers_can_be_asked(kv: KV, prefix):
    with pytest.raises(UnindexedQuery):
        await kv.overlap(prefix, (1,), audiences=EVERYTHING, least=1, limit=1, without="")
