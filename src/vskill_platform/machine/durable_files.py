"""Files that survive a power cut."""

import os
import tempfile
from pathlib import Path


def write_file(folder: Path, data: bytes, mode: int = 0o600, *, prefix: str = "tmp") -> Path:
    """Write the data to a temporary file and sync it; the caller renames it."""
    handle, name = tempfile.mkstemp(dir=folder, prefix=prefix)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def force_folder(folder: Path) -> None:
    """Sync a folder: a renamed file survives a power cut only after that."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
