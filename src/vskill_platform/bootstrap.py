"""From settings to a running environment: the only place that knows engines. Read it from top to bottom.

What is opened is closed again in reverse order, however the work between ends.
"""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
from structlog.typing import FilteringBoundLogger

from vskill_core.errors import InvalidInput, InvalidSettings, StoreUnavailable, Unsupported
from vskill_platform.domain.verdicts.policy import Preset, load_policy
from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.ledger.blobs.files import FilesBlobs
from vskill_platform.ledger.blobs.memory import MemoryBlobs
from vskill_platform.ledger.broker.contract import Broker
from vskill_platform.ledger.broker.memory import MemoryBroker
from vskill_platform.ledger.broker.sqlite import SqliteBroker
from vskill_platform.ledger.clock import MAX_SKEW_MS, Clock, SystemClock
from vskill_platform.ledger.database.migrations import load_migrations
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.kv.contract import KV, StoreSnapshot
from vskill_platform.ledger.kv.memory import MemoryKV
from vskill_platform.ledger.kv.sqlite import SqliteKV
from vskill_platform.ledger.kv.sqlite_fields import derive_again
from vskill_platform.ledger.kv.sqlite_snapshot import open_sqlite_snapshot
from vskill_platform.observing.logs import logger
from vskill_platform.observing.metrics import Metrics
from vskill_platform.observing.telemetry import open_tracing
from vskill_platform.setting_values import check_location, shown_location
from vskill_platform.settings import Settings, check_settings, describe_unmet, keys_folder, variable
from vskill_platform.signing.key_ring import FileKeys, GivenKeys, KeyRing, MemoryKeys
from vskill_platform.signing.sealing import SealingRing
from vskill_platform.sources.addresses import Hosts
from vskill_platform.sources.command import find_git
from vskill_platform.sources.examples import example_rewrites, known_bad_digests
from vskill_platform.sources.git import FetchSettings, GitSource
from vskill_platform.sources.router import SourceRouter, UploadSource
from vskill_platform.store.skills.follows import branch_of
from vskill_platform.store.verdicts.scans import CachedJudge
from vskill_platform.tiers.contract import Scanner
from vskill_platform.tiers.judge import HttpJudge, JudgeAddress, make_client
from vskill_platform.tiers.pool import PooledScanner
from vskill_platform.worker_context import Env
from vskill_scan.memory.memory import packaged_memory
from vskill_scan.reading.manifest import read_manifest
from vskill_scan.rules.indicators import Indicators, read_indicators

_SYSTEM_CLOCK = SystemClock()
POSTGRES = ("postgresql", "postgres")
NATS = ("nats", "tls")


@asynccontextmanager
async def env_for(settings: Settings, *, clock: Clock = _SYSTEM_CLOCK) -> AsyncIterator[Env]:
    async with AsyncExitStack() as stack:
        yield await open_env(settings, stack, clock=clock)


async def open_env(settings: Settings, stack: AsyncExitStack, *, clock: Clock = _SYSTEM_CLOCK) -> Env:
    check_settings(settings)
    kv, broker = await open_store(settings, stack, clock)
    worker_id = new_worker_id()
    log, metrics = logger(worker=worker_id), Metrics()
    blobs = await open_blobs(settings.blobs, stack, metrics)
    # Read here, so that nobody waits for a file later.
    await asyncio.to_thread(packaged_memory)
    judges = [
        CachedJudge(one) for one in await open_judges(settings, stack, clock=clock, log=log, metrics=metrics)
    ]
    return Env(
        kv=kv,
        broker=broker,
        blobs=blobs,
        sources=await _open_sources(settings, blobs, stack),
        scanner=await open_scanner(settings, stack),
        judge=judges[0] if judges else None,
        second_judge=judges[1] if len(judges) > 1 else None,
        clock=clock,
        settings=settings,
        log=log,
        metrics=metrics,
        worker_id=worker_id,
        tracing=await open_tracing(settings, worker_id, stack),
        signing=await open_keys(settings),
        sealing=await open_sealing(settings),
        policy_text=await asyncio.to_thread(_chosen_policy, settings),
    )


