"""A machine on which one folder can be written and nothing else, as a unit with `ProtectSystem=strict` gives it to its
service: a mount namespace, where this machine lets us have one (as root on Linux)."""

import shutil
import subprocess
from pathlib import Path

from tests.support.lifetimes import running

#: The folder, then the command. What the kernel keeps in /proc, /sys and /dev stays as it is; where a mount cannot be
#: made read-only, the command is not run.
_SCRIPT = """
set -eu
folder=$1; shift
mount --bind "$folder" "$folder"
while read -r _ place _; do
    case $place in "$folder"|/proc|/proc/*|/sys|/sys/*|/dev|/dev/*) ;; *) mount -o remount,bind,ro "$place" ;; esac
done < /proc/self/mounts
cd /
exec "$@"
"""


def on_read_only_machine(writable: Path, *command: str | Path) -> list[str | Path]:
    """The command, run where only this folder can be written, from `/` as a service is."""
    return ["unshare", "--mount", "sh", "-c", _SCRIPT, "sh", writable, *command]


def can_be_read_only(folder: Path) -> bool:
    """Whether this machine lets us have such a namespace."""
    if shutil.which("unshare") is None:
        return False
    command = on_read_only_machine(folder, "sh", "-c", "! touch /tmp/probe")
    with running(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        return process.wait() == 0
