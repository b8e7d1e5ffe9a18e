"""The peers that are compared with, where they are installed: `make bench` installs them, `make test` does not."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.huey_peer import HueyQueue

NO_HUEY = "huey is not installed, so nothing is compared with it here: `make bench` installs it."


def huey_queue(folder: Path, messages: int) -> "HueyQueue | None":
    """A filled queue of huey's, or None where huey is not installed."""
    if find_spec("huey") is None:
        return None
    from bench.huey_peer import HueyQueue  # noqa: PLC0415 - cannot be imported where huey is not installed

    return HueyQueue(folder, messages)
