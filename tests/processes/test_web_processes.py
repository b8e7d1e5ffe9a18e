"""`serve --web 2`: two processes answer as one. What one of them has written the other one knows at the next request,
what is counted is counted once, and both are replaced without a refused request."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from tests.actions.rights_world import RightsWorld, open_rights_world
from tests.actions.test_rights import BY_NAME, MATRIX, may, may_not
from tests.leaks.requests import requests_for
from tests.leaks.test_routes import READS, leaks_in, written
from tests.leaks.world import HIDDEN_OWNER, open_leak_world
from tests.processes.workers import WorkerProcess, until, workers_on
from tests.support.envs import active_env, make_submission, put_record
from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_S
from tests.support.people import PASSWORD, csrf_in, make_account, token_of
from tests.support.role_processes import answered_by, webs_of
from tests.support.shelf import Shelf, open_shelf
from tests.support.streams import Events, listening
from vskill_client.caller import remote_caller
from vskill_platform.actions.action import Action
from vskill_platform.actions.people.namespace_policy import (
    CHANGE_VISIBILITY,
    MAKE_PUBLIC,
    ChangeVisibility,
    ExplainedNamespace,
)
from vskill_platform.actions.people.tokens import (
    CREATE_OWN_TOKEN,
    REVOKE_OWN_TOKEN,
    CreateOwnToken,
    RevokeOwnToken,
)
from vskill_platform.actions.recall.takedowns import RESTORE, TAKE_DOWN, RestoreSkill, TakeDownSkill
from vskill_platform.actions.submissions.submissions import CANCEL, CancelSubmission
from vskill_platform.domain.people.namespace import Visibility
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.domain.telling.notification import Notification, Topic
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.telling.notifications import tell

pytestmark = pytest.mark.anyio


class TwoWebs:
    """A server with two web processes, and ways to ask each of them."""

    def __init__(self, process: WorkerProcess, address: str) -> None:
        self.process = process
        self.address = address

    @property
    def webs(self) -> list[int]:
        return webs_of(self.process.pid)

    async def ask(self, web: int, method: str, path: str, **options) -> httpx2.Response:
        """A request on a connection of its own, which this process answers."""
        with answered_by(self.process.pid, web):
            async with httpx2.AsyncClient(base_url=self.address, timeout=PATIENCE_S) as client:
                return await client.request(method, path, **options)

    async def act(self, web: int, token: str, action: Action[Any, Any], request: msgspec.Struct) -> Any:
        """An action of an account, done by this process."""
        with answered_by(self.process.pid, web):
            async with remote_caller(self.address, token) as caller:
                return await caller.call(action, request)

    async def of_both(self, path: str, **options) -> list[httpx2.Response]:
        return [await self.ask(web, "GET", path, **options) for web in self.webs]

    async def counted(self, sample: str) -> float:
        async with httpx2.AsyncClient(base_url=self.address, timeout=PATIENCE_S) as client:
            answer = await client.get("/metrics")
        assert answer.status_code == 200, answer.text
        lines = [line for line in answer.text.splitlines() if line.startswith(f"{sample} ")]
        return float(lines[0].split()[-1]) if lines else 0.0

    async def until_both_answer(self) -> None:
        """Each has started: a process that stands still before it accepts would be waited for in vain."""

        async def both() -> bool:
            webs = self.webs
            return (
                len(webs) == 2
                and await self.counted('vskill_http_requests_total{route="/metrics",status="200"}') > 0
            )

        await until(both, PATIENCE_S, "there are no two web processes")
        for web in self.webs:
            assert (await self.ask(web, "GET", "/healthz")).status_code == 200


@asynccontextmanager
async def two_webs(
    settings: Settings, folder: Path, *options: str, **variables: str
) -> AsyncIterator[TwoWebs]:
    given = {"VSKILL_RATE_LIMITS": "off", "VSKILL_PORT": "0", "COLUMNS": "200", **variables}
    folder.mkdir()
    async with workers_on(settings, folder, **given) as processes:
        process = await processes.start(("-m", "vskill_platform", "serve", "--web", "2", *options))
        await process.until_up()
        (line,) = (line for line in process.log.read_text("utf-8").splitlines() if "Address" in line)
        server = TwoWebs(process, next(word for word in line.split() if word.startswith("http://")))
        await server.until_both_answer()
        yield server


@pytest.fixture
async def shelf(tmp_path) -> AsyncIterator[Shelf]:
    async with open_shelf(tmp_path, "sqlite") as opened:
        yield opened


async def test_both_answer_and_are_counted_as_one_also_after_one_was_killed(shelf, tmp_path):
    sample = 'vskill_http_requests_total{route="/healthz",status="200"}'
    async with two_webs(shelf.env.settings, tmp_path / "serving") as server:
        before = await server.counted(sample)
        first, second = server.webs
        answers = [await server.ask(web, "GET", "/healthz") for web in (first, second, second)]
        makers = [answer.headers["x-request-id"].partition("-")[0] for answer in answers]
        assert makers[0] != makers[1] == makers[2]
        # Whoever is asked says the same.
        assert [await server.counted(sample) for _ in range(4)] == [before + 3] * 4
        async with listening(f"{server.address}/api/v1/submissions/stream") as one:
            await one.until_connected()
            async with listening(f"{server.address}/api/v1/submissions/stream") as other:
                await other.until_connected()
                assert await server.counted("vskill_streams_open") == 2
        os.kill(first, signal.SIGKILL)

        async def replaced() -> bool:
            return len(server.webs) == 2 and first not in server.webs

        await until(replaced, PATIENCE_S, "the killed one is not replaced")
        assert await server.counted(sample) >= before + 3
        assert await server.process.terminate() == 0
        assert "Traceback" not in server.process.log.read_text("utf-8")


async def test_the_worker_beside_them_is_counted_too(shelf, tmp_path):
    async with two_webs(shelf.env.settings, tmp_path / "serving") as server:
        assert await server.counted("vskill_workers_alive") == 1
        ready = await server.of_both("/readyz")
        assert [answer.status_code for answer in ready] == [200, 200]


async def test_requests_that_write_are_counted_for_both(shelf, tmp_path):
    """Ten submissions an hour from one address, whoever answers; an account has its own thirty."""
    bad = {"repoUrl": "no address"}
    async with two_webs(
        shelf.env.settings, tmp_path / "serving", "--web-only", VSKILL_RATE_LIMITS="on"
    ) as server:
        turns = [server.webs[number % 2] for number in range(12)]
        asked = [await server.ask(web, "POST", "/api/v1/submissions", json=bad) for web in turns]
        assert [answer.status_code for answer in asked[:10]] == [400] * 10
        assert [answer.status_code for answer in asked[10:]] == [429] * 2
        left = [answer.headers["ratelimit"].split(";")[1] for answer in asked]
        assert left == [f"r={number}" for number in (9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 0)]
        # Many at once, by one account: exactly as many as one process would allow.
        await make_account(shelf.env, "ann", Role.AUTHOR)
        headers = {"authorization": f"Bearer {await token_of(shelf.env, 'ann', 'submit')}"}
        async with httpx2.AsyncClient(base_url=server.address, timeout=PATIENCE_S, headers=headers) as client:
            sent = [client.post("/api/v1/submissions", json=bad) for _ in range(40)]
            codes = [answer.status_code for answer in await asyncio.gather(*sent)]
        assert sorted(codes) == [400] * 30 + [429] * 10


async def test_sign_in_tries_are_counted_for_both(shelf, tmp_path):
    async with two_webs(shelf.env.settings, tmp_path / "serving", "--web-only") as server:
        codes = []
        for number in range(11):
            web, form = server.webs[number % 2], {"name": "ann", "password": "a wrong one, and long"}
            with answered_by(server.process.pid, web):
                async with httpx2.AsyncClient(base_url=server.address, timeout=PATIENCE_S) as client:
                    page = await client.get("/signin", headers={"accept": "text/html"})
                    secret = page.text.partition('name="csrf" value="')[2].partition('"')[0]
                    answer = await client.post("/signin", data={"csrf": secret, **form})
            codes.append(answer.status_code)
        assert codes[-1] == 429 and set(codes[:-1]).isdisjoint({429, 303})


async def test_what_reads_is_allowed_in_parts(shelf, tmp_path):
    """Each of two allows half, and says so."""
    async with two_webs(
        shelf.env.settings, tmp_path / "serving", "--web-only", VSKILL_RATE_LIMITS="on"
    ) as server:
        for web in server.webs:
            answer = await server.ask(web, "POST", "/api/v1/skills/check-updates", json={"skills": []})
            assert answer.headers["ratelimit-policy"] == '"check-updates";q=3000;w=3600'


async def test_what_one_writes_the_other_one_tells_at_once(shelf, tmp_path):
    """A revoked token, a skill that is taken down and restored: both have answered before, from what they keep."""
    skill = (await shelf.publish("lint", version="1.0.0")).canonical
    await make_account(shelf.env, "eve", Role.ADMIN)
    admin = await token_of(shelf.env, "eve", "read", "review", "admin", "submit", "own")
    shown = (
        f"/api/v1/skills/{skill}",
        "/api/v1/skills",
        "/api/v1/skills/search?q=lint",
        f"/api/v1/skills/{skill}/archive",
    )
    async with two_webs(shelf.env.settings, tmp_path / "serving", "--web-only") as server:
        first, second = server.webs

        async def told(web: int) -> tuple[list[int], int]:
            """The status of each, and how many skills are listed."""
            answers = [await server.ask(web, "GET", path) for path in shown]
            return [answer.status_code for answer in answers], len(answers[1].json()["skills"])

        for writer, reader in ((first, second), (second, first)):
            assert await told(writer) == await told(reader) == ([200] * 4, 1)
            await server.act(writer, admin, TAKE_DOWN, TakeDownSkill(skill=skill, reason="a test"))
            gone, listed = await told(reader)
            assert gone[3] != 200 and listed == 0 and (gone, listed) == await told(writer)
            await server.act(writer, admin, RESTORE, RestoreSkill(skill=skill, reason="a test"))
        assert await told(reader) == ([200] * 4, 1)
        wanted = CreateOwnToken(name="laptop", scopes=(TokenScope.READ,), days=1)
        made = await server.act(first, admin, CREATE_OWN_TOKEN, wanted)
        own = {"authorization": f"Bearer {made.token}"}
        assert [answer.status_code for answer in await server.of_both("/api/v1/account", headers=own)] == [
            200
        ] * 2
        await server.act(first, admin, REVOKE_OWN_TOKEN, RevokeOwnToken(token_id=made.details.id))
        assert [answer.status_code for answer in await server.of_both("/api/v1/account", headers=own)] == [
            401
        ] * 2


async def test_one_signs_in_at_one_is_known_to_the_other_one_and_signs_out_there(shelf, tmp_path):
    """Also what is read at one is read at the other, where the number of unread ones has been shown before."""
    await make_account(shelf.env, "ann", Role.AUTHOR, PASSWORD)
    skill, at = (await shelf.publish("lint")).canonical, shelf.env.kv.now()
    with active_env(shelf.env):
        await tell([("ann", Notification("e", Topic.WATCHED, "skill.published", at, "some news", skill))])
    page, html = "/account/notifications", {"accept": "text/html"}
    async with two_webs(shelf.env.settings, tmp_path / "serving", "--web-only") as server:
        first, second = server.webs
        asked = await server.ask(first, "GET", "/signin", headers=html)
        form = {"csrf": csrf_in(asked.text), "name": "ann", "password": PASSWORD}
        signed_in = await server.ask(first, "POST", "/signin", data=form, headers=html | cookies(asked))
        assert signed_in.status_code == 303, signed_in.text
        own = html | cookies(signed_in)
        shown = await server.of_both(page, headers=own)
        assert ["1 unread" in one.text for one in shown] == [True] * 2
        secret = {"csrf": csrf_in(shown[0].text)}
        assert (await server.ask(second, "POST", f"{page}/read", data=secret, headers=own)).status_code == 303
        for one in await server.of_both(page, headers=own):
            assert "some news" in one.text and "1 unread" not in one.text
        assert (await server.ask(second, "POST", "/signout", data=secret, headers=own)).status_code == 303
        assert [one.status_code for one in await server.of_both(page, headers=own)] == [303] * 2


def cookies(answer: httpx2.Response) -> dict[str, str]:
    """What a browser sends back."""
    return {"cookie": "; ".join(f"{name}={value}" for name, value in answer.cookies.items())}


async def test_a_stream_of_one_tells_what_the_other_one_wrote_and_goes_on_there(shelf, tmp_path):
    await put_record(shelf.env, make_submission("waits", at=shelf.env.kv.now(), submitter="ann"))
    number = make_submission("waits").id
    await make_account(shelf.env, "ann", Role.AUTHOR)
    token, path = await token_of(shelf.env, "ann", "submit"), "/api/v1/submissions/stream"
    async with (
        two_webs(shelf.env.settings, tmp_path / "serving", "--web-only") as server,
        AsyncExitStack() as opened,
    ):
        first, second = server.webs
        with answered_by(server.process.pid, first):
            events: Events = await opened.enter_async_context(listening(f"{server.address}{path}"))
            await events.until_connected()
        await server.act(second, token, CANCEL, CancelSubmission(submission_id=number, reason="a test"))
        told = await events.next("submission")
        # The cursor is one to the other process too: nothing was missed, so nothing must be loaded anew.
        with answered_by(server.process.pid, second):
            headers = {"last-event-id": told.id}
            again: Events = await opened.enter_async_context(listening(f"{server.address}{path}", headers))
            assert await again.until_connected()


#: One action of each kind of right, scope and method.
KINDS = sorted(
    {(row.who, row.scope, BY_NAME[name].method): name for name, row in sorted(MATRIX.items())}.values()
)


@pytest.fixture(scope="module")
async def rights(tmp_path_factory) -> AsyncIterator[tuple[RightsWorld, TwoWebs]]:
    folder = tmp_path_factory.mktemp("rights")
    async with (
        open_rights_world(folder) as world,
        two_webs(world.shelf.env.settings, folder / "serving", "--web-only") as server,
    ):
        world.address = server.address
        yield world, server


@pytest.mark.parametrize("name", KINDS)
async def test_each_refuses_whoever_lacks_the_right(rights, name):
    world, server = rights
    action, fields = BY_NAME[name], MATRIX[name].fields
    for web in server.webs:
        with answered_by(server.process.pid, web):
            refused = [who for who in may_not(name) if who != "operator"]
            asked = [
                who for who in refused if await world.call_by_http(action, fields, world.tokens.get(who))
            ]
            assert asked == []
            # Somebody is let in, so the refusals are about rights; bob's issuer is not known to these processes.
            allowed = may(name) - {"operator", "anonymous", "other"} if action.method == "GET" else set()
            for who in allowed:
                assert await world.call_by_http(action, fields, world.tokens[who])


async def test_neither_tells_a_secret_that_the_other_one_or_it_has_told_to_an_insider(tmp_path):
    """What a process keeps of an answer to an insider is for nobody else, and a namespace that opens and closes does so
    for both at once."""
    clock = ManualClock(SystemClock().now())
    async with (
        open_leak_world(tmp_path, "sqlite", clock=clock) as world,
        two_webs(world.env.settings, tmp_path / "serving", "--web-only") as server,
    ):
        for web in server.webs:
            with answered_by(server.process.pid, web):
                async with httpx2.AsyncClient(base_url=server.address, timeout=PATIENCE_S) as client:
                    insider, told = world.askers["mia by token"], 0
                    for endpoint in READS:
                        for asked in requests_for(endpoint, world.hidden):
                            for asker in (insider, world.askers["anonymous"], world.askers["zoe by token"]):
                                client.cookies.clear()
                                text = written(
                                    await client.request(
                                        asked.method,
                                        asked.path,
                                        params=asked.query,
                                        headers={**asker.headers, "accept": "application/json"},
                                    )
                                )
                                leaks = leaks_in(world, asked, text)
                                told += bool(leaks) and asker is insider
                                assert asker is insider or not leaks, (asked.label, text[:2000])
                    assert told > 10, "the insider was told of nothing"
        admin = await token_of(world.env, "ada", "read", "own", "review", "admin")
        skill = f"/api/v1/skills/{world.hidden.canonical}"
        first, second = server.webs
        hide = ChangeVisibility(name=HIDDEN_OWNER, to=Visibility.TEAM, reason="a test")
        show = ExplainedNamespace(name=HIDDEN_OWNER, reason="a test")
        for writer, action, request, status in (
            (first, MAKE_PUBLIC, show, 200),
            (second, CHANGE_VISIBILITY, hide, 404),
            (first, MAKE_PUBLIC, show, 200),
        ):
            await server.act(writer, admin, action, request)
            assert [answer.status_code for answer in await server.of_both(skill)] == [status] * 2


class Visitors:
    """People who read and write all the time, some on one connection for all requests, some on one for each."""

    def __init__(self, server: TwoWebs, headers: dict[str, str]) -> None:
        self._server = server
        self._headers = headers
        self.answered = 0
        self.makers: set[str] = set()
        self.troubles: list[str] = []

    async def stay(self) -> None:
        async with httpx2.AsyncClient(base_url=self._server.address, timeout=PATIENCE_S) as client:
            while True:
                await self._ask(client)

    async def come_and_go(self) -> None:
        while True:
            async with httpx2.AsyncClient(base_url=self._server.address, timeout=PATIENCE_S) as client:
                await self._ask(client)

    async def _ask(self, client: httpx2.AsyncClient) -> None:
        for method, path in (
            ("GET", "/api/v1/skills"),
            ("POST", "/api/v1/skills/check-updates"),
            ("GET", "/"),
        ):
            try:
                body: dict[str, Any] | None = {"skills": []} if method == "POST" else None
                answer = await client.request(method, path, headers=self._headers, json=body)
            except httpx2.HTTPError as error:
                self.troubles.append(f"{path}: {error!r}")
                continue
            if answer.status_code != 200:
                self.troubles.append(f"{path}: {answer.status_code} {answer.text[:200]}")
            self.answered += 1
            self.makers.add(answer.headers.get("x-request-id", "-").partition("-")[0])


async def test_all_are_replaced_one_by_one_under_requests_and_no_request_fails(shelf, tmp_path):
    await shelf.publish("lint", version="1.0.0")
    async with two_webs(shelf.env.settings, tmp_path / "serving", "--web-only") as server:
        before, visitors = server.webs, Visitors(server, {})
        tasks = [asyncio.create_task(visitors.stay()) for _ in range(3)]
        tasks += [asyncio.create_task(visitors.come_and_go()) for _ in range(2)]
        async with listening(f"{server.address}/api/v1/submissions/stream") as stream:
            await stream.until_connected()
            for _ in range(2):
                old, count = server.webs, visitors.answered
                os.kill(server.process.pid, signal.SIGHUP)

                async def replaced(old: list[int] = old) -> bool:
                    return len(server.webs) == 2 and set(server.webs).isdisjoint(old)

                await until(replaced, PATIENCE_S, "they are not replaced")
                assert visitors.answered > count
            # Its client comes back with the cursor; it is not held until the grace is over.
            assert await stream.ended()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert visitors.troubles == []
        assert set(server.webs).isdisjoint(before) and len(visitors.makers) >= 4
        assert await server.counted('vskill_http_requests_total{route="/",status="200"}') > 0
        assert await server.process.terminate() == 0
        log = server.process.log.read_text("utf-8")
        assert log.count("web processes replaced") == 2 and "Traceback" not in log and "killed" not in log


async def test_what_cannot_start_replaces_nobody(shelf, tmp_path):
    """A setting that became wrong meanwhile: a file that is gone."""
    policy = tmp_path / "policy.yaml"
    policy.write_text("extends: open\n")
    async with two_webs(
        shelf.env.settings, tmp_path / "serving", "--web-only", VSKILL_POLICY=str(policy)
    ) as server:
        before = server.webs
        policy.unlink()
        os.kill(server.process.pid, signal.SIGHUP)

        async def given_up() -> bool:
            return "web processes not replaced" in server.process.log.read_text("utf-8")

        await until(given_up, PATIENCE_S, "nobody says that it did not work")
        assert set(before) <= set(server.webs)
        assert [answer.status_code for answer in await server.of_both("/healthz")][:2] == [200, 200]


async def test_what_is_kept_in_memory_cannot_be_shared(tmp_path):
    settings = msgspec.structs.replace(Settings(), data_dir=str(tmp_path), store="memory:")
    async with workers_on(settings, tmp_path) as processes:
        process = await processes.start(("-m", "vskill_platform", "serve", "--web", "2"))
        assert await asyncio.wait_for(process.process.wait(), PATIENCE_S) == 1
        assert "--web" in process.log.read_text("utf-8")
