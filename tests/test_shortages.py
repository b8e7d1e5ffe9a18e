"""What this machine lacks, told from other errors."""

import errno
import subprocess
import sys

import pytest

from tests.support.patience import PATIENCE_S
from vskill_core.errors import StoreUnavailable
from vskill_platform.machine.shortages import LATELY_MS, ShortagesMet, shortage_of

_NO_MEMORY_FOR = """
import resource, threading
from pathlib import Path
from vskill_platform.machine.child_side import frame
from vskill_platform.machine.shortages import shortage_of

big = {{str(number): b"x" * 300_000 for number in range(20)}}
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    {work}
except Exception as error:
    print(shortage_of(error).message)
"""


@pytest.mark.parametrize(
    ("error", "lacks"),
    [
        (MemoryError(), "memory"),
        (OSError(errno.EMFILE, "too many open files"), "open files"),
        (OSError(errno.ENOSPC, "no space left on device"), "disk space"),
    ],
)
def test_errors_of_the_system_name_what_is_lacking(error, lacks):
    shortage = shortage_of(error)
    assert shortage is not None and shortage.message.endswith(f"it lacks {lacks}.")


def test_what_was_lacking_is_told_until_another_attempt_must_have_come():
    """A submission that met it may never come back: what it met must not stay for ever."""
    met = ShortagesMet()
    met.meet(StoreUnavailable("away"), 1_000)
    assert met.lacked_lately(1_000 + LATELY_MS - 1) is not None
    assert met.lacked_lately(1_000 + LATELY_MS) is None


@pytest.mark.parametrize("error", [RuntimeError("broken"), OSError(errno.ENOENT, "no such file"), OSError()])
def test_other_errors_are_no_shortage(error):
    assert shortage_of(error) is None


@pytest.mark.parametrize(
    ("work", "lacks"),
    [("threading.Thread(target=print).start()", "memory or threads"), ("frame(big)", "memory")],
    ids=["a thread", "a message to a scanner"],
)
def test_refused_memory_is_a_shortage_and_ends_no_process(work, lacks):
    done = subprocess.run(
        [sys.executable, "-c", _NO_MEMORY_FOR.format(work=work)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert done.stdout.strip().endswith(f"it lacks {lacks}.")
