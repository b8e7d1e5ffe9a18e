"""The real clients, each in a home and a project folder of its own, so that no test sees another's."""

import json
import os
import re
import subprocess
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

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
    #: Programs of their own, without node.
    claude: Path
    codex: Path
    copilot: Path
    opencode: Path
    modules: Path


def find_clients() -> Installed | None:
    programs = (
        "node-*/bin/node",
        "@anthropic-ai/claude-code-*/claude",
        "@openai/codex-*/vendor/*/bin/codex",
        "@github/copilot-*/copilot",
        "opencode-*/bin/opencode",
    )
    found = [sorted(MODULES.glob(pattern)) for pattern in programs]
    packages = ("skills", "clawhub", "@google/gemini-cli", "@modelcontextprotocol/inspector")
    wanted = [MODULES / one for one in packages]
    if not all(found) or not all(one.is_dir() for one in wanted):
        return None
    node, claude, codex, copilot, opencode = (paths[0] for paths in found)
    return Installed(node, claude, codex, copilot, opencode, MODULES)


class Said(msgspec.Struct, frozen=True):
    """How a command ended, and what it printed, without colours."""

    code: int
    text: str


class Client:
    """One npm program."""

    #: What node runs, below the modules.
    script: str
    #: A folder that the program finds in the place of the machine's `/etc`.
    etc: Path | None = None

    def __init__(self, installed: Installed, registry: Registry, folder: Path) -> None:
        self.registry = registry
        self._folder = folder
        self.home = folder / "home"
        self.project = folder / "project"
        self._installed = installed
        for one in (self.home, self.project):
            one.mkdir(exist_ok=True)

    def beside(self) -> Self:
        """The same client of another person, who has nothing yet."""
        folder = self._folder / "beside"
        folder.mkdir()
        return type(self)(self._installed, self.registry, folder)

    def run(self, *arguments: str, code: int | None = 0, given: str = "", **variables: str) -> Said:
        """Ask; `code` is how it must end, None leaves that to the caller. `given` is what somebody types."""
        done = subprocess.run(
            [*self._inside(), *self.command(), *arguments],
            cwd=self.project,
            env={**self.variables(), **variables},
            input=given,
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

    def _inside(self) -> list[str]:
        if self.etc is None:
            return []
        mounted = ["sh", "-euc", 'mount --bind "$0" /etc; exec "$@"', str(self.etc)]
        return ["unshare", "--map-root-user", "--mount", *mounted]

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
            "GIT_TERMINAL_PROMPT": "0",
            "HTTP_PROXY": NOWHERE,
            "HTTPS_PROXY": NOWHERE,
            "NO_PROXY": "127.0.0.1,localhost",
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

    def ask_model(self, model: "StandInModel") -> str:
        """What it sends to the model that answers at this address, once what its settings name is installed."""
        self.run(
            *("-p", "hello"),
            code=1,
            ANTHROPIC_API_KEY="none",
            ANTHROPIC_BASE_URL=model.url.removesuffix("/v1"),
            CLAUDE_CODE_SYNC_PLUGIN_INSTALL="1",
        )
        return model.take()

    def settings(self) -> Path:
        folder = self.home / ".claude"
        folder.mkdir(exist_ok=True)
        return folder / "settings.json"

    def folder(self, marketplace: str, name: str, version: str = "1.0.0") -> Path:
        """Where an installed plugin keeps its skill."""
        return self.home / ".claude/plugins/cache" / marketplace / name / version / "skills" / name


class Codex(Client):
    """Codex, without an account: its commands about plugins, and a session whose model is a stand-in."""

    def command(self) -> list[str]:
        return [str(self._installed.codex)]

    def plugin(self, *arguments: str, code: int | None = 0) -> Said:
        return self.run("plugin", *arguments, code=code)

    def ask_model(self, model: "StandInModel") -> str:
        """What it sends to the model that its settings name."""
        provider = f'{{name="stand-in",base_url="{model.url}",wire_api="responses"}}'
        settings = ("-c", "model_provider=stand", "-c", f"model_providers.stand={provider}", "-m", "none")
        self.run("exec", "--skip-git-repo-check", *settings, "hello", code=1)
        return model.take()

    def folder(self, marketplace: str, name: str, version: str = "1.0.0") -> Path:
        return self.home / ".codex/plugins/cache" / marketplace / name / version / "skills" / name


class Copilot(Client):
    """Copilot CLI, without an account: its commands about plugins, and a session whose model is a stand-in."""

    def command(self) -> list[str]:
        return [str(self._installed.copilot)]

    def variables(self) -> Mapping[str, str]:
        return {**super().variables(), "COPILOT_AUTO_UPDATE": "false"}

    def plugin(self, *arguments: str, code: int | None = 0) -> Said:
        return self.run("plugin", *arguments, code=code)

    def ask_model(self, model: "StandInModel") -> str:
        self.run(
            *("-p", "hello"),
            code=None,
            COPILOT_OFFLINE="true",
            COPILOT_PROVIDER_BASE_URL=model.url,
            COPILOT_MODEL="none",
        )
        return model.take()

    def folder(self, marketplace: str, name: str) -> Path:
        return self.home / ".copilot/installed-plugins" / marketplace / name / "skills" / name


class Gemini(Client):
    """Gemini CLI, without an account: its commands about skills and extensions."""

    script = "@google/gemini-cli/bundle/gemini.js"

    def variables(self) -> Mapping[str, str]:
        return {**super().variables(), "GEMINI_TELEMETRY_ENABLED": "false"}

    def folder(self, name: str) -> Path:
        """Of a skill that was installed by itself."""
        return self.home / ".gemini/skills" / name

    def extension(self, name: str) -> Path:
        """Of a skill in an extension."""
        return self.home / ".gemini/extensions" / name / "skills" / name


class OpenCode(Client):
    """OpenCode, without an account: its settings, and the list of skills that it has."""

    def command(self) -> list[str]:
        return [str(self._installed.opencode)]

    def variables(self) -> Mapping[str, str]:
        return {**super().variables(), "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_PURE": "1"}

    def configure(self, **settings: object) -> None:
        folder = self.home / ".config/opencode"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "opencode.json").write_text(json.dumps(settings))

    def skills(self) -> dict[str, Path]:
        """Where each skill of its list lies, without its own."""
        listed = json.loads(self.run("debug", "skill").text)
        return {one["name"]: Path(one["location"]) for one in listed if one["location"] != "<built-in>"}


