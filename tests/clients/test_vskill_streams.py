"""The event streams of the `vskill` command's desktop companion, over real sockets: asked for as it asks, every field of
a frame that it reads, coming back with Last-Event-ID, and what is refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from tests.clients.test_vskill import MAYBE, NUMBER, REPO, TEXT, holds
from tests.support.envs import active_env, run_until_quiet, skill_files
from tests.support.shelf import Shelf, open_shelf
from tests.support.streams import Events, Frame, listening, serving, store_cursor
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import submit_repository

pytestmark = pytest.mark.anyio

SUBMISSIONS = "/api/v1/submissions/stream"
SKILLS = "/api/v1/skills/stream"
#: A GET of the companion carries the content type too.
HEADERS = {
    "accept": "text/event-stream",
    "cache-control": "no-cache",
    "content-type": "application/json",
    "user-agent": "vskill-cli",
}
#: Long enough for a frame that should not come.
QUIET_S = 0.6


class Companion:
    """Listens as the companion does."""

    def __init__(self, shelf: Shelf, address: str) -> None:
        self.shelf = shelf
        self.address = address
        self.headers = dict(HEADERS)

    @asynccontextmanager
    async def listen(self, path: str, seen: str | None = None) -> AsyncIterator[Events]:
        resumed = {} if seen is None else {"last-event-id": seen}
        async with listening(self.address + path, self.headers | resumed) as events:
            answer = events.response
            assert answer.status_code == 200
            assert answer.headers["content-type"].split(";")[0] == "text/event-stream"
            assert "no-store" in answer.headers["cache-control"]
            assert answer.headers["x-accel-buffering"] == "no" and "content-length" not in answer.headers
            yield events

    async def refused(self, path: str, code: int) -> dict[str, Any]:
        async with httpx2.AsyncClient() as client:
            answer = await client.get(self.address + path, headers=self.headers)
        assert answer.status_code == code, answer.text
        found: dict[str, Any] = answer.json()
        assert isinstance(found["error"], str) and found["error"]
        return found

    async def submit(self, name: str, submitter: str | None = None) -> Submission:
        self.shelf.sources.put(REPO, f"skills/{name}", skill_files(name))
        with active_env(self.shelf.env):
            made = (await submit_repository(REPO, f"skills/{name}", by=SubmittedBy(submitter))).submission
        assert made is not None
        return made

    async def decide(self) -> None:
        with active_env(self.shelf.env):
            await run_until_quiet(self.shelf.env)


@pytest.fixture
async def companion(tmp_path):
    async with open_shelf(tmp_path) as shelf, serving(shelf.env) as address:
        yield Companion(shelf, address)


async def silent(events: Events) -> bool:
    """Nothing more comes by itself."""
    try:
        async with asyncio.timeout(QUIET_S):
            await events.next()
    except TimeoutError:
        return True
    return False


def told(frames: list[Frame]) -> list[tuple[str, str]]:
    return [(frame.event, frame.data.get("version") or frame.data.get("state")) for frame in frames]


# Submissions.


async def test_submissions_are_told_until_they_are_decided(companion):
    async with companion.listen(SUBMISSIONS) as events:
        began = await events.until_connected()
        assert events.retry_ms
        made = await companion.submit("lint")
        first = await events.next("submission")
        assert first.id and first.id != began and first.data["id"] == made.id
        holds(first.data, state=TEXT, category=TEXT, meaning=TEXT, skillName=TEXT, skillPath=TEXT)
        holds(first.data, repoUrl=TEXT, reason=TEXT, createdAt=TEXT, updatedAt=TEXT, nextAttemptAt=MAYBE)
        holds(first.data, publishedSkill=MAYBE, publishedVersion=MAYBE, run=NUMBER)
        await companion.decide()
        decided = await events.next("submission_decision")
    assert decided.id and decided.data["state"] == "PUBLISHED"
    assert (decided.data["publishedSkill"], decided.data["publishedVersion"]) == ("acme/tools/lint", "1.0.0")


async def test_submissions_that_were_missed_come_once_after_a_break(companion):
    async with companion.listen(SUBMISSIONS) as events:
        await events.until_connected()
        await companion.submit("seen")
        seen = await events.next("submission")
    missed = [await companion.submit(name) for name in ("one", "two")]
    async with companion.listen(SUBMISSIONS, seen.id) as events:
        again = [await events.next(), await events.next()]
        assert [frame.data["id"] for frame in again] == [one.id for one in missed]
        assert await silent(events), "nothing twice"
    async with companion.listen(SUBMISSIONS, again[-1].id) as events:
        await events.until_connected()
        assert await silent(events), "and nothing that it has"


async def test_ones_own_submissions_need_a_token(companion):
    assert (await companion.refused(f"{SUBMISSIONS}?mine=1", 401))["error"]
    companion.headers |= await companion.shelf.token("ada")
    async with companion.listen(f"{SUBMISSIONS}?mine=1") as events:
        await events.until_connected()
        await companion.submit("others")
        mine = await companion.submit("own", submitter="ada")
        frame = await events.next("submission")
    assert (frame.data["id"], frame.data["submitter"]) == (mine.id, "ada")


# Skills.


@pytest.mark.parametrize("name", ["acme/tools/lint", "Acme/Tools/Lint", "acme/lint", "lint"])
async def test_an_update_is_a_plain_message_by_any_form_of_the_name(companion, name):
    """`skill.updated` has no event name of its own; the decision about it is `submission_decision`."""
    async with companion.listen(f"{SKILLS}?skills={quote(name, safe='')},nobody/has/this") as events:
        await events.until_connected()
        await companion.shelf.publish("draw")
        published = await companion.shelf.publish("lint")
        frames = {frame.event: frame for frame in (await events.next(), await events.next())}
    update = frames["message"]
    assert update.id and update.data["eventId"] == update.id
    assert update.data["type"] == "skill.updated" and update.data["skillId"] == "acme/tools/lint"
    assert (update.data["version"], update.data["sha"]) == ("1.0.0", published.content_hash)
    holds(update.data, name=TEXT, certTier=TEXT, publishedAt=TEXT, withdrawn=bool)
    decision = frames["submission_decision"]
    assert decision.id and decision.data["publishedSkill"] == "acme/tools/lint"


async def test_updates_that_were_missed_come_once_after_a_break(companion):
    path = f"{SKILLS}?skills=acme%2Ftools%2Flint,acme%2Ftools%2Fdraw"
    async with companion.listen(path) as events:
        await events.until_connected()
        await companion.shelf.publish("lint", "one")
        frames = [await events.next(), await events.next()]
        assert sorted(told(frames)) == [("message", "1.0.0"), ("submission_decision", "PUBLISHED")]
    await companion.shelf.publish("other")
    await companion.shelf.publish("lint", "two")
    await companion.shelf.publish("draw")
    async with companion.listen(path, frames[-1].id) as events:
        again = [await events.next() for _ in range(4)]
        updates = [(one.data["name"], one.data["version"]) for one in again if one.event == "message"]
        assert updates == [("acme/tools/lint", "1.0.1"), ("acme/tools/draw", "1.0.0")]
        assert len({(one.event, one.id) for one in again}) == 4
        assert await silent(events), "nothing twice"


async def test_a_skill_that_is_not_there_yet_is_waited_for(companion):
    """An error would end the companion's stream for all the others that it names."""
    async with companion.listen(f"{SKILLS}?skills=acme%2Ftools%2Fnothing") as events:
        await events.until_connected()
        await companion.shelf.publish("lint")
        assert await silent(events)


