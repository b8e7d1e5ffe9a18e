"""One history: machines, people and weather on one shared store, from a seed. It plays the bad time, then the quiet
after it until nothing is owed to anybody, and then checks every invariant."""

import asyncio
import functools
import gc
from collections.abc import Callable
from random import Random
from typing import cast
from unittest import mock

import msgspec
import structlog

from simulator.actors import AMBUSHES, WEIGHTS, People
from simulator.checks import Broken, WatchedStore, Watcher
from simulator.clocks import ProcessClock, StoreClock
from simulator.content import PLACES, Place, Repositories, SimulatedJudge, SimulatedScanner, SimulatedSources
from simulator.engines import Channel, FaultyBlobs, FaultyBroker
from simulator.faults import Process, Weather
from simulator.invariants import check_end
from simulator.loop import NothingLeft, VirtualLoop
from simulator.machines import Machine
from simulator.outside import ANALYSED, SETTINGS, Outside
from simulator.plan import Fault, draw_plan
from simulator.planted import Bug, handler_of, jobs_of, queue_class, store_class
from simulator.trace import Trace, TraceLog
from vskill_platform.blobs.memory import MemoryBlobs
from vskill_platform.domain import keys
from vskill_platform.domain.skill import PublishedSkill
from vskill_platform.domain.submission import CLOCK_SLACK_MS, Event, Submission, claimable
from vskill_platform.domain.task import Task, is_due
from vskill_platform.env import Env
from vskill_platform.kv.collections import SKILLS, TASKS
from vskill_platform.notifications import deliveries
from vskill_platform.observability import Metrics
from vskill_platform.queue import schedule
from vskill_platform.queue.control import Pause
from vskill_platform.queue.jobs import Job
from vskill_platform.store.jobs import JobRecord

#: After the bad time, seconds without a step of any submission or task while something is due: longer than the
#: longest backoff and the longest budget of a job together.
PATIENCE_S = 2_700
#: How often the queue is looked at once nothing is owed.
DREGS_LOOKS = 100
#: No job's tick and no run of one lies further ahead, unless the clock went back.
JOB_MOST_MS = 120_000
#: Jobs that every history needs to come to its end.
NEEDED = ("recovery", "blocklist", "rescans")
#: How often schedules look for due ticks. Looking is most of what an idle world does, so they do it less often.
LOOK_EVERY_S = 3.0
#: Where one source stays down, it does so for longer than a day.
DEAD_SOURCE_S = 25 * 3_600
#: How often somebody who submitted submits something else a moment later.
BURST = 0.4


class Result(msgspec.Struct, frozen=True):
    """How a history went."""

    seed: int
    broken: str | None
    counts: dict[str, int]
    seconds: float
    digest: str
    trace: list[str]


@functools.cache
def _metrics() -> Metrics:
    """Building the registry costs more than a history, and nobody reads it."""
    return Metrics()


