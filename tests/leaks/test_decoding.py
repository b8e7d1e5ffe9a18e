"""No list decodes a record that its reader may not read. Every hidden record is damaged in a place that only decoding
it whole would notice: whatever then says that a record was malformed has decoded one."""

import json
from collections.abc import AsyncIterator

import pytest

from tests.leaks.requests import requests_for
from tests.leaks.test_routes import READS, ask
from tests.leaks.world import LeakWorld, open_leak_world
from tests.support.walking import walk
from vskill_platform.ledger.kv.collections import SKILLS, SUBMISSIONS
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.records import audience_of
from vskill_platform.web.routing import Endpoint

pytestmark = pytest.mark.anyio

#: Fields that no query looks at.
DAMAGED = {SKILLS.prefix: "versions", SUBMISSIONS.prefix: "history"}


@pytest.fixture(scope="module", params=["memory", "sqlite"])
async def damaged(request, tmp_path_factory) -> AsyncIterator[LeakWorld]:
    async with open_leak_world(tmp_path_factory.mktemp("damaged"), request.param) as world:
        assert await damage(world) >= 6
        yield world


async def damage(world: LeakWorld) -> int:
    """Make every record that only the team may read undecodable, but for its audience; how many there are."""
    kv = world.env.kv
    found: dict[str, bytes] = {}
    for collection in (SKILLS, SUBMISSIONS):
        async for page in iterate_pages(kv, collection.prefix, exclude=collection.exclude):
            found |= {entry.key: entry.value for entry in page.items if audience_of(entry) != "public"}
    for key, value in found.items():
        field = DAMAGED[next(prefix for prefix in DAMAGED if key.startswith(prefix))]
        await kv.put(key, json.dumps({**json.loads(value), field: 7}).encode())
    return len(found)


def malformed(world: LeakWorld) -> float:
    """How many records were left out of an answer because they could not be decoded."""
    samples = (one for metric in world.env.metrics.records_skipped.collect() for one in metric.samples)
    return sum(
        float(one.value)
        for one in samples
        if one.labels.get("reason") == "malformed" and one.name.endswith("_total")
    )


@pytest.mark.parametrize("asker", ["anonymous", "zoe by token"])
async def test_no_answer_decodes_a_record_outside_its_audiences(damaged, asker):
    async def check(endpoint: Endpoint) -> None:
        before = malformed(damaged)
        for asked in requests_for(endpoint, damaged.visible):
            answer = await ask(damaged, damaged.askers[asker], asked)
            assert answer.status_code < 500, (asked.label, answer.text)
            assert malformed(damaged) == before, asked.label

    await walk(READS, check)


@pytest.mark.parametrize("path", ["/api/v1/skills", "/api/v1/submissions"])
async def test_a_reader_who_may_read_them_meets_the_damaged_records(damaged, path):
    before = malformed(damaged)
    endpoint = next(one for one in READS if one.path == path)
    asked = next(iter(requests_for(endpoint, damaged.visible)))
    await ask(damaged, damaged.askers["mia by token"], asked)
    assert malformed(damaged) > before