def report_start(env: Env) -> None:
    """Say what was opened, and name every tier that is missing (B17)."""
    env.log.info("environment opened", store=env.kv.engine, broker=env.broker.engine, blobs=env.blobs.engine)
    if isinstance(env.sources, SourceRouter) and not env.sources.has_git:
        env.log.warning(
            "degraded mode: no git command", effect="only uploads can be verified", reason=env.sources.problem
        )
    if env.judge is None:
        env.log.warning("degraded mode: no judge configured", effect="skills are certified SCANNED at most")
    skew = env.clock.now() - env.kv.now()
    if abs(skew) > MAX_SKEW_MS:
        env.log.warning(
            "this machine's clock differs from the store's",
            ahead_ms=skew,
            effect="deadlines follow the store's clock, but times in logs are off; check time synchronisation",
        )


def schema_version(settings: Settings) -> int | None:
    """The version of the schema that this release keeps its records in; None where the engine has none."""
    engine, _ = _split("store", settings.store)
    if engine == "memory":
        return None
    return load_migrations("postgres" if engine in POSTGRES else "sqlite")[-1].number


def new_worker_id() -> str:
    """This process's name in claims and history; a process that took over a dead one's number differs."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"


async def open_store(settings: Settings, stack: AsyncExitStack, clock: Clock) -> tuple[KV, Broker]:
    """The record store and the queue; of one engine, a record and its message are one commit."""
    engine, place = _split("store", settings.store)
    outbox = None if settings.broker == settings.store else await _open_broker(settings, stack)
    if engine in POSTGRES:
        return await _open_postgres(settings.store, stack, clock, outbox)
    if engine == "memory":
        memory_broker = _closing(stack, MemoryBroker(clock))
        return _closing(stack, MemoryKV(clock, memory_broker)), memory_broker
    if engine == "sqlite" and place:
        database = _closing(stack, await _open_database(Path(place), clock))
        broker: Broker = _closing(stack, outbox or SqliteBroker(database))
        return _closing(stack, SqliteKV(database, broker)), broker
    fix = "use sqlite:PATH, postgresql://USER@HOST/DATABASE, or memory: to keep nothing"
    raise _unknown_engine("store", settings.store, fix)


async def _open_postgres(
    location: str, stack: AsyncExitStack, clock: Clock, outbox: Broker | None
) -> tuple[KV, Broker]:
    """Many machines share it, and its clock; a clock that is not this machine's own takes that one's place."""
    try:
        from vskill_platform.ledger.broker.postgres import PostgresBroker  # noqa: PLC0415
        from vskill_platform.ledger.database.postgres import PostgresDatabase  # noqa: PLC0415
        from vskill_platform.ledger.kv.postgres import PostgresKV  # noqa: PLC0415
        from vskill_platform.ledger.kv.postgres_fields import derive_again as derive_in_postgres  # noqa: PLC0415
    except ModuleNotFoundError as error:
        fix = "install the extra `postgres` (docs/how-to/scale-out.md)"
        raise _unknown_engine("store", location.partition(":")[0] + ":", fix) from error
    own_clock = None if isinstance(clock, SystemClock) else clock
    opened = await PostgresDatabase.open(location, clock=own_clock, derive=derive_in_postgres)
    database = _closing(stack, opened)
    broker: Broker = _closing(stack, outbox or PostgresBroker(database))
    return _closing(stack, PostgresKV(database, broker)), broker


async def _open_broker(settings: Settings, stack: AsyncExitStack) -> Broker:
    """A queue of its own beside the store; its driver is an extra of the package."""
    engine, _ = _split("broker", settings.broker)
    if engine not in NATS or settings.store == "memory:":
        fix = "use nats://HOST:4222 beside a store that is kept, or leave it unset for the store's own queue"
        raise _unknown_engine("broker", settings.broker, fix)
    try:
        from vskill_platform.ledger.broker.nats import NatsBroker  # noqa: PLC0415
    except ModuleNotFoundError as error:
        fix = "install the extra `nats` (docs/how-to/scale-out.md)"
        raise _unknown_engine("broker", engine + ":", fix) from error
    return _closing(stack, await NatsBroker.open(settings.broker))


@asynccontextmanager
async def open_snapshot(location: str) -> AsyncIterator[StoreSnapshot]:
    """A store as it is at this moment, beside the processes that use it. It is neither made nor changed."""
    check_movable(location)
    engine, place = _split("store", location)
    if engine in POSTGRES:
        from vskill_platform.ledger.kv.postgres_snapshot import open_postgres_snapshot  # noqa: PLC0415 - an extra

        opened = open_postgres_snapshot(location, _SYSTEM_CLOCK.now())
    else:
        opened = open_sqlite_snapshot(Path(place), _SYSTEM_CLOCK.now())
    async with opened as snapshot:
        yield snapshot


def check_movable(location: str) -> None:
    """InvalidSettings where this is no store whose contents can be copied."""
    engine, _, place = location.partition(":")
    if not ((engine == "sqlite" and place) or engine in POSTGRES):
        fix = "write sqlite:PATH or postgresql://USER@HOST/DATABASE"
        raise InvalidSettings(
            f"{shown_location(location)!r} is not a store that can be migrated: {fix}.", fix=fix
        )
    check_location(location, "The store")


async def _open_database(path: Path, clock: Clock) -> SqliteDatabase:
    """The file, in a folder that is made if need be, for this account alone."""
    try:
        await asyncio.to_thread(path.parent.mkdir, mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        message = f"{variable('store')}: the folder {path.parent} cannot be made: {error.strerror}."
        raise StoreUnavailable(message, file=str(path)) from error
    return await SqliteDatabase.open(path, clock, derive=derive_again)


async def open_blobs(location: str, stack: AsyncExitStack, metrics: Metrics) -> Blobs:
    """The content store; the metrics count what each request to a server costs."""
    engine, place = _split("blobs", location)
    if engine == "memory":
        return _closing(stack, MemoryBlobs())
    if engine == "files" and place:
        return _closing(stack, await FilesBlobs.open(Path(place)))
    if engine == "s3":
        return _closing(stack, await _open_s3(location, metrics))
    fix = "use files:FOLDER, s3://BUCKET/FOLDER, or memory: to keep nothing"
    raise _unknown_engine("blobs", location, fix)


async def _open_s3(location: str, metrics: Metrics) -> Blobs:
    """A bucket that any number of machines share; its library is an extra of the package."""
    try:
        from vskill_platform.ledger.blobs.s3 import S3Blobs  # noqa: PLC0415
    except ModuleNotFoundError as error:
        fix = "install the extra `s3` (docs/how-to/scale-out.md)"
        raise _unknown_engine("blobs", "s3:", fix) from error
    return await S3Blobs.open(location, _SYSTEM_CLOCK, metrics)


async def _open_sources(settings: Settings, blobs: Blobs, stack: AsyncExitStack) -> SourceRouter:
    """Uploads, and repositories where there is a git command; nothing is written before the first fetch."""
    rewrites = (*settings.source_rewrites, *await asyncio.to_thread(example_rewrites, settings))
    hosts = Hosts(settings.allowed_hosts, settings.allowed_private_hosts, rewrites)
    folder = None if settings.store == "memory:" else Path(settings.data_dir) / "fetch"
    fetch = FetchSettings(folder=folder, seconds=settings.fetch_budget_ms / 1000)
    try:
        program = await asyncio.to_thread(find_git)
    except Unsupported as error:
        return SourceRouter(UploadSource(blobs), None, error.message)
    return _closing(stack, SourceRouter(UploadSource(blobs), GitSource(program, hosts, fetch, branch_of)))


async def open_judges(
    settings: Settings, stack: AsyncExitStack, *, clock: Clock, log: FilteringBoundLogger, metrics: Metrics
) -> list[HttpJudge]:
    addresses = (
        JudgeAddress("first", settings.judge_url, settings.judge_model, settings.judge_api_key),
        JudgeAddress(
            "second", settings.second_judge_url, settings.second_judge_model, settings.second_judge_api_key
        ),
    )
    judges = []
    for address in addresses:
        if address.url:
            client = await asyncio.to_thread(make_client, address.url, settings)
            stack.push_async_callback(client.aclose)
            judges.append(HttpJudge(client, address, settings, clock=clock, log=log, metrics=metrics))
    return judges


async def open_keys(settings: Settings) -> KeyRing:
    """The registry's keys, made at the first start; a store that keeps nothing has a key that nobody keeps."""
    if settings.store == "memory:":
        return MemoryKeys()
    if settings.signing_key:
        given = GivenKeys(settings.signing_key)
        await given.current()
        return given
    return await FileKeys.open(keys_folder(settings))


