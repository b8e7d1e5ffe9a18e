"""One round of the path from a repository to PUBLISHED, by the sources of the commit on the module path: so many
repositories, so many skills in each. Prints the skills a second."""

import sys

from bench.path import measure
from bench.scale import FULL
from bench.workshop import open_workshop


def main(repositories: int, skills: int) -> None:
    with open_workshop(FULL, lambda _: None) as opened:
        sys.stdout.write(f"{measure(opened, repositories, skills).rate}\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
