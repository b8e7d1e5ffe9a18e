"""Sees to it that there is a Chromium: installs Debian's where that is possible, otherwise says what is missing.

Under `CI=true` a missing browser is a failure; elsewhere the browser tests are skipped, and say so.
"""

import os
import shutil
import subprocess
import sys

from tools.browsing import MISSING, find_chromium


def main() -> int:
    """0 where there is a browser, or where its absence is allowed."""
    if find_chromium() is None and _can_install():
        print("browser: installing Chromium (a minute, once)")
        _install()
    if find_chromium() is not None:
        return 0
    print(f"browser: {MISSING}", file=sys.stderr)
    return 1 if os.environ.get("CI", "").lower() in {"1", "true"} else 0


def _can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def _install() -> None:
    """Whatever goes wrong is told by the tool itself; whether there is a browser afterwards is looked at anew."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]
    if subprocess.run(install, check=False, stdout=subprocess.DEVNULL, env=quiet).returncode == 0:
        return
    subprocess.run(["apt-get", "update", "-qq"], check=False, stdout=subprocess.DEVNULL, env=quiet)
    subprocess.run(install, check=False, stdout=subprocess.DEVNULL, env=quiet)


if __name__ == "__main__":
    sys.exit(main())
