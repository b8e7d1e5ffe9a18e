"""What goes wrong in one history, drawn from its seed: which kinds of fault are on, how often each happens, and how
long the bad time lasts. After it everything is healthy, and all that was accepted must come to its end."""

import enum
from random import Random

import msgspec

#: The longest jump of the store's clock.
HOURS_MS = 2 * 3_600_000


class Fault(enum.StrEnum):
    """Every kind of fault; the summary counts how often each one happened."""

    DELAY = "call delayed"
    FAILED = "call failed without effect"
    REPLY_LOST = "call applied, reported as failed"
    LATE = "call reported as failed, applied later"
    CRASH_BEFORE = "process crashed before a call"
    CRASH_AFTER = "process crashed after a call"
    PARTIAL_READ = "read of single keys failed"
    FOREIGN_WRITE = "record touched between read and write"
    MESSAGE_LOST = "message lost"
    MESSAGE_DOUBLED = "message doubled"
    MESSAGE_REORDERED = "message delayed behind others"
    STALL = "process stalled"
    SUSPENDED = "all machines suspended"
    CLOCK_FORWARD = "store's clock jumped forward"
    CLOCK_BACK = "store's clock jumped back"
    OUTAGE = "dependency down for a while"
    STOPPED = "process stopped in good order"
    STAGE_ERROR = "scanner or judge raised"
    JUDGE_SLOW = "judge slower than the budget"
    POISON = "content killed its worker"
    LISTENER_ERROR = "receiver of a webhook answered with an error"
    CONTENT_LOST = "stored content lost"
    CONTENT_CUT = "stored content cut"
    CONTENT_FLIPPED = "stored content flipped at equal length"


class Dependency(enum.StrEnum):
    """What can be down."""

    KV = "kv"
    BROKER = "broker"
    BLOBS = "blobs"
    SOURCE = "source"
    SCANNER = "scanner"
    JUDGE = "judge"
    LISTENER = "listener"


class Listener(enum.StrEnum):
    """Who subscribed to decisions."""

    STEADY = "steady"
    #: Answers that it wants no more.
    GONE = "gone"
    #: Never answers well.
    BROKEN = "broken"


#: Those that take what is delivered.
HEARING = (Listener.STEADY, Listener.GONE)


#: What people do where a policy is in force.
POLICY_ACTS = ("report", "report", "set_policy")

#: What happens to stored content behind everybody's back.
DAMAGES = (Fault.CONTENT_LOST, Fault.CONTENT_CUT, Fault.CONTENT_FLIPPED)


class Outage(msgspec.Struct, frozen=True):
    """A dependency that is down between two moments of the bad time, in seconds."""

    dependency: Dependency
    begins: float
    ends: float


class Plan(msgspec.Struct, frozen=True):
    """The faults of one history. Rates are per call."""

    #: Seconds of the bad time; people act only in it.
    chaos: float
    delay: float = 0.0
    #: The longest usual delay, in seconds.
    delay_most: float = 0.0
    failed: float = 0.0
    reply_lost: float = 0.0
    late: float = 0.0
    crash: float = 0.0
    partial_read: float = 0.0
    foreign_write: float = 0.0
    message_lost: float = 0.0
    message_doubled: float = 0.0
    message_reordered: float = 0.0
    stall: float = 0.0
    stage_error: float = 0.0
    judge_slow: float = 0.0
    #: When the store's clock jumps, in seconds of the bad time, and by how many milliseconds.
    clock_jumps: tuple[tuple[float, int], ...] = ()
    #: When all machines are suspended, and for how many seconds.
    suspensions: tuple[tuple[float, float], ...] = ()
    #: When one machine is stopped in good order.
    stops: tuple[float, ...] = ()
    outages: tuple[Outage, ...] = ()
    #: How far the processes' own clocks are off at most, in milliseconds.
    skew: int = 0
    #: How far their ideas of the store's clock are off at most.
    store_skew: int = 0
    #: Nothing is wrong but that work takes long: what a stopping worker cannot finish it must hand back.
    only_slow: bool = False
    #: The judge is not configured.
    no_judge: bool = False
    #: One content kills every worker that scans it, also after the bad time.
    poison: bool = False
    #: One source stays down for more than a day.
    dead_source: bool = False
    listeners: tuple[Listener, ...] = ()
    listener_error: float = 0.0
    #: An analyser elsewhere is asked about what is published.
    analyser: bool = False
    #: The sources of live skills are looked after.
    watched: bool = False
    #: Skills of another registry come here.
    has_upstream: bool = False
    #: Jobs run that have nothing to do with what is checked here.
    chores: bool = False
    #: When some stored content is damaged, and how.
    damages: tuple[tuple[float, Fault], ...] = ()
    #: A policy is in force whose rules let skills wait.
    has_policy: bool = False
    #: When somebody sets another policy, or reports what waits by a rule, and what of the two.
    policy_acts: tuple[tuple[float, str], ...] = ()


