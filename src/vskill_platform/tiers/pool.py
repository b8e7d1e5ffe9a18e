"""The scanner of the workers: child processes, each with one skill at a time, so that a scan that runs wild costs one
child and not the worker. Waiting for a free child does not count against a skill's budget.

A child that exceeds its processor time or memory, or breaks, is replaced, and the skill's report says so: it is timed
out, or an error, and never clean. A child that could not start, or that somebody else killed below its limits (as the
system does when memory is short), or that broke with less memory than it is due, or that got too little of the
processor to end, says nothing about the skill: Shortage asks for another try. The third time that a scan of one skill
is cut off, while others are scanned, its report says so too. The event loop only ever waits for sockets.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from vskill_core.content import SkillFile, digest_of_files
from vskill_core.errors import Shortage
from vskill_core.findings import ScanStatus, StaticReport
from vskill_platform.ledger.clock import TimeLimit
from vskill_platform.machine.child_processes import ProcessDied, RunningProcess, describe_ending, start_own
from vskill_platform.machine.shortages import has_memory_for, lack
from vskill_platform.tiers.compiled import load_compiled, store_compiled
from vskill_platform.tiers.wire import ChildReady, Setup
from vskill_scan.limits import DEFAULT_LIMITS, Limits
from vskill_scan.rules.indicators import NO_INDICATORS, Indicators, with_indicators
from vskill_scan.rules.ruleset import bundled_rules
from vskill_scan.rules.structure import CheckManifest

#: Address space of a child. The rules and the interpreter take a quarter of it.
MEMORY_BYTES = 1024 * 1024 * 1024
#: For a child to read and compile the rules on a busy machine: less than a submission's time, which it must not cost.
START_S = 30.0
#: A scan waits this long for a child to be free. Behind scans that are starved it would otherwise wait until its
#: submission has no time left, which would count against the content.
WAIT_S = 30.0
#: A scan waits this long for a child that runs before one more is started, which takes as long as hundreds of scans.
SOON_S = 0.5
#: For a child that we took the socket from to end by itself, and for one that let go of its own, which is its last act.
REAP_S, DYING_S = 0.2, 10.0
CHILD = "vskill_platform.tiers.child"
#: What a skill waits for that could not be scanned.
SCANNER = "the scanner"
#: A skill whose scans were cut off this often, while others were scanned, is a person's.
MOST_CUT_OFFS = 3
#: Skills whose cut-offs are remembered.
MOST_REMEMBERED = 1_000


class _CutOffs(msgspec.Struct):
    """How often children were killed or starved over one skill."""

    times: int
    #: Scans that the pool had completed before the first of them.
    completed_before: int


class PooledScanner:
    """Scans in child processes; they are started when they are needed, the next one when the others are busy."""

    def __init__(
        self, ruleset: str, setup: Setup, processes: int, cache: Path | None, soon_s: float, wait_s: float
    ) -> None:
        self._ruleset = ruleset
        self._setup = setup
        self._cache = cache
        self._soon_s = soon_s
        self._wait_s = wait_s
        self._children = [_Child() for _ in range(processes)]
        #: Those that were never started.
        self._spare = [*self._children]
        self._free: asyncio.LifoQueue[_Child] = asyncio.LifoQueue()
        #: How many are being started, and how many starts have ended.
        self._starting = self._starts = 0
        self._closed = False
        #: By the digest of the skill.
        self._cut_offs: dict[str, _CutOffs] = {}
        self._completed = 0

    @classmethod
    async def open(
        cls,
        check_manifest: CheckManifest,
        known_bad_digests: Collection[str] = (),
        *,
        indicators: Indicators = NO_INDICATORS,
        processes: int = 0,
        limits: Limits = DEFAULT_LIMITS,
        memory_bytes: int = MEMORY_BYTES,
        cache: Path | None = None,
        soon_s: float = SOON_S,
        wait_s: float = WAIT_S,
    ) -> "PooledScanner":
        """`check_manifest` must be a function of a module, which children import; 0 processes allows one per core.

        `cache` is a folder in which compiled patterns are kept from one start to the next. `soon_s` is how long a
        scan waits for a child that runs before one more is started, `wait_s` for any child at all.
        """
        version = (await asyncio.to_thread(lambda: with_indicators(bundled_rules(), indicators))).version
        compiled = await asyncio.to_thread(load_compiled, cache, version) if cache is not None else None
        name = f"{check_manifest.__module__}:{check_manifest.__qualname__}"
        setup = Setup(name, tuple(known_bad_digests), indicators, limits, memory_bytes, compiled)
        return cls(version, setup, processes or os.cpu_count() or 1, cache, soon_s, wait_s)

    @property
    def ruleset(self) -> str:
        return self._ruleset

    async def scan(self, files: Sequence[SkillFile]) -> StaticReport:
        try:
            async with TimeLimit(self._wait_s):
                child = await self._take()
        except TimeoutError:
            raise Shortage(f"No scanner was free within {self._wait_s:g} s.", host=SCANNER) from None
        try:
            if self._closed:
                return self._report_failure(ScanStatus.ERROR, "the scanner is closed")
            return await self._scan_in(child, files)
        finally:
            self._free.put_nowait(child)

    async def _take(self) -> "_Child":
        """A child that was started already, if one comes free soon, or else a spare one. Only the first is not waited
        for: the others begin with the patterns that it has compiled, and none begins while another does."""
        while self._spare:
            if len(self._spare) == len(self._children):
                return self._spare.pop()
            starts = self._starts
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._soon_s):
                    return await self._free.get()
            # Many wait while one starts, and it scans for them as soon as it can.
            if self._spare and not self._starting and self._starts == starts:
                return self._spare.pop()
        return await self._free.get()

    async def close(self) -> None:
        """No new scan starts; running ones are cut off; every child is gone when this returns."""
        self._closed = True
        await asyncio.gather(*(child.end() for child in self._children))

    async def _scan_in(self, child: "_Child", files: Sequence[SkillFile]) -> StaticReport:
        limits = self._setup.limits
        await self._await_start(child)
        try:
            async with TimeLimit(limits.wall_s):
                answer = await child.ask(files)
            report = msgspec.msgpack.decode(answer, type=StaticReport)
        except TimeoutError:
            await asyncio.shield(child.end())
            if self._may_be_ours(files):
                problem = f"it got too little of the processor to end within {limits.wall_s:g} s"
                raise Shortage(f"The scan was cut off: {problem}.", host=SCANNER) from None
            return self._report_failure(ScanStatus.TIMED_OUT, f"the scan took more than {limits.wall_s:g} s")
        except (ProcessDied, OSError):
            return await self._report_death(child, files)
        except BaseException:
            # Cancelled in the middle: the child is still busy with a skill that nobody waits for.
            await asyncio.shield(child.end())
            raise
        if report.status is ScanStatus.ERROR:
            await asyncio.shield(child.end())
            if MemoryError.__name__ in report.problem and not has_memory_for(self._setup.memory_bytes):
                raise lack("memory")
        else:
            self._completed += 1
        return report

    async def _await_start(self, child: "_Child") -> None:
        if child.running:
            return
        await child.end()
        # One that is started again is not one more.
        is_first, child.was_started = not child.was_started, True
        self._starting += is_first
        try:
            async with TimeLimit(START_S):
                ready = await child.start(self._setup)
        except (TimeoutError, ProcessDied, OSError) as error:
            code = await asyncio.shield(child.end(dying=isinstance(error, ProcessDied)))
            reason = str(error) or ("it was not ready in time" if code is None else _ending(code))
            raise Shortage(f"The scanner cannot be started at the moment: {reason}.", host=SCANNER) from error
        except BaseException:
            await asyncio.shield(child.end())
            raise
        finally:
            self._starting -= is_first
            self._starts += is_first
        if self._closed:
            await asyncio.shield(child.end())
            raise Shortage("The scanner was closed while it started.", host=SCANNER)
        if ready.ruleset != self._ruleset:
            await asyncio.shield(child.end())
            reason = f"it has the rules {ready.ruleset}, not {self._ruleset}: restart the worker"
            raise Shortage(f"The scanner cannot be started: {reason}.", host=SCANNER)
        if ready.compiled is not None:
            self._setup = msgspec.structs.replace(self._setup, compiled=ready.compiled)
            if self._cache is not None:
                await asyncio.to_thread(store_compiled, self._cache, self._ruleset, ready.compiled)

    async def _report_death(self, child: "_Child", files: Sequence[SkillFile]) -> StaticReport:
        code = await asyncio.shield(child.end(dying=True))
        if code == -signal.SIGXCPU:
            limit = self._setup.limits.cpu_s
            return self._report_failure(
                ScanStatus.TIMED_OUT, f"the scan took more than {limit:g} s of processor time"
            )
        problem = f"the scanning process died ({_ending(code)})"
        # Its own limits never kill a child: of those, the one for time has another signal, and the one for memory makes
        # an error inside. With less memory than it is due, what it uses may end it in any way.
        is_short = code == -signal.SIGKILL or not has_memory_for(self._setup.memory_bytes)
        if is_short and self._may_be_ours(files):
            raise Shortage(f"The scan was cut off: {problem}, as when memory is short.", host=SCANNER)
        return self._report_failure(ScanStatus.ERROR, problem)

    def _may_be_ours(self, files: Sequence[SkillFile]) -> bool:
        """Count one more cut-off of this skill; False once it looks like the skill's own doing."""
        digest = digest_of_files(files)
        cut_offs = self._cut_offs.pop(digest, _CutOffs(0, self._completed))
        cut_offs.times += 1
        if cut_offs.times >= MOST_CUT_OFFS and self._completed > cut_offs.completed_before:
            return False
        self._cut_offs[digest] = cut_offs
        while len(self._cut_offs) > MOST_REMEMBERED:
            del self._cut_offs[next(iter(self._cut_offs))]
        return True

    def _report_failure(self, status: ScanStatus, problem: str) -> StaticReport:
        return StaticReport(self._ruleset, status, problem=problem)


class _Child:
    """A place for one process, which may be started again after it has ended."""

    def __init__(self) -> None:
        self.was_started = False
        self._process: RunningProcess | None = None

    @property
    def running(self) -> bool:
        """False also when it died while it had nothing to do, which is not the fault of the next skill."""
        return self._process is not None and not self._process.reader.at_eof()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def start(self, setup: Setup) -> ChildReady:
        self._process = await start_own(CHILD)
        return msgspec.msgpack.decode(await self.ask(setup), type=ChildReady)

    async def ask(self, message: object) -> bytes:
        if self._process is None:
            raise ProcessDied("it is not running")
        return await self._process.ask(message)

    async def end(self, *, dying: bool = False) -> int | None:
        """Kill it if it still runs; otherwise its exit code. One that has let go of its socket is about to end."""
        process, self._process = self._process, None
        return await process.end(grace_s=DYING_S if dying else REAP_S) if process is not None else None


def _ending(code: int | None) -> str:
    return "it did not end by itself" if code is None else describe_ending(code)