@pytest.mark.parametrize("path", [SUBMISSIONS, f"{SKILLS}?skills=lint"])
@pytest.mark.parametrize("seen", ["not-a-cursor", "-1", "9" * 40, "x" * 5000])
async def test_a_last_event_id_that_is_none_of_ours_is_told_to_begin_anew(companion, path, seen):
    """The stream is not refused: it says `reset` with a cursor that is good, and goes on."""
    await companion.submit("before")
    async with companion.listen(path, seen) as events:
        reset = await events.next()
        assert reset.event == "reset" and reset.data["reason"]
        env = companion.shelf.env
        assert await store_cursor(env, reset.id) == await env.kv.change_cursor()
        await companion.shelf.publish("lint")
        assert (await events.next("submission_decision")).data["state"] == "PUBLISHED"


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (f"{SKILLS}?skills=", "skills"),
        (f"{SKILLS}?skills=,%20,", "skills"),
        (f"{SKILLS}?skills=" + ",".join(f"acme/tools/skill-{number}" for number in range(500)), "skills"),
        (f"{SKILLS}?skill=acme/tools/lint", "skill"),
        (f"{SUBMISSIONS}?ids=,", "ids"),
        (f"{SUBMISSIONS}?mine=perhaps", "mine"),
    ],
    ids=["empty", "no name", "too many", "misspelt", "no id", "neither yes nor no"],
)
async def test_what_makes_no_stream_is_refused_by_field(companion, path, field):
    refusal = await companion.refused(path, 400)
    assert refusal["field"] == field and refusal["fix"]


async def test_too_many_streams_of_one_address_are_told_when_to_come_back(tmp_path):
    async with (
        open_shelf(tmp_path, max_streams_per_address=1) as shelf,
        serving(shelf.env) as address,
    ):
        companion = Companion(shelf, address)
        async with companion.listen(SKILLS) as events:
            await events.until_connected()
            async with httpx2.AsyncClient() as client:
                limited = await client.get(address + SUBMISSIONS, headers=HEADERS)
    assert limited.status_code == 429 and limited.json()["error"]
    assert int(limited.headers["retry-after"]) > 0
