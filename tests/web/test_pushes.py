"""Push webhooks of four forges: what each sends asks for a check, and everything else is refused by a sentence. The body of
GitHub's push is cut from `api.github.com/index.json` of npm `@octokit/webhooks-examples` 7.6.1 (MIT), with a branch
for its tag; the others are made by the forges' documentation."""

import base64
import hashlib
import hmac
import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.git_server import git_server, skill_md
from tests.support.owners import set_owners
from tests.support.people import browser, csrf_in, make_account, signed_in, token_of
from vskill_core.identity import normalise
from vskill_platform.domain.people.token import SCOPES_OF
from vskill_platform.domain.skills.forges import FORGES, forge_of
from vskill_platform.notifications.signature import sign
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.stages.push import MOST_BODY_BYTES, UNSIGNED
from vskill_platform.stages.repo_check import REPO_CHECK
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.owners import Owner
from vskill_platform.store.skills.push_hooks import MOST_DELIVERIES, UNSIGNED_EVERY_MS
from vskill_platform.store.tasks import read_task
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

HOSTS = {
    "github": "github.com",
    "gitlab": "gitlab.com",
    "gitea": "codeberg.org",
    "bitbucket": "bitbucket.org",
}
NAME = "Codertocat/Hello-World"
GITHUB = {
    "ref": "refs/heads/main",
    "before": "0" * 40,
    "after": "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
    "repository": {
        "id": 186853002,
        "full_name": NAME,
        "clone_url": f"https://github.com/{NAME}.git",
        "html_url": f"https://github.com/{NAME}",
        "default_branch": "main",
    },
    "deleted": False,
    "forced": False,
}
BODIES: dict[str, Any] = {
    "github": GITHUB,
    "gitlab": {
        "object_kind": "push",
        "ref": "refs/heads/main",
        "project": {"id": 15, "git_http_url": f"https://gitlab.com/{NAME}.git", "default_branch": "main"},
    },
    "gitea": {
        "ref": "refs/heads/main",
        "repository": {"id": 140, "clone_url": f"https://codeberg.org/{NAME}.git"},
    },
    "bitbucket": {
        "push": {"changes": [{"new": {"type": "branch", "name": "main"}, "old": None}, {"new": None}]},
        "repository": {"links": {"html": {"href": f"https://bitbucket.org/{NAME}"}}},
    },
}


def hexed(secret: str, body: bytes) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def headers_of(forge: str, secret: str, body: bytes, event: str = "", number: str = "d-1") -> dict[str, str]:
    """What the forge sends beside the body."""
    signed = hexed(secret, body)
    return {
        "github": {
            "x-github-event": event or "push",
            "x-github-delivery": number,
            "x-hub-signature-256": f"sha256={signed}",
        },
        "gitlab": {
            "x-gitlab-event": event or "Push Hook",
            "idempotency-key": number,
            "x-gitlab-token": secret,
        },
        # Gitea sends the names of GitHub and Gogs beside its own.
        "gitea": {
            "x-gitea-event": event or "push",
            "x-gitea-delivery": number,
            "x-gitea-signature": signed,
            "x-github-event": event or "push",
            "x-github-delivery": number,
            "x-hub-signature-256": f"sha256={signed}",
        },
        "bitbucket": {
            "x-event-key": event or "repo:push",
            "x-request-uuid": number,
            "x-hub-signature": f"sha256={signed}",
        },
    }[forge]


