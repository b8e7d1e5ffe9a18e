"""Sees to it that there is a Chromium or an nginx for the tests: where this machine has none, Debian's is got if that
is possible. nginx is unpacked below `.venv`, and not installed, so that no server starts.

Under `CI=true` a missing program is a failure; elsewhere the tests that need it are skipped, and say so.
"""

import os
import shutil
import subprocess
import sys

from tools.browsing import MISSING, find_chromium
from tools.files import ROOT

FOLDER = ROOT / ".venv" / "nginx"
NGINX_MISSING = "nginx was not found; install it, or run this on Debian"
#: What gets each, and where; whatever goes wrong is told by the tool itself.
GETTING = {
    "browser": "apt-get update -qq; apt-get install -y -qq --no-install-recommends chromium",
    "nginx": f"mkdir -p {FOLDER}; cd {FOLDER}; apt-get update -qq; apt-get download -qq nginx; "
    "for one in *.deb; do dpkg -x $one .; done",
}


def find_nginx() -> str | None:
    """The program; None where there is none."""
    return shutil.which("nginx", path=f"{os.defpath}:/usr/sbin:{FOLDER}/usr/sbin")


def main(name: str) -> int:
    """0 where there is one, or where its absence is allowed."""
    find, missing = {"browser": (find_chromium, MISSING), "nginx": (find_nginx, NGINX_MISSING)}[name]
    if find() is None and shutil.which("apt-get") is not None:
        print(f"{name}: getting it (a minute, once)")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(["sh", "-c", GETTING[name]], check=False, stdout=subprocess.DEVNULL, env=quiet)
    if find() is not None:
        return 0
    print(f"{name}: {missing}", file=sys.stderr)
    return 1 if os.environ.get("CI", "").lower() in {"1", "true"} else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
