"""The queue page as it is first painted, without a script: true numbers, filters in the address, and what it says when
it does not know."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.support.browsing import browsing, marked, tags
from tests.support.envs import make_submission, open_test_env, put_record, run_until_quiet, submit_skill
from tests.support.faults import HookedKV
from tests.support.html import Page
from tests.support.manual_clock import ManualClock
from tests.support.patience import PATIENCE_S
from tests.support.people import signed_in
from tests.support.streams import listening, serving
from vskill_core.identity import normalise
from vskill_platform.domain.submissions.states import State, StateCategory, states_in
from vskill_platform.domain.submissions.submission import Step, move
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.ledger.kv.entries import EntryPage
from vskill_platform.queue.alerts import Alert, AlertCode
from vskill_platform.queue.control import pause_queue
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.schedule import run_job
from vskill_platform.store.operation.workers import give_sign
from vskill_platform.store.people.accounts import Role
from vskill_platform.web.app import create_app
from vskill_platform.web.pages.submissions.queue import LABELS
from vskill_platform.web.render import UNKNOWN
from vskill_platform.worker_context import Env, Pace

pytestmark = pytest.mark.anyio

#: Long after the epoch, so that an hour ago is a time too.
NOW = 1_800_000_000_000


@pytest.fixture
async def env(tmp_path: Path):
    async with open_test_env("sqlite", tmp_path, clock=ManualClock(NOW)) as opened:
        yield opened


async def one_of_each(env: Env) -> None:
    for number, state in enumerate(State):
        for copy in range(number + 1):
            await put_record(env, make_submission(f"{state.lower()}-{copy}", state=state, at=env.kv.now()))


async def test_C1_the_first_paint_has_the_true_counts(env: Env):
    """C1, C13: the cards of the page as it comes over the wire are the counts of the records."""
    await one_of_each(env)
    async with browsing(env) as client:
        answer = await client.get("/queue")
    assert answer.status_code == 200
    shown = marked(answer.text, "data-count")
    expected = {state: number + 1 for number, state in enumerate(State)}
    assert int(shown["all"]) == sum(expected.values())
    for category in StateCategory:
        assert int(shown[category.value]) == sum(expected[state] for state in states_in(category))
    for state in State:
        assert int(shown[state.value]) == expected[state]


async def test_an_empty_queue_says_so_and_shows_zeros(env: Env):
    async with browsing(env) as client:
        answer = await client.get("/queue")
    assert "Nothing has been submitted yet" in answer.text
    assert marked(answer.text, "data-count")["all"] == "0"
    assert "Nothing was in the queue in this period" in answer.text
    assert "No run ended in this period" in answer.text


def test_C14_every_category_has_a_card():
    assert set(LABELS) == {None, *StateCategory}


async def test_E3_a_category_is_expanded_by_the_server_to_all_its_states(env: Env):
    await one_of_each(env)
    async with browsing(env) as client:
        for category in StateCategory:
            answer = await client.get("/queue", params={"category": category.value})
            rows = [
                attributes for tag, attributes in tags(answer.text) if tag == "tr" and "data-id" in attributes
            ]
            assert {row["data-state"] for row in rows} == {state.value for state in states_in(category)}
            current = [a for tag, a in tags(answer.text) if tag == "a" and a.get("aria-current") == "true"]
            assert [a["href"] for a in current] == [f"/queue?category={category.value}"]


async def test_a_state_is_a_filter_too(env: Env):
    await one_of_each(env)
    async with browsing(env) as client:
        answer = await client.get("/queue?state=REJECTED")
    states = {a["data-state"] for tag, a in tags(answer.text) if tag == "tr" and "data-id" in a}
    assert states == {"REJECTED"}


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("category=broken", "category"),
        ("state=NOPE", "state"),
        ("state=REJECTED&category=failed", "category"),
        ("after=%21%21", "after"),
    ],
)
async def test_E4_what_it_does_not_understand_is_a_400_that_names_it(env: Env, query: str, named: str):
    async with browsing(env) as client:
        answer = await client.get(f"/queue?{query}")
    assert answer.status_code == 400
    assert named in answer.text or "cursor" in answer.text


async def test_words_find_submissions_and_keep_the_filter(env: Env):
    await put_record(
        env,
        make_submission(
            "needle",
            at=NOW,
            identity=normalise("https://github.com/ann/haystack", "needle"),
            state=State.REJECTED,
        ),
    )
    await one_of_each(env)
    async with browsing(env) as client:
        answer = await client.get("/queue?q=haystack")
        assert [a["data-state"] for tag, a in tags(answer.text) if tag == "tr" and "data-id" in a] == [
            "REJECTED"
        ]
        assert 'href="/queue?category=failed&amp;q=haystack"' in answer.text
        nothing = await client.get("/queue?q=haystack&category=published")
        assert "No submission matches" in nothing.text


async def test_pages_follow_each_other_to_the_end(env: Env):
    names = [f"many-{number:03}" for number in range(75)]
    for number, name in enumerate(names):
        await put_record(env, make_submission(name, at=NOW - number))
    seen: list[str] = []
    async with browsing(env) as client:
        address: str | None = "/queue"
        while address:
            answer = await client.get(address)
            seen += [a["data-id"] or "" for tag, a in tags(answer.text) if tag == "tr" and "data-id" in a]
            address = next(
                (a["href"] for tag, a in tags(answer.text) if tag == "a" and a.get("rel") == "next"), None
            )
    assert len(seen) == len(set(seen)) == 75


async def test_position_and_estimate_are_those_of_the_line(env: Env):
    """The one that is due first stands first; the estimate follows from what was worked on in the last ten minutes."""
    for number in range(4):
        began = NOW - (number + 2) * 30_000
        record = make_submission(f"done-{number}", at=began)
        for to, at in (
            (State.TIER1_SCANNING, began),
            (State.AUTO_APPROVED, began + 30_000),
            (State.PUBLISHED, began + 30_000),
        ):
            record = move(record, to, Step(f"{number}-{to}", at, "worker:test", "made by a test"))
        await put_record(env, record)
    for number in range(3):
        await put_record(env, make_submission(f"waits-{number}", at=NOW - 10_000 + number))
    async with browsing(env) as client:
        text = (await client.get("/queue?category=waiting")).text
    lines = [text[text.index(f">waits-{number}<") :][:900] for number in range(3)]
    for place, line in enumerate(lines, 1):
        assert f"{place} in line, about {('30 s', '1 min', '1 min 30 s')[place - 1]}<" in line, "two a minute"


async def test_an_estimate_that_nobody_knows_is_left_out(env: Env):
    await put_record(env, make_submission("waits", at=NOW))
    async with browsing(env) as client:
        text = (await client.get("/queue")).text
    assert "about" not in text[text.index(">waits<") :][:900]
    assert f"{UNKNOWN} a minute" in text


async def test_what_is_tried_again_later_has_no_position_but_a_time(env: Env):
    record = make_submission("later", at=NOW)
    attempts = msgspec.structs.replace(record.attempts, started=1, failed=1)
    await put_record(env, msgspec.structs.replace(record, next_attempt_at=NOW + 60_000, attempts=attempts))
    async with browsing(env) as client:
        text = (await client.get("/queue")).text
    line = text[text.index(">later<") :][:1200]
    assert "next try" in line
    assert "in line" not in line


async def all_jobs_ran() -> None:
    for job in JOBS:
        assert await run_job(job, forced=True)


async def test_the_invariant_is_a_green_line_or_the_list_of_what_breaks_it(env: Env):
    await all_jobs_ran()
    await put_record(env, make_submission("fine", at=NOW))
    async with browsing(env) as client:
        assert "Nothing is stuck." in (await client.get("/queue")).text
    broken = msgspec.structs.replace(make_submission("limbo", at=NOW), next_attempt_at=None)
    await put_record(env, broken)
    async with browsing(env) as client:
        text = (await client.get("/queue")).text
    assert "Nothing is stuck." not in text
    assert broken.key in text
    assert "neither claim nor next attempt" in text


async def test_B7_with_no_worker_alive_no_page_is_green(env: Env):
    """Four minutes long a green "Nothing is stuck" stood over eight warnings."""
    assert isinstance(env.clock, ManualClock)
    await all_jobs_ran()
    await give_sign()
    async with signed_in(create_app(env), env, "ada", Role.ADMIN) as ada:
        pages = ("/", "/queue", "/admin", "/admin/queue")
        before = [(await ada.get(page)).text for page in pages]
        assert ["Nothing is stuck" in text for text in before] == [True, True, True, False]
        env.clock.advance(30_000)
        for page in pages:
            text = (await ada.get(page)).text
            assert "Nothing is stuck" not in text, page
            assert page == "/admin/queue" or "o worker is alive" in text, page


async def test_nothing_is_green_beside_an_alert_which_leads_to_what_to_do(env: Env):
    remedy = Alert(AlertCode.SCHEDULE_STOPPED, "").remedy
    async with signed_in(create_app(env), env, "ada", Role.ADMIN) as ada:
        for page in ("/queue", "/admin"):
            text = (await ada.get(page)).text
            assert "No scheduled job has started" in text, page
            assert "Nothing is stuck" not in text, page
            assert f'href="{remedy}"' in text, page
            assert 'class="invariant"' not in text, page
        assert 'id="schedule_stopped"' in (await ada.get(remedy)).text


async def test_a_pause_and_alerts_are_shown(env: Env):
    await pause_queue(60_000, reason="the disk is being moved", by="admin:eve")
    async with browsing(env) as client:
        text = (await client.get("/queue")).text
    assert "the disk is being moved" in text
    assert "No scheduled job has started" in text, "no schedule runs here, and the page says so"


async def test_a_store_that_does_not_say_who_may_read_is_a_503(env: Env):
    kv = HookedKV(env.kv)
    kv.failing = {"get"}
    async with browsing(msgspec.structs.replace(env, kv=kv)) as client:
        answer = await client.get("/queue")
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert "Nothing is lost" in answer.text
    assert 'href="/readyz"' in answer.text


@pytest.mark.parametrize("operation", ["count_by", "select"])
async def test_C4_C7_a_store_that_fails_is_a_503_with_dashes(env: Env, operation: str):
    """Neither a zero nor an empty list: every number is a dash, and the page says why."""
    await one_of_each(env)
    kv = HookedKV(env.kv)
    kv.failing = {operation}
    async with browsing(msgspec.structs.replace(env, kv=kv)) as client:
        answer = await client.get("/queue")
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) > 0
    assert set(marked(answer.text, "data-count").values()) == {UNKNOWN}
    assert "The store is unreachable" in answer.text
    assert "Nothing is stuck." not in answer.text
    assert "Nothing has been submitted yet" not in answer.text


class HangingKV(HookedKV):
    """A store that never answers a question."""

    async def select(self, prefix: str, **options: object) -> EntryPage:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")


async def test_E9_a_store_that_hangs_does_not_hang_the_page(env: Env):
    hanging = msgspec.structs.replace(env, kv=HangingKV(env.kv), pace=Pace(page_within_s=0.2))
    async with browsing(hanging) as client:
        answer = await asyncio.wait_for(client.get("/queue"), PATIENCE_S)
    assert answer.status_code == 503
    assert "did not answer" in answer.text
    assert set(marked(answer.text, "data-count").values()) == {UNKNOWN}


async def test_charts_are_drawn_with_words_and_as_a_table(env: Env):
    for number in range(4):
        await put_record(
            env, make_submission(f"done-{number}", state=State.PUBLISHED, at=NOW - 400_000 * number)
        )
    async with browsing(env) as client:
        text = (await client.get("/queue")).text
    assert "4 runs ended in the last six hours, 4 of them published." in text
    charts = [a for tag, a in tags(text) if tag == "svg" and a.get("role") == "img"]
    assert [a["aria-labelledby"] for a in charts] == [
        "queue-title queue-desc",
        "latency-title latency-desc",
    ]
    assert text.count('class="chart__table"') == 2
    assert "style=" not in text


async def test_foreign_text_is_inert(env: Env):
    """A name and a reason that are markup are text on the page and in the stream's row."""
    attack = "<script>alert(1)</script>"
    record = make_submission(
        "attack", at=NOW, skill_name=attack, repo_url=f'"><img src=x onerror=alert(1)>{attack}'
    )
    await put_record(env, record)
    async with browsing(env) as client:
        text = (await client.get("/queue")).text
    assert attack not in text
    assert "<img src=x" not in text
    assert "&lt;script&gt;" in text


