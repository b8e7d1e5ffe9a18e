"""A real server with the bundled examples, and a real browser to look at it: what the browser tests and the screenshots
share. Both run on this machine alone."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from playwright.sync_api import Browser, Playwright

from tools.files import ROOT

COMMAND = (sys.executable, "-m", "vskill_platform")
#: Names under which a Chromium may be installed; `CHROMIUM` in the environment goes before them.
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
#: A machine that is busy with other things needs longer than one that is not.
PATIENCE_S = 600.0
STOP_S = 20.0
MISSING = "no Chromium was found: on Debian run 'apt-get install -y chromium', or set CHROMIUM to the program's path"


class Server:
    """A running server, and what one must know to use it."""

    def __init__(self, address: str, data: Path, process: "subprocess.Popen[str]") -> None:
        self.address = address
        self.data = data
        self.process = process

    def json(self, path: str) -> Any:
        with urlopen(f"{self.address}{path}", timeout=PATIENCE_S) as answer:  # noqa: S310 - our own server on loopback
            return json.load(answer)


def find_chromium() -> str | None:
    """The browser's path, or None."""
    given = os.environ.get("CHROMIUM")
    return given or next((path for name in NAMES if (path := shutil.which(name))), None)


def open_browser(playwright: Playwright, program: str) -> Browser:
    """A browser without a window. As root there is no sandbox to be had, and it only ever sees our own pages."""
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=program, args=arguments)


@contextmanager
def serving(data: Path, *, port: int = 0, examples: bool = True, **settings: str) -> Iterator[Server]:
    """A server process of its own on a free port; with the examples, once all of them are decided."""
    environment = environment_of(data, settings)
    arguments = ["serve", "--host", "127.0.0.1", "--port", str(port), *(["--demo"] if examples else [])]
    with (data / "server.log").open("a") as log:
        process = subprocess.Popen(
            [*COMMAND, *arguments], env=environment, stdout=subprocess.PIPE, stderr=log, text=True, cwd=data
        )
        try:
            server = Server(_announced(process, data), data, process)
            if examples:
                _until_examples_are_decided(server)
            yield server
        finally:
            _stop(process)


def environment_of(data: Path, settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """What our processes run in: this checkout, that data folder, and no setting of the machine's own."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("VSKILL_")}
    given = {f"VSKILL_{name.upper()}": value for name, value in (settings or {}).items()}
    return {
        **own,
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "200",
        "VSKILL_DATA_DIR": str(data),
        "VSKILL_RATE_LIMITS": "off",
        # The browser keeps the cores busy, and waits for its work.
        **given,
    }


def command(data: Path, *arguments: str) -> str:
    """One command of ours against the same data folder; what it printed."""
    done = subprocess.run(
        [*COMMAND, *arguments], env=environment_of(data), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr[-2000:]}")
    return done.stdout


def make_admin(data: Path, name: str = "ada") -> str:
    """An admin account; its password."""
    told = json.loads(command(data, "admin", "create", name, "--role", "admin", "--generate", "--json"))
    password: str = told["password"]
    return password


def _announced(process: "subprocess.Popen[str]", data: Path) -> str:
    """The address in the box that a server prints."""
    assert process.stdout is not None  # noqa: S101 - it was opened with a pipe
    for line in process.stdout:
        for word in line.split():
            if word.startswith("http://127.0.0.1:") and word.count("/") == 2:
                return word
    raise RuntimeError(f"the server did not start: {(data / 'server.log').read_text()[-2000:]}")


def _until_examples_are_decided(server: Server) -> None:
    """Submitted all, and none on its way."""
    deadline = time.monotonic() + PATIENCE_S
    progress = server.data / "examples" / "progress.json"
    while time.monotonic() < deadline:
        finished = progress.is_file() and json.loads(progress.read_text() or "{}").get("finished")
        if finished and server.json("/api/v1/submissions/stats")["active"] == 0:
            return
        time.sleep(0.2)
    raise RuntimeError("the examples were not decided in time")


def _stop(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