def add_policy(plan: Plan, rng: Random) -> Plan:
    """Some plans get a policy; the others stay as they are. Its waits last for hours, so the clock jumps by as much:
    some end in the bad time."""
    if plan.only_slow or rng.random() < 0.65:
        return plan
    acts = tuple((rng.uniform(0, plan.chaos), rng.choice(POLICY_ACTS)) for _ in range(rng.randint(1, 6)))
    jumps = tuple(
        (rng.uniform(0, plan.chaos), int(rng.uniform(HOURS_MS // 2, HOURS_MS)))
        for _ in range(rng.randint(0, 2))
    )
    return msgspec.structs.replace(
        plan, has_policy=True, policy_acts=acts, clock_jumps=(*plan.clock_jumps, *jumps)
    )


def add_upstream(plan: Plan, rng: Random) -> Plan:
    """Some plans get an upstream; the others stay as they are. Nobody else has its bytes, so none is damaged."""
    has_one = not plan.only_slow and not plan.damages and rng.random() < 0.25
    return msgspec.structs.replace(plan, has_upstream=True) if has_one else plan


def draw_plan(rng: Random) -> Plan:
    """Each kind is on in some histories and off in others, so that none always hides another."""
    chaos = rng.uniform(10, 60)
    if rng.random() < 0.06:
        return Plan(
            chaos=chaos,
            no_judge=rng.random() < 0.2,
            listeners=HEARING,
            analyser=True,
            watched=True,
            chores=True,
            damages=_damages(rng, chaos),
        )
    if rng.random() < 0.04:
        stops = tuple(at for at, _ in _moments(rng, chaos, 4, 0, 0))
        return Plan(chaos=chaos, judge_slow=0.7, stops=stops, only_slow=True)
    busy = rng.random() < 0.5

    def rate(low: float, high: float, chance: float = 0.4) -> float:
        return float(low * (high / low) ** rng.random()) if rng.random() < chance else 0.0

    return Plan(
        chaos=chaos,
        delay=rate(0.02, 0.5, 0.85),
        delay_most=rng.choice((0.01, 0.1, 0.5, 2.0)),
        failed=rate(0.003, 0.12),
        reply_lost=rate(0.003, 0.12),
        late=rate(0.003, 0.08, 0.3),
        crash=rate(0.0005, 0.02, 0.5),
        partial_read=rate(0.01, 0.2, 0.3),
        foreign_write=rate(0.01, 0.3, 0.3),
        message_lost=rate(0.02, 0.6),
        message_doubled=rate(0.02, 0.5),
        message_reordered=rate(0.02, 0.5),
        stall=rate(0.0005, 0.006),
        stage_error=rate(0.02, 0.3, 0.25),
        judge_slow=rate(0.02, 0.3, 0.15),
        clock_jumps=_clock_jumps(rng, chaos) if rng.random() < 0.3 else (),
        suspensions=_moments(rng, chaos, 2, 1, 60) if rng.random() < 0.12 else (),
        stops=tuple(at for at, _ in _moments(rng, chaos, 4, 0, 0)) if rng.random() < 0.35 else (),
        outages=_outages(rng, chaos) if rng.random() < 0.35 else (),
        skew=20_000 if rng.random() < 0.5 else 0,
        store_skew=2_000 if rng.random() < 0.2 else 0,
        no_judge=rng.random() < 0.15,
        poison=busy and rng.random() < 0.03,
        dead_source=rng.random() < 0.006,
        listeners=_listeners(rng),
        listener_error=rate(0.05, 0.5),
        analyser=rng.random() < 0.2,
        watched=rng.random() < 0.4,
        chores=rng.random() < 0.15,
        damages=_damages(rng, chaos) if rng.random() < 0.12 else (),
    )


def _listeners(rng: Random) -> tuple[Listener, ...]:
    """Each delivery is work, so most histories have none."""
    if rng.random() < 0.7:
        return ()
    others = [one for one, chance in ((Listener.GONE, 0.2), (Listener.BROKEN, 0.05)) if rng.random() < chance]
    return (Listener.STEADY, *others)


def _moments(
    rng: Random, chaos: float, most: int, low: float, high: float
) -> tuple[tuple[float, float], ...]:
    return tuple((rng.uniform(0, chaos), rng.uniform(low, high)) for _ in range(rng.randint(1, most)))


def _clock_jumps(rng: Random, chaos: float) -> tuple[tuple[float, int], ...]:
    """Forward by minutes and back by up to a minute, or both by up to two hours."""
    if rng.random() < 0.4:
        return tuple((at, int(by)) for at, by in _moments(rng, chaos, 3, -HOURS_MS, HOURS_MS))
    return tuple(
        (at, int(rng.uniform(1_000, 400_000) if forward < 0.6 else -rng.uniform(500, 60_000)))
        for at, forward in _moments(rng, chaos, 3, 0, 1)
    )


def _damages(rng: Random, chaos: float) -> tuple[tuple[float, Fault], ...]:
    return tuple((at, rng.choice(DAMAGES)) for at, _ in _moments(rng, chaos, 6, 0, 0))


def _outages(rng: Random, chaos: float) -> tuple[Outage, ...]:
    found = []
    for _ in range(rng.randint(1, 3)):
        begins = rng.uniform(0, chaos)
        ends = min(begins + rng.expovariate(1 / 15), chaos)
        found.append(Outage(rng.choice(tuple(Dependency)), begins, ends))
    return tuple(found)
