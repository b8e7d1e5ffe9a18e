"""The leak test: every route is asked about a secret, as everybody who may not know it. No byte and no header of any
answer holds a canary that the request did not bring along; what is hidden and what is not there are answered alike,
after the same reads.

Each test has registries of its own: answers are kept for whoever asks next, and somebody who has claimed a repository
may be told its name."""

import base64
import re
from collections.abc import AsyncIterator
from functools import partial

import httpx2
import pytest

from tests.leaks.requests import Asked, requests_for
from tests.leaks.world import HIDDEN_NAME, HIDDEN_OWNER, WORD, Asker, Facts, LeakWorld, open_leak_world
from tests.support.acting import restore, take_down
from tests.support.envs import active_env
from tests.support.git_packs import clone_texts
from tests.support.system_reads import get_submission
from tests.support.walking import walk
from vskill_platform.domain import keys
from vskill_platform.web.app import ENDPOINTS
from vskill_platform.web.routing import Endpoint

pytestmark = pytest.mark.anyio

OUTSIDERS = ("anonymous", "zoe by token", "zoe by basic", "zoe by session", "a foreign token")
#: They differ from request to request, whatever is asked: secrets that are made for one answer, and the time.
_FRESH = (
    re.compile(r"vskill_visitor=[^;]+"),
    re.compile(r"expires=[^;\n]+"),
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

ROUTES = [endpoint for endpoint in ENDPOINTS if not endpoint.is_stream]
READS = [endpoint for endpoint in ROUTES if endpoint.method == "GET"]
WRITES = [endpoint for endpoint in ROUTES if endpoint.method != "GET"]
#: What is walked by each asker.
BY_EVERY_OUTSIDER = [
    pytest.param(routes, asker, id=f"{kind}-{asker}")
    for kind, routes in (("reads", READS), ("writes", WRITES))
    for asker in OUTSIDERS
]


@pytest.fixture
async def world(tmp_path) -> AsyncIterator[LeakWorld]:
    async with open_leak_world(tmp_path) as opened:
        yield opened


@pytest.fixture
async def twin(tmp_path_factory, world) -> AsyncIterator[LeakWorld]:
    """A registry that is equal to `world` in everything."""
    async with open_leak_world(tmp_path_factory.mktemp("twin"), signing=world.env.signing) as opened:
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


async def check_for_canaries(
    world: LeakWorld, asker: str, about: tuple[Facts, ...], endpoint: Endpoint
) -> None:
    for facts in about:
        for asked in requests_for(endpoint, facts):
            text = written(await ask(world, world.askers[asker], asked))
            assert not leaks_in(world, asked, text), (asked.label, text[:3000])


async def check_for_differences(
    world: LeakWorld, twin: LeakWorld, asker: str, endpoint: Endpoint, *, plugin: bool = False
) -> None:
    """One registry is only ever asked about what is hidden, its twin about what is not there; requests that name
    nothing are left out."""
    there, nowhere = (world.hidden_plugin, twin.absent_plugin) if plugin else (world.hidden, twin.absent)
    about = requests_for(endpoint, there), requests_for(endpoint, nowhere)
    for hidden, absent in (pair for pair in zip(*about, strict=True) if pair[0] != pair[1]):
        first = without_names(written(await ask(world, world.askers[asker], hidden)), there)
        second = without_names(written(await ask(twin, twin.askers[asker], absent)), nowhere)
        assert first == second, hidden.label
        assert world.probe.cost == twin.probe.cost, hidden.label


async def test_the_secret_stands_in_the_facts_and_the_decision_that_are_stored(world):
    """So that the walk below could find it there."""
    stored = await world.env.kv.get(keys.facts(world.hidden.submission, "2"))
    with active_env(world.env):
        record = await get_submission(world.hidden.submission)
    assert stored is not None and HIDDEN_NAME in stored.value.decode() and record.decision is not None
    (reason,) = (one.reason for one in record.decision.matched)
    assert reason.startswith(f"{HIDDEN_NAME} in of {HIDDEN_OWNER}, 1 live since 0 days")


@pytest.mark.parametrize(("routes", "asker"), BY_EVERY_OUTSIDER)
async def test_no_answer_holds_a_canary(world, routes, asker):
    for facts in (world.visible, world.hidden):
        await walk(routes, partial(check_for_canaries, world, asker, (facts,)))


@pytest.mark.parametrize(("routes", "asker"), BY_EVERY_OUTSIDER)
async def test_what_is_hidden_is_answered_as_what_is_not_there(world, twin, routes, asker):
    await walk(routes, partial(check_for_differences, world, twin, asker))


@pytest.mark.parametrize("asker", ["anonymous", "zoe by token"])
async def test_a_private_plugin_is_hidden_with_all_of_its_parts(world, twin, asker):
    """Its servers, hooks, commands, agents, skills and clients' folders all tell the secret to a member."""
    # First, as long as both registries were asked the same.
    await walk(READS, partial(check_for_differences, world, twin, asker, plugin=True))
    await walk(READS, partial(check_for_canaries, world, asker, (world.hidden_plugin,)))
    whole = f"/marketplace/{world.hidden_plugin.canonical}.git"
    member = await clone_texts(world.client, whole, headers=world.askers["mia by token"].headers)
    assert member.status == 200 and sum(WORD in text for text in member.texts) >= 7


async def withdraw(world: LeakWorld, *, hidden: bool) -> None:
    """Withdraw versions of a public skill; in one of two registries those of a hidden one too, before and after.

    Time passes in between: events of one millisecond get the next ones, so their number would show."""
    take, back = (partial(step, by="admin:ada", reason="a test") for step in (take_down, restore))
    secret = world.hidden.canonical
    steps = (
        (hidden, partial(take, secret, "1.0.0")),
        (True, partial(take, world.visible.canonical)),
        (hidden, partial(take, secret, "1.1.0")),
        (hidden, partial(back, secret, "1.1.0")),
    )
    with active_env(world.env):
        for happens, step in steps:
            world.clock.advance(1000)
            if happens:
                await step()


async def check_for_movement(world: LeakWorld, twin: LeakWorld, asker: str, endpoint: Endpoint) -> None:
    """Both registries are asked the same; what only one of them has done in secret moves nothing."""
    about = requests_for(endpoint, world.visible), requests_for(endpoint, twin.visible)
    for here, there in zip(*about, strict=True):
        first = written(await ask(world, world.askers[asker], here))
        second = written(await ask(twin, twin.askers[asker], there))
        assert first == second, here.label


@pytest.mark.parametrize("asker", ["anonymous", "zoe by token"])
async def test_nothing_moves_with_what_is_hidden(world, twin, asker):
    """Counters and serials: a withdrawal that nobody may know of leaves every answer as it is."""
    about_withdrawals = [one for one in READS if "revocations" in one.path]
    await walk(about_withdrawals, partial(check_for_movement, world, twin, asker))
    await withdraw(world, hidden=True)
    await withdraw(twin, hidden=False)
    await walk(READS, partial(check_for_movement, world, twin, asker))
