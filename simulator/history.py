"""One history: machines, people and weather on one shared store, from a seed. It plays the bad time, then the quiet
after it until nothing is owed to anybody, and then checks every invariant."""

import asyncio
import gc
from unittest import mock

import msgspec

from simulator.actors import AMBUSHES, WEIGHTS, People
from simulator.checks import Broken
from simulator.content import Place
from simulator.faults import Process
from simulator.hub import Hub
from simulator.invariants import check_end
from simulator.loop import NothingLeft
from simulator.machines import Machine
from simulator.outside import Outside
from simulator.plan import Fault
from simulator.planted import Bug, handler_of, jobs_of
from simulator.world import World
from vskill_platform.domain import keys
from vskill_platform.domain.operation.task import Task, is_due
from vskill_platform.domain.submissions.attempts import CLOCK_SLACK_MS, claimable
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Event, Submission
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.notifications import deliveries
from vskill_platform.queue.control import Pause
from vskill_platform.queue.jobs import Job
from vskill_platform.stages import upstream_registries
from vskill_platform.store.operation.jobs import JobRecord
from vskill_platform.upkeep.scrub import PASS_EVERY_MS, ScrubProgress

#: After the bad time, seconds without a step of any submission or task while something is due: longer than the
#: longest backoff and the longest budget of a job together.
PATIENCE_S = 2_700
#: How often the queue is looked at once nothing is owed.
DREGS_LOOKS = 100
#: No job's tick and no run of one lies further ahead, unless the clock went back.
JOB_MOST_MS = 120_000
#: Jobs that every history needs to come to its end.
NEEDED = ("recovery", "blocklist", "rescans", "namespaces")
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


