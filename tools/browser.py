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
    if find_chromium() is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        print("browser: installing Chromium (a minute, once)")
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        install = "apt-get update -qq; apt-get install -y -qq --no-install-recommends chromium"
        # Whatever goes wrong is told by the tool itself.
        subprocess.run(["sh", "-c", install], check=False, stdout=subprocess.DEVNULL, env=quiet)
    if find_chromium() is not None:
        return 0
    print(f"browser: {MISSING}", file=sys.stderr)
    return 1 if os.environ.get("CI", "").lower() in {"1", "true"} else 0


if __name__ == "__main__":
    sys.exit(main())
