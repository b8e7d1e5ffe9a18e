"""A check of manifests that misbehaves where the text says so: for tests of what the pool does about it.

Children of the pool import it by name, so it cannot be a function inside a test.
"""

import os
import signal
import time
from pathlib import Path

from vskill_scan.reading.manifest import Manifest, read_manifest


def misbehave(data: bytes) -> Manifest:
    if b"hang" in data:
        time.sleep(600)
    if b"stop" in data:
        os.kill(os.getpid(), signal.SIGSTOP)
    if b"spin" in data:
        while True:
            pass
    if b"exit" in data:
        os._exit(7)
    if b"crash" in data:
        os.abort()
    if b"grow" in data:
        bytearray(8 * 1024**3)
    if b"slow" in data:
        time.sleep(0.3)
    return read_manifest(data)


def wait_for_file(data: bytes) -> Manifest:
    """Say in one file that it waits, until there is the other: the text names both."""
    waits, go_on = data.partition(b"wait: ")[2].decode().split()[:2]
    Path(waits).touch()
    while not Path(go_on).exists():
        time.sleep(0.02)
    return read_manifest(data)
