"""A shell in which every client is a command, for lines that people paste."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.clients.clients import Claude, Client, Copilot, Gemini, Installed, OpenCode
from tests.clients.registry import Registry, read_files, write_files
from tests.support.uv import uv_variables
from tests.support.worlds import write_curl

#: What clients note for themselves beside a skill.
NOTES = (".clawhub/",)


class Terminal(Client):
    """A shell in which every client is a command."""

    def __init__(self, installed: Installed, registry: Registry, folder: Path, wheels: Path) -> None:
        super().__init__(installed, registry, folder)
        self._wheels = wheels
        self._exported: list[str] = []
        self._programs = folder / "programs"
        self._programs.mkdir()
        node, modules = installed.node, installed.modules
        scripts = {"skills": "skills/bin/cli.mjs", "clawhub": "clawhub/bin/clawdhub.js"}
        for name, script in scripts.items():
            self._write(f"npx-{name}", f'exec {node} {modules / script} "$@"')
        self._write("npx", f'name=$1; shift; exec {self._programs}/npx-$name "$@"')
        for name in ("claude", "codex", "copilot", "opencode"):
            self._write(name, f'exec {getattr(installed, name)} "$@"')
        self._write("gemini", f'exec {node} {modules / Gemini.script} "$@"')
        for name in ("uv", "uvx"):
            self._write(name, f'exec {Path(sys.executable).parent / name} "$@"')
        self._write("vskill-platform", f'exec {sys.executable} -m vskill_platform "$@"')
        # Gemini CLI asks for each folder once whether to trust it; the rest of what it asks is answered.
        write_files(
            self.home, {".gemini/trustedFolders.json": f'{{"{self.project}": "TRUST_FOLDER"}}'.encode()}
        )
        if shutil.which("curl") is None:
            write_curl(folder / "stand-in").rename(self._programs / "curl")
        if shutil.which("unzip") is None:
            self._write("unzip", f'exec {sys.executable} -m zipfile -e "$1" "$3"')

    def _write(self, name: str, line: str) -> None:
        (self._programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (self._programs / name).chmod(0o755)

    def command(self) -> list[str]:
        return ["sh", "-euc"]

    def variables(self) -> Mapping[str, str]:
        own: dict[str, str] = {}
        for client in (Claude, Copilot, Gemini, OpenCode):
            own |= client(self._installed, self.registry, self._folder).variables()
        # `skills` asks nothing where an agent runs it.
        places = (str(self._programs), str(self.home / ".local" / "bin"), own["PATH"])
        return own | {"PATH": os.pathsep.join(places), "AI_AGENT": "claude", **uv_variables(self._wheels)}

    def paste(self, line: str, given: str = "") -> str:
        """Run one line; what was exported before holds."""
        if line.startswith("export "):
            self._exported.append(line)
            return ""
        return self.run("\n".join((*self._exported, line)), given=given).text

    def installed(self, files: Mapping[str, bytes]) -> bool:
        """Whether a skill with these very files lies somewhere."""
        found = {one.parent for root in (self.home, self.project) for one in root.rglob("SKILL.md")}
        return any(read_files(one, NOTES) == files for one in found)
