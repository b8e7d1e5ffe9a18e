"""How much a scan may take, as a type, and the clock that watches over it."""

import time

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """Of one skill."""

    #: a larger file is read in windows
    file_bytes: int = 100 * 1024
    skill_bytes: int = 20 * 1024 * 1024
    cpu_s: float = 2.0
    wall_s: float = 10.0
    #: archives inside: members, bytes of all of them, how much larger than packed, and how deep
    archive_members: int = 500
    archive_bytes: int = 20 * 1024 * 1024
    archive_ratio: int = 100
    archive_depth: int = 2


DEFAULT_LIMITS = Limits()


class Exceeded(Exception):
    """A budget is used up."""


class Budget:
    """Time from now on, checked between steps; what runs the scan enforces it from outside as well."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._cpu = time.thread_time() + limits.cpu_s
        self._began = time.monotonic()

    def check(self) -> None:
        elapsed = time.monotonic() - self._began
        # A thread cannot use more of the processor than time has passed, and asking for it is a system call.
        if elapsed >= self.limits.cpu_s and time.thread_time() > self._cpu:
            raise Exceeded(f"the scan took more than {self.limits.cpu_s:g} s of processor time")
        if elapsed > self.limits.wall_s:
            raise Exceeded(f"the scan took more than {self.limits.wall_s:g} s")
