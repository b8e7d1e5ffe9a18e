"""A submission that one may not read answers as one that does not exist, after the same reads; lists, searches, counts,
places in the line, health and statistics hold what their reader may read and nothing else."""

from collections import Counter

import httpx2
import msgspec
import pytest

from tests.support.acting import create_token
from tests.support.envs import make_submission, open_test_env
from tests.support.namespaces import manage, set_mode
from tests.support.probe import Probe
from vskill_core.identity import Identity, normalise, submission_id
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import RegistryMode, Visibility
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.store.people.accounts import Role, create_user
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

API = "/api/v1/submissions"
ACME = "ns:acme"
#: Every address that names one submission.
READS = (
    API + "/{id}",
    API + "/{id}/runs",
    API + "/{id}/findings",
    API + "/{id}/findings?run=1",
    API + "/{id}/findings?run=7",
    API + "/{id}/sarif",
    "/submissions/{id}",
    "/submissions/{id}?run=1",
)
WRITES = (API + "/{id}/cancel", API + "/{id}/rerun", API + "/{id}/appeal")
OWN_HEADERS = {"x-request-id", "ratelimit", "content-length"}


def place(name: str, owner: str = "acme") -> Identity:
    return normalise(f"https://github.com/{owner}/tools", name)


HIDDEN, ABSENT = submission_id(place("canary")), submission_id(place("nothing"))


class World(msgspec.Struct, frozen=True):
    """A registry with hidden and public submissions, and the headers of those who ask."""

    client: httpx2.AsyncClient
    probe: Probe
    headers: dict[str, dict[str, str]]

    async def ask(self, path: str, who: str, method: str = "GET", **options) -> httpx2.Response:
        self.probe.start()
        return await self.client.request(method, path, headers=self.headers[who], **options)

    async def json(self, path: str, who: str):
        answer = await self.ask(path, who)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def put(self, name: str, owner: str = "acme", **changes) -> Submission:
        audience = changes.pop("audience", ACME if owner == "acme" else "public")
        record = make_submission(name, identity=place(name, owner), **changes)
        record = msgspec.structs.replace(record, audience=audience)
        await self.probe.kv.put(record.key, msgspec.json.encode(record))
        return record


@pytest.fixture
async def world(tmp_path):
    async with open_test_env("sqlite", tmp_path, clock=SystemClock(), rate_limits="off") as opened:
        probe = Probe(opened.kv, opened.blobs)
        env = msgspec.structs.replace(opened, kv=probe.kv, blobs=probe.blobs)
        await manage(env, "acme", Visibility.TEAM, "user:ann")
        headers: dict[str, dict[str, str]] = {"nobody": {}}
        for name, role in (("ann", Role.AUTHOR), ("bob", Role.AUTHOR), ("eve", Role.REVIEWER)):
            await create_user(name, role, by="system", reason="a test")
            scopes = ["read", "submit", *(["review"] if role is Role.REVIEWER else [])]
            secret = (await create_token(name, "test", scopes, by="system")).secret
            headers[name] = {"authorization": f"Bearer {secret}"}
        transport = httpx2.ASGITransport(create_app(env))
        async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
            made = World(client, probe, headers)
            await made.put("canary", state=State.NEEDS_REVIEW, submitter="ann", digest="d" * 64)
            for who in headers:
                # The first use of a token is noted, and the first request reads who may read what.
                await made.ask(API, who)
            yield made


def facts(answer: httpx2.Response, asked: str) -> tuple[int, dict[str, str], str]:
    headers = {name: value for name, value in answer.headers.items() if name not in OWN_HEADERS}
    text = answer.text.replace(asked, "ID").replace(answer.headers["x-request-id"], "REQUEST")
    return answer.status_code, headers, text


@pytest.mark.parametrize("who", ["nobody", "bob"])
@pytest.mark.parametrize("path", READS)
async def test_a_hidden_submission_answers_as_an_absent_one_after_the_same_reads(world, path, who):
    answers: list[tuple[tuple[int, dict[str, str], str], Counter[str]]] = []
    for one in (HIDDEN, ABSENT):
        answer = await world.ask(path.format(id=one), who)
        answers.append((facts(answer, one), world.probe.cost))
    assert answers[0] == answers[1]
    assert answers[0][0][0] == 404
    for reader in ("ann", "eve"):
        # There is no run 7, and nothing was scanned: a member is told so.
        expected = 404 if path.endswith(("run=7", "sarif")) else 200
        assert (await world.ask(path.format(id=HIDDEN), reader)).status_code == expected


@pytest.mark.parametrize("path", WRITES)
async def test_what_changes_a_submission_finds_no_hidden_one(world, path):
    answers = []
    for one in (HIDDEN, ABSENT):
        answer = await world.ask(path.format(id=one), "bob", "POST", json={"reason": "mine"})
        answers.append((facts(answer, one), world.probe.cost))
    assert answers[0] == answers[1]
    assert answers[0][0][0] == 404
    assert (
        await world.ask(path.format(id=HIDDEN), "ann", "POST", json={"reason": "mine"})
    ).status_code != 404


async def test_a_malformed_record_that_is_hidden_is_absent_too(world):
    """It is not decoded before it is known to be for the reader."""
    await world.probe.kv.put(keys.sub(HIDDEN), b'{"audience":"ns:acme","id":7}')
    assert (await world.ask(f"{API}/{HIDDEN}", "bob")).status_code == 404
    assert (await world.ask(f"{API}/{HIDDEN}", "ann")).status_code == 500


async def test_an_old_record_without_an_audience_is_public(world):
    record = await world.put("old", "other")
    stored = msgspec.json.decode(msgspec.json.encode(record))
    stored.pop("audience", None)
    await world.probe.kv.put(record.key, msgspec.json.encode(stored))
    assert (await world.json(f"{API}/{record.id}", "nobody"))["skillName"] == "old"