class World(SimpleNamespace):
    """A followed repository at each forge, of the maintainer olga."""

    async def hook(self, forge: str, **chosen: str) -> tuple[str, str]:
        """The address and the secret of the webhook of a forge's repository, once its first check is over."""
        sent = {"repoUrl": f"https://{HOSTS[forge]}/{NAME}", "reason": "a test", **chosen}
        assert (await self.client.post("/api/v1/follows", json=sent, headers=self.olga)).status_code == 201
        await self.work()
        made = await self.client.post("/api/v1/follows/webhook", json=sent, headers=self.olga)
        assert made.status_code == 201, made.text
        return made.json()["address"], made.json()["secret"]

    async def push(self, address: str, body: bytes, headers: dict[str, str]):
        return await self.client.post(
            address, content=body, headers={"content-type": "application/json", **headers}
        )

    async def deliveries(self, forge: str) -> Any:
        asked = {"repoUrl": f"https://{HOSTS[forge]}/{NAME}"}
        shown = await self.client.get("/api/v1/follows/webhook", params=asked, headers=self.olga)
        return shown.json()["deliveries"]

    async def checks(self, forge: str) -> int:
        """How many checks were begun."""
        with active_env(self.env):
            task, _ = await read_task(REPO_CHECK, normalise(f"https://{HOSTS[forge]}/{NAME}").repo_key)
        return 0 if task is None else task.run

    async def work(self) -> None:
        with active_env(self.env):
            await run_until_quiet(self.env)


@pytest.fixture
async def world(tmp_path):
    with git_server(tmp_path / "git") as server:
        repo = server.repo(NAME, {"a/SKILL.md": skill_md("a")})
        rewrites = tuple(server.rewrite(host) for host in HOSTS.values())
        settings: dict[str, Any] = {"source_rewrites": rewrites, "allowed_hosts": tuple(HOSTS.values())}
        async with open_test_env("memory", tmp_path, active=False, **settings) as env:
            await make_account(env, "olga", Role.AUTHOR)
            for host in HOSTS.values():
                await set_owners(env, normalise(f"https://{host}/{NAME}"), Owner("olga", 1, "file"))
            with active_env(env):
                olga = await token_of(env, "olga", *SCOPES_OF[Role.AUTHOR], days=30)
            async with browser(create_app(env)) as client:
                yield World(
                    env=env, repo=repo, client=client, olga={"authorization": f"Bearer {olga}"}, server=server
                )


@pytest.mark.parametrize("forge", list(HOSTS))
async def test_a_signed_push_asks_for_a_check_and_once_only(world, forge):
    address, secret = await world.hook(forge)
    before, body = await world.checks(forge), json.dumps(BODIES[forge]).encode()
    taken = await world.push(address, body, headers_of(forge, secret, body))
    assert taken.json() == {"outcome": "checked", "reason": ""}, taken.text
    assert await world.checks(forge) == before + 1
    await world.work()
    again = await world.push(address, body, headers_of(forge, secret, body))
    assert again.status_code == 200 and again.json()["outcome"] == "repeated"
    assert await world.checks(forge) == before + 1
    (one,) = await world.deliveries(forge)
    assert (one["forge"], one["outcome"], one["id"]) == (forge, "checked", "d-1")
    metrics = world.env.metrics.push_deliveries
    assert (
        metrics.labels(forge, "checked")._value.get() == metrics.labels(forge, "repeated")._value.get() == 1
    )


@pytest.mark.parametrize("is_lost", [False, True], ids=["pushed", "webhook lost"])
async def test_a_push_lists_updates_and_marks_the_skills_of_a_monorepo(world, is_lost):
    """A push adds two skills to 40, changes one and deletes one. Where the delivery is lost, the daily check finds the same."""
    files = {f"skills/s{number:02}/SKILL.md": skill_md(f"s{number:02}") for number in range(40)}
    world.repo.commit(files)
    address, secret = await world.hook("github")
    del files["skills/s01/SKILL.md"]
    changed = {f"skills/{name}/SKILL.md": skill_md(name, "New.") for name in ("s00", "new1", "new2")}
    head = world.repo.commit({**files, **changed})
    world.env.clock.advance(24 * 3_600_000 if is_lost else 60_000)
    if is_lost:
        job = next(job for job in JOBS if job.name == "repositories")
        with active_env(world.env):
            done = await run_job(job, forced=True)
        assert done is not None and not done.error
    else:
        body = json.dumps(BODIES["github"]).encode()
        taken = await world.push(address, body, headers_of("github", secret, body))
        assert taken.json()["outcome"] == "checked", taken.text
    await world.work()
    asked = {"repoUrl": f"https://github.com/{NAME}"}
    shown = (await world.client.get("/api/v1/follows/show", params=asked, headers=world.olga)).json()
    assert shown["found"] == f"2 new, 1 changed, 1 gone at {head[:12]}", shown
    listed = await world.client.get("/api/v1/skills", params={"owner": "Codertocat", "limit": 100})
    assert {"new1", "new2"} <= {one["name"].rpartition("/")[2] for one in listed.json()["skills"]}, (
        listed.text
    )


