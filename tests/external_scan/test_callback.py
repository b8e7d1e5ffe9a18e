"""Remote analysers report by a signed call; one that never does is timed out, and a forged call is refused."""

import hashlib
import hmac
import json

import httpx2
import pytest

from tests.external_scan.conftest import NONE, published
from tests.support.dead_letters import list_dead_letters
from tests.support.envs import open_test_env, run_until_quiet
from vskill_core.errors import InvalidSettings
from vskill_core.findings import Severity, Verdict
from vskill_platform.domain.operation.task import TaskState
from vskill_platform.external_scan.callback import MOST_BODY_BYTES, TOLERANCE_S
from vskill_platform.external_scan.dispatch import provider_names, remote_secrets, request_scans
from vskill_platform.queue.health import queue_health
from vskill_platform.queue.recovery import recover_tasks
from vskill_platform.settings import Settings, load_settings
from vskill_platform.store.external_scans import ExternalStatus, get_external_scan, read_external_task
from vskill_platform.store.tasks import HeldTask, claim_task
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

SECRET, OLD = "a-secret-of-acme-now", "a-secret-of-acme-old"
HOUR_MS = 3_600_000


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    given = {**NONE, "external_scan_secrets": (f"acme={OLD}", f"acme={SECRET}", "other=another-secret-16")}
    async with open_test_env(request.param, tmp_path, **given) as env:
        yield env


@pytest.fixture
async def client(env):
    transport = httpx2.ASGITransport(create_app(env))
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as opened:
        yield opened


def body_of(digest: str, provider: str = "acme", **more) -> bytes:
    finding = {"ruleId": "X1", "severity": "critical", "file": "a.py", "line": 3, "message": "bad\x00\nthing"}
    report = {
        "digest": digest,
        "provider": provider,
        "version": "7.1",
        "status": "complete",
        "findings": [finding],
    }
    return json.dumps({**report, **more}).encode()


