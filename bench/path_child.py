"""One round of the path from a repository to PUBLISHED, by the sources of whichever commit is on the module path: so
many repositories, so many skills in each. Prints the skills a second."""

import importlib.util
import sys
from typing import Any

#: What a commit calls the module, the oldest name first: `path` was another benchmark then.
NAMES = ("bench.end_to_end", "bench.path")


def main(repositories: int, skills: int) -> None:
    workshop: Any = importlib.import_module("bench.workshop")
    scale: Any = importlib.import_module("bench.scale")
    with workshop.open_workshop(scale.FULL, lambda _: None) as opened:
        sys.stdout.write(f"{_module().measure(opened, repositories, skills).rate}\n")


def _module() -> Any:
    for name in NAMES:
        if importlib.util.find_spec(name) is not None:
            return importlib.import_module(name)
    raise SystemExit("this commit measures no path")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