class History:
    """One seed, played."""

    def __init__(self, seed: int, bug: Bug | None = None) -> None:
        self.seed = seed
        world = self.world = World(seed, bug, self._ambush, self._task_stepped)
        self._last_step = 0.0
        self._calm_at = 0
        #: How far the scrub was when the bad time was over.
        self._scrubbed = ScrubProgress()
        self._dregs_seen = 0
        self._acts: list[tuple[Process, asyncio.Task[None]]] = []
        self._outside = Outside(world)
        self._ambushes = world.rng.choice((0.0, 0.02, 0.06, 0.15))
        self._people = People(world, self._outside, Hub(world))
        jobs = [job for job in jobs_of(bug) if self._is_run(job)]
        schedules = world.rng.choice((1, 2, 2))
        self._machines = [
            Machine(world, name, handler_of(bug), jobs if number < schedules else None)
            for number, name in enumerate("ABC"[: world.rng.randint(2, 3)])
        ]

    def _is_run(self, job: Job) -> bool:
        """Jobs that would find nothing in this history, and would do so every few seconds, are left out."""
        wanted = {
            "notices": bool(self.world.plan.listeners),
            "external-scans": self.world.plan.analyser,
            "repositories": self.world.plan.watched,
            "scrub": bool(self.world.plan.damages),
            "policy": self.world.plan.has_policy,
            "upstreams": self.world.plan.has_upstream,
        }
        return wanted.get(job.name, job.name in NEEDED or self.world.plan.chores)

    # From the beginning to the end.

    def run(self) -> Result:
        """Play it. The collector rests meanwhile: when it finds a forgotten task must not depend on the machine."""
        self.world.loop.set_exception_handler(self._unhandled)
        gc.disable()
        try:
            with (
                mock.patch.object(deliveries, "post", self._outside.post),
                mock.patch.object(upstream_registries, "request", self._people.hub.request),
            ):
                self.world.loop.run_until_complete(self._live())
        except NothingLeft:
            self.world.broken("the world does not stop by itself", "nothing is left that could ever happen")
        finally:
            self.world.weather.closing = True
            self._take_down()
            gc.enable()
        broken = None if self.world.problem is None else str(self.world.problem)
        trace = [] if broken is None else self.world.trace.lines()
        counts = dict(self.world.trace.counts)
        return Result(self.seed, broken, counts, self.world.loop.time(), self.world.trace.digest(), trace)

    async def _live(self) -> None:
        life = self.world.loop.create_task(self._history())
        life.add_done_callback(self._ended)
        await self.world.over

    def _ended(self, life: "asyncio.Task[None]") -> None:
        if life.cancelled():
            return
        error = life.exception()
        if isinstance(error, Broken):
            self.world.fail(error)
        elif error is not None:
            raise error
        self.world.end()

    async def _history(self) -> None:
        await self._outside.subscribe()
        if self.world.plan.has_policy:
            await self.world.begin_with_policy()
        if self.world.plan.has_upstream:
            await self._people.hub.add()
        self._schedule_chaos()
        for machine in self._machines:
            machine.start()
        await asyncio.sleep(self.world.plan.chaos)
        self.world.weather.chaos = False
        self.world.trace.add("world", "CALM", "the bad time is over")
        self._calm_at = self.world.clock.now()
        self._scrubbed = await self._scrub_progress()
        if self.world.plan.damages:
            await self._people.mend_uploads()
        if self.world.plan.has_upstream:
            await self._people.read_upstream()
        await self._settle()
        while await self._is_at_work():
            # A job that looks at the world again and again has asked for something in the last moment.
            for machine in self._machines:
                machine.start()
            await self._settle()
        await check_end(self.world, self._people, self._outside)
        if self.world.plan.has_upstream:
            await self._people.hub.check()

    async def _is_at_work(self) -> bool:
        return await self._in_hand() or bool(await self._waiting())

    async def _settle(self) -> None:
        """Until nothing is owed, and then to the end of every process."""
        await self._until_settled()
        self.world.trace.add("world", "SETTLED", "")
        for machine in self._machines:
            if not await machine.stop():
                raise Broken("a stopping process ends", machine.process.name)

    def _schedule_chaos(self) -> None:
        plan, at = self.world.plan, self.world.loop.call_later
        for place in self.world.places:
            at(self.world.rng.uniform(0, plan.chaos / 3), self._begin_act, "submit", place)
        for _ in range(self.world.rng.randint(4, 18)):
            what = self.world.rng.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))[0]
            at(self.world.rng.uniform(0, plan.chaos), self._begin_act, what, None)
        for when, what in plan.policy_acts:
            at(when, self._begin_act, what, None)
        for when, by_ms in plan.clock_jumps:
            at(when, self._jump_clock, by_ms)
        for when, seconds in plan.suspensions:
            at(when, self._suspend, seconds)
        for when in plan.stops:
            at(when, self._stop_one)
        for when, how in plan.damages:
            at(when, self.world.damage, how)
        if plan.dead_source:
            self.world.repositories.dead = self.world.rng.choice(self.world.places).identity.key
            self.world.repositories.dead_until = DEAD_SOURCE_S

    def _begin_act(self, what: str, place: Place | None) -> None:
        if not self.world.weather.chaos:
            return
        process = self._people.process
        self._acts.append((process, self.world.loop.create_task(self._act(what, place, process))))
        if what == "submit" and place is not None and self.world.rng.random() < BURST:
            self.world.loop.call_later(self.world.rng.expovariate(0.2), self._begin_act, what, place)

    async def _act(self, what: str, place: Place | None, process: Process) -> None:
        try:
            await self._people.act(what, place or await self._people.choose(what), process)
        except Exception as error:  # noqa: BLE001 - only the platform's own errors are answers
            self.world.broken("people get an answer or a clear error", f"{what}: {error!r}")

    def _ambush(self, record: Submission, event: Event) -> None:
        """Somebody acts on this submission in the moment of its step."""
        self._last_step = self.world.loop.time()
        place = next((one for one in self.world.places if one.id == record.id), None)
        if event.to is State.COOLDOWN and record.run > 1:
            # An update that waits is rare, and seldom still waits when somebody happens to report its skill.
            self._begin_act("report", place)
        if self.world.weather.draws(self._ambushes):
            self._begin_act(self.world.rng.choice(AMBUSHES), place)

    def _task_stepped(self) -> None:
        self._last_step = self.world.loop.time()

    def _jump_clock(self, by_ms: int) -> None:
        self.world.weather.happened(
            Fault.CLOCK_FORWARD if by_ms > 0 else Fault.CLOCK_BACK, "world", f"{by_ms} ms"
        )
        self.world.clock.jump(by_ms)

    def _suspend(self, seconds: float) -> None:
        self.world.weather.happened(Fault.SUSPENDED, "world", f"{seconds:.1f} s")
        self.world.loop.jump(seconds)

    def _stop_one(self) -> None:
        machine = self.world.rng.choice(self._machines)
        self._acts.append((machine.process, self.world.loop.create_task(machine.restart())))

    # The quiet after it.

    async def _until_settled(self) -> None:
        self._last_step = self.world.loop.time()
        while (waits := await self._owed()) is not None:
            if self.world.loop.time() > self._last_step + PATIENCE_S:
                raise Broken("everything accepted comes to its end", await self._unsettled())
            if waits > 4:
                # Such a wait is meant: patience is for what is due.
                self.world.loop.jump(waits - 2)
                self._last_step += waits - 2
            await asyncio.sleep(1)

    async def _owed(self) -> float | None:
        """Seconds until something is due that is still owed; None when nothing is."""
        if await self._in_hand():
            return 0
        if due := await self._waiting():
            now = self.world.clock.now()
            return max(min(due) - now, await self._paused_for(now)) / 1000
        return await self._queue_left()

    async def _in_hand(self) -> bool:
        """Whether a worker or a person is at something this moment or stalled over it, or a write is on its way."""
        held: list[Task | Submission] = [*await self.world.tasks(), *(await self.world.records()).values()]
        acting = any(not process.dead and not task.done() for process, task in self._acts)
        processes = (self._people.process, *(machine.process for machine in self._machines))
        stalled = any(not one.dead and one.stalled_until > self.world.loop.time() for one in processes)
        preparing = any(one.preparing is not None for one in await self.world.namespaces())
        late = self.world.weather.late > 0
        return acting or stalled or late or preparing or any(one.claim is not None for one in held)

    async def _waiting(self) -> list[int]:
        """When what is owed work is due: records, tasks, and the jobs that have not seen everything yet."""
        now = self.world.clock.now()
        owed = [(one.next_attempt_at, claimable(one, now)) for one in (await self.world.records()).values()]
        owed += [(one.next_attempt_at, is_due(one, now)) for one in await self.world.tasks()]
        due = [now if is_now else at for at, is_now in owed if at is not None]
        return [*due, *await self._blocklist_due(), *await self._following_due(), *await self._scrub_due()]

    async def _paused_for(self, now: int) -> int:
        """Milliseconds until the pause ends; one from before the clock went back is put right by whoever looks."""
        entry = await self.world.store.get(keys.CONTROL_QUEUE)
        pause = None if entry is None else msgspec.json.decode(entry.value, type=Pause)
        return 0 if pause is None or pause.at > now + CLOCK_SLACK_MS else max(pause.until - now, 0)

    async def _queue_left(self) -> float | None:
        """Messages that nothing is owed for are received and dropped. Those that the clock has left behind stay, for
        nobody sends them again: they are waited for only so long."""
        depth = await self.world.queue.depth()
        if depth.ready + depth.delayed + depth.leased == 0 or self._dregs_seen > DREGS_LOOKS:
            return None
        self._dregs_seen += 1
        return 0 if depth.ready else 20

    async def _blocklist_due(self) -> list[int]:
        """When the job runs next that applies the blocklist, if it has not applied it as it is now."""
        entry = await self.world.store.get(keys.CONTROL_BLOCKLIST)
        job = await self._job("blocklist")
        return [] if entry is None or job.state.get("applied") == entry.version else [self._due(job)]

    async def _scrub_due(self) -> list[int]:
        """When the scrub reads on, unless it has read everything since the bad time was over. Where the clock went back
        before that, times of an earlier pass are later than the calm."""
        if not self.world.plan.damages:
            return []
        progress, before, now = await self._scrub_progress(), self._scrubbed, self.world.clock.now()
        is_new = progress.began_at != before.began_at and progress.ended_at != before.ended_at
        if is_new and progress.ended_at >= progress.began_at >= self._calm_at:
            return []
        job = await self._job("scrub")
        waits = not progress.after and 0 <= now - progress.began_at < PASS_EVERY_MS
        return [progress.began_at + PASS_EVERY_MS if waits else self._due(job)]

    async def _scrub_progress(self) -> ScrubProgress:
        return msgspec.convert((await self._job("scrub")).state, ScrubProgress)

    async def _following_due(self) -> list[int]:
        """When the jobs run next that follow changes, if there are some that they have not seen."""
        followed = {"notices": keys.sub.prefix[:-1]} if self.world.plan.listeners else {}
        followed |= {"external-scans": SKILLS.prefix} if self.world.plan.analyser else {}
        due = []
        for name, prefix in followed.items():
            job = await self._job(name)
            cursor = job.state.get("cursor")
            seen = isinstance(cursor, str) and job.state.get("walked_to") is None
            if not seen or (await self.world.store.changes(prefix, after=str(cursor), limit=1)).items:
                due.append(self._due(job))
        return [*due, *await self._recalls_due()]

    async def _recalls_due(self) -> list[int]:
        """When the job runs next that tells of recalls, if there are some that it has not seen."""
        entry = await self.world.store.get(keys.CONTROL_REVOCATIONS)
        if entry is None or not self.world.plan.listeners:
            return []
        job = await self._job("notices")
        return [] if job.state.get("serial") == int(entry.value) else [self._due(job)]

    async def _job(self, name: str) -> JobRecord:
        found = await self.world.store.get(keys.job(name))
        return JobRecord(name) if found is None else msgspec.json.decode(found.value, type=JobRecord)

    def _due(self, job: JobRecord) -> int:
        due, now = max(job.due_at, job.running.until if job.running else 0), self.world.clock.now()
        return due if due <= now + JOB_MOST_MS else now

    async def _unsettled(self) -> str:
        records = [
            f"{one.id} {one.state}" for one in (await self.world.records()).values() if one.state.active
        ]
        records += [f"{one.key} {one.outcome}" for one in await self.world.tasks() if one.state.active]
        return f"{records}, {await self.world.queue.depth()}, blocklist due {await self._blocklist_due()}"

    # Taking it down.

    def _unhandled(self, _: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        if not self.world.weather.closing:
            self.world.broken(
                "nothing fails unseen", f"{context.get('message')}: {context.get('exception')!r}"
            )

    def _take_down(self) -> None:
        """Cancel whatever still hangs, until nothing does."""
        for _ in range(20):
            tasks = sorted(asyncio.all_tasks(self.world.loop), key=hash)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            self.world.loop.run_until_complete(_all_done(tasks))
        self.world.loop.close()


async def _all_done(tasks: list["asyncio.Task[object]"]) -> None:
    await asyncio.wait(tasks, timeout=30)
