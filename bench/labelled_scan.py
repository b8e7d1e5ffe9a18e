"""Scans folders with whatever version of the product is on the path, in a process of its own, and prints as JSON what
each took and what the registry would do with it. `labelled` runs this with the sources of two commits.

Only what every version has is used, and nothing of `bench`: the other commit's may differ.
"""

import cProfile
import gc
import json
import pstats
import resource
import sys
import time
from pathlib import Path
from typing import Any

from vskill_platform.domain.content import SkillFile
from vskill_platform.domain.decision import decide
from vskill_platform.domain.scan import NO_JUDGE
from vskill_platform.intake.manifest import read_manifest
from vskill_platform.scan.engine import Engine
from vskill_platform.scan.ruleset import bundled_rules

#: Modules and functions of C that are named as where the time went.
MOST_PLACES = 12


def files_of(folder: Path) -> tuple[SkillFile, ...]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return tuple(
        SkillFile(path.relative_to(folder).as_posix(), "100644", path.read_bytes()) for path in paths
    )


def scan(folders: list[Path], *, profiled: bool) -> dict[str, Any]:
    engine = Engine(bundled_rules(), read_manifest)
    # As the processes of the scanner's pool do.
    gc.freeze()
    if folders:
        engine.scan(files_of(folders[0]))
    profile = cProfile.Profile()
    seconds, states, rules = [], [], []
    for folder in folders:
        files = files_of(folder)
        began = time.thread_time()
        if profiled:
            profile.enable()
        report = engine.scan(files)
        if profiled:
            profile.disable()
        seconds.append(time.thread_time() - began)
        states.append(decide(report, NO_JUDGE).next_state.value)
        rules.append(sorted({one.rule_id for one in report.findings if one.kind.value != "capability"}))
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    places = places_of(profile) if profiled else []
    return {"seconds": seconds, "states": states, "rules": rules, "memory_mb": memory_mb, "places": places}


def places_of(profile: cProfile.Profile) -> list[tuple[str, float]]:
    """Where the time went: by module of the product, and by function of the libraries that do the work."""
    times: dict[str, float] = {}
    for (file, _, function), (_, _, own, _, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        ours = "vskill_platform" in file
        native = function.strip("<>").removeprefix("built-in ").removeprefix("method ")
        place = Path(file).stem if ours else native if file == "~" else Path(file).parent.name
        times[place] = times.get(place, 0.0) + own
    total = sum(times.values()) or 1.0
    return sorted(((place, own / total) for place, own in times.items()), key=lambda one: -one[1])[
        :MOST_PLACES
    ]


if __name__ == "__main__":
    given = [Path(line) for line in sys.stdin.read().splitlines()]
    print(json.dumps(scan(given, profiled="profile" in sys.argv[1:])))
