"""Cisco's skill-scanner as a peer: installed into an environment of its own, and run there over folders of skills.

`make bench` makes the environment, once, by `python -m bench.skill_scanner install`; where that fails the benchmark
shows a row that says so, and compares nothing. Only its static analysers run: no model, no service.
Its import and its rules are loaded before anything is timed, as ours are.
"""

import importlib
import json
import subprocess
import sys
import time
import venv
from pathlib import Path

PACKAGE = "cisco-ai-skill-scanner==2.3.2"
HOME = Path(sys.prefix) / "peers" / "skill-scanner"
MISSING = f"not compared: {PACKAGE} is not installed (`python -m bench.skill_scanner install` says why)"
#: Where its import would ask the network for a list of prices.
_OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "HF_HUB_OFFLINE": "1"}
PATIENCE_S = 1800


def installed() -> bool:
    """Whether exactly this version is there."""
    ready = HOME / "ready"
    return ready.exists() and ready.read_text("utf-8").strip() in {PACKAGE, ""}


def install() -> None:
    """Into an environment of its own: what it depends on need not agree with what we depend on."""
    if installed():
        return
    print(f"setup: installing {PACKAGE} into {HOME} (some minutes, once)", flush=True)
    venv.create(HOME, clear=True, with_pip=True)
    command = [str(HOME / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input", PACKAGE]
    subprocess.run(command, check=True)
    (HOME / "ready").write_text(PACKAGE, "utf-8")


def cpu_seconds(folder: Path, *, thorough: bool = False) -> list[float]:
    """Processor time for each skill of the folder, in the order of their names."""
    return [seconds for seconds, _ in outcomes(folder, thorough=thorough)]


def outcomes(folder: Path, *, thorough: bool = False) -> list[tuple[float, bool]]:
    """Processor time for each skill of the folder, in the order of their names, and whether it is flagged."""
    # Our folder must stay out of its path: a module of ours has the name of one of the standard library.
    command = [str(HOME / "bin" / "python"), "-P", str(Path(__file__)), "scan", str(folder)]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder.parent), **_OFFLINE}
    done = subprocess.run(
        [*command, *(["thorough"] if thorough else [])],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
        timeout=PATIENCE_S,
    )
    answers = json.loads(done.stdout.splitlines()[-1])
    return [(float(seconds), bool(flagged)) for seconds, flagged in answers]


def _scan(folder: Path, *, thorough: bool) -> list[tuple[float, bool]]:
    """Runs inside the peer's environment. `thorough` adds its data-flow analysis, which is off by default."""
    scanner = importlib.import_module("skill_scanner").SkillScanner()
    if thorough:
        module = importlib.import_module("skill_scanner.core.analyzers.behavioral_analyzer")
        scanner.add_analyzer(module.BehavioralAnalyzer())
    skills = sorted(folder.iterdir())
    scanner.scan_skill(skills[0])
    taken = []
    for skill in skills:
        began = time.process_time()
        result = scanner.scan_skill(skill)
        seconds = time.process_time() - began
        severities = {str(getattr(one.severity, "value", one.severity)).lower() for one in result.findings}
        taken.append((seconds, not severities.isdisjoint({"high", "critical"})))
    return taken


def main(arguments: list[str]) -> None:
    match arguments:
        case ["install"]:
            try:
                install()
            except (OSError, subprocess.CalledProcessError) as error:
                sys.exit(f"setup: {PACKAGE} cannot be installed: {error}")
        case ["scan", folder, *options]:
            print(json.dumps(_scan(Path(folder), thorough="thorough" in options)))
        case _:
            sys.exit("usage: python -m bench.skill_scanner install")


if __name__ == "__main__":
    main(sys.argv[1:])