async def test_C1_the_stream_begins_where_the_first_paint_ended(tmp_path: Path):
    """What happens between the paint and the opening of the stream comes over the stream, as the row and the numbers
    that the page would show."""
    async with open_test_env("sqlite", tmp_path, clock=SystemClock()) as env, browsing(env) as client:
        painted = (await client.get("/queue")).text
        live = next(a for tag, a in tags(painted) if "data-live" in a)
        await submit_skill("in-between", submitter="ann@example.org")
        await run_until_quiet(env)
        async with serving(env) as address:
            url = f"{address}{live['data-live']}?after={live['data-cursor']}"
            async with listening(url) as events:
                row = await events.next("row")
                counts = await events.next("counts")
                assert (row.data["category"], row.data["state"]) == ("published", "PUBLISHED")
                assert "in-between" in row.data["html"]
                assert "ann" not in row.data["html"], "E6: nobody learns who submitted it"
                assert (counts.data["published"], counts.data["all"], counts.data["waiting"]) == (1, 1, 0)
                again = (await client.get("/queue")).text
                assert marked(again, "data-count")["published"] == "1"
                await submit_skill("next")
                assert (await events.next("counts")).data["waiting"] == 1


async def test_people_read_names_of_states_that_are_words(env: Env):
    """What programs call `TIER1_FAILED` stands in addresses and in the API, not in what is read."""
    await one_of_each(env)
    async with browsing(env) as client:
        text = Page((await client.get("/queue")).text).text
    assert State.TIER1_FAILED.label in text
    assert not [state for state in State if "_" in state and state.value in text]
