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
#: Nobody listens there: what a client asks elsewhere than on this machine fails at once.
NOWHERE = "http://127.0.0.1:9"
_STYLES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def git(folder: Path, *arguments: str, code: int = 0, given: str = "") -> str:
    """What git prints, with this folder as its home and `given` as its input."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
        },
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def keep_for_git(home: Path, url: str, token: str) -> None:
    """Keep a token for the registry at this address, as the documents say: in git's credential helper."""
    git(home, "config", "--global", f"credential.{url}.helper", "store")
    git(home, "credential", "approve", given=f"url={url}\nusername=any\npassword={token}\n\n")


class Installed(msgspec.Struct, frozen=True):
    """Where the pinned programs are."""

    node: Path
    #: A program of its own, without node.
    claude: Path
    modules: Path


def find_clients() -> Installed | None:
    nodes = sorted(MODULES.glob("node-*/bin/node"))
    claudes = sorted(MODULES.glob("@anthropic-ai/claude-code-*/claude"))
    wanted = (MODULES / "skills", MODULES / "clawhub")
    if not nodes or not claudes or not all(one.is_dir() for one in wanted):
        return None
    return Installed(nodes[0], claudes[0], MODULES)


class Said(msgspec.Struct, frozen=True):
    """How a command ended, and what it printed, without colours."""

    code: int
    text: str


class Client:
    """One npm program."""

    #: What node runs, below the modules.
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
            [*self.command(), *arguments],
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

    def command(self) -> list[str]:
        return [str(self._installed.node), str(self._installed.modules / self.script)]

    def variables(self) -> Mapping[str, str]:
        path = f"{self._installed.node.parent}{os.pathsep}{os.environ['PATH']}"
        return {
            "PATH": path,
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
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


class Claude(Client):
    """Claude Code, without an account: its commands about plugins, and a session that ends because there is no model."""

    #: A certificate that it takes for good.
    certificate: Path | None = None

    def command(self) -> list[str]:
        return [str(self._installed.claude)]

    def variables(self) -> Mapping[str, str]:
        trusted = {} if self.certificate is None else {"NODE_EXTRA_CA_CERTS": str(self.certificate)}
        return {
            **super().variables(),
            **trusted,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "HTTP_PROXY": NOWHERE,
            "HTTPS_PROXY": NOWHERE,
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def plugin(self, *arguments: str, code: int | None = 0) -> Said:
        return self.run("plugin", *arguments, code=code)

    def start_session(self) -> None:
        """Marketplaces that its settings name are known from then on; what answers instead of a model is not one."""
        self.run(
            *("-p", "hello"),
            code=1,
            ANTHROPIC_API_KEY="none",
            ANTHROPIC_BASE_URL=self.registry.url,
            CLAUDE_CODE_SYNC_PLUGIN_INSTALL="1",
        )

    def settings(self) -> Path:
        folder = self.home / ".claude"
        folder.mkdir(exist_ok=True)
        return folder / "settings.json"

    def folder(self, marketplace: str, name: str, version: str = "1.0.0") -> Path:
        """Where an installed plugin keeps its skill."""
        return self.home / ".claude/plugins/cache" / marketplace / name / version / "skills" / name
