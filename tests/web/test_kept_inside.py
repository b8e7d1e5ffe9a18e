"""What stays inside: paths, servers, drivers' words, metrics, and what a client itself put into an answer."""

import os
import stat
import sys

import httpx2
import msgspec
import pytest
from starlette.requests import Request

from tests.support.lifetimes import running
from vskill_core.errors import BlobUnavailable, StoreError, StoreUnavailable
from vskill_platform.settings import Settings
from vskill_platform.web.app import create_app
from vskill_platform.web.render import environment

pytestmark = pytest.mark.anyio

SECRET = "postgresql://vskill:pa@ss@10.0.0.7/vskill"


class BrokenKV:
    """A store whose error says more than a client should know."""

    engine = "broken"

    def __init__(self, error: Exception) -> None:
        self._error = error

    def now(self) -> int:
        return 0

    def __getattr__(self, name: str):
        async def fail(*_: object, **__: object) -> None:
            raise self._error

        return fail


def client_of(env, **changes):
    app = create_app(msgspec.structs.replace(env, **changes))
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://a.test")


@pytest.mark.parametrize(
    "error",
    [
        StoreUnavailable(f"{SECRET}: the server does not answer"),
        StoreError(f"{SECRET}: cannot switch to state 12; another operation (2) is in progress"),
    ],
)
async def test_an_error_of_the_store_tells_no_path_no_server_and_none_of_the_drivers_words(env, error):
    async with client_of(env, kv=BrokenKV(error)) as client:
        for path in ("/api/v1/skills", "/readyz", "/skills", "/queue", "/api/v1/queue/health", "/feed.xml"):
            for accept in ("text/html", "*/*"):
                answer = await client.get(path, headers={"accept": accept})
                assert answer.status_code >= 500, path
                assert "10.0.0.7" not in answer.text, path
                assert "state 12" not in answer.text, path


async def test_an_error_of_the_content_store_tells_no_path(env):
    class NoContent:
        async def check(self) -> None:
            raise BlobUnavailable("the blob store in /srv/secret failed: Permission denied")

    async with client_of(env, blobs=NoContent()) as client:
        answer = await client.get("/readyz")
        assert answer.status_code == 503
        assert "/srv/secret" not in answer.text


async def test_a_sentence_about_an_error_does_not_send_the_request_back(client):
    answer = await client.post("/api/v1/submissions", json={"x" * 100_000: 1})
    assert answer.status_code == 400
    assert len(answer.content) < 10_000


# Metrics.


async def test_metrics_are_for_this_machine_unless_there_is_a_token(env):
    app = create_app(env)
    for peer, headers, status in (
        ("127.0.0.1", {}, 200),
        ("10.1.2.3", {}, 401),
        ("127.0.0.1", {"x-forwarded-for": "127.0.0.1"}, 401),
    ):
        transport = httpx2.ASGITransport(app, client=(peer, 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://a.test") as client:
            answer = await client.get("/metrics", headers=headers)
            assert answer.status_code == status, peer
            assert ("VSKILL_METRICS_TOKEN" in answer.text) is (status == 401)


async def test_with_a_token_metrics_are_for_whoever_sends_it(env):
    settings = Settings(store="memory:", metrics_token="s3cret-of-prometheus")
    async with client_of(env, settings=settings) as client:
        assert (await client.get("/metrics")).status_code == 401
        for sent, status in (("s3cret-of-prometheus", 200), ("wrong", 401), ("s3cret", 401)):
            answer = await client.get("/metrics", headers={"authorization": f"Bearer {sent}"})
            assert answer.status_code == status
            assert "warning" not in answer.headers


# Addresses.


@pytest.mark.parametrize(
    "path",
    ["/sitemap.xml", "/robots.txt", "/opensearch.xml", "/marketplace.json", "/api/openapi.json", "/feed.xml"],
)
async def test_a_host_that_the_client_named_is_in_no_answer_that_others_are_given(env, path):
    async with client_of(env) as client:
        answer = await client.get(path, headers={"host": "evil.example"})
        assert answer.status_code == 200
        assert "public" not in answer.headers["cache-control"]
    async with client_of(env, settings=Settings(store="memory:", public_url="https://skills.test")) as client:
        answer = await client.get(path, headers={"host": "evil.example"})
        assert "evil.example" not in answer.text
        assert "public" in answer.headers["cache-control"]


async def test_a_repository_that_is_fetched_by_http_is_linked_by_http(env):
    settings = Settings(store="memory:", allowed_private_hosts=("http://git.corp:3000", "git.other"))
    request = Request({"type": "http", "services": msgspec.structs.replace(env, settings=settings)})
    for address, link in (
        ("https://git.corp:3000/a/b", "http://git.corp:3000/a/b"),
        ("https://git.other/a/b", "https://git.other/a/b"),
        ("javascript:alert(1)", ""),
    ):
        template = environment().from_string("{{ address | web_address }}")
        assert template.render(request=request, address=address) == link


# Files.


def test_what_a_registry_creates_is_for_its_own_account_and_what_exists_stays(tmp_path):
    (tmp_path / "shared").mkdir(mode=0o755)
    (tmp_path / "shared").chmod(0o755)
    variables = {**os.environ, "VSKILL_DATA_DIR": str(tmp_path / "shared" / "data")}
    with running([sys.executable, "-m", "vskill_platform", "queue", "health"], env=variables) as process:
        assert process.wait() == 0
    made = [path for path in (tmp_path / "shared" / "data").rglob("*") if not path.is_symlink()]
    assert tmp_path / "shared" / "data" / "vskill.db" in made
    # A public key is meant to be read, should somebody open the folder.
    private = [path for path in made if path.suffix != ".pub"]
    for path in (tmp_path / "shared" / "data", *private):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE((tmp_path / "shared").stat().st_mode) == 0o755
