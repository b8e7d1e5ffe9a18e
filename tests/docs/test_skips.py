"""With CI=true a skipped test is a failed one, however it was skipped, in one process and in several."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.files import ROOT

pytestmark = pytest.mark.slow

#: Each with a reason of its own, so that one run shows them all.
SKIPS = {
    "mark": "import pytest\n@pytest.mark.skip(reason='by mark')\ndef test_it(): pass\n",
    "condition": "import pytest\n@pytest.mark.skipif(True, reason='by condition')\ndef test_it(): pass\n",
    "call": "import pytest\ndef test_it(): pytest.skip('by call')\n",
    "module": "import pytest\npytest.skip('by module', allow_module_level=True)\n",
    "fixture": "import pytest\n@pytest.fixture\ndef f(): pytest.skip('by fixture')\ndef test_it(f): pass\n",
}
NO_SKIP = (
    "import pytest\ndef test_it(): pass\n@pytest.mark.xfail(reason='known')\ndef test_x(): assert False\n"
)


def run_pytest(
    folder: Path, modules: dict[str, str], *options: str, ci: str
) -> subprocess.CompletedProcess[str]:
    folder.joinpath("pytest.ini").write_text("[pytest]\n")
    for name, code in modules.items():
        folder.joinpath(f"test_{name}.py").write_text(code)
    plugins = ("-p", "tests.conftest", "-p", "no:cacheprovider", "-p", "no:schemathesis")
    command = [sys.executable, "-m", "pytest", *plugins, *options, str(folder)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    return subprocess.run(
        command,
        cwd=folder,
        env=environment | {"CI": ci, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "several"])
def test_every_skip_fails_the_run_under_ci_and_keeps_its_reason(tmp_path, processes):
    modules = SKIPS | {"ok": "def test_ok(): pass\n"}
    done = run_pytest(tmp_path, modules, "--continue-on-collection-errors", *processes, ci="true")
    assert done.returncode != 0, done.stdout
    for name in SKIPS:
        reason = f"Under CI=true a skipped test is a failure. Skipped: by {name}"
        assert reason in done.stdout.splitlines(), done.stdout


def test_a_skip_passes_on_a_developers_machine(tmp_path):
    assert run_pytest(tmp_path, {"call": SKIPS["call"]}, ci="").returncode == 0


def test_passed_tests_and_expected_failures_pass_under_ci(tmp_path):
    done = run_pytest(tmp_path, {"sample": NO_SKIP}, ci="true")
    assert done.returncode == 0, done.stdout
