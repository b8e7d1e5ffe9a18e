"""A backup that an older release wrote restores into every engine of this one, and everything that the older release had
handed out is handed out unchanged: names, listing names, versions, archives, and what is said about blocks.

`tests/backups/README.md` says what is in the file and how its expectations may change.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.envs import active_env, run_until_quiet
from tests.support.handed_out import collect
from tests.support.scanners import structure_scanner
from tests.support.system_reads import get_submission
from vskill_platform.bootstrap import env_for
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.installation.backup import restore
from vskill_platform.queue.health import queue_health
from vskill_platform.queue.recovery import recover_stuck_submissions
from vskill_platform.settings import Settings
from vskill_platform.store.people.credentials import list_all_tokens
from vskill_platform.store.people.owners import list_owners
from vskill_platform.store.review.reports import list_reports
from vskill_platform.store.skills.collections import get_collection
from vskill_platform.store.telling.webhooks import list_webhooks
from vskill_platform.store.verdicts.suppressions import suppressed_rules
from vskill_platform.submission_store import count_submissions
from vskill_platform.web.app import create_app
from vskill_platform.worker_context import Env
from vskill_scan.reading.manifest import read_manifest

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parents[1] / "backups"
BACKUP = FOLDER / "release-0.3.0.tar"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "release-0.3.0.json").read_text("utf-8"))


@pytest.fixture(params=["sqlite", "postgresql"])
async def restored(request, new_store, tmp_path) -> AsyncIterator[Env]:
    settings = Settings(data_dir=str(tmp_path), store=await new_store(request.param), rate_limits="off")
    await restore(settings, BACKUP)
    async with env_for(settings) as env:
        scanner = structure_scanner(read_manifest, settings.known_bad_digests)
        with active_env(env, scanner=scanner) as active:
            yield active


@pytest.fixture
async def client(restored: Env) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(create_app(restored))
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as opened:
        yield opened


async def test_what_was_handed_out_is_handed_out_unchanged(client):
    expected = EXPECTED["handed out"]
    found = await collect(client, expected)
    assert found.keys() == expected.keys()
    for part, wanted in expected.items():
        assert found[part] == wanted, part


async def test_submissions_and_their_runs_are_as_they_were(client):
    for number, wanted in EXPECTED["submissions"].items():
        record = await get_submission(number)
        runs = (await client.get(f"/api/v1/submissions/{number}/runs")).json()["runs"]
        assert [record.state.value, record.run, [one["run"] for one in runs]] == wanted
    assert (await count_submissions(audiences=EVERYTHING)).total == len(EXPECTED["submissions"])


async def test_the_records_of_people_are_as_they_were(restored: Env):
    expected = EXPECTED["people"]
    reports = (await list_reports(None)).items
    assert {one.skill: one.status.value for one in reports} == expected["reports"]
    owned = await list_owners()
    assert {one.repo: [owner.account for owner in one.owners] for one in owned} == expected["owners"]
    assert sorted([one.account, one.name] for one in await list_all_tokens()) == expected["tokens"]
    assert list((await get_collection("starter", audiences=EVERYTHING)).skills) == expected["collection"]
    assert [list(one.events) for one in await list_webhooks()] == expected["webhooks"]
    for digest, rules in expected["suppressions"].items():
        assert sorted(await suppressed_rules(digest)) == rules
    letters = (await restored.broker.dead_letters()).items
    assert [[one.key, one.reason] for one in letters] == expected["dead letters"]


async def test_the_registry_goes_on_from_there(restored: Env):
    """What waited for a worker is verified, everything else stays as it was, and nothing is stuck."""
    await recover_stuck_submissions()
    await run_until_quiet(restored)
    for number, (state, _, _) in EXPECTED["submissions"].items():
        found = (await get_submission(number)).state.value
        assert found == ("PUBLISHED" if state == "RECEIVED" else state)
    assert (await queue_health()).violations == ()