@pytest.mark.parametrize("forge", list(HOSTS))
async def test_a_wrong_signature_and_an_unknown_webhook_look_the_same(world, forge):
    address, secret = await world.hook(forge)
    before, body = await world.checks(forge), json.dumps(BODIES[forge]).encode()
    lies = [
        headers_of(forge, "whsec_AAAA", body),
        headers_of(forge, secret, b"{}") | ({"x-gitlab-token": secret[:-1]} if forge == "gitlab" else {}),
        {
            **headers_of(forge, secret, body),
            **dict.fromkeys(
                ("x-hub-signature", "x-hub-signature-256", "x-gitea-signature", "x-gitlab-token"), "é"
            ),
        },
        {},
    ]
    for headers in lies:
        plain = {name: value.encode() for name, value in headers.items()}
        refused = await world.push(address, body, plain)
        unknown = await world.push(f"{address}x", body, plain)
        assert refused.status_code == unknown.status_code == 400
        told = [{**one.json(), "requestId": "", "instance": ""} for one in (refused, unknown)]
        assert told[0] == told[1] and told[0]["detail"].startswith(UNSIGNED.rstrip("."))
    assert await world.checks(forge) == before
    (one,) = await world.deliveries(forge)
    assert (one["id"], one["outcome"], one["reason"]) == ("", "refused", UNSIGNED)


async def test_strangers_push_no_delivery_off_the_page_and_write_once_a_minute(world):
    address, secret = await world.hook("github")
    body = json.dumps(GITHUB).encode()
    await world.push(address, body, headers_of("github", secret, body))
    for _ in range(MOST_DELIVERIES + 1):
        await world.push(address, body, headers_of("github", "wrong", body))
    first = await world.deliveries("github")
    assert [one["outcome"] for one in first] == ["refused", "checked"]
    world.env.clock.advance(UNSIGNED_EVERY_MS)
    await world.push(address, body, headers_of("github", "wrong", body))
    second = await world.deliveries("github")
    assert len(second) == 2 and second[0]["receivedAt"] > first[0]["receivedAt"]


