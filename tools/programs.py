"""Sees to it that there is a Chromium, an nginx, a PgBouncer or a promtool for the tests: where this machine has none,
Debian's is got if that is possible. All but Chromium are unpacked below `.venv`, and not installed, so that no server
starts.

Under `CI=true` a missing program is a failure; elsewhere the tests that need it are skipped, and say so.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools import browsing
from tools.files import ROOT

MISSING = "{name} was not found; install it, or run this on Debian"
#: Debian's packages of each program that is unpacked, with the libraries that few machines have.
PACKAGES = {
    "nginx": "nginx",
    "pgbouncer": "pgbouncer libevent-2.1-7 libc-ares2",
    "promtool": "prometheus",
}
BROWSER = "apt-get update -qq; apt-get install -y -qq --no-install-recommends chromium"
UNPACK = "apt-get update -qq; apt-get download -qq {packages}; for one in *.deb; do dpkg -x $one .; done"


def find(name: str) -> str | None:
    """The program; None where there is none."""
    if name == "browser":
        return browsing.find_chromium()
    unpacked = _folder(name) / "usr"
    return shutil.which(name, path=f"{os.defpath}:/usr/sbin:{unpacked}/sbin:{unpacked}/bin")


def libraries(name: str) -> str:
    """Where an unpacked program finds its libraries."""
    return os.pathsep.join(map(str, _folder(name).glob("usr/lib/*-linux-gnu*")))


def _folder(name: str) -> Path:
    return ROOT / ".venv" / name


def main(name: str) -> int:
    """0 where there is one, or where its absence is allowed."""
    if find(name) is None and shutil.which("apt-get") is not None:
        print(f"{name}: getting it (a minute, once)")
        command, folder = BROWSER, ROOT
        if name != "browser":
            command, folder = UNPACK.format(packages=PACKAGES[name]), _folder(name)
            folder.mkdir(parents=True, exist_ok=True)
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["sh", "-c", command], check=False, stdout=subprocess.DEVNULL, env=quiet, cwd=folder)
    if find(name) is not None:
        return 0
    missing = browsing.MISSING if name == "browser" else MISSING.format(name=name)
    print(f"{name}: {missing}", file=sys.stderr)
    return 1 if os.environ.get("CI", "").lower() in {"1", "true"} else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
