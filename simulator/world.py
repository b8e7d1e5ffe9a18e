"""What all parts of a history share: one store and one queue behind their channel, the weather, the clocks, and the
count of moments. Who plays on it, and to which end, is said in `history`."""

import asyncio
import functools
from collections.abc import Callable
from random import Random
from typing import cast

import msgspec
import structlog

from simulator.checks import Broken, WatchedStore, Watcher
from simulator.clocks import ProcessClock, StoreClock
from simulator.content import (
    PLACES,
    POLICIES,
    UPSTREAM_PLACES,
    Place,
    Repositories,
    SimulatedJudge,
    SimulatedScanner,
    SimulatedSources,
)
from simulator.engines import Channel, FaultyBlobs, FaultyBroker
from simulator.faults import Process, Weather
from simulator.loop import VirtualLoop
from simulator.plan import Fault, add_policy, add_upstream, draw_plan
from simulator.planted import Bug, content_class, kept_class, queue_class, store_class
from simulator.trace import Trace, TraceLog
from vskill_core.errors import ContentDamaged
from vskill_platform.domain import keys
from vskill_platform.domain.operation.damage import verified_files
from vskill_platform.domain.operation.task import Task
from vskill_platform.domain.people.namespace import Namespace
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.submissions.submission import Event, Submission
from vskill_platform.ledger.kv.collections import SKILLS, TASKS
from vskill_platform.machine.process_cache import KeptReads
from vskill_platform.observing.metrics import Metrics
from vskill_platform.settings import Settings
from vskill_platform.store.verdicts.policy import StoredPolicy
from vskill_platform.worker_context import Env, Pace
from vskill_scan.memory.memory import packaged_memory

#: The analyser elsewhere, which some histories have.
ANALYSER = "peer"
SECRET = "whsec_c2ltdWxhdGVk"  # noqa: S105 - of nobody
#: Nobody here starts programs or has a disk of this machine. Whoever does not call back within a minute is timed out.
SETTINGS = Settings(
    store="memory:", bandit_command="off", semgrep_command="off", external_scan_callback_ms=60_000
)
ANALYSED = msgspec.structs.replace(SETTINGS, external_scan_secrets=(f"{ANALYSER}={SECRET}",))
#: Read before any loop runs: a file is no part of the weather.
MEMORY = packaged_memory()
#: Looking for due ticks and signs of life is most of what an idle world does, so both are done less often.
PACE = Pace(look_every_s=3.0, sign_every_s=3_600.0)


@functools.cache
def _metrics() -> Metrics:
    """Building the registry costs more than a history, and nobody reads it."""
    return Metrics()


