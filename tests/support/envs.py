"""Whole environments for tests: the real wiring of `bootstrap` on a chosen engine, under a clock that the test owns.

`open_test_env` opens one and makes it the active worker environment, so a test calls the stores directly.
`run_until_quiet` works the queue until nothing is ready: the real consumer's handling of batches, without its
waiting. A test that wants time to pass calls `env.clock.advance(ms)`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import Context
from pathlib import Path
from typing import Any

import msgspec

from tests.support.manual_clock import ManualClock
from tests.support.memories import tiny_memory
from tests.support.scanners import structure_scanner
from vskill_core.content import SkillFile
from vskill_core.identity import Identity, submission_id, upload_identity
from vskill_core.naming import slug_of
from vskill_platform.bootstrap import env_for, open_env
from vskill_platform.domain.submissions import submission
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Claim, Step, Submission
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import Submitted, submit_upload
from vskill_platform.ledger.broker.contract import Batch
from vskill_platform.ledger.clock import Clock
from vskill_platform.queue.consumer import handle_submission_queue
from vskill_platform.queue.recovery import recover_stuck_submissions
from vskill_platform.settings import Settings
from vskill_platform.worker_context import Env, HashCost, run_with_worker_env, worker_env_storage
from vskill_scan.reading.manifest import read_manifest

#: Engines that a test of the whole may be run on.
ENGINES = ("memory", "sqlite", "postgresql")

CHEAP_HASH = HashCost(passes=1, memory_kib=64, lanes=1)

#: More rounds than any honest piece of work takes; a message that comes again for ever is a bug.
MOST_ROUNDS = 500

#: How a run gets to each state, for records that a test stores directly.
WAY_TO: dict[State, tuple[State, ...]] = {
    State.RECEIVED: (),
    State.TIER1_SCANNING: (State.TIER1_SCANNING,),
    State.TIER2_SCANNING: (State.TIER1_SCANNING, State.TIER2_SCANNING),
    State.AUTO_APPROVED: (State.TIER1_SCANNING, State.AUTO_APPROVED),
    State.COOLDOWN: (State.TIER1_SCANNING, State.COOLDOWN),
    State.NEEDS_REVIEW: (State.TIER1_SCANNING, State.NEEDS_REVIEW),
    State.PUBLISHED: (State.TIER1_SCANNING, State.AUTO_APPROVED, State.PUBLISHED),
    State.TIER1_FAILED: (State.TIER1_SCANNING, State.TIER1_FAILED),
    State.REJECTED: (State.TIER1_SCANNING, State.REJECTED),
    State.BLOCKED: (State.BLOCKED,),
    State.DEQUEUED: (State.DEQUEUED,),
}


@asynccontextmanager
async def open_test_env(
    engine: str, tmp_path: Path, *, clock: Clock | None = None, active: bool = True, **overrides: Any
) -> AsyncIterator[Env]:
    """An environment on `memory`, `sqlite` or `postgresql`; what `tmp_path` names is there when it is opened again.

    An override that names a setting goes into the settings, one that names a field of `Env` replaces it.
    `active=False` does not make it the worker environment of the calling task.
    """
    settings = _settings(await _store_of(engine, tmp_path), tmp_path, overrides)
    async with AsyncExitStack() as stack:
        env = await open_env(settings, stack, clock=clock or ManualClock())
        # Tests of everything around the scanner need no child processes; tests/scan has them. Passwords are hashed by
        # the thousand, and what a real hash costs is held by a test of its own.
        env = msgspec.structs.replace(
            env,
            scanner=structure_scanner(read_manifest, settings.known_bad_digests),
            hash_cost=CHEAP_HASH,
            packaged_memory=tiny_memory,
        )
        env = msgspec.structs.replace(
            env, **{k: v for k, v in overrides.items() if k in Env.__struct_fields__}
        )
        if not active:
            yield env
            return
        with active_env(env):
            yield env


@asynccontextmanager
async def open_product_env(settings: Settings) -> AsyncIterator[Env]:
    """What the product opens, its scanner too; only passwords cost less to hash."""
    async with env_for(settings) as env:
        yield msgspec.structs.replace(env, hash_cost=CHEAP_HASH)


@contextmanager
def active_env(env: Env, **changes: Any) -> Iterator[Env]:
    """Make an environment, with some of its fields replaced, the active one of the calling task."""
    changed = msgspec.structs.replace(env, **changes)
    token = worker_env_storage.set(changed)
    try:
        yield changed
    finally:
        worker_env_storage.reset(token)


async def _store_of(engine: str, tmp_path: Path) -> str:
    if engine == "postgresql":
        # Imported here: most tests need no server.
        from tests.support.postgres import database_of  # noqa: PLC0415

        return await database_of(tmp_path)
    return {"memory": "memory:", "sqlite": f"sqlite:{tmp_path / 'vskill.db'}"}[engine]


def _settings(store: str, tmp_path: Path, overrides: dict[str, Any]) -> Settings:
    known = {*Settings.__struct_fields__, *Env.__struct_fields__}
    unknown = sorted(set(overrides) - known)
    if unknown:
        raise TypeError(f"neither a setting nor a field of Env: {unknown[0]}")
    if "settings" in overrides:
        given: Settings = overrides["settings"]
        return given
    values = {name: value for name, value in overrides.items() if name in Settings.__struct_fields__}
    return Settings(**{"data_dir": str(tmp_path), "store": store, **values})


def skill_files(
    name: str, body: str = "", version: str | None = None, *, extra: Sequence[SkillFile] = ()
) -> tuple[SkillFile, ...]:
    """A small valid skill; another body or version is other content of the same name."""
    head = f"name: {name}\ndescription: A small skill called {name}.\n"
    if version is not None:
        head += f"version: {version}\n"
    return (SkillFile("SKILL.md", "100644", f"---\n{head}---\n# {name}\n{body}\n".encode()), *extra)


async def submit_skill(name: str, body: str = "", *, namespace: str = "tests", **options: Any) -> Submitted:
    """Upload a small skill through the one door."""
    version = options.pop("version", None)
    extra = options.pop("extra", ())
    by = options.pop("by", None) or SubmittedBy(options.pop("submitter", None))
    files = skill_files(name, body, version, extra=extra)
    return await submit_upload(files, namespace=namespace, slug=name, by=by, **options)


def make_submission(
    name: str = "demo",
    *,
    state: State = State.RECEIVED,
    at: int = 0,
    identity: Identity | None = None,
    claimed_until: int | None = None,
    **changes: object,
) -> Submission:
    """A record in this state with the history that leads there; no store is touched."""
    place = identity or upload_identity("tests", name)
    record = submission.create(
        submission_id=submission_id(place),
        identity=place,
        repo_url=place.url,
        skill_name=slug_of(place),
        step=Step(f"{name}-1", at, "user:test", "submitted"),
    )
    for number, to in enumerate(WAY_TO[state], start=2):
        record = submission.move(record, to, Step(f"{name}-{number}", at, "worker:test", "made by a test"))
    if claimed_until is not None:
        claim = Claim(f"{name}-token", "test", claimed_until)
        record = msgspec.structs.replace(record, claim=claim, next_attempt_at=None)
    return msgspec.structs.replace(record, **changes) if changes else record


async def put_record(env: Env, record: Submission) -> int:
    """Store a record as it is, without a message and without asking anyone."""
    return await env.kv.put(record.key, msgspec.json.encode(record))


async def run_until_quiet(env: Env, *, recover: bool = False, rounds: int = MOST_ROUNDS) -> int:
    """Work batches until nothing is ready, as the consumer does; how many messages were handled.

    What is delayed, or leased by somebody else, is left alone. `recover` lets recovery look first.
    """
    if recover:
        await run_with_worker_env(env, recover_stuck_submissions)
    settings = env.settings
    handled = 0
    for _ in range(rounds):
        batches = await env.broker.receive(settings.max_batch_size, 0, settings.max_concurrency)
        if not batches:
            return handled
        handled += sum(len(batch.messages) for batch in batches)
        await asyncio.gather(*(run_batch(env, batch) for batch in batches))
    raise AssertionError(f"the queue is not quiet after {rounds} rounds")


async def run_batch(env: Env, batch: Batch) -> None:
    """One batch in a fresh, empty context; a clean return acks what is unsettled."""

    async def work() -> None:
        await handle_submission_queue(batch, env)
        await batch.ack_all()

    await asyncio.create_task(work(), context=Context())
