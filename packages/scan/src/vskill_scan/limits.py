"""How much a scan may take, as a type, and the watch over its processor time."""

import time

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """Of one skill."""

    skill_bytes: int = 20 * 1024 * 1024
    cpu_s: float = 2.0
    #: A scan computes and waits for nothing, so one that takes this long was starved by the machine. Only the pool
    #: counts it: it is not the skill's fault.
    wall_s: float = 15.0
    #: how much of the processor time reading code may take; the rest is for the rules
    code_share: float = 0.6
    #: archives inside: members, bytes of all of them, how much larger than packed, and how deep
    archive_members: int = 500
    #: a member may be this large, however small it was packed
    archive_member_bytes: int = 100 * 1024
    archive_bytes: int = 20 * 1024 * 1024
    archive_ratio: int = 100
    archive_depth: int = 2


DEFAULT_LIMITS = Limits()


class Exceeded(Exception):
    """A budget is used up."""


class Budget:
    """Processor time from now on, checked between steps; what runs the scan enforces it from outside as well."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._cpu = time.thread_time() + limits.cpu_s
        self._began = time.monotonic()

    def check(self) -> None:
        self._check(1.0)

    def check_code(self) -> None:
        """Reading code must leave time for the rules."""
        self._check(self.limits.code_share)

    def _check(self, share: float) -> None:
        cpu_s = self.limits.cpu_s
        # A thread cannot use more of the processor than time has passed, and asking for it is a system call.
        elapsed = time.monotonic() - self._began
        if elapsed >= cpu_s * share and time.thread_time() > self._cpu - cpu_s * (1 - share):
            raise Exceeded(f"the scan took more than {cpu_s * share:g} s of processor time")