async def open_sealing(settings: Settings) -> SealingRing | None:
    """The keys that seal credentials; none is made, because one that is lost with its disk opens nothing any more."""
    if not settings.sealing_key:
        return None
    ring = SealingRing(settings.sealing_key)
    await ring.keys()
    return ring


async def open_scanner(settings: Settings, stack: AsyncExitStack) -> Scanner:
    """Tier 1; its processes start with the first scan, so roles that never scan have none."""
    in_memory = settings.store == "memory:"
    scanner = await PooledScanner.open(
        read_manifest,
        await asyncio.to_thread(known_bad_digests),
        indicators=await asyncio.to_thread(_operators_indicators, settings),
        processes=settings.scan_processes,
        cache=None if in_memory else Path(settings.data_dir) / "scanner",
    )
    return _closing(stack, scanner)


def _operators_indicators(settings: Settings) -> Indicators:
    skills = tuple(sorted(settings.known_bad_digests))
    if not settings.indicators_file:
        return Indicators(skills=skills)
    try:
        listed = read_indicators(Path(settings.indicators_file).read_text(encoding="utf-8"))
        return msgspec.structs.replace(listed, skills=skills)
    except (OSError, UnicodeError) as error:
        name = variable("indicators_file")
        fix = "name a text file that this process may read"
        raise InvalidSettings(f"{name} cannot be read: {error}; {fix}.", setting=name, fix=fix) from None


