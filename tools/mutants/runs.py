"""Runs the tests against mutants, inside one session of pytest.

The tests are collected once and run once without a change, to see which tests call which function. Then each mutant
gets a process that is forked from there: it exchanges the code of the one function and runs the tests that call it,
the fastest first, until one fails. Nothing is written to the source tree, and no mutant pays for starting pytest.
"""

import contextlib
import gc
import importlib
import math
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import _lru_cache_wrapper  # what `lru_cache` makes of a function
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol  # what reruns of other plugins use too
from hypothesis import HealthCheck, Phase, settings

from tools.mutants.mutations import Mutant

KILLED, SURVIVED, TIMEOUT, ERROR = "killed", "survived", "timeout", "error"
#: No test calls the function; mypy rejects the mutant.
UNTESTED, TYPES = "untested", "types"
_STATUS_OF_EXIT = {0: SURVIVED, 1: KILLED}
#: What the tests of a function may take with a mutant, by what they took without: processor time, and time on the wall.
CPU_SECONDS = 5.0, 10.0
WALL_SECONDS = 60.0, 60.0
_PAUSE = 0.005


@dataclass
class Session:
    """A plugin of pytest that runs mutants instead of reporting tests."""

    #: by function; asked for once it is known which tests call which function
    pending: Callable[[dict[str, set[str]]], list[Mutant]]
    functions: list[str]
    jobs: int
    report: Callable[[Mutant, str, float], None]
    seconds: dict[str, float] = field(default_factory=dict)
    #: the tests that call a function
    callers: dict[str, set[str]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        self._run_unchanged(list(items.values()))
        if not self.failures:
            gc.freeze()
            self._run_mutants(self.pending(self.callers), items)
        return True

    def _run_unchanged(self, items: list[pytest.Item]) -> None:
        watched = {id(function_of(name).__code__): name for name in self.functions}
        called: set[str] = set()

        def note(frame: Any, _event: str, _argument: object) -> None:
            # Called once for each call; its lines are not traced, because nothing is returned.
            if id(frame.f_code) in watched:
                called.add(watched[id(frame.f_code)])

        for item, following in zip(items, [*items[1:], None], strict=True):
            called.clear()
            _forget()
            threading.settrace(note)
            sys.settrace(note)
            before = time.process_time()
            reports = runtestprotocol(item, nextitem=following, log=False)
            sys.settrace(None)
            threading.settrace(None)
            self.seconds[item.nodeid] = time.process_time() - before
            self.failures += [f"{item.nodeid}\n{each.longreprtext}" for each in reports if each.failed]
            for name in called:
                self.callers.setdefault(name, set()).add(item.nodeid)

    def _run_mutants(self, mutants: list[Mutant], items: dict[str, pytest.Item]) -> None:
        waiting = iter(mutants)
        running: list[_Child] = []
        try:
            while True:
                while len(running) < self.jobs and (mutant := next(waiting, None)) is not None:
                    running += self._started(mutant, items)
                if not running:
                    return
                time.sleep(_PAUSE)
                for child in running[:]:
                    if (outcome := child.outcome()) is not None:
                        running.remove(child)
                        self.report(child.mutant, *outcome)
        finally:
            for child in running:
                child.kill()

    def _started(self, mutant: Mutant, items: dict[str, pytest.Item]) -> "Iterator[_Child]":
        tests = sorted(self.callers.get(mutant.name, ()), key=lambda test: self.seconds[test])
        if not tests:
            self.report(mutant, UNTESTED, 0.0)
            return
        seconds = sum(self.seconds[test] for test in tests)
        pid = os.fork()
        if pid == 0:
            _become(mutant, [items[test] for test in tests], CPU_SECONDS[0] + CPU_SECONDS[1] * seconds)
        yield _Child(pid, mutant, time.monotonic() + WALL_SECONDS[0] + WALL_SECONDS[1] * seconds)


@dataclass
class _Child:
    """A process that runs tests against one mutant."""

    pid: int
    mutant: Mutant
    deadline: float

    def outcome(self) -> tuple[str, float] | None:
        """How it ended, and its processor time; None while it runs."""
        pid, wait_status, usage = os.wait4(self.pid, os.WNOHANG)
        if pid == 0:
            if time.monotonic() < self.deadline:
                return None
            return TIMEOUT, self.kill()
        code = os.waitstatus_to_exitcode(wait_status)
        timed_out = code in (-signal.SIGXCPU, -signal.SIGKILL)
        return (TIMEOUT if timed_out else _STATUS_OF_EXIT.get(code, ERROR)), usage.ru_utime + usage.ru_stime

    def kill(self) -> float:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        usage = os.wait4(self.pid, 0)[2]
        return usage.ru_utime + usage.ru_stime


def _become(mutant: Mutant, items: list[pytest.Item], cpu_seconds: float) -> None:
    """The life of a child: never returns."""
    status = 2
    try:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (1, 2):
            os.dup2(null, descriptor)
        limit = math.ceil(cpu_seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        replace_function(mutant)
        _forget()
        status = 1 if _any_fails(items) else 0
    finally:
        os._exit(status)


def _forget() -> None:
    """What functions have kept of earlier calls, so that a test calls what it would call alone."""
    for name, module in list(sys.modules.items()):
        if name.startswith("vskill_platform."):
            for value in vars(module).values():
                if isinstance(value, _lru_cache_wrapper):
                    value.cache_clear()


def replace_function(mutant: Mutant) -> None:
    """In place, so that whoever imported the function has the mutant."""
    function = function_of(mutant.name)
    changed = mutant.build(function.__globals__)
    function.__code__ = changed.__code__
    function.__defaults__ = changed.__defaults__
    function.__kwdefaults__ = changed.__kwdefaults__


def _any_fails(items: list[pytest.Item]) -> bool:
    for item, following in zip(items, [*items[1:], None], strict=True):
        if any(report.failed for report in runtestprotocol(item, nextitem=following, log=False)):
            return True
    return False


def function_of(name: str) -> FunctionType:
    """The function, method or function of a property with this name."""
    parts = name.split(".")
    module = importlib.import_module("vskill_platform." + ".".join(parts[:2]))
    value: Any = module
    for part in parts[2:]:
        value = vars(value)[part]
    if isinstance(value, property):
        value = value.fget
    function = getattr(value, "__func__", value)
    if not isinstance(function, FunctionType):
        raise TypeError(f"{name} is not a function")
    return function


def run(session: Session, tests: list[str], folder: Path) -> None:
    """Run the mutants of a session. Property tests draw the same examples each time, and shrink none."""
    settings.register_profile(
        "mutants",
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=50,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutants")
    options = [
        "-qq",
        "--no-header",
        "--no-summary",
        "-s",
        "-p",
        "no:cacheprovider",
        f"--basetemp={folder / 'tmp'}",
    ]
    already = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
    status = pytest.main([*options, "-W", already, *tests], plugins=[session])
    if session.failures:
        raise SystemExit("mutants: these tests fail without a mutant:\n" + "\n".join(session.failures))
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise SystemExit(f"mutants: pytest ended with {status!r}; does {' '.join(tests)} run by itself?")
