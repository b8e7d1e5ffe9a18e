"""Where other people's queues are installed: an environment of their own, which `make bench` makes from
`requirements-bench.lock`. What they depend on must not be there when the product is tested."""

import sys
from pathlib import Path

HOME = Path(sys.prefix) / "peers" / "queues"


def python() -> Path:
    return HOME / "bin" / "python"


def has(package: str) -> bool:
    """Whether this top-level package is installed there."""
    return any(HOME.glob(f"lib/python*/site-packages/{package}"))
