"""The API's reads: exact counts, one submission with its history, and the health of the queue."""

import httpx2
import msgspec
import pytest

from tests.support.people import make_account, token_of
from vskill_core.content import SkillFile
from vskill_core.errors import StoreUnavailable
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.intake.submit import submit_upload
from vskill_platform.queue.control import pause_queue
from vskill_platform.store.claims import HeldClaim, claim_submission
from vskill_platform.store.people.accounts import Role
from vskill_platform.web.app import create_app
from vskill_platform.web.problems import RETRY_AFTER_S
from vskill_platform.worker_context import Env, run_with_worker_env

pytestmark = pytest.mark.anyio

SKILL = (SkillFile("SKILL.md", "100644", b"---\nname: tidy\ndescription: Tidies.\n---\n"),)


async def submitted(env: Env, slug: str = "tidy") -> Submission:
    done = await run_with_worker_env(env, lambda: submit_upload(SKILL, namespace="ada", slug=slug))
    assert done.submission is not None
    return done.submission


async def test_a_submission_is_shown_with_its_history(env, client):
    record = await submitted(env)
    shown = (await client.get(f"/api/v1/submissions/{record.id}")).json()
    assert (shown["id"], shown["state"], shown["category"], shown["run"]) == (
        record.id,
        "RECEIVED",
        "waiting",
        1,
    )
    assert (shown["skillName"], shown["skillPath"], shown["source"]) == ("tidy", "tidy", "cli")
    assert shown["createdAt"].endswith("Z")
    (event,) = shown["history"]
    assert (event["seq"], event["from"], event["to"]) == (1, None, "RECEIVED")
    assert event["reason"]


async def test_that_a_submission_is_held_is_shown_but_never_the_token(env, client):
    record = await submitted(env)
    held = await run_with_worker_env(env, lambda: claim_submission(record.id, 1))
    answer = await client.get(f"/api/v1/submissions/{record.id}")
    assert answer.json()["worker"] == "a worker"
    assert env.worker_id not in answer.text
    assert answer.json()["claimedUntil"].endswith("Z")
    assert isinstance(held, HeldClaim)
    assert held.record.claim is not None
    assert held.record.claim.token not in answer.text


async def test_a_submission_that_does_not_exist_is_a_404_that_names_it(client):
    answer = await client.get("/api/v1/submissions/sub_none")
    assert answer.status_code == 404
    assert (answer.json()["code"], answer.json()["submission"]) == ("not_found", "sub_none")


async def test_C13_counts_come_by_state_and_category_and_agree(env, client):
    for slug in ("one", "two", "three"):
        record = await submitted(env, slug)
    await run_with_worker_env(env, lambda: claim_submission(record.id, 1))
    stats = (await client.get("/api/v1/submissions/stats")).json()
    assert (stats["total"], stats["active"], stats["degraded"]) == (3, 3, False)
    assert (stats["byState"]["RECEIVED"], stats["byState"]["TIER1_SCANNING"]) == (2, 1)
    assert (stats["byCategory"]["waiting"], stats["byCategory"]["running"]) == (2, 1)
    assert sum(stats["byState"].values()) == sum(stats["byCategory"].values()) == 3


async def test_queue_health_is_empty_and_says_what_waits(env, client):
    await submitted(env)
    await run_with_worker_env(env, lambda: pause_queue(60_000, reason="upgrade", by="admin:ada"))
    health = (await client.get("/api/v1/queue/health")).json()
    assert (health["healthy"], health["violations"]) == (True, [])
    assert health["counts"]["byState"]["RECEIVED"] == 1
    assert health["oldestWaitingMs"] >= 0
    assert (health["pause"]["reason"], health["pause"]["until"][-1]) == ("upgrade", "Z")
    assert {job["name"] for job in health["jobs"]} >= {"recovery"}


async def test_queue_health_names_a_malformed_record_and_the_metric_counts_it(env, client):
    """Nobody knows whose it is, so only those who read everything are told which one."""
    await env.kv.put("sub:sub_bad", b"{not json")
    await make_account(env, "ada", Role.ADMIN)
    admin = {"authorization": f"Bearer {await token_of(env, 'ada', 'admin')}"}
    for headers, named in (({}, []), (admin, ["sub:sub_bad"])):
        health = (await client.get("/api/v1/queue/health", headers=headers)).json()
        assert health["healthy"] is False
        assert [one["key"] for one in health["violations"]] == named
    assert "vskill_queue_violations 1.0" in (await client.get("/metrics")).text


class AwayKV:
    """A store that cannot be reached."""

    def now(self) -> int:
        return 0

    async def _away(self, *args: object, **kwargs: object) -> None:
        raise StoreUnavailable("the store is away")

    get = select = count_by = _away


@pytest.mark.parametrize(
    "path", ["/api/v1/submissions/stats", "/api/v1/queue/health", "/api/v1/submissions/sub_1"]
)
async def test_C4_C7_a_store_that_is_away_is_a_503_and_never_an_empty_answer(env, path):
    app = create_app(msgspec.structs.replace(env, kv=AwayKV()))
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app), base_url="http://platform.test"
    ) as client:
        answer = await client.get(path)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == str(RETRY_AFTER_S)
    assert answer.json()["error"] == StoreUnavailable().message
    assert "the store is away" not in answer.text
