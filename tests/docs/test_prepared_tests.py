"""What is prepared for pytest is what pytest takes: it rewrites nothing again."""

import subprocess
import sys

import pytest

from tests.support.patience import PATIENCE_S
from tools.prepared_tests import prepare


@pytest.mark.slow
def test_pytest_uses_what_was_prepared(tmp_path):
    test = tmp_path / "test_one.py"
    test.write_text("def test_one():\n    assert 1 + 1 == 2\n")
    prepare([test])
    (compiled,) = tmp_path.rglob("*.pyc")
    written = compiled.stat().st_mtime_ns
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--debug=trace.log", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"found cached rewritten pyc for {test}" in (tmp_path / "trace.log").read_text()
    assert compiled.stat().st_mtime_ns == written
