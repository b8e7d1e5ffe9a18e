"""How many submissions a second go the whole way from RECEIVED to PUBLISHED when the pipeline itself has nothing
to do: every state, claim, history event, skill, version and alias is still written and flushed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.consuming import consuming, from_clients, until_empty, until_published
from bench.measure import timed
from bench.results import Figure, Report, at_least
from bench.workshop import Workshop, open_env
from bench.writer_watch import watch_writer
from vskill_platform.broker.contract import Batch, Message
from vskill_platform.domain.content import SkillFile, digest_of_files
from vskill_platform.domain.messages import SubmissionMessage, decode_body
from vskill_platform.domain.scan import StaticReport
from vskill_platform.domain.states import State
from vskill_platform.domain.submission import Submission
from vskill_platform.env import Env
from vskill_platform.intake.manifest import read_manifest
from vskill_platform.intake.submit import Outcome, submit_repository
from vskill_platform.publish import Content, Verified, publish
from vskill_platform.queue.keeper import kept_alive
from vskill_platform.sources.contract import Fetched
from vskill_platform.store.claims import HeldClaim, Passed, claim_submission
from vskill_platform.worker_context import run_with_worker_env

#: Clients that submit at the same time, as a web server would let them.
SUBMITTERS = 100

#: Batches at once where a worker is set for many small skills; the default is 10.
MANY = 32

#: Durable writes of one submission: create, lease, claim, publish, ack.
WRITES = 5

_FILES = (SkillFile("SKILL.md", "100644", b"---\nname: skill\ndescription: Does nothing.\n---\n"),)
CONTENT = Content(digest_of_files(_FILES), _FILES, read_manifest(_FILES[0].data))
VERIFIED = Verified(CONTENT, Passed(State.AUTO_APPROVED, "nothing was looked at", {}))


class NoFetch:
    """A source that has the files at once."""

    async def fetch(self, submission: Submission) -> Fetched:
        text = f"---\nname: {submission.skill_name}\ndescription: Does nothing.\n---\nNothing.\n"
        return Fetched((SkillFile("SKILL.md", "100644", text.encode()),), commit="0" * 40)


class NoScan:
    """A scanner that finds everything clean."""

    ruleset = "none"

    async def scan(self, files: Sequence[SkillFile]) -> StaticReport:
        return StaticReport(self.ruleset)


def run(workshop: Workshop) -> Report:
    count = workshop.scale.submissions
    rounds = [workshop.run(publish_all(workshop.new_file(), count)) for _ in range(workshop.scale.rounds + 1)]
    samples = rounds[1:]
    together = Figure.of(
        "submit to PUBLISHED, clients and worker at once", "submissions/s", [s.together for s in samples]
    )
    states = Figure.of(
        f"RECEIVED to PUBLISHED, the states and nothing else, {MANY} batches at once",
        "submissions/s",
        [s.moving_many for s in samples],
    )
    return Report(
        name="path",
        title=f"{count:,} submissions from submit to PUBLISHED, an empty pipeline, every transition durable",
        figures=(
            states,
            Figure.of("the same, 10 batches at once", "submissions/s", [s.moving for s in samples]),
            together,
            Figure.of("submit alone", "submissions/s", [s.submitting for s in samples]),
            Figure.of(
                "RECEIVED to PUBLISHED, the real pipeline with empty stages",
                "submissions/s",
                [s.working for s in samples],
            ),
            Figure.of(
                "durable writes, clients and worker at once",
                "writes/s",
                [s.together * WRITES for s in samples],
            ),
            Figure.of("operations that share one flush", "operations", [s.grouped for s in samples]),
            Figure.of("one transaction of the writer", "ms", [s.transaction_ms for s in samples]),
        ),
        goals=(at_least("submissions/s from RECEIVED to PUBLISHED", states.median, 1_000.0, unit="/s"),),
        notes=(
            f"{WRITES} durable writes: create with message, lease, claim, AUTO_APPROVED and PUBLISHED with skill, ack.",
            "The states alone: lease, claim, AUTO_APPROVED and PUBLISHED with skill, ack.",
            "Every submission brings the same content, so it is scanned once and its report stored once.",
            f"{SUBMITTERS} clients submit at the same time; one worker process, batches of 3, 10 at once by default.",
            f"All that wait share a flush and its statements: max_concurrency = {MANY} pays where skills are small.",
        ),
    )


class Sample(msgspec.Struct, frozen=True):
    """Submissions a second, and what the writer did while clients and worker were at it together."""

    moving: float
    moving_many: float
    together: float
    submitting: float
    working: float
    grouped: float
    transaction_ms: float


async def publish_all(path: Path, count: int) -> Sample:
    """A first lot with clients and worker at once, then another in two halves of the way."""
    async with open_env(path) as opened:
        env = msgspec.structs.replace(opened, sources=NoFetch(), scanner=NoScan(), signing=None)
        return await run_with_worker_env(env, lambda: _publish_all(env, count))


async def _publish_all(env: Env, count: int) -> Sample:
    with watch_writer() as writer, timed() as together:
        async with consuming(env):
            await submit_all(0, count)
            await until_done(env, count)
            together.stop()
    with timed() as submitting:
        await submit_all(count, count)
    with timed() as working:
        async with consuming(env):
            await until_done(env, 2 * count)
            working.stop()
    moving = await _move_all(env, 2 * count, count)
    wide = msgspec.structs.replace(env.settings, max_concurrency=MANY)
    moving_many = await _move_all(msgspec.structs.replace(env, settings=wide), 3 * count, count)
    return Sample(
        count / moving,
        count / moving_many,
        count / together.seconds,
        count / submitting.seconds,
        count / working.seconds,
        writer.operations_each,
        writer.ms_each,
    )


async def _move_all(env: Env, first: int, count: int) -> float:
    """Seconds from RECEIVED to PUBLISHED, the states and nothing else, for a lot of their own."""
    await submit_all(first, count)
    with timed() as moving:
        async with consuming(env, states_only):
            await until_done(env, first + count)
            moving.stop()
    return moving.seconds


async def states_only(batch: Batch, env: Env) -> None:
    """A pipeline that does nothing but the states: claim, and the one commit that approves and publishes."""
    await run_with_worker_env(env, lambda: asyncio.gather(*map(_states_only, batch.messages)))


async def _states_only(message: Message) -> None:
    body = decode_body(message.body)
    assert isinstance(body, SubmissionMessage)
    async with kept_alive(message) as keeper:
        claim = await claim_submission(body.submission_id, body.run)
        assert isinstance(claim, HeldClaim)
        keeper.claim = claim
        claim.learn(digest=CONTENT.digest)
        await publish(claim, VERIFIED)
        await message.ack()


async def submit_all(first: int, count: int) -> None:
    """Through the real door, many clients at a time."""
    await from_clients(SUBMITTERS, range(first, first + count), _submit)


async def _submit(number: int) -> None:
    submitted = await submit_repository(f"https://github.com/owner-{number % 97}/repo-{number}", "skill")
    assert submitted.outcome is Outcome.CREATED, submitted


async def until_done(env: Env, count: int) -> None:
    """Until every submission is PUBLISHED and its message is gone."""
    await until_published(count)
    await until_empty(env)