async def test_an_earlier_run_is_as_readable_as_its_submission(world):
    """Whatever the audience of a run was when it ended."""
    record = await world.put("again", "other", run=2)
    await world.probe.kv.put(
        keys.subrun(record.id, "1"),
        msgspec.json.encode(msgspec.structs.replace(record, run=1, audience=ACME)),
    )
    assert (await world.ask(f"{API}/{record.id}/findings?run=1", "nobody")).status_code == 200
    public = msgspec.structs.replace(record, id=HIDDEN, run=1, audience="public")
    await world.probe.kv.put(keys.subrun(HIDDEN, "1"), msgspec.json.encode(public))
    await world.put("canary", run=2)
    assert (await world.ask(f"{API}/{HIDDEN}/findings?run=1", "nobody")).status_code == 404


async def test_lists_have_no_holes_and_name_nothing_hidden(world):
    for number in range(12):
        await world.put(f"canary-{number}", at=number)
        await world.put(f"open-{number}", "other", at=number)
    for who in ("nobody", "bob"):
        seen: list[str] = []
        after = ""
        while True:
            page = await world.json(f"{API}?limit=5{after}", who)
            seen += [one["skillName"] for one in page["submissions"]]
            if page["after"] is None:
                break
            assert len(page["submissions"]) == 5
            after = f"&after={page['after']}"
        assert sorted(seen) == sorted(f"open-{number}" for number in range(12))
        assert (await world.json(f"{API}?q=canary", who))["submissions"] == []
        page = await world.ask("/queue", who)
        assert "canary" not in page.text and "open-11" in page.text
    assert len((await world.json(f"{API}?q=canary&limit=50", "ann"))["submissions"]) == 13
    assert len((await world.json(f"{API}?limit=50", "eve"))["submissions"]) == 25


async def test_ones_own_list_holds_what_one_may_still_read(world):
    await world.put("mine", "other", submitter="ann")
    own = await world.json(f"{API}?mine=true", "ann")
    assert {one["skillName"] for one in own["submissions"]} == {"canary", "mine"}
    await manage(world_env(world), "acme", Visibility.TEAM)
    own = await world.json(f"{API}?mine=true", "ann")
    assert [one["skillName"] for one in own["submissions"]] == ["mine"]
    assert (await world.ask(f"{API}/{HIDDEN}", "ann")).status_code == 404


async def test_counts_health_and_statistics_tell_nothing_about_what_is_hidden(world):
    """The same answers whether or not the hidden submissions are there; a member's hold them."""
    await world.put("open", "other", state=State.NEEDS_REVIEW)
    now = world.probe.kv.now()
    paths = (f"{API}/stats", "/api/v1/queue/stats", "/api/v1/queue/health")
    before = {path: without_time(await world.json(path, "bob")) for path in paths}
    member = {path: without_time(await world.json(path, "ann")) for path in paths}
    for number in range(3):
        await world.put(f"canary-{number}", at=now - 60_000 * number)
        await world.put(f"done-{number}", state=State.PUBLISHED, at=now - 1_000)
    for path in paths:
        assert without_time(await world.json(path, "bob")) == before[path], path
        assert without_time(await world.json(path, "ann")) != member[path], path
    counts = (await world.json(f"{API}/stats", "ann"))["byState"]
    assert (counts["RECEIVED"], counts["PUBLISHED"], counts["NEEDS_REVIEW"]) == (3, 3, 2)


def without_time(answer: dict) -> dict:
    """Jobs never ran here, and are the same for all."""
    return {name: value for name, value in answer.items() if name not in {"at", "jobs"}}


async def test_places_in_the_line_count_what_the_reader_may_read(world):
    now = world.probe.kv.now()
    hidden = [await world.put(f"canary-{number}", at=now - 10_000 + number) for number in range(3)]
    record = await world.put("open", "other", at=now - 1_000)
    for who, expected in (("nobody", 1), ("bob", 1), ("ann", 4), ("eve", 4)):
        assert (await world.json(f"{API}/{record.id}", who))["position"]["place"] == expected
        ids = f"{record.id},{hidden[0].id},{ABSENT}"
        answer = await world.json(f"{API}/positions?ids={ids}", who)
        assert [one["id"] for one in answer["positions"]] == [record.id, hidden[0].id][: 1 + (expected > 1)]
        assert answer["waiting"] == expected


async def test_a_reviewer_sees_everything_that_waits(world):
    await world.put("open", "other", state=State.NEEDS_REVIEW)
    waiting = await world.json("/api/v1/review", "eve")
    assert {one["skillName"] for one in waiting["items"]} == {"canary", "open"}
    assert waiting["total"] == 2


async def test_a_violation_is_named_to_who_may_read_its_record(world):
    """That the queue is not healthy is said to everybody."""
    broken = await world.put("broken", next_attempt_at=None)
    for who, expected in (("nobody", []), ("bob", []), ("ann", [broken.key]), ("eve", [broken.key])):
        health = await world.json("/api/v1/queue/health", who)
        assert [one["key"] for one in health["violations"]] == expected
        assert health["healthy"] is False


async def test_an_internal_registry_counts_nothing_for_strangers(world):
    await world.put("open", "other")
    await set_mode(world_env(world), RegistryMode.INTERNAL)
    assert (await world.ask(f"{API}/stats", "nobody")).status_code == 401
    assert (await world.json(f"{API}/stats", "bob"))["total"] == 1


def world_env(world: World):
    from vskill_platform.worker_context import require_env  # noqa: PLC0415 - the environment that the fixture opened

    return msgspec.structs.replace(require_env(), kv=world.probe.kv)
