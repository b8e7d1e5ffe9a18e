"""The real clients, each in a home and a project folder of its own, so that no test sees another's."""

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tests.clients.registry import Registry
from tests.support.patience import PATIENCE_S
from tools.files import ROOT

MODULES = ROOT / ".venv" / "node" / "node_modules"
_STYLES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Installed(msgspec.Struct, frozen=True):
    """Where the pinned programs are."""

    node: Path
    modules: Path


def find_clients() -> Installed | None:
    nodes = sorted(MODULES.glob("node-*/bin/node"))
    wanted = (MODULES / "skills", MODULES / "clawhub")
    return Installed(nodes[0], MODULES) if nodes and all(one.is_dir() for one in wanted) else None


class Said(msgspec.Struct, frozen=True):
    """How a command ended, and what it printed, without colours."""

    code: int
    text: str


class Client:
    """One npm program."""

    script: str

    def __init__(self, installed: Installed, registry: Registry, folder: Path) -> None:
        self.registry = registry
        self.home = folder / "home"
        self.project = folder / "project"
        self._installed = installed
        for one in (self.home, self.project):
            one.mkdir(exist_ok=True)

    def run(self, *arguments: str, code: int | None = 0, **variables: str) -> Said:
        """Ask; `code` is how it must end, None leaves that to the caller."""
        done = subprocess.run(
            [str(self._installed.node), str(self._installed.modules / self.script), *arguments],
            cwd=self.project,
            env={**self.variables(), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        said = Said(done.returncode, _STYLES.sub("", done.stdout + done.stderr))
        assert code in (None, said.code), said.text
        return said

    def variables(self) -> Mapping[str, str]:
        path = f"{self._installed.node.parent}{os.pathsep}{os.environ['PATH']}"
        return {
            "PATH": path,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            # A test asks nobody but our own server.
            "DISABLE_TELEMETRY": "1",
            "DO_NOT_TRACK": "1",
            "CLAWHUB_DISABLE_TELEMETRY": "1",
        }


class Skills(Client):
    """`skills`, the client of skills.sh."""

    script = "skills/bin/cli.mjs"

    def add(self, scope: str = "", *arguments: str, code: int | None = 0) -> Said:
        where = f"{self.registry.url}/{scope}" if scope else self.registry.url
        return self.run("add", where, "--agent", "claude-code", "--copy", "-y", *arguments, code=code)

    def folder(self, name: str) -> Path:
        return self.project / ".claude" / "skills" / name


class Clawhub(Client):
    """`clawhub`."""

    script = "clawhub/bin/clawdhub.js"

    def ask(self, *arguments: str, code: int | None = 0) -> Said:
        return self.run("--registry", f"{self.registry.url}/clawhub", "--no-input", *arguments, code=code)

    def folder(self, name: str) -> Path:
        return self.project / "skills" / name
