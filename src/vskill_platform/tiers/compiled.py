"""Compiled patterns on disk, so that a worker that starts anew scans at once instead of compiling for a second or more.

The file is named after the rules and the library's version, and begins with the digest of what follows: a file that
does not fit is as good as none, and is replaced.
"""

import contextlib
import hashlib
import os
import tempfile
from importlib.metadata import version
from pathlib import Path

import msgspec

Compiled = dict[str, bytes]
_DIGEST_SIZE = hashlib.sha256().digest_size


def compiled_file(folder: Path, ruleset: str) -> Path:
    return folder / f"rules-{ruleset}-yara-{version('yara-x')}.bin"


def load_compiled(folder: Path, ruleset: str) -> Compiled | None:
    """What was stored for exactly these rules; None where nothing fits."""
    try:
        data = compiled_file(folder, ruleset).read_bytes()
    except OSError:
        return None
    digest, body = data[:_DIGEST_SIZE], data[_DIGEST_SIZE:]
    if hashlib.sha256(body).digest() != digest:
        return None
    with contextlib.suppress(msgspec.DecodeError):
        return msgspec.msgpack.decode(body, type=Compiled)
    return None


def store_compiled(folder: Path, ruleset: str, compiled: Compiled) -> None:
    """Keep it, whole or not at all; a disk that refuses costs only time. Those of other rules are removed."""
    body = msgspec.msgpack.encode(compiled)
    target = compiled_file(folder, ruleset)
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(body).digest() + body)
        Path(name).replace(target)
        for old in folder.glob("rules-*.bin"):
            if old != target:
                old.unlink(missing_ok=True)
