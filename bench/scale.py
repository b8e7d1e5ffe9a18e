"""How large a run is: the sizes that the claims are about, smaller ones for a quick look, tiny ones for tests."""

import msgspec


class Scale(msgspec.Struct, frozen=True):
    """Every size of a run; as it comes, those that the claims are about."""

    name: str = "full"
    #: How often each measurement is repeated, after one round that does not count.
    rounds: int = 5
    #: As many before them do not count where each sample begins with a warm-up of its own; elsewhere it is always one.
    warm_rounds: int = 1
    #: No-op messages through a queue.
    queue_messages: int = 10_000
    #: Answers without a network that one sample is the mean of.
    answers: int = 30
    #: Skills that are submitted from repositories.
    submissions: int = 3_000
    #: Records in the large and in the small store.
    large: int = 1_000_000
    small: int = 10_000
    #: Of them, how many are stuck.
    stuck: int = 100
    #: Published skills that are enumerated.
    skills: int = 10_000
    #: Published skills of the larger store that pages are asked of.
    listed: int = 100_000
    #: Published skills of the stores that are searched, of the one that only PostgreSQL has, and searches of each kind.
    searched: tuple[int, ...] = (1_000, 100_000)
    most_searched: int = 1_000_000
    searches: int = 200
    #: Keys that are read on each engine, and those that are read with an injected latency.
    engine_keys: int = 5_000
    slow_keys: int = 500
    #: Jobs that are watched for what they leave behind.
    jobs: int = 10_000
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
    warm_rounds=0,
    queue_messages=2_000,
    answers=8,
    submissions=150,
    large=10_000,
    small=1_000,
    skills=3_000,
    listed=10_000,
    searched=(1_000, 10_000),
    searches=40,
    engine_keys=1_000,
    slow_keys=60,
    jobs=2_000,
    scanned=60,
    compared=5,
    crowd_s=2.0,
    crowd_rounds=1,
)
TINY = Scale(
    name="tiny",
    rounds=1,
    warm_rounds=0,
    queue_messages=60,
    answers=1,
    submissions=12,
    large=400,
    small=100,
    stuck=5,
    skills=60,
    listed=600,
    searched=(60,),
    searches=4,
    engine_keys=30,
    slow_keys=6,
    jobs=60,
    scanned=4,
    compared=0,
    crowds=(2, 4),
    crowd_s=0.2,
    crowd_rounds=1,
)
