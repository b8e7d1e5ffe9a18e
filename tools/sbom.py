"""`make audit`: what runs in production, as a CycloneDX list in JSON, made from `requirements.lock` by cyclonedx-py.

The same lock gives the same bytes. It names packages with their versions and the hashes that the lock allows. It knows
no vulnerabilities, because those are in databases on the network, and it says so.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.files import ROOT
from vskill_platform import __version__

PROJECT = ROOT / "pyproject.toml"
LOCK = "requirements.lock"
TARGET = "build/sbom.cdx.json"
WHAT_IS_MISSING = """\
audit: this is a list, not a verdict: vulnerabilities are known to databases on the network only. Where one can be
audit: reached, give it the file, or run the package pip-audit: pip-audit --require-hashes -r requirements.lock
"""
_PROGRAM = Path(sys.prefix) / "tools" / "bin" / "cyclonedx-py"


def bill(lock: Path) -> dict[str, Any]:
    command: list[str | Path] = [
        _PROGRAM,
        "requirements",
        "--output-reproducible",
        "--pyproject",
        PROJECT,
        lock,
    ]
    done = subprocess.run(command, check=True, capture_output=True)
    document: dict[str, Any] = json.loads(done.stdout)
    # The project's file does not say it: the package does.
    document["metadata"]["component"]["version"] = __version__
    return document


def main(root: Path = ROOT) -> int:
    document = bill(root / LOCK)
    target = root / TARGET
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    sys.stdout.write(f"audit: {len(document['components'])} packages run in production; listed in {TARGET}\n")
    sys.stdout.write(WHAT_IS_MISSING)
    return 0


if __name__ == "__main__":
    sys.exit(main())