class World:
    """Everything of one history that more than one part of it touches."""

    def __init__(
        self,
        seed: int,
        bug: Bug | None,
        on_step: Callable[[Submission, Event], None],
        on_task_step: Callable[[], None],
    ) -> None:
        self.rng = Random(f"world {seed}")
        # By numbers of their own: a seed without a policy or an upstream stays what it was.
        plan = add_policy(draw_plan(self.rng), Random(f"policy {seed}"))
        self.plan = add_upstream(plan, Random(f"upstream {seed}"))
        self.loop = VirtualLoop(Random(f"loop {seed}"))
        self.trace = Trace(lambda: int(self.loop.time() * 1000))
        self.weather = Weather(self.plan, self.rng, self.loop, self.trace)
        self.clock = StoreClock(self.loop)
        self.watcher = Watcher(self.clock, self.trace, self.fail, self.moment, on_step, on_task_step)
        self.queue = queue_class(bug)(self.clock)
        self.store = WatchedStore(self.clock, self.queue, self.watcher)
        self.blobs = content_class(bug)(self.clock)
        self.channel = Channel(self.weather)
        self.repositories = Repositories()
        self.places: list[Place] = self.rng.sample(PLACES, self.rng.randint(3, len(PLACES)))
        if self.plan.has_upstream:
            self.places.extend(UPSTREAM_PLACES)
        self.poison_left = self.plan.poison
        self.problem: Broken | None = None
        #: Done once the history is: at its end, or at the first thing that is broken.
        self.over: asyncio.Future[None] = self.loop.create_future()
        self._bug = bug
        #: By process; a web process answers many.
        self._kept: dict[str, KeptReads] = {}
        self._moments = 0
        self._settings = ANALYSED if self.plan.analyser else SETTINGS

    def new_process(self, name: str, on_crash: Callable[[], None]) -> Process:
        process = Process(name, on_crash)
        process.skew = int(self.rng.uniform(-1, 1) * self.plan.skew)
        process.store_skew = int(self.rng.uniform(-1, 1) * self.plan.store_skew)
        return process

    def env_for(self, process: Process) -> Env:
        blobs = FaultyBlobs(self.blobs, process, self.weather)
        return Env(
            kv=store_class(self._bug)(self.store, self.channel, process, self.weather),
            broker=FaultyBroker(self.queue, self.channel, process, self.weather),
            blobs=blobs,
            sources=SimulatedSources(self.repositories, blobs, process, self.weather),
            scanner=SimulatedScanner(process, self.weather),
            judge=None if self.plan.no_judge else SimulatedJudge(process, self.weather),
            clock=ProcessClock(self.clock, process),
            settings=self._settings,
            log=cast("structlog.typing.FilteringBoundLogger", TraceLog(self.trace, process.name)),
            metrics=_metrics(),
            worker_id=process.name,
            kept=self._kept.setdefault(process.name, kept_class(self._bug)()),
            pace=PACE,
            packaged_memory=lambda: MEMORY,
        )

    async def begin_with_policy(self) -> None:
        """One is in force before anything is submitted."""
        stored = StoredPolicy(self.rng.choice(tuple(POLICIES)), "admin:ada", self.clock.now(), "the first")
        await self.store.put(keys.CONTROL_POLICY, msgspec.json.encode(stored))

    def damage(self, how: Fault) -> None:
        """Something happens to a piece of stored content, behind everybody's back."""
        content = self.blobs.content
        # A piece that was cut to nothing can lose no more bytes.
        pieces = sorted(digest for digest, (data, _) in content.items() if data)
        if not pieces:
            return
        digest = self.rng.choice(pieces)
        data, touched = content[digest]
        self.weather.happened(how, "disk", digest[:8])
        match how:
            case Fault.CONTENT_LOST:
                del content[digest]
            case Fault.CONTENT_CUT:
                content[digest] = data[: self.rng.randrange(len(data))], touched
            case _:
                place = self.rng.randrange(len(data))
                content[digest] = data[:place] + bytes((data[place] ^ 1,)) + data[place + 1 :], touched

    def is_whole(self, digest: str) -> bool:
        data, _ = self.blobs.content.get(digest, (None, 0))
        try:
            verified_files(data, digest)
        except ContentDamaged:
            return False
        return True

    async def listed_damage(self) -> set[str]:
        """The digests of what is known to be damaged."""
        page = await self.store.scan(keys.damage.prefix)
        return {entry.key.removeprefix(keys.damage.prefix) for entry in page.items}

    def moment(self) -> int:
        """Counts up: which of two things came first, whatever the clocks say."""
        self._moments += 1
        return self._moments

    def broken(self, invariant: str, detail: str) -> None:
        self.fail(Broken(invariant, detail))

    def fail(self, broken: Broken) -> None:
        """The first one counts, and ends the history."""
        if self.problem is None and not self.weather.closing:
            self.problem = broken
            self.trace.add("world", "BROKEN", str(broken))
            self.end()

    def end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

    async def records(self) -> dict[str, Submission]:
        page = await self.store.scan(keys.sub.prefix)
        found = [msgspec.json.decode(entry.value, type=Submission) for entry in page.items]
        return {record.id: record for record in found}

    async def skills(self) -> list[PublishedSkill]:
        page = await self.store.scan(keys.skill.prefix, exclude=SKILLS.exclude)
        return [msgspec.json.decode(entry.value, type=PublishedSkill) for entry in page.items]

    async def namespaces(self) -> list[Namespace]:
        page = await self.store.scan(keys.namespace.prefix)
        return [msgspec.json.decode(entry.value, type=Namespace) for entry in page.items]

    async def tasks(self) -> list[Task]:
        page = await self.store.scan(TASKS.prefix)
        return [msgspec.json.decode(entry.value, type=Task) for entry in page.items]

    async def check_stopped(self, process: Process, *, ended: bool) -> None:
        """Where nothing else goes wrong, a process that was stopped has let go of everything."""
        if not self.plan.only_slow:
            return
        held = [
            one.id
            for one in (await self.records()).values()
            if one.claim and one.claim.worker == process.name
        ]
        if not ended or held:
            self.broken("a stopping process finishes or hands back", f"{process.name}: {held}")
