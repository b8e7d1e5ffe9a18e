"""A module that takes longer to import than a scan may take, as rules do that are compiled on a busy machine.

Children of the pool import it by name; a test that did so itself would wait too.
"""

import time

from vskill_scan.reading.manifest import Manifest, read_manifest

time.sleep(2.0)


def check(data: bytes) -> Manifest:
    return read_manifest(data)
