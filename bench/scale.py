"""How large a run is: the sizes that the claims are about, smaller ones for a quick look, tiny ones for tests."""

import msgspec


class Scale(msgspec.Struct, frozen=True):
    """Every size of a run; as it comes, those that the claims are about."""

    name: str = "full"
    #: How often each measurement is repeated, after one round that does not count.
    rounds: int = 5
    #: No-op messages through a queue.
    queue_messages: int = 10_000
    #: Skills that are submitted from repositories.
    submissions: int = 3_000
    #: Uploaded skills that real processes work on, and how often.
    backlog: int = 1_000
    backlog_rounds: int = 3
    #: Records in the large and in the small store.
    large: int = 1_000_000
    small: int = 10_000
    #: Of them, how many are stuck.
    stuck: int = 100
    #: Published skills that are enumerated.
    skills: int = 10_000
    #: Published skills of the stores that are searched, and searches of each kind.
    searched: tuple[int, ...] = (1_000, 100_000)
    searches: int = 200
    #: Skills that are scanned, and how many of them the much slower peer is given; with 0 it is not asked.
    scanned: int = 300
    compared: int = 60
    #: Clients that ask one web process at once, for how long, and how often.
    crowds: tuple[int, ...] = (20, 300, 1_000)
    crowd_s: float = 8.0
    crowd_rounds: int = 3


FULL = Scale()
QUICK = Scale(
    name="quick",
    rounds=1,
    queue_messages=2_000,
    submissions=150,
    backlog=300,
    backlog_rounds=1,
    large=10_000,
    small=1_000,
    skills=3_000,
    searched=(1_000, 10_000),
    searches=40,
    scanned=60,
    compared=5,
    crowd_s=2.0,
    crowd_rounds=1,
)
TINY = Scale(
    name="tiny",
    rounds=1,
    queue_messages=60,
    submissions=12,
    backlog=10,
    backlog_rounds=1,
    large=400,
    small=100,
    stuck=5,
    skills=60,
    searched=(60,),
    searches=4,
    scanned=4,
    compared=0,
    crowds=(2, 4),
    crowd_s=0.2,
    crowd_rounds=1,
)
