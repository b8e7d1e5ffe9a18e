"""A test run that is interrupted leaves no process and no folder of its own behind, whenever it is and whatever by."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_RSS, setrlimit

import pytest

from tests.support import guardian
from tests.support.lifetimes import KEPT_ROOT, RUNNER, guard_runner, running
from tests.support.patience import PATIENCE_S
from tools.files import ROOT

HERE = Path(__file__).parent
SIGNALS = ("SIGKILL", "SIGINT", "SIGTERM")
#: Lines that the suite writes in all, by both of its tests.
EVENTS = 16
#: How many moments are tried; `make test-long` tries ten.
MOMENTS = int(os.environ.get("MOMENTS", "2"))
CONFTEST = "from tests.support.lifetimes import guard_runner\n\nguard_runner()\n"


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(MOMENTS))
def test_a_run_that_is_interrupted_leaves_nothing_behind(tmp_path, moment):
    after = random.Random(moment).randint(1, EVENTS)
    events = tmp_path / "events"
    events.touch()
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "conftest.py").write_text(CONFTEST)
    (suite / "test_suite.py").write_bytes((HERE / "suite.py").read_bytes())
    outer = {KEPT_ROOT, RUNNER, "PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID", "PYTEST_CURRENT_TEST"}
    variables = {name: value for name, value in os.environ.items() if name not in outer}
    variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    # Where the run puts its temporary files, and PostgreSQL's user may go.
    place = Path(tempfile.mkdtemp(dir=guard_runner()))
    place.chmod(0o711)
    paths = {"TMPDIR": str(place), "EVENTS": str(events)}
    paths["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    command = [sys.executable, "-m", "pytest", "-p", "xdist.plugin", "-n", "2", "-q", str(suite)]
    done = subprocess.run(
        [sys.executable, HERE / "subreaper.py", SIGNALS[moment % 3], events, str(after), *command],
        env={**variables, **paths},
        cwd=suite,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"after {after} events: {done.stdout}{done.stderr}"
    assert list(place.glob("vskill-*")) == []


def test_what_a_runner_and_its_guardian_left_is_cleared_by_the_next_run(tmp_path):
    """Both were killed at once, as when memory runs out: the next guardian ends the process and removes the folder."""
    mark = 0x5EED
    with running(["true"]) as ended:
        ended.wait()
    left = tmp_path / guardian.name_of(ended.pid, mark)
    own = tmp_path / guardian.name_of(os.getpid(), mark + 1)
    for folder in (left, own):
        folder.mkdir()
    with running(["sleep", "600"], preexec_fn=lambda: setrlimit(RLIMIT_RSS, (mark, RLIM_INFINITY))) as orphan:
        assert guardian.marked(mark) == [orphan.pid]
        with running([sys.executable, guardian.__file__, own, str(os.getpid())]) as next_guardian:
            assert orphan.wait(PATIENCE_S) == -signal.SIGTERM
            until_gone(left)
            assert own.exists() and next_guardian.poll() is None


def until_gone(folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while folder.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
