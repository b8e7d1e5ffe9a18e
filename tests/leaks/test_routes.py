"""The leak test: every route is asked about a secret, as everybody who may not know it. No byte and no header of any
answer holds a canary that the request did not bring along; what is hidden and what is not there are answered alike,
after the same reads."""

import base64
import re
from collections.abc import AsyncIterator, Iterator

import httpx2
import pytest

from tests.leaks.requests import Asked, requests_for
from tests.leaks.world import Asker, Facts, LeakWorld, open_leak_world
from vskill_platform.web.app import ENDPOINTS
from vskill_platform.web.routing import Endpoint

pytestmark = pytest.mark.anyio

OUTSIDERS = ("anonymous", "zoe by token", "zoe by basic", "zoe by session", "a foreign token")
#: They differ from request to request, whatever is asked.
#: Secrets that are made for one answer, and the time.
_FRESH = (
    re.compile(r"vskill_visitor=[^;]+"),
    re.compile(r'name="csrf" value="[^"]+"'),
    re.compile(r'data-cursor="[^"]+"'),
    re.compile(r"(vskill-owner-|vsk_)[\w-]{43}"),
    re.compile(r'"id":"[0-9a-hjkmnp-tv-z]{26}"'),
    re.compile(r"/hand-ins/[0-9a-hjkmnp-tv-z]{26}"),
    re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"),
)
#: What a page says after a form, in the clear, and its signature.
_FLASH = re.compile(r'vskill_flash="?([\w-]+)\.[0-9a-f]+"?')
OWN_HEADERS = frozenset({"date", "x-request-id"})
_REQUEST_ID = re.compile(r"[0-9a-hjkmnp-tv-z]{26}", re.IGNORECASE)

ROUTES = [endpoint for endpoint in ENDPOINTS if not endpoint.is_stream]
#: Asked in a registry of their own: somebody who has just claimed a repository may be told its name.
READS = [endpoint for endpoint in ROUTES if endpoint.method == "GET"]
WRITES = [endpoint for endpoint in ROUTES if endpoint.method != "GET"]


def name_of(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


@pytest.fixture(scope="module")
async def reading(tmp_path_factory) -> AsyncIterator[LeakWorld]:
    async with open_leak_world(tmp_path_factory.mktemp("reading")) as opened:
        yield opened


@pytest.fixture(scope="module")
async def writing(tmp_path_factory) -> AsyncIterator[LeakWorld]:
    async with open_leak_world(tmp_path_factory.mktemp("writing")) as opened:
        yield opened


async def ask(world: LeakWorld, asker: Asker, asked: Asked) -> httpx2.Response:
    world.client.cookies.clear()
    headers = {**asker.headers, "accept": "text/html" if asked.form is not None else "application/json"}
    if asker.cookies:
        headers["cookie"] = "; ".join(f"{name}={value}" for name, value in asker.cookies.items())
    if asker.csrf:
        headers["x-csrf-token"] = asker.csrf
    world.probe.start()
    return await world.client.request(
        asked.method, asked.path, params=asked.query, headers=headers, json=asked.json, data=asked.form
    )


def written(answer: httpx2.Response) -> str:
    """Everything that was sent back, as text, without the request's own id."""
    headers = "\n".join(
        f"{name}: {value}" for name, value in sorted(answer.headers.items()) if name not in OWN_HEADERS
    )
    text = f"{answer.status_code}\n{headers}\n\n{answer.content.decode('utf-8', 'replace')}"
    text = text.replace(answer.headers.get("x-request-id", "(none)"), "(id)")
    for fresh in _FRESH:
        text = fresh.sub("(fresh)", text)
    return _FLASH.sub(lambda found: base64.urlsafe_b64decode(found[1] + "===").decode(), text)


def leaks_in(world: LeakWorld, asked: Asked, text: str) -> list[str]:
    """Canaries that the request did not name itself."""
    own = asked.label.lower()
    return [
        canary for canary in world.canaries if canary.lower() in text.lower() and canary.lower() not in own
    ]


def without_names(text: str, facts: Facts) -> str:
    """The answer without what the request itself named."""
    for one in facts.texts:
        text = re.sub(re.escape(one), "(name)", text, flags=re.IGNORECASE)
    return text


async def check_for_canaries(world: LeakWorld, endpoint: Endpoint, asker: str) -> None:
    for facts in (world.hidden, world.visible):
        for asked in requests_for(endpoint, facts):
            text = written(await ask(world, world.askers[asker], asked))
            assert not leaks_in(world, asked, text), (asked.label, text[:3000])


async def check_for_differences(world: LeakWorld, endpoint: Endpoint, asker: str) -> None:
    who = world.askers[asker]
    for hidden, absent, other in trios(world, endpoint):
        # What everybody shares is made by the first who asks.
        await ask(world, who, other)
        first = without_names(written(await ask(world, who, hidden)), world.hidden)
        cost = _cost_of(world)
        second = without_names(written(await ask(world, who, absent)), world.absent)
        assert first == second, hidden.label
        assert cost == _cost_of(world), hidden.label


def _cost_of(world: LeakWorld) -> dict[str, int]:
    """What a request has read; how many tokens the asker has grows with each one that is made."""
    return {kind: count for kind, count in world.probe.cost.items() if kind != "get_many token"}


@pytest.mark.parametrize("asker", OUTSIDERS)
@pytest.mark.parametrize("endpoint", READS, ids=name_of)
async def test_no_answer_holds_a_canary(reading, endpoint, asker):
    await check_for_canaries(reading, endpoint, asker)


@pytest.mark.parametrize("asker", OUTSIDERS)
@pytest.mark.parametrize("endpoint", READS, ids=name_of)
async def test_what_is_hidden_is_answered_as_what_is_not_there(reading, endpoint, asker):
    await check_for_differences(reading, endpoint, asker)


@pytest.mark.parametrize("asker", OUTSIDERS)
@pytest.mark.parametrize("endpoint", WRITES, ids=name_of)
async def test_nothing_that_is_sent_leads_to_a_canary(writing, endpoint, asker):
    await check_for_canaries(writing, endpoint, asker)


@pytest.mark.parametrize("asker", OUTSIDERS)
@pytest.mark.parametrize("endpoint", WRITES, ids=name_of)
async def test_what_is_sent_about_a_secret_meets_what_is_not_there(writing, endpoint, asker):
    await check_for_differences(writing, endpoint, asker)


def trios(world: LeakWorld, endpoint: Endpoint) -> Iterator[tuple[Asked, Asked, Asked]]:
    """Requests about what is hidden, and about two things that are not there; those that name nothing are left out."""
    about = (requests_for(endpoint, facts) for facts in (world.hidden, world.absent, world.other))
    return (found for found in zip(*about, strict=True) if found[0] != found[1])
