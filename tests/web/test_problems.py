"""Errors are problem documents, rendered in one place, with what a client and an operator need."""

import errno
from collections.abc import AsyncIterator

import httpx2
import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from vskill_core.errors import InvalidInput, PlatformError, StoreCorrupt
from vskill_platform.web.app import ENDPOINTS, create_app
from vskill_platform.web.openapi import needs_account
from vskill_platform.web.routing import get, query_of
from vskill_platform.worker_context import get_worker_env, require_env

pytestmark = pytest.mark.anyio


async def bad_input(_request: Request) -> Response:
    raise InvalidInput("The name is empty.", field="name", fix="give one")


async def corrupt(_request: Request) -> Response:
    raise StoreCorrupt("vskill.db is damaged", file="/srv/secret/vskill.db")


async def mistake(_request: Request) -> Response:
    raise KeyError("/srv/secret")


class Paging(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limit: int = 10
    after: str | None = None


async def listing(request: Request) -> Response:
    return Response(str(query_of(request, Paging).limit))


async def stream(_request: Request) -> Response:
    async def lines() -> AsyncIterator[str]:
        for _ in range(3):
            yield f"{require_env().worker_id}\n"

    return StreamingResponse(lines())


async def broken_stream(_request: Request) -> Response:
    async def lines() -> AsyncIterator[str]:
        yield "first\n"
        raise ConnectionError

    return StreamingResponse(lines())


@pytest.fixture
async def client(env):
    routes = [
        get("/bad", bad_input),
        get("/corrupt", corrupt),
        get("/mistake", mistake),
        get("/list", listing, query=Paging),
        get("/stream", stream),
        get("/broken", broken_stream),
    ]
    transport = httpx2.ASGITransport(create_app(env, routes), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as opened:
        yield opened


async def test_an_error_of_ours_is_a_problem_document_with_its_facts(client):
    answer = await client.get("/bad", headers={"x-request-id": "r-1"})
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json() == {
        "type": "about:blank",
        "title": "Bad Request",
        "status": 400,
        "detail": "The name is empty.",
        "error": "The name is empty.",
        "code": "invalid_input",
        "requestId": "r-1",
        "field": "name",
        "fix": "give one",
    }


async def test_facts_of_an_error_on_our_side_stay_inside(client):
    answer = await client.get("/corrupt")
    assert (answer.status_code, answer.json()["code"]) == (500, "store_corrupt")
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    ("error", "lacks"),
    [
        (OSError(errno.EMFILE, "Too many open files", "/srv/secret"), "open files"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "memory"),
        (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "processes"),
        (OSError(errno.ENOSPC, "No space left on device", "/srv/secret"), "disk space"),
        (MemoryError(), "memory"),
    ],
)
async def test_what_this_machine_lacks_is_a_503_that_says_what_and_when_to_come_again(env, error, lacks):
    async def short(_request: Request) -> Response:
        raise error

    transport = httpx2.ASGITransport(create_app(env, [get("/short", short)]), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
        answer = await client.get("/short")
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert f"it lacks {lacks}." in answer.json()["detail"]
    assert "secret" not in answer.text


async def test_an_error_that_nobody_foresaw_tells_the_client_only_the_request_id(client):
    answer = await client.get("/mistake", headers={"x-request-id": "r-2"})
    assert (answer.status_code, answer.json()["code"]) == (500, PlatformError.code)
    assert answer.json()["requestId"] == answer.headers["x-request-id"] == "r-2"
    assert "secret" not in answer.text


@pytest.mark.parametrize("path", ["/nothing", "/api/v1/none", "/bad/"])
async def test_an_unknown_address_is_a_404_problem_that_names_it(client, path):
    answer = await client.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert path in answer.json()["error"]


async def test_a_method_that_is_not_allowed_says_which_are(client):
    answer = await client.post("/bad")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert "GET" in answer.headers["allow"]


async def test_E4_an_unknown_query_parameter_is_a_400_that_names_it(client):
    answer = await client.get("/list?limit=3&state=active")
    assert answer.status_code == 400
    assert answer.json()["field"] == "state"
    assert "use only limit, after" in answer.json()["error"]


async def test_E4_a_parameter_given_twice_is_refused(client):
    answer = await client.get("/list?limit=3&limit=4")
    assert (answer.status_code, answer.json()["field"]) == (400, "limit")


async def test_a_known_query_parameter_is_accepted(client):
    assert (await client.get("/list?limit=3")).text == "3"


READS = [one.path for one in ENDPOINTS if one.method == "GET" and not needs_account(one) and one.documented]


@pytest.mark.parametrize("path", READS)
async def test_E4_every_route_refuses_what_it_does_not_know(env, path):
    transport = httpx2.ASGITransport(create_app(env))
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
        answer = await client.get(path, params={"surprise": "1"})
    assert (answer.status_code, answer.json()["field"]) == (400, "surprise")


async def test_a_request_id_is_made_where_none_is_given_and_all_have_one_length(client):
    ids = {(await client.get("/list")).headers["x-request-id"] for _ in range(17)}
    assert len(ids) == 17
    assert len({len(one) for one in ids}) == 1


@pytest.mark.parametrize("given", ["a b", "x" * 65, "a;b", 'a"b'])
async def test_a_request_id_that_could_spoil_a_log_line_is_replaced(client, given):
    assert (await client.get("/list", headers={"x-request-id": given})).headers["x-request-id"] != given


async def test_AC_US3_05_a_stream_keeps_the_environment_to_its_end(env, client):
    assert (await client.get("/stream")).text == f"{env.worker_id}\n" * 3
    assert get_worker_env() is None


async def test_an_answer_that_broke_off_is_not_followed_by_a_problem_document(client):
    async with client.stream("GET", "/broken") as answer:
        body = b"".join([part async for part in answer.aiter_raw()])
    assert answer.status_code == 200
    assert b"problem" not in body
