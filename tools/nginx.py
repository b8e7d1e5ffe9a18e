"""Sees to it that there is an nginx, which a test asks about the block in the documents: where this machine has none,
Debian's package is unpacked below `.venv`, and not installed, so that no server starts.

Under `CI=true` a missing nginx is a failure; elsewhere the test is skipped, and says so.
"""

import os
import shutil
import subprocess
import sys

from tools.files import ROOT

FOLDER = ROOT / ".venv" / "nginx"
MISSING = "nginx was not found; install it, or run this on Debian"


def find_nginx() -> str | None:
    """The program; None where there is none."""
    return shutil.which("nginx", path=f"{os.defpath}:/usr/sbin:{FOLDER}/usr/sbin")


def main() -> int:
    """0 where there is one, or where its absence is allowed."""
    if find_nginx() is None and shutil.which("apt-get") is not None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        unpack = "apt-get update -qq; apt-get download -qq nginx; for one in *.deb; do dpkg -x $one .; done"
        subprocess.run(["sh", "-c", unpack], check=False, cwd=FOLDER, capture_output=True)
    if find_nginx() is not None:
        return 0
    print(f"nginx: {MISSING}", file=sys.stderr)
    return 1 if os.environ.get("CI", "").lower() in {"1", "true"} else 0


if __name__ == "__main__":
    sys.exit(main())
