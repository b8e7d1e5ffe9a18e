"""How much a scan may take, in bytes and steps: the same skill has the same verdict on every machine, however busy."""

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """Of one skill."""

    skill_bytes: int = 20 * 1024 * 1024
    #: Expressions, places and stretches of text that are looked at. The largest skill of a public marketplace takes a
    #: tenth of them.
    steps: int = 1_000_000
    #: A safety net around a scan whose steps are slow, which only the pool counts: the process is ended.
    cpu_s: float = 10.0
    #: A scan computes and waits for nothing, so one that takes this long was starved by the machine. Only the pool
    #: counts it: it is not the skill's fault.
    wall_s: float = 15.0
    #: archives inside: members, bytes of all of them, how much larger than packed, and how deep
    archive_members: int = 500
    #: a member may be this large, however small it was packed
    archive_member_bytes: int = 100 * 1024
    archive_bytes: int = 20 * 1024 * 1024
    archive_ratio: int = 100
    archive_depth: int = 2


DEFAULT_LIMITS = Limits()
#: Bytes that are searched, or read as code, in the time of one step.
SEARCHED_BYTES, READ_BYTES = 64, 8


class Exceeded(Exception):
    """A budget is used up."""


class Budget:
    """The steps that are left; what runs the scan limits its processor time from outside."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._steps = 0

    def check(self, steps: int = 1) -> None:
        self._steps += steps
        if self._steps > self.limits.steps:
            raise Exceeded(f"the scan needs more than {self.limits.steps} steps")
