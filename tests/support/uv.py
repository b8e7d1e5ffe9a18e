"""Somebody who has uv and Python, and no network but the registry's."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.patience import PATIENCE_S


def uv_variables(wheels: Path) -> dict[str, str]:
    """With these, uv takes packages from this folder and asks no index, and Python is the one of the tests."""
    settings = wheels / "uv.toml"
    settings.write_text(f'no-index = true\nfind-links = ["{wheels}"]\n')
    return {"UV_CONFIG_FILE": str(settings), "UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never"}


class Passenger:
    """Runs lines in a folder of their own, which is their home too."""

    def __init__(self, folder: Path, wheels: Path) -> None:
        self.folder, self.index = folder, wheels
        programs = folder / "programs"
        programs.mkdir()
        for name in ("uv", "uvx"):
            (programs / name).symlink_to(Path(sys.executable).parent / name)
        path = os.pathsep.join((str(folder / ".local" / "bin"), str(programs), os.environ["PATH"]))
        self.variables = {"PATH": path, "HOME": str(folder), **uv_variables(wheels)}

    def run(self, line: str, *, given: str = "", code: int = 0, **variables: str) -> str:
        """What it prints; it ends with this code."""
        done = subprocess.run(
            ["sh", "-euc", line],
            cwd=self.folder,
            env={**self.variables, **variables},
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + (done.stderr if code else "")
