"""What is read of a request before anybody is known is bounded, and its cost grows no faster than its size."""

import pytest
from starlette.requests import Request

from tests.support.slow_clients import connect
from tests.web.test_front_door import NEVER, hung_up, opened, problem, refused
from vskill_core.errors import InvalidInput
from vskill_platform.web.auth import MOST_CONTENT_TYPE, form_of, safe_next, to_sign_in
from vskill_platform.web.browser import SESSION_COOKIE, cookie_of
from vskill_platform.web.door.connection import MOST_HEADER_LINES, MOST_HEADERS, MOST_TARGET
from vskill_platform.web.routing import MOST_PARAMETERS, NoQuery, parse_query, repeated_name

pytestmark = pytest.mark.anyio

HOST = b"host: a\r\n"


class Counted(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def request(query: bytes = b"", path: str = "/skills", *headers: tuple[bytes, bytes]) -> Request:
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query,
        "headers": [(b"host", b"registry.test"), *headers],
    }
    return Request(scope)


async def answered(address: str, sent: bytes):
    """What a client is told that sends this, in one piece."""
    client = await connect(address, sent)
    await hung_up(client)
    await client.end()
    return client


# The query.


def test_a_repeated_name_is_found_with_one_comparison():
    """A list of n names was searched n times."""
    for count in (10, 1_000):
        names = [Counted(f"n{number}") for number in range(count)]
        Counted.comparisons = 0
        found = repeated_name([*names, Counted(names[-1])])
        assert Counted.comparisons == 1
        assert found == names[-1]
        assert repeated_name(names) is None


@pytest.mark.parametrize("ignore_unknown", [False, True])
def test_a_query_has_at_most_so_many_parameters(ignore_unknown):
    """Counted before any of them is decoded, also where unknown ones are ignored."""
    many = "&".join(f"n{number}" for number in range(MOST_PARAMETERS + 1)).encode()
    with pytest.raises(InvalidInput, match=f"more than {MOST_PARAMETERS} query parameters"):
        parse_query(request(many), NoQuery, ignore_unknown=ignore_unknown)


def test_a_page_accepts_as_many_foreign_parameters_as_the_limit():
    allowed = "&".join(f"utm_{number}=x" for number in range(MOST_PARAMETERS)).encode()
    parse_query(request(allowed), NoQuery, ignore_unknown=True)


# The head, over a real socket.


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"GET /?" + b"a" * MOST_TARGET + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414, "address_too_long"),
        (b"GET /" + b"a" * MOST_TARGET, 414, "address_too_long"),
        (
            b"GET / HTTP/1.1\r\n" + HOST + b"x: y\r\n" * MOST_HEADER_LINES + b"\r\n",
            431,
            "headers_too_large",
        ),
        (
            b"GET / HTTP/1.1\r\n" + HOST + b"cookie: " + b"a" * MOST_HEADERS + b"\r\n\r\n",
            431,
            "headers_too_large",
        ),
        (b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400, "bad_host"),
        (b"GET / HTTP/1.1\r\nhost: a\r\nHOST: b\r\n\r\n", 400, "bad_host"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "bad_host"),
        (b"GET / HTTP/1.1\r\nhost: a/b\r\n\r\n", 400, "bad_host"),
        (b"GET /healthz HTTP/9.9\r\n\r\n", 400, "bad_request"),
        (b"nonsense\r\n\r\n", 400, "bad_request"),
    ],
    ids=["query", "path", "lines", "bytes", "two hosts", "other case", "no host", "no name", "version", "no"],
)
async def test_a_head_beyond_its_limits_is_refused_before_anything_else(env, sent, status, code):
    """Also where all of it comes at once, so that its end is there before it was measured."""
    async with opened(env, **NEVER) as address:
        client = await answered(address, sent)
    assert (client.status, problem(client)) == (status, code)
    assert client.got.count(b"\r\n\r\n") == 1
    assert refused(env, code) == 1


async def test_a_bad_request_behind_a_good_one_is_refused_too(env):
    async with opened(env, **NEVER) as address:
        client = await connect(address, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
        await client.hears(b"200 OK")
        client.writer.write(b"GET /healthz HTTP/1.1\r\n" + HOST + HOST + b"\r\n")
        await hung_up(client)
        assert client.got.count(b"HTTP/1.1 400") == 1
        await client.end()


async def test_a_head_at_its_limits_is_answered(env):
    lines = b"x: y\r\n" * (MOST_HEADER_LINES - 2)
    head = b"GET /healthz?" + b"a" * (MOST_TARGET - 13) + b" HTTP/1.1\r\n" + HOST + lines
    async with opened(env, **NEVER) as address:
        client = await answered(address, head + b"connection: close\r\n\r\n")
        without_host = await answered(address, b"GET /healthz HTTP/1.0\r\n\r\n")
        padded = await answered(
            address, b"GET /healthz HTTP/1.1\r\nhost:  a:80 \t\r\nconnection: close\r\n\r\n"
        )
    assert client.status == 400  # this address takes no such parameter
    assert b"invalid_input" in client.got
    assert without_host.status == padded.status == 200


async def test_many_requests_in_one_piece_are_each_measured_by_themselves(env):
    one = b"GET /healthz HTTP/1.1\r\n" + HOST + b"x: " + b"y" * 1_000 + b"\r\n\r\n"
    async with opened(env, **NEVER) as address:
        client = await connect(address, one * 100)
        await client.hears(b"200 OK", 100)
        await client.end()


# Cookies, forms and redirects.


def test_a_cookie_is_read_as_it_was_sent():
    """Python up to 3.11.9 and 3.12.5 takes quotes off in quadratic time: 64 KB blocked the process for seconds."""
    escaped = 'a\\"' * 15_000 + "a"
    cookies = (b"cookie", f'other="{escaped}"; {SESSION_COOKIE}=abc; x'.encode())
    assert cookie_of(request(b"", "/", cookies), SESSION_COOKIE) == "abc"
    assert cookie_of(request(b"", "/", cookies), "other") == escaped
    assert cookie_of(request(b"", "/", cookies), "none") is None
    assert cookie_of(request(b"", "/", (b"cookie", b"a=1"), (b"cookie", b"b=2")), "b") == "2"


async def test_the_type_of_a_form_is_short():
    kind = b"multipart/form-data; " + b";" * MOST_CONTENT_TYPE
    with pytest.raises(InvalidInput, match="only form data"):
        await form_of(request(b"", "/", (b"content-type", kind)))


async def test_a_form_has_at_most_so_many_fields(client):
    answer = await client.post(
        "/signin",
        content=b"a&" * 2_000,
        headers={"content-type": "application/x-www-form-urlencoded", "cookie": "vskill_visitor=x"},
    )
    assert answer.status_code == 400
    assert "Too many fields" in answer.text


def test_the_way_to_the_sign_in_page_is_short():
    """An address that is too long to come back to is left out."""
    short, long = to_sign_in(request(b"page=2")), to_sign_in(request(b"q=" + b"%20" * 2_000))
    assert short.headers["location"] == "/signin?next=/skills%3Fpage%3D2"
    assert long.headers["location"] == "/signin"
    assert safe_next("/" + "a" * 2_001) == "/account"
