"""A page's code blocks, run as a reader would run them: in a copy of the checkout, one page one copy, in order.

What differs from a reader's terminal, and only this: a server takes a free port instead of 8080; a line that starts
a role (`make run`, `vskill-platform serve`) goes on in the background; any other `make` target is only planned, since
each has tests of its own; a machine without curl gets a stand-in. What a block leaves in its folder and sets, the
next one finds.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from tests.support import lifetimes
from tests.support.compiled_rules import keep_compiled_rules
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port
from tools.blocks import Block
from tools.files import HOMES, ROOT

#: What a world gets a copy of; the environment with the packages is shared.
COPIED = ("src", "packages", "tools", "docs", "Makefile", "pyproject.toml", "README.md")
PORT = "8080"

_ROLE = re.compile(
    r"^(?:[A-Z_]+=\S+ )*(?:make run|(?:\.venv/bin/)?vskill-platform (?:serve|worker|schedule)\b.*)$"
)
_PLANNED = re.compile(r"^(\s*)make (?=[a-z])", re.MULTILINE)
_PROMPT = "$ "
#: What is different each time: ids, digests, times and other numbers.
_CHANGING = (
    (re.compile(r"sub_[0-9a-f-]{36}"), "sub_#"),
    (re.compile(r"\b[0-9a-f]{16,}\b"), "#"),
    (re.compile(r"\d+(?:[.,:T-]\d+)*"), "#"),
    (re.compile(r"\s+"), " "),
)
# Carries the folder and the variables over to the next block, as a terminal would.
_SCRIPT = """\
if [ -f "$WORLD/.exports" ]; then . "$WORLD/.exports"; cd "$(cat "$WORLD/.folder")"; fi
set -eua
{block}
export -p > "$WORLD/.exports"
pwd > "$WORLD/.folder"
"""


#: As much of curl as the pages use, for a machine that has Python and git and nothing else.
_CURL = """\
import base64, sys, urllib.error, urllib.request
given, target, headers, body, method, url = iter(sys.argv[1:]), None, {}, None, None, ""
for one in given:
    if one == "-o": target = next(given)
    elif one == "-H": name, _, value = next(given).partition(":"); headers[name] = value.strip()
    elif one == "-u": headers["Authorization"] = "Basic " + base64.b64encode(next(given).encode()).decode()
    elif one in ("-d", "--data", "--data-binary"): body = next(given).encode()
    elif one == "-X": method = next(given)
    elif not one.startswith("-"): url = one
try:
    answer = urllib.request.urlopen(urllib.request.Request(url, body, headers, method=method)).read()
except urllib.error.HTTPError as error:
    sys.exit(print(f"curl: (22) {error}", file=sys.stderr) or 22)
open(target, "wb").write(answer) if target else sys.stdout.buffer.write(answer)
"""


class World:
    """Where one page is tried out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._roles: list[subprocess.Popen[str]] = []
        self.environment = _environment(folder, self.port)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def run(self, block: Block) -> None:
        """One block; what fails says so with all that was printed."""
        text = block.text.replace(f":{PORT}", f":{self.port}")
        if block.language == "python":
            self._python(text)
        elif block.language == "console":
            for command, shown in console_steps(text):
                printed = self._shell(command)
                missing = missing_lines(shown, printed)
                assert not missing, f"$ {command}\ndid not print {missing[0]!r}, but:\n{printed}"
        elif _ROLE.match(text.strip()):
            self.start(text.strip())
        else:
            self._shell(text)

    def start(self, line: str) -> None:
        """A role, in the background; a web side is waited for."""
        command = line.replace("make run", "vskill-platform serve --demo")
        with (self.folder / "roles.log").open("a") as log:
            process = lifetimes.start(
                ["sh", "-c", f"exec env {command}"],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._roles.append(process)
        if " serve" in command:
            self._wait_until_up(process)

    def close(self) -> None:
        for process in self._roles:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self._roles:
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _shell(self, text: str) -> str:
        script = _SCRIPT.format(block=_PLANNED.sub(r"\1make --dry-run --silent ", text))
        return self._call(["sh", "-c", script], text)

    def _python(self, text: str) -> str:
        return self._call(["python", "-W", "error", "-c", text], text)

    def _call(self, command: list[str], text: str) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, f"{text}\nended with {done.returncode}:\n{done.stdout}"
        return done.stdout

    def _wait_until_up(self, process: subprocess.Popen[str]) -> None:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and process.poll() is None:
            try:
                if httpx2.get(f"{self.address}/readyz").status_code == 200:
                    return
            except httpx2.HTTPError:
                time.sleep(0.1)
        raise AssertionError((self.folder / "roles.log").read_text("utf-8"))


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """A copy of the checkout without its pictures, and whatever a page makes of it."""
    for name in (*COPIED, *(lock.name for lock in ROOT.glob("*.lock"))):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("images"))
        else:
            shutil.copy(source, folder / name)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    keep_compiled_rules(folder / "data")
    made = World(folder)
    if shutil.which("curl") is None:
        made.environment["PATH"] += f":{write_curl(folder / 'stand-ins').parent}"
    try:
        yield made
    finally:
        made.close()


def write_curl(folder: Path) -> Path:
    """The stand-in, as a program of that name."""
    folder.mkdir(parents=True)
    (folder / "curl").write_text(f"#!{sys.executable}\n{_CURL}")
    (folder / "curl").chmod(0o755)
    return folder / "curl"


def console_steps(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command after a prompt, with the lines that are shown as its output."""
    command, shown = "", list[str]()
    for line in text.splitlines():
        if line.startswith(_PROMPT):
            if command:
                yield command, shown
            command, shown = line.removeprefix(_PROMPT), []
        elif line.strip() not in ("", "..."):
            shown.append(line)
    if command:
        yield command, shown


def missing_lines(shown: list[str], printed: str) -> list[str]:
    """Lines that were not printed in this order; what changes each time is not compared."""
    left = iter([_same(line) for line in printed.splitlines()])
    return [line for line in shown if not any(_same(line) == one for one in left)]


def _same(line: str) -> str:
    for pattern, mark in _CHANGING:
        line = pattern.sub(mark, line)
    return line.strip()


def _environment(folder: Path, port: int) -> dict[str, str]:
    # A page starts dozens of processes: what Python has compiled for one is kept for the next.
    left_out = ("VSKILL_", "MAKE", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {
        **kept,
        "HOME": str(folder),
        "WORLD": str(folder),
        "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(str(folder / home) for home in (*HOMES, "")),
        "PYTHONUNBUFFERED": "1",
        "VSKILL_PORT": str(port),
        "COLUMNS": "120",
    }