class World:
    """Everything of one history."""

    def __init__(self, seed: int, bug: Bug | None = None) -> None:
        self.seed = seed
        self.rng = Random(f"world {seed}")
        self.plan = draw_plan(self.rng)
        self.loop = VirtualLoop(Random(f"loop {seed}"))
        self.trace = Trace(lambda: int(self.loop.time() * 1000))
        self.weather = Weather(self.plan, self.rng, self.loop, self.trace)
        self.clock = StoreClock(self.loop)
        self.watcher = Watcher(
            self.clock, self.trace, self._fail, self.moment, self._ambush, self._task_stepped
        )
        self.queue = queue_class(bug)(self.clock)
        self.store = WatchedStore(self.clock, self.queue, self.watcher)
        self.blobs = MemoryBlobs()
        self.channel = Channel(self.weather)
        self.repositories = Repositories()
        self.places: list[Place] = self.rng.sample(PLACES, self.rng.randint(3, len(PLACES)))
        self.poison_left = self.plan.poison
        self.problem: Broken | None = None
        self._bug = bug
        self._moments = 0
        self._last_step = 0.0
        self._dregs_seen = 0
        self._acts: list[tuple[Process, asyncio.Task[None]]] = []
        self.outside = Outside(self)
        self._settings = ANALYSED if self.plan.analyser else SETTINGS
        self._ambushes = self.rng.choice((0.0, 0.02, 0.06, 0.15))
        self.people = People(self)
        jobs = [job for job in jobs_of(bug) if self._is_run(job)]
        schedules = self.rng.choice((1, 2, 2))
        self._machines = [
            Machine(self, name, handler_of(bug), jobs if number < schedules else None)
            for number, name in enumerate("ABC"[: self.rng.randint(2, 3)])
        ]
        self._over: asyncio.Future[None] = self.loop.create_future()

    def _is_run(self, job: Job) -> bool:
        """Jobs that would find nothing in this history, and would do so every few seconds, are left out."""
        wanted = {
            "notices": bool(self.plan.listeners),
            "external-scans": self.plan.analyser,
            "repositories": self.plan.watched,
        }
        return wanted.get(job.name, job.name in NEEDED or self.plan.chores)

    # What the parts ask of their world.

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
        )

    def moment(self) -> int:
        """Counts up: which of two things came first, whatever the clocks say."""
        self._moments += 1
        return self._moments

    def broken(self, invariant: str, detail: str) -> None:
        self._fail(Broken(invariant, detail))

    def _fail(self, broken: Broken) -> None:
        if self.problem is None and not self.weather.closing:
            self.problem = broken
            self.trace.add("world", "BROKEN", str(broken))
            if not self._over.done():
                self._over.set_result(None)

    async def records(self) -> dict[str, Submission]:
        page = await self.store.scan(keys.SUB)
        found = [msgspec.json.decode(entry.value, type=Submission) for entry in page.items]
        return {record.id: record for record in found}

    async def skills(self) -> list[PublishedSkill]:
        page = await self.store.scan(keys.SKILL, exclude=SKILLS.exclude)
        return [msgspec.json.decode(entry.value, type=PublishedSkill) for entry in page.items]

    async def tasks(self) -> list[Task]:
        page = await self.store.scan(TASKS.prefix)
        return [msgspec.json.decode(entry.value, type=Task) for entry in page.items]

    # From the beginning to the end.

    def run(self) -> Result:
        """Play it. The collector rests meanwhile: when it finds a forgotten task must not depend on the machine."""
        self.loop.set_exception_handler(self._unhandled)
        gc.disable()
        try:
            with (
                mock.patch.object(deliveries, "post", self.outside.post),
                mock.patch.object(schedule, "LOOK_EVERY_S", LOOK_EVERY_S),
            ):
                self.loop.run_until_complete(self._live())
        except NothingLeft:
            self.broken("the world does not stop by itself", "nothing is left that could ever happen")
        finally:
            self.weather.closing = True
            self._take_down()
            gc.enable()
        broken = None if self.problem is None else str(self.problem)
        trace = [] if broken is None else self.trace.lines()
        counts = dict(self.trace.counts)
        return Result(self.seed, broken, counts, self.loop.time(), self.trace.digest(), trace)

    async def _live(self) -> None:
        life = self.loop.create_task(self._history())
        life.add_done_callback(self._ended)
        await self._over

    def _ended(self, life: "asyncio.Task[None]") -> None:
        if life.cancelled():
            return
        error = life.exception()
        if isinstance(error, Broken):
            self._fail(error)
        elif error is not None:
            raise error
        if not self._over.done():
            self._over.set_result(None)

    async def _history(self) -> None:
        await self.outside.subscribe()
        self._schedule_chaos()
        for machine in self._machines:
            machine.start()
        await asyncio.sleep(self.plan.chaos)
        self.weather.chaos = False
        self.trace.add("world", "CALM", "the bad time is over")
        await self._settle()
        while await self._is_at_work():
            # A job that looks at the world again and again has asked for something in the last moment.
            for machine in self._machines:
                machine.start()
            await self._settle()
        await check_end(self)

    async def _is_at_work(self) -> bool:
        owed: list[Task | Submission] = [*await self.tasks(), *(await self.records()).values()]
        return any(one.state.active for one in owed)

    async def _settle(self) -> None:
        """Until nothing is owed, and then to the end of every process."""
        await self._until_settled()
        self.trace.add("world", "SETTLED", "")
        for machine in self._machines:
            if not await machine.stop():
                raise Broken("a stopping process ends", machine.process.name)

    def _schedule_chaos(self) -> None:
        plan, at = self.plan, self.loop.call_later
        for place in self.places:
            at(self.rng.uniform(0, plan.chaos / 3), self._begin_act, "submit", place)
        for _ in range(self.rng.randint(4, 18)):
            what = self.rng.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))[0]
            at(self.rng.uniform(0, plan.chaos), self._begin_act, what, None)
        for when, by_ms in plan.clock_jumps:
            at(when, self._jump_clock, by_ms)
        for when, seconds in plan.suspensions:
            at(when, self._suspend, seconds)
        for when in plan.stops:
            at(when, self._stop_one)
        if plan.dead_source:
            self.repositories.dead = self.rng.choice(self.places).identity.key
            self.repositories.dead_until = DEAD_SOURCE_S

    def _begin_act(self, what: str, place: Place | None) -> None:
        if not self.weather.chaos:
            return
        process = self.people.process
        self._acts.append((process, self.loop.create_task(self._act(what, place, process))))
        if what == "submit" and place is not None and self.rng.random() < BURST:
            self.loop.call_later(self.rng.expovariate(0.2), self._begin_act, what, place)

    async def _act(self, what: str, place: Place | None, process: Process) -> None:
        try:
            await self.people.act(what, place or await self.people.choose(what), process)
        except Exception as error:  # noqa: BLE001 - only the platform's own errors are answers
            self.broken("people get an answer or a clear error", f"{what}: {error!r}")

    def _ambush(self, record: Submission, event: Event) -> None:
        """Somebody acts on this submission in the moment of its step."""
        self._last_step = self.loop.time()
        if self.weather.draws(self._ambushes):
            place = next((one for one in self.places if one.id == record.id), None)
            self._begin_act(self.rng.choice(AMBUSHES), place)

    def _task_stepped(self) -> None:
        self._last_step = self.loop.time()

    def _jump_clock(self, by_ms: int) -> None:
        self.weather.happened(Fault.CLOCK_FORWARD if by_ms > 0 else Fault.CLOCK_BACK, "world", f"{by_ms} ms")
        self.clock.jump(by_ms)

    def _suspend(self, seconds: float) -> None:
        self.weather.happened(Fault.SUSPENDED, "world", f"{seconds:.1f} s")
        self.loop.jump(seconds)

    def _stop_one(self) -> None:
        machine = self.rng.choice(self._machines)
        self._acts.append((machine.process, self.loop.create_task(machine.restart())))

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

    # The quiet after it.

    async def _until_settled(self) -> None:
        self._last_step = self.loop.time()
        while (waits := await self._owed()) is not None:
            if self.loop.time() > self._last_step + PATIENCE_S:
                raise Broken("everything accepted comes to its end", await self._unsettled())
            if waits > 4:
                # Such a wait is meant: patience is for what is due.
                self.loop.jump(waits - 2)
                self._last_step += waits - 2
            await asyncio.sleep(1)

    async def _owed(self) -> float | None:
        """Seconds until something is due that is still owed; None when nothing is."""
        due: list[int] = []
        now = self.clock.now()
        for record in (await self.records()).values():
            if record.claim is not None:
                return 0
            if record.next_attempt_at is not None:
                due.append(now if claimable(record, now) else record.next_attempt_at)
        for task in await self.tasks():
            if task.claim is not None:
                return 0
            if task.next_attempt_at is not None:
                due.append(now if is_due(task, now) else task.next_attempt_at)
        if any(not process.dead and not task.done() for process, task in self._acts):
            return 0
        due += [*await self._blocklist_due(), *await self._following_due()]
        if due:
            return max(min(due) - now, await self._paused_for(now)) / 1000
        return await self._queue_left()

    async def _paused_for(self, now: int) -> int:
        """Milliseconds until the pause ends; one from before the clock went back is put right by whoever looks."""
        entry = await self.store.get(keys.CONTROL_QUEUE)
        pause = None if entry is None else msgspec.json.decode(entry.value, type=Pause)
        return 0 if pause is None or pause.at > now + CLOCK_SLACK_MS else max(pause.until - now, 0)

    async def _queue_left(self) -> float | None:
        """Messages that nothing is owed for are received and dropped. Those that the clock has left behind stay, for
        nobody sends them again: they are waited for only so long."""
        depth = await self.queue.depth()
        if depth.ready + depth.delayed + depth.leased == 0 or self._dregs_seen > DREGS_LOOKS:
            return None
        self._dregs_seen += 1
        return 0 if depth.ready else 20

    async def _blocklist_due(self) -> list[int]:
        """When the job runs next that applies the blocklist, if it has not applied it as it is now."""
        entry = await self.store.get(keys.CONTROL_BLOCKLIST)
        job = await self._job("blocklist")
        return [] if entry is None or job.state.get("applied") == entry.version else [self._due(job)]

    async def _following_due(self) -> list[int]:
        """When the jobs run next that follow changes, if there are some that they have not seen."""
        followed = {"notices": keys.SUB[:-1]} if self.plan.listeners else {}
        followed |= {"external-scans": SKILLS.prefix} if self.plan.analyser else {}
        due = []
        for name, prefix in followed.items():
            job = await self._job(name)
            cursor = job.state.get("cursor")
            seen = isinstance(cursor, str) and job.state.get("walked_to") is None
            if not seen or (await self.store.changes(prefix, after=str(cursor), limit=1)).items:
                due.append(self._due(job))
        return due

    async def _job(self, name: str) -> JobRecord:
        found = await self.store.get(keys.job(name))
        return JobRecord(name) if found is None else msgspec.json.decode(found.value, type=JobRecord)

    def _due(self, job: JobRecord) -> int:
        due, now = max(job.due_at, job.running.until if job.running else 0), self.clock.now()
        return due if due <= now + JOB_MOST_MS else now

    async def _unsettled(self) -> str:
        records = [f"{one.id} {one.state}" for one in (await self.records()).values() if one.state.active]
        records += [f"{one.key} {one.outcome}" for one in await self.tasks() if one.state.active]
        return f"{records}, {await self.queue.depth()}, blocklist due {await self._blocklist_due()}"

    # Taking it down.

    def _unhandled(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        if not self.weather.closing:
            self.broken("nothing fails unseen", f"{context.get('message')}: {context.get('exception')!r}")

    def _take_down(self) -> None:
        """Cancel whatever still hangs, until nothing does."""
        for _ in range(20):
            tasks = sorted(asyncio.all_tasks(self.loop), key=hash)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(_all_done(tasks))
        self.loop.close()


async def _all_done(tasks: list["asyncio.Task[object]"]) -> None:
    await asyncio.wait(tasks, timeout=30)