def headers(env, body: bytes, secret: str = SECRET, *, age_s: int = 0) -> dict[str, str]:
    """Made as the documents say, without our own code."""
    stamp = str(env.clock.now() // 1000 - age_s)
    digest = hmac.new(secret.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return {"x-vskill-timestamp": stamp, "x-vskill-signature": f"sha256={digest}"}


def path(digest: str, provider: str = "acme") -> str:
    return f"/api/v1/external-scans/{digest}/{provider}"


async def test_a_signed_report_is_stored_and_ends_the_task_in_one_commit(env, client):
    digest = await published(env)
    assert await provider_names() == ("acme", "other")
    await request_scans(digest)
    waiting = (await client.get(f"/api/v1/external-scans/{digest}")).json()
    assert [one["provider"] for one in waiting["waiting"]] == ["acme", "other"] and waiting["reports"] == []
    body = body_of(digest)
    answer = await client.post(path(digest), content=body, headers=headers(env, body))
    assert (answer.status_code, answer.json()["stored"]) == (200, True)
    report, task = await get_external_scan(digest, "acme"), await read_external_task(digest, "acme")
    assert report is not None and task is not None
    assert (report.version, report.verdict, report.critical) == ("7.1", Verdict.FAIL, 1)
    assert (report.findings[0].message, report.findings[0].severity) == ("bad thing", Severity.CRITICAL)
    assert task.state is TaskState.DONE
    shown = (await client.get(path(digest))).json()
    assert (shown["provider"], shown["verdict"], shown["endedAt"][-1]) == ("acme", "FAIL", "Z")
    assert SECRET not in json.dumps(shown)


async def test_the_old_secret_holds_while_it_is_listed_too(env, client):
    digest = await published(env)
    body = body_of(digest)
    assert (await client.post(path(digest), content=body, headers=headers(env, body, OLD))).status_code == 200


async def test_a_replay_is_harmless_and_an_older_report_does_not_replace_a_newer_one(env, client):
    digest = await published(env)
    first = body_of(digest)
    signed = headers(env, first)
    assert (await client.post(path(digest), content=first, headers=signed)).json()["stored"]
    entry = await env.kv.get(f"extscan:{digest}:acme")
    env.clock.advance(10_000)
    again = await client.post(path(digest), content=first, headers=signed)
    assert (again.status_code, again.json()["stored"]) == (200, False)
    assert await env.kv.get(f"extscan:{digest}:acme") == entry
    second = body_of(digest, findings=[])
    assert (await client.post(path(digest), content=second, headers=headers(env, second))).json()["stored"]
    assert not (await client.post(path(digest), content=first, headers=signed)).json()["stored"]
    report = await get_external_scan(digest, "acme")
    assert report is not None and report.verdict is Verdict.PASS


async def test_g_an_analyser_that_never_calls_back_is_timed_out_and_may_still_come_late(env, client):
    digest = await published(env)
    await request_scans(digest)
    await request_scans(digest)
    await run_until_quiet(env)
    task = await read_external_task(digest, "acme")
    assert task is not None and task.state is TaskState.ACTIVE
    env.clock.advance(HOUR_MS)
    await recover_tasks()
    await run_until_quiet(env)
    report, task = await get_external_scan(digest, "acme"), await read_external_task(digest, "acme")
    assert report is not None and task is not None
    assert (report.status, report.verdict, task.state) == (ExternalStatus.TIMED_OUT, None, TaskState.DONE)
    assert (await queue_health()).violations == () and await list_dead_letters() == []
    body = body_of(digest)
    assert (await client.post(path(digest), content=body, headers=headers(env, body))).json()["stored"]
    report = await get_external_scan(digest, "acme")
    assert report is not None and report.status is ExternalStatus.COMPLETE


async def test_a_call_in_the_moment_of_the_deadline_wins(env, client):
    digest = await published(env)
    await request_scans(digest)
    env.clock.advance(HOUR_MS)
    held = await claim_task("external_scan", f"{digest}:acme", 1)
    assert isinstance(held, HeldTask)
    body = body_of(digest)
    assert (await client.post(path(digest), content=body, headers=headers(env, body))).json()["stored"]
    task = await read_external_task(digest, "acme")
    assert task is not None and (task.state, task.claim) == (TaskState.DONE, None)


async def test_a_report_before_anybody_asked_is_kept_and_nobody_asks(env, client):
    digest = await published(env)
    body = body_of(digest)
    assert (await client.post(path(digest), content=body, headers=headers(env, body))).status_code == 200
    assert [task.subject["provider"] for task in await request_scans(digest)] == ["other"]
    (task,) = await request_scans(digest, again=True) and [await read_external_task(digest, "acme")]
    assert task is not None and task.state is TaskState.ACTIVE
    env.clock.advance(HOUR_MS)
    await run_until_quiet(env)
    report = await get_external_scan(digest, "acme")
    assert report is not None and report.status is ExternalStatus.COMPLETE


async def test_one_that_is_looked_at_too_early_waits_on(env):
    digest = await published(env)
    await request_scans(digest)
    await request_scans(digest, again=True)
    env.clock.advance(1_000)
    await run_until_quiet(env)
    task = await read_external_task(digest, "acme")
    assert task is not None and (task.state, task.attempts.failed) == (TaskState.ACTIVE, 0)


async def test_a_forged_old_or_misdirected_call_is_refused_and_nothing_is_stored(env, client):
    digest = await published(env)
    elsewhere = await published(env, "elsewhere")
    body = body_of(digest)
    good = headers(env, body)
    refused = [
        (path(digest), body, {}),
        (path(digest), body, {**good, "x-vskill-signature": "sha256=" + "0" * 64}),
        (
            path(digest),
            body,
            {**good, "x-vskill-signature": good["x-vskill-signature"].removeprefix("sha256=")},
        ),
        (path(digest), body, {**good, "x-vskill-timestamp": "now"}),
        (path(digest), body, {**good, "x-vskill-timestamp": "9" * 13}),
        (path(digest), body, {**good, "x-vskill-timestamp": str(int(good["x-vskill-timestamp"]) + 1)}),
        (path(digest), body + b" ", good),
        (path(digest), body, headers(env, body, age_s=TOLERANCE_S + 1)),
        (path(digest), body, headers(env, body, age_s=-TOLERANCE_S - 1)),
        (path(digest), body, headers(env, body, "another-secret-16")),
        (path(digest, "other"), body, good),
        (path(digest, "nobody"), body, good),
        (path(digest, "bandit"), body, good),
    ]
    for address, sent, given in refused:
        answer = await client.post(address, content=sent, headers=given)
        assert (answer.status_code, answer.json()["code"]) == (403, "not_permitted"), given
    misdirected = await client.post(path(elsewhere), content=body, headers=good)
    assert (misdirected.status_code, misdirected.json()["field"]) == (400, "digest")
    assert (
        await get_external_scan(digest, "acme") is None and await get_external_scan(elsewhere, "acme") is None
    )


@pytest.mark.parametrize("age_s", [TOLERANCE_S, -TOLERANCE_S])
async def test_clocks_may_differ_by_the_tolerance(env, client, age_s):
    digest = await published(env)
    body = body_of(digest)
    answer = await client.post(path(digest), content=body, headers=headers(env, body, age_s=age_s))
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "more",
    [
        {"status": "timed_out"},
        {"status": "fine"},
        {"findings": [{"ruleId": "x", "severity": "awful"}]},
        {"surprise": 1},
        {"provider": "other"},
    ],
)
async def test_a_genuine_call_with_a_body_that_is_no_report_is_a_400(env, client, more):
    digest = await published(env)
    body = body_of(digest, **more)
    answer = await client.post(path(digest), content=body, headers=headers(env, body))
    assert answer.status_code == 400 and answer.json()["fix"]


async def test_a_body_over_the_limit_content_we_do_not_have_and_no_digest_are_refused(env, client):
    digest = await published(env)
    large = b" " * (MOST_BODY_BYTES + 1)
    assert (await client.post(path(digest), content=large, headers=headers(env, large))).status_code == 413
    body = body_of("0" * 64)
    assert (await client.post(path("0" * 64), content=body, headers=headers(env, body))).status_code == 404
    assert (await client.get(path("0" * 64))).status_code == 404
    assert (await client.get("/api/v1/external-scans/nonsense")).status_code == 400
    assert (await client.post(path("nonsense"), content=b"", headers={})).status_code == 400


async def test_more_findings_than_are_kept_and_odd_lines_are_bounded(env, client):
    digest = await published(env)
    many = [{"ruleId": "x", "severity": "low", "line": -5}] * 1_000
    body = body_of(digest, findings=many)
    assert (await client.post(path(digest), content=body, headers=headers(env, body))).status_code == 200
    report = await get_external_scan(digest, "acme")
    assert report is not None
    assert (report.counts, len(report.findings), report.findings[0].line) == ({"low": 1_000}, 200, 0)


def test_E10_a_secret_is_named_long_enough_and_never_shown():
    settings = load_settings({"VSKILL_EXTERNAL_SCAN_SECRETS": f"acme={SECRET}"})
    assert remote_secrets(settings) == {"acme": (SECRET,)}
    assert SECRET not in repr(settings) and Settings().external_scan_secrets == ()
    for value in ("acme", "acme=short", "Acme=" + SECRET, "=" + SECRET):
        with pytest.raises(InvalidSettings) as caught:
            load_settings({"VSKILL_EXTERNAL_SCAN_SECRETS": value})
        assert SECRET not in caught.value.message and "VSKILL_EXTERNAL_SCAN_SECRETS" in caught.value.message