async def test_gitlabs_newer_signing_is_checked_and_not_replaced_by_the_token(world):
    address, secret = await world.hook("gitlab")
    body = json.dumps(BODIES["gitlab"]).encode()
    event = {"x-gitlab-event": "Push Hook"}
    signed = sign(secret, "m-1", world.env.kv.now() // 1000, body)
    assert (await world.push(address, body, event | signed)).json()["outcome"] == "checked"
    wrong = base64.b64encode(b"0" * 32).decode()
    lie = event | signed | {"webhook-signature": f"v1,{wrong}", "x-gitlab-token": secret}
    assert (await world.push(address, body, lie)).status_code == 400


@pytest.mark.parametrize(
    ("body", "event", "status", "outcome", "sentence"),
    [
        (json.dumps(GITHUB), "ping", 200, "ignored", "The forge tries it out."),
        (json.dumps(GITHUB), "issues", 200, "ignored", "issues is no push."),
        (json.dumps({**GITHUB, "ref": "refs/heads/draft"}), "push", 200, "ignored", "It is about draft, which is not followed."),
        (json.dumps({**GITHUB, "ref": "refs/tags/v1"}), "push", 200, "ignored", "It is about no branch, which"),
        (json.dumps({**GITHUB, "repository": {"clone_url": "https://github.com/other/x"}}), "push", 400, "refused", "It is about https://github.com/other/x, and this webhook is for"),
        (json.dumps({**GITHUB, "repository": {"clone_url": "file:///etc/passwd"}}), "push", 400, "refused", ""),
        (json.dumps({**GITHUB, "repository": 7}), "push", 400, "refused", "names no repository (repository.clone_url)"),
        ("payload=%7B%7D", "push", 400, "refused", "The delivery is no JSON"),
        ("[" * 100_000, "push", 400, "refused", "The delivery is no JSON"),
    ],
)  # fmt: skip
async def test_what_is_signed_and_no_push_of_what_is_followed_says_why(
    world, body, event, status, outcome, sentence
):
    address, secret = await world.hook("github", branch="main")
    before, sent = await world.checks("github"), body.encode()
    answer = await world.push(address, sent, headers_of("github", secret, sent, event))
    assert answer.status_code == status and sentence in answer.text, answer.text
    (one,) = await world.deliveries("github")
    assert one["outcome"] == outcome and sentence in one["reason"]
    assert await world.checks("github") == before


async def test_a_giant_body_is_refused_before_it_is_read_whole(world):
    address, secret = await world.hook("github")
    giant = b"x" * (MOST_BODY_BYTES + 1)
    refused = await world.push(address, giant, headers_of("github", secret, giant))
    assert refused.status_code == 413 and str(MOST_BODY_BYTES) in refused.text


async def test_a_new_secret_ends_the_old_one_and_unfollowing_both(world):
    address, secret = await world.hook("github")
    sent, body = {"repoUrl": f"https://github.com/{NAME}", "reason": "leaked"}, json.dumps(GITHUB).encode()
    made = await world.client.post("/api/v1/follows/webhook", json=sent, headers=world.olga)
    assert (await world.push(address, body, headers_of("github", secret, body))).status_code == 400
    address, secret = made.json()["address"], made.json()["secret"]
    assert (await world.push(address, body, headers_of("github", secret, body))).status_code == 200
    shown = await world.client.get("/api/v1/follows/webhook", params=sent, headers=world.olga)
    assert secret not in shown.text
    await world.client.post("/api/v1/follows/remove", json=sent, headers=world.olga)
    assert (await world.push(address, body, headers_of("github", secret, body))).status_code == 400


async def test_the_page_makes_it_shows_the_secret_once_and_the_last_deliveries(world):
    await world.hook("github")
    url = f"/follows?repoUrl=https://github.com/{NAME}"
    async with signed_in(create_app(world.env), world.env, "olga", Role.AUTHOR) as olga:
        page = (await olga.get(url)).text
        assert "The forge has sent nothing yet" in page
        sent = {"csrf": csrf_in(page), "repo_url": f"https://github.com/{NAME}", "reason": "a new one"}
        made = (await olga.client.post("/follows/webhook", data=sent)).text
        secret = "whsec_" + made.split('data-copy="whsec_')[1].split('"')[0]
        address = "/api/v1/follows/pushes/" + made.split("/api/v1/follows/pushes/")[1][:26]
        body = json.dumps({**GITHUB, "ref": "refs/tags/v1"}).encode()
        await world.push(address, body, headers_of("github", secret, body))
        elsewhere = json.dumps({**GITHUB, "repository": {"clone_url": "https://github.com/other/x"}}).encode()
        await world.push(address, elsewhere, headers_of("github", secret, elsewhere, number="d-2"))
        await world.push(address, body, headers_of("github", "wrong", body))
        page = (await olga.get(url)).text
        for reason in ("It is about no branch", "It is about https://github.com/other/x", UNSIGNED):
            assert reason in page, reason
        assert "whsec_" not in page and page.count(">refused<") == 2


def test_every_forge_is_found_by_its_own_header():
    assert {one.name for one in FORGES} == set(HOSTS)
    for forge in HOSTS:
        found = forge_of(headers_of(forge, "x", b""))
        assert found is not None and found.name == forge
