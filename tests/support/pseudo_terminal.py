"""A command at a terminal as over SSH: what it shows is read, and there is no window in which it could open a browser."""

import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.lifetimes import running
from tests.support.patience import PATIENCE_S

#: Where a window would be shown.
DISPLAYS = frozenset({"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"})
#: Lines and columns; without, programs take it for one of no width.
SIZE = (40, 200)
_STYLES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


class Terminal:
    """What a running command shows."""

    def __init__(self, process: subprocess.Popen[Any], ours: int) -> None:
        self._process = process
        self._ours = ours
        self._shown = b""

    def read_until(self, wanted: str) -> str:
        """Everything that was shown until there is a whole line with these words."""
        while (found := self._shown.find(wanted.encode())) < 0 or b"\n" not in self._shown[found:]:
            assert self._read(), f"it ended: {self._text()}"
        return self._text()

    def read_rest(self, code: int = 0) -> str:
        """Everything that was shown, once it has ended with this code."""
        while self._read():
            pass
        assert self._process.wait(PATIENCE_S) == code, self._text()
        return self._text()

    def _text(self) -> str:
        return _STYLES.sub("", self._shown.decode(errors="replace"))

    def _read(self) -> bool:
        """Whether something came before its end."""
        began = time.monotonic()
        while not select.select([self._ours], [], [], 1)[0]:
            assert time.monotonic() - began < PATIENCE_S, self._text()
        try:
            came = os.read(self._ours, 4_096)
        except OSError:  # how Linux says that nobody is at the other end any more
            return False
        self._shown += came
        return bool(came)


@contextmanager
def at_terminal(
    command: Sequence[str | Path], environment: Mapping[str, str] = os.environ, cwd: Path | None = None
) -> Iterator[Terminal]:
    """The command, until the block ends."""
    without = {name: value for name, value in environment.items() if name not in DISPLAYS}
    over_ssh = {**without, "SSH_CONNECTION": "192.0.2.1 50000 192.0.2.2 22", "TERM": "xterm-256color"}
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, SIZE)
    try:
        with running(command, stdin=theirs, stdout=theirs, stderr=theirs, env=over_ssh, cwd=cwd) as process:
            os.close(theirs)
            yield Terminal(process, ours)
    finally:
        os.close(ours)
