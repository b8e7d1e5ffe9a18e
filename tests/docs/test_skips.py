"""With CI=true a skipped test is a failed one, however it was skipped, in one process and in several."""

import os
import subprocess
import sys

import pytest

from tools.files import ROOT

SKIPS = {
    "mark": "import pytest\n@pytest.mark.skip(reason='the reason')\ndef test_it(): pass\n",
    "condition": "import pytest\n@pytest.mark.skipif(True, reason='the reason')\ndef test_it(): pass\n",
    "call": "import pytest\ndef test_it(): pytest.skip('the reason')\n",
    "module": "import pytest\npytest.skip('the reason', allow_module_level=True)\n",
    "fixture": "import pytest\n@pytest.fixture\ndef f(): pytest.skip('the reason')\ndef test_it(f): pass\n",
}
NO_SKIP = (
    "import pytest\ndef test_it(): pass\n@pytest.mark.xfail(reason='known')\ndef test_x(): assert False\n"
)


def run_pytest(folder, code: str, *options: str, ci: str) -> subprocess.CompletedProcess[str]:
    folder.joinpath("pytest.ini").write_text("[pytest]\n")
    folder.joinpath("test_ok.py").write_text("def test_ok(): pass\n")
    folder.joinpath("test_sample.py").write_text(code)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        *options,
        str(folder),
    ]
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


@pytest.mark.parametrize("kind", SKIPS)
def test_a_skip_fails_the_run_under_ci_and_keeps_its_reason(tmp_path, kind):
    done = run_pytest(tmp_path, SKIPS[kind], ci="true")
    assert done.returncode != 0, done.stdout
    assert "Under CI=true a skipped test is a failure" in done.stdout
    assert "the reason" in done.stdout


@pytest.mark.parametrize("kind", ["mark", "module"])
def test_a_skip_fails_the_run_under_ci_in_several_processes(tmp_path, kind):
    done = run_pytest(tmp_path, SKIPS[kind], "-n", "2", ci="true")
    assert done.returncode != 0, done.stdout
    assert "the reason" in done.stdout


def test_a_skip_passes_on_a_developers_machine(tmp_path):
    assert run_pytest(tmp_path, SKIPS["call"], ci="").returncode == 0


def test_passed_tests_and_expected_failures_pass_under_ci(tmp_path):
    done = run_pytest(tmp_path, NO_SKIP, ci="true")
    assert done.returncode == 0, done.stdout
