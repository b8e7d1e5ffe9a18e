"""Which files the checks look at: those that git tracks, and those that it would add.

New files count before their first commit, so that a check fails on the machine of whoever writes them.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: Where our packages lie: the registry, and what others take alone.
HOMES = ("src/", "packages/core/src/", "packages/scan/src/", "packages/client/src/")
#: Where the product's own code begins.
PRODUCT = ("src/vskill_platform/", "packages/")


def project_files(root: Path = ROOT) -> list[str]:
    """Paths relative to the root, sorted; ignored files and files that were just deleted are left out."""
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    return sorted(path for path in set(listing.stdout.split("\0")) if path and (root / path).is_file())


def texts(root: Path = ROOT) -> Iterator[tuple[str, str]]:
    """Path and content of every text file; a NUL byte makes a file binary."""
    for path in project_files(root):
        content = (root / path).read_bytes()
        if b"\0" not in content:
            yield path, content.decode("utf-8", errors="replace")


def module_name(path: str) -> str:
    """Of a file of the product, as an import names it."""
    home = next((home for home in HOMES if path.startswith(home)), "")
    return path.removeprefix(home).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
