"""The guard in conftest.py: a blocking call of the product on the event loop fails, all else goes through.

The calls are compiled under file names inside the package, since the guard judges by the file that a frame
belongs to.
"""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from blockbuster import BlockingError

import vskill_platform

pytestmark = pytest.mark.anyio

PACKAGE = Path(vskill_platform.__file__).parent
QUERY = "SELECT value FROM pairs WHERE key = ?"


def product_function(name: str, body: str, file: str = "probe.py") -> Callable[..., object]:
    """A function that seems to stand in the product's file."""
    names: dict[str, object] = {
        "os": os,
        "sqlite3": sqlite3,
        "subprocess": subprocess,
        "sys": sys,
        "time": time,
    }
    exec(compile(f"def {name}(arg=None):\n    return {body}\n", str(PACKAGE / file), "exec"), names)
    function = names[name]
    assert callable(function)
    return function


@pytest.fixture
def database():
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE pairs (key TEXT PRIMARY KEY, value TEXT)")
    connection.execute("INSERT INTO pairs VALUES ('a', '1')")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "body",
    [
        "time.sleep(0)",
        "open('/dev/null', 'rb').read()",
        "os.listdir('.')",
        "os.fsync(1)",
        "sqlite3.connect(':memory:')",
        "subprocess.run([sys.executable, '--version'])",
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_blocking_call_of_the_product_on_the_event_loop_is_an_error(body):
    with pytest.raises(BlockingError):
        product_function("probe", body)()


@pytest.mark.parametrize(
    "body", [f"arg.execute({QUERY!r}, ('a',)).fetchone()", "arg.commit()", "arg.cursor().fetchall()"]
)
async def test_sqlite_on_the_event_loop_is_an_error(database, body):
    with pytest.raises(BlockingError):
        product_function("probe", body)(database)


async def test_point_read_of_the_sqlite_engine_may_read_inline(database):
    read = product_function(
        "point_read", f"arg.execute({QUERY!r}, ('a',)).fetchone()", "ledger/database/sqlite.py"
    )
    assert read(database) == ("1",)


@pytest.mark.parametrize(
    ("name", "file"), [("point_read", "ledger/kv/sqlite.py"), ("scan", "ledger/database/sqlite.py")]
)
async def test_no_other_function_of_that_name_or_file_may(database, name, file):
    with pytest.raises(BlockingError):
        product_function(name, f"arg.execute({QUERY!r}, ('a',)).fetchone()", file)(database)


async def test_point_read_may_not_write(database):
    with pytest.raises(BlockingError):
        product_function("point_read", "arg.commit()", "ledger/database/sqlite.py")(database)


async def test_the_same_call_in_a_thread_goes_through(database):
    read = product_function("probe", f"arg.execute({QUERY!r}, ('a',)).fetchone()")
    assert await asyncio.to_thread(read, database) == ("1",)


async def test_a_tests_own_look_at_a_file_goes_through():
    assert Path(__file__).read_text("utf-8")


def test_a_loop_may_wait_for_its_threads_at_its_end():
    held = threading.Lock()

    class Ending(asyncio.SelectorEventLoop):
        async def shutdown_default_executor(self, timeout: float | None = None) -> None:
            held.acquire()
            waiting = threading.Timer(0.01, held.release)
            waiting.start()
            held.acquire()
            waiting.join()

    def run() -> None:
        with asyncio.Runner(loop_factory=Ending) as runner:
            runner.run(asyncio.sleep(0))

    product_function("end", "arg()")(run)
    assert held.locked()
