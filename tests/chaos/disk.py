"""A disk that is full for some processes: the kernel refuses them every write that would make a file longer than a limit,
while they run, and allows it again later. No mount and no privilege is needed, so it is the same on every machine."""

import contextlib
import os
import resource
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOMY = resource.RLIM_INFINITY


def limit_files(pids: Iterable[int], size: int = ROOMY) -> None:
    """No file of these processes grows beyond this; a process that has ended is passed over."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, FileNotFoundError), _as_owner_of(pid):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, ROOMY))


@contextlib.contextmanager
def _as_owner_of(pid: int) -> Iterator[None]:
    """Limits are changed by who runs the process; root in a container is not always allowed to."""
    owner, ourselves = Path(f"/proc/{pid}").stat().st_uid, os.getuid()
    if owner == ourselves:
        yield
        return
    os.setresuid(owner, -1, -1)
    try:
        yield
    finally:
        os.setresuid(ourselves, -1, -1)


def children_of(pid: int) -> dict[int, str]:
    """The processes that this one has started, and what each calls itself."""
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # The name may hold anything, so what follows is counted from its last bracket.
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid:
                found[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ").strip()
    return found
