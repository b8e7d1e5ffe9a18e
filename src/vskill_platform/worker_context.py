"""The environment of the running batch, scheduled job or web request: one documented field per resource, carried by a
context variable so that concurrent ones in one process never see each other's (US-003).

`bootstrap.open_env` builds it. Views, commands, the consumer and jobs take what they need from it and pass that on.
"""

import inspect
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, TypeVar, overload

import msgspec
from structlog.typing import FilteringBoundLogger

from vskill_core.errors import NoEnvironment
from vskill_platform.domain.people.refusal import RefusalCounts
from vskill_platform.domain.people.token import ActingToken
from vskill_platform.domain.submissions.attempts import RENEW_EVERY_MS
from vskill_platform.domain.verdicts.policy import DEFAULT_POLICY
from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.ledger.broker.contract import Broker
from vskill_platform.ledger.clock import Clock
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.machine.process_cache import KeptReads
from vskill_platform.machine.shortages import ShortagesMet
from vskill_platform.machine.slots import Turns, WorkGate
from vskill_platform.observing.metrics import Metrics
from vskill_platform.observing.telemetry import NoTracing, Tracing
from vskill_platform.settings import Settings
from vskill_platform.signing.key_ring import KeyRing
from vskill_platform.signing.sealing import SealingRing
from vskill_platform.sources.contract import Sources
from vskill_platform.tiers.contract import Judge, Scanner
from vskill_scan.memory.memory import Memory, packaged_memory

T = TypeVar("T")


class Pace(msgspec.Struct, frozen=True):
    """Intervals and timeouts of a process. They are not settings, because they must fit the length of a claim."""

    #: How often a worker renews the claim and the lease of what it works on.
    renew_every_ms: int = RENEW_EVERY_MS
    #: After an error of the broker or the store, before the consumer tries again.
    pause_after_error_s: float = 1.0
    #: How often the schedule looks for due ticks.
    look_every_s: float = 1.0
    #: How often a worker writes a sign of life.
    sign_every_s: float = 10.0
    #: A store that takes longer to answer is not ready (E9).
    ready_within_s: float = 3.0
    #: A readiness probe costs a write, so its result is reused for this long.
    ready_every_s: float = 2.0
    #: A page gives up on a store that takes longer, and says so.
    page_within_s: float = 4.0


class HashCost(msgspec.Struct, frozen=True):
    """Cost parameters of password hashes (argon2id), as its authors recommend."""

    passes: int = 3
    memory_kib: int = 65_536
    lanes: int = 4


class RequestOrigin(msgspec.Struct, frozen=True):
    """What every audit entry says about the request that led to it."""

    request_id: str
    #: The address that it counts for.
    address: str


class Env(msgspec.Struct, frozen=True):
    """Everything that a unit of work may use, and nothing that it may change."""

    #: Records by key; its clock sets every deadline.
    kv: KV
    #: The queue of messages that say which record to look at.
    broker: Broker
    #: Content by digest.
    blobs: Blobs
    #: Where a submission's files come from.
    sources: Sources
    #: Tier 1, static.
    scanner: Scanner
    #: Tier 2; None is the named degraded mode "no judge configured".
    judge: Judge | None
    #: Time for display and durations, and fresh ids.
    clock: Clock
    settings: Settings
    log: FilteringBoundLogger
    metrics: Metrics
    #: This process's name in claims and history.
    worker_id: str = "local"
    #: Lets a submission over which workers died run alone in this process.
    gate: WorkGate = msgspec.field(default_factory=WorkGate)
    #: Lets the same content be scanned and judged once, however many submissions bring it at the same time.
    turns: Turns = msgspec.field(default_factory=Turns)
    #: Caches of this process.
    kept: KeptReads = msgspec.field(default_factory=KeptReads)
    #: Shortages that this process met recently.
    shortages: ShortagesMet = msgspec.field(default_factory=ShortagesMet)
    pace: Pace = Pace()
    hash_cost: HashCost = HashCost()
    #: Spans for a trace collector; none by default.
    tracing: Tracing = msgspec.field(default_factory=NoTracing)
    #: Another judge of tier 2; None where at most one is configured.
    second_judge: Judge | None = None
    #: The registry's keys; None only where nothing is signed, as in the simulator.
    signing: KeyRing | None = None
    #: The keys that seal credentials; None where the operator gave none.
    sealing: SealingRing | None = None
    #: The policy where the store holds none.
    policy_text: str = DEFAULT_POLICY
    #: The memory where the store names none; read once.
    packaged_memory: Callable[[], Memory] = packaged_memory
    #: The token of the request that runs here; every audit entry that it writes names it.
    acting_token: ActingToken | None = None
    #: How the session of the request was opened; empty where there is none.
    acting_session: str = ""
    #: The request that runs here; None outside of requests.
    origin: RequestOrigin | None = None
    #: What this process has refused and not audited yet.
    refusals: RefusalCounts = msgspec.field(default_factory=RefusalCounts)


worker_env_storage: ContextVar[Env | None] = ContextVar("worker_env_storage", default=None)


def get_worker_env() -> Env | None:
    """The environment of the running batch, job or request; None outside of them."""
    return worker_env_storage.get()


def require_env(binding: str = "env") -> Env:
    """The environment, or one clear error that names the binding that was asked for."""
    env = worker_env_storage.get()
    if env is None:
        message = (
            f"No worker environment is active, so {binding!r} is not available here. "
            "It is available inside a queue batch, a scheduled job or a web request."
        )
        raise NoEnvironment(message, binding=binding)
    return env


@overload
async def run_with_worker_env(env: Env, fn: Callable[[], Awaitable[T]]) -> T: ...
@overload
async def run_with_worker_env(env: Env, fn: Callable[[], T]) -> T: ...
async def run_with_worker_env(env: Env, fn: Callable[[], Any]) -> Any:
    """Call `fn` with this environment, and restore what was there before, however it ends."""
    if inspect.iscoroutine(fn):
        fn.close()
        raise TypeError("run_with_worker_env takes a function without arguments, not a coroutine object")
    token = worker_env_storage.set(env)
    try:
        result = fn()
        return await result if inspect.isawaitable(result) else result
    finally:
        worker_env_storage.reset(token)