def _chosen_policy(settings: Settings) -> str:
    """The text of the policy that the settings name, once it is found to be valid."""
    name, chosen = variable("policy"), settings.policy
    fix = "name open, guarded, strict, or a policy's file (docs/reference/policy.md)"
    if chosen in set(Preset):
        return f"extends: {chosen}\n"
    try:
        text = Path(chosen).read_text(encoding="utf-8")
        needs = load_policy(text).keys.needs
    except (OSError, UnicodeError) as error:
        raise InvalidSettings(f"{name} cannot be read: {error}; {fix}.", setting=name, fix=fix) from None
    except InvalidInput as error:
        raise InvalidSettings(f"{name} is {chosen!r}, which is not valid: {error}", setting=name) from None
    if unmet := describe_unmet(settings, needs.judges, needs.analysers):
        raise InvalidSettings(f"{name} is {chosen!r}, which cannot be met here: {unmet}.", setting=name)
    return text


class _Closable(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=_Closable)


def _closing(stack: AsyncExitStack, resource: C) -> C:
    """The resource, which the stack closes."""
    stack.push_async_callback(resource.close)
    return resource


def _split(setting: str, location: str) -> tuple[str, str]:
    engine, colon, place = location.partition(":")
    if not colon:
        raise _unknown_engine(
            setting, location, "write the engine before the place, as in sqlite:data/vskill.db"
        )
    return engine, place


def _unknown_engine(setting: str, location: str, fix: str) -> InvalidSettings:
    message = f"{variable(setting)} is {shown_location(location)!r}, which no engine serves: {fix}."
    return InvalidSettings(message, setting=variable(setting), fix=fix)
