"""Cisco's skill-scanner as a peer: run over folders of skills in an environment of its own, which `make bench` makes.

Only its static analysers run: no model, no service. Its import and its rules are loaded before anything is timed, as
ours are.
"""

import importlib
import subprocess
import sys
import time
from pathlib import Path

HOME = Path(sys.prefix) / "peers" / "skill-scanner"
#: Where its import would ask the network for a list of prices.
_OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HF_HUB_OFFLINE": "1"}
PATIENCE_S = 1800


def installed() -> bool:
    return any(HOME.glob("lib/python*/site-packages/skill_scanner"))


def cpu_seconds(folder: Path) -> float:
    """Processor time for all skills of the folder."""
    # Our folder must stay out of its path: a module of ours has the name of one of the standard library.
    command = [str(HOME / "bin" / "python"), "-P", str(Path(__file__)), str(folder)]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder.parent), **_OFFLINE}
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment, timeout=PATIENCE_S
    )
    return float(done.stdout.splitlines()[-1])


def _scan(folder: Path) -> float:
    """Runs inside the peer's environment."""
    scanner = importlib.import_module("skill_scanner").SkillScanner()
    skills = sorted(folder.iterdir())
    scanner.scan_skill(skills[0])
    began = time.process_time()
    for skill in skills:
        scanner.scan_skill(skill)
    return time.process_time() - began


if __name__ == "__main__":
    print(_scan(Path(sys.argv[1])))
