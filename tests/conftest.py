"""What every test stands on: one event loop implementation, a guard against blocking it, and no silent skips.

- `anyio_backend` runs async tests (`pytestmark = pytest.mark.anyio`) on asyncio.
- `event_loop_guard` makes a blocking call of the product on the event loop fail the test that provoked it.
- What the collection made stays for the whole run, so the garbage collector does not look through it.
- `guard_runner` lets nothing that a test starts outlive the run, however that ends.
- An example of a property may take any time: how long it takes says more about the machine than about us.
- With `CI=true` a skipped test is a failed one: what does not run proves nothing.
- What is slow, or depends on the machine, is marked by where it stands and what it asks for.
"""

import gc
import logging
import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
import structlog
from blockbuster import BlockBuster, BlockBusterFunction
from hypothesis import settings

from tests.support.lifetimes import guard_runner
from vskill_platform.observing.logs import configure_logging
from vskill_platform.settings import load_settings

guard_runner()
# Processes of the product import nothing from the working folder; some of those that tests start need our modules.
_OURS = str(Path(__file__).parents[1])
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_OURS, os.environ.get("PYTHONPATH"))))
settings.register_profile("patient", settings.get_profile(settings.get_current_profile_name()), deadline=None)
settings.load_profile("patient")

# Where the product may block, and why: file, function, and the calls that are let through there.
# A read of one key by SQLite takes 5 µs inline and 160 µs through a thread; a longer one ends by itself.
POINT_READ = ("vskill_platform/ledger/database/sqlite.py", {"point_read", "_read_few"})
POINT_READ_CALLS = (
    "sqlite3.Connection.execute",
    "sqlite3.Cursor.execute",
    "sqlite3.Cursor.fetchone",
    "sqlite3.Cursor.fetchall",
)
# Whether the files of the open database are still in their place: two looks at its folder.
OWN_FILES = ("vskill_platform/ledger/database/connections.py", {"_number"})
# A log line with a traceback reads the source files that it quotes, once each: only unforeseen errors have one.
TRACEBACK = ("linecache.py", {"checkcache", "updatecache"})
TRACEBACK_CALLS = ("os.stat", "io.BufferedReader.read", "io.TextIOWrapper.read")
# A log line is one write to where the process's log goes, and no line of it may be reordered or held back.
LOG_LINE = ("vskill_platform/observing/logs.py", {"write", "_write_bytes"})
LOG_LINE_CALLS = ("os.write", "threading.Lock.acquire")
# The PostgreSQL driver looks for a password file and certificates whenever it connects, which is seldom.
CONNECTING = ("asyncpg/connect_utils.py", {"_parse_connect_dsn_and_args"})
CONNECTING_CALLS = ("os.stat", "os.path.abspath", "io.BufferedReader.read", "io.TextIOWrapper.read")
# Starting a program waits until the kernel has loaded it: half a millisecond, where a copy of this process takes seven.
STARTING = ("vskill_platform/machine/child_processes.py", {"start_program", "start_own"})
# A measurement of coverage guards its own data for the moment that a thread's first line takes.
COVERAGE = ("coverage/collector.py", {"lock_data"})
# At its end a loop waits for its threads. asyncio's own is known to blockbuster; uvloop's has no frames that tell it.
ENDING = ("asyncio/runners.py", {"close"})
# Blocking calls that blockbuster does not know of.
FURTHER_CALLS = ("os.fsync", "sqlite3.connect", "subprocess.Popen.wait", "subprocess.Popen.communicate")

#: Folders all of whose tests are `slow`.
SLOW_FOLDERS = frozenset({"chaos", "clients", "engines", "fuzz", "leaks", "lifetimes", "processes"})
#: Engines that are servers, as parameters name them; and what starts one, which a module may import.
SERVERS = frozenset({"postgresql", "nats", "s3"})
STARTS_SERVERS = frozenset({"tests.support.postgres", "tests.support.nats", "tests.support.s3"})


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", autouse=True)
def logging_as_before() -> Iterator[None]:
    """What one module does to the process's logging, by running a command or a benchmark, is over with it."""
    configuration, root = structlog.get_config(), logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.configure(**configuration)
    root.handlers = handlers
    root.setLevel(level)


@pytest.fixture(scope="session", autouse=True)
def event_loop_guard() -> Iterator[BlockBuster]:
    """Only calls that come through the product's own code count: a test may read a file to look at it.

    One guard serves the whole session, because it does nothing where no event loop runs and property tests
    refuse fixtures that are made anew for each test.
    """
    guard = BlockBuster("vskill_platform")
    for name in FURTHER_CALLS:
        guard.functions[name] = BlockBusterFunction(None, name, scanned_modules="vskill_platform")
    for name in POINT_READ_CALLS:
        guard.functions[name].can_block_in(*POINT_READ)
    for name in LOG_LINE_CALLS:
        guard.functions[name].can_block_in(*LOG_LINE)
    for name in TRACEBACK_CALLS:
        guard.functions[name].can_block_in(*TRACEBACK)
    for name in CONNECTING_CALLS:
        guard.functions[name].can_block_in(*CONNECTING)
    guard.functions["os.stat"].can_block_in(*OWN_FILES)
    guard.functions["os.read"].can_block_in(*STARTING)
    guard.functions["threading.Lock.acquire"].can_block_in(*COVERAGE)
    guard.functions["threading.Lock.acquire"].can_block_in(*ENDING)
    guard.activate()
    yield guard
    guard.deactivate()


@pytest.fixture(scope="session", autouse=True)
def plain_logs() -> None:
    """Log lines as the product writes them; without this, tracebacks are drawn by a renderer that reads files."""
    configure_logging(load_settings({}))


@pytest.fixture
def stopwatch() -> Callable[[], float]:
    """Processor time of this thread. Whatever asks for it is marked `machine`."""
    return time.thread_time


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test its group before pytest selects by group."""
    for item in items:
        assert isinstance(item, pytest.Function)
        if "stopwatch" in item.fixturenames:
            item.add_marker("machine")
        if _is_slow(item):
            item.add_marker("slow")


def _is_slow(item: pytest.Function) -> bool:
    folder = item.nodeid.split("/")[1:2]
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    on_server = any(isinstance(value, str) and value in SERVERS for value in values)
    return not SLOW_FOLDERS.isdisjoint(folder) or on_server or _starts_servers(item.module)


@cache
def _starts_servers(module: ModuleType) -> bool:
    homes = (
        getattr(value, "__module__", getattr(value, "__name__", None)) for value in vars(module).values()
    )
    return not STARTS_SERVERS.isdisjoint(homes)


def _skips_are_failures() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true"}


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure in the process where it happens, so that it is the same under xdist.

    An expected failure is reported as skipped too, but it ran.
    """
    if _skips_are_failures() and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"Under CI=true a skipped test is a failure. {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped(report)
    return report


def pytest_configure() -> None:
    gc.disable()
    # A shell that starts the tests in the background lets them and all their processes ignore Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Eleven thousand tests are a million objects, which every full collection would go through: a fifth of the whole
    run's processor time."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-snapshots",
        action="store_true",
        help="write tests/web/snapshots and tests/cli/printed_answers.txt anew: an answer has changed on purpose",
    )
    parser.addoption(
        "--write-exchanges",
        action="store_true",
        help="write tests/judge/exchanges anew, with `make test-judge`: what a real model answers",
    )