class Inspector(Client):
    """The MCP inspector, by its commands."""

    script = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"

    def words(self, method: str, *options: str, era: str = "modern") -> tuple[str, ...]:
        """What is typed to ask the registry's server once; no era is its default."""
        current = ("--protocol-era", era) if era else ()
        return (
            *("--cli", f"{self.registry.url}/mcp", "--transport", "http", *current, "--method", method),
            *options,
        )

    def ask(self, method: str, *options: str) -> dict[str, Any]:
        """The result that it prints."""
        printed = self.run(*self.words(method, *options)).text
        return dict(json.loads(printed[printed.index("{") :]))


class StandInModel:
    """Takes what clients send to a model, and answers that there is none."""

    def __init__(self) -> None:
        self._taken: list[str] = []
        taken = self._taken

        class Answering(BaseHTTPRequestHandler):
            """Every request is refused."""

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                taken.append(body.decode("utf-8", "replace"))
                self._refuse()

            def do_GET(self) -> None:
                self._refuse()

            def _refuse(self) -> None:
                said = b'{"error":{"message":"there is no model"}}'
                self.send_response(400)
                self.send_header("content-length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self) -> str:
        """Everything that was sent since this was last asked; something was."""
        assert self._taken
        sent = "\n".join(self._taken)
        self._taken.clear()
        return sent
