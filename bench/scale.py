"""How large a run is: the sizes that the claims are about, smaller ones for a quick look, tiny ones for tests."""

import msgspec


class Scale(msgspec.Struct, frozen=True):
    """Every size of a run."""

    name: str
    #: How often each measurement is repeated, after one round that does not count.
    rounds: int
    #: No-op messages through a queue.
    queue_messages: int
    #: Half as many requests go to the web server.
    messages: int
    #: Submissions from RECEIVED to PUBLISHED.
    submissions: int
    #: Records in the large and in the small store.
    large: int
    small: int
    #: Of them, how many are stuck.
    stuck: int
    #: Published skills that are enumerated.
    skills: int
    #: Keys that are read on each engine, and those that are read with an injected latency.
    engine_keys: int
    slow_keys: int
    #: Jobs that are watched for what they leave behind.
    jobs: int


FULL = Scale(
    name="full",
    rounds=5,
    queue_messages=10_000,
    messages=10_000,
    submissions=3_000,
    large=1_000_000,
    small=10_000,
    stuck=100,
    skills=10_000,
    engine_keys=5_000,
    slow_keys=500,
    jobs=10_000,
)
QUICK = msgspec.structs.replace(
    FULL,
    name="quick",
    rounds=1,
    queue_messages=5_000,
    messages=1_000,
    submissions=150,
    large=10_000,
    small=1_000,
    skills=1_000,
    engine_keys=1_000,
    slow_keys=100,
    jobs=2_000,
)
TINY = Scale(
    name="tiny",
    rounds=1,
    queue_messages=60,
    messages=60,
    submissions=12,
    large=400,
    small=100,
    stuck=5,
    skills=60,
    engine_keys=30,
    slow_keys=6,
    jobs=60,
)
