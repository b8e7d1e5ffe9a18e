"""The installation, for its operators: what waits for a person, the settings without secrets, and where everything is
stored."""

import asyncio

import msgspec

from vskill_client.wire.base import NoParameters, Wire, iso_time
from vskill_core.errors import PlatformError
from vskill_platform import __version__
from vskill_platform.actions.action import Services, action
from vskill_platform.actions.principal import Right
from vskill_platform.bootstrap import schema_version
from vskill_platform.domain.keys import CONTROL_RELEASE
from vskill_platform.domain.submissions.states import State
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.queue.health import QueueHealth, queue_health
from vskill_platform.records import decode
from vskill_platform.setting_facts import SettingFacts, describe_settings, written_value
from vskill_platform.setting_values import shown_location
from vskill_platform.settings import Settings
from vskill_platform.store.operation.releases import UsedRelease
from vskill_platform.store.operation.workers import look_at_workers, own_key_id
from vskill_platform.store.review.reports import list_reports

SYSTEM = "/api/v1/admin"
#: Open reports that are counted for the overview.
MOST_COUNTED = 100


class OverviewAnswer(Wire, frozen=True):
    """What waits for a person, and whether the queue moves."""

    #: nothing breaks the queue's invariant, and it moves
    healthy: bool
    #: submissions that wait for a reviewer
    waiting: int
    open_reports: int
    #: there are more open reports than were counted
    more_reports: bool
    #: submissions that are worked on or due
    active: int
    submissions: int
    #: messages that were set aside for a person
    dead_letters: int
    #: since the submission that waits longest was due; null where none waits
    oldest_waiting_ms: int | None
    #: what an operator must look at, the gravest first
    alerts: tuple[str, ...]


class Overview(msgspec.Struct, frozen=True):
    """What the overview's page shows: the answer, and the queue's health behind it."""

    answer: OverviewAnswer
    health: QueueHealth


class SettingView(Wire, frozen=True):
    """A setting, as an admin sees it."""

    #: of the environment variable
    name: str
    #: what it does
    sentence: str
    #: of a secret only that it is set, of a server's location everything but the password
    value: str
    is_default: bool
    is_secret: bool


class SettingsAnswer(Wire, frozen=True):
    """The settings, as this process read them when it started."""

    settings: tuple[SettingView, ...]


class StorageAnswer(Wire, frozen=True):
    """Where everything is stored, and whether it can be written now."""

    #: why the store cannot be written; empty where it can
    problem: str
    version: str
    #: when this release, or a newer one, first used the store; null where none has noted it
    release_since: str | None
    #: the release that used the store before; null where it is new
    release_before: str | None
    #: the process that answers
    process: str
    #: the id of the key that this process signs with; null where it signs nothing, empty where its key cannot be read
    signing_key: str | None
    #: the ids of the keys that live workers sign with; two for as long as a rotation takes
    worker_keys: tuple[str, ...]
    #: the engine of records, and its scheme
    records: str
    #: the schema's version; null where the engine has none
    schema: int | None
    queue: str
    content: str
    #: the version of the scanner's rules
    rules: str
    #: null: skills are certified SCANNED at most
    judge: str | None
    submissions: int
    #: records that could not be read
    unreadable: int
    #: records that break the queue's invariant
    violations: int
    messages_ready: int
    dead_letters: int


async def read_overview(services: Services) -> Overview:
    health = await queue_health()
    reports = await list_reports(limit=MOST_COUNTED)
    depth = await services.broker.depth()
    answer = OverviewAnswer(
        healthy=health.healthy,
        waiting=health.counts.by_state[State.NEEDS_REVIEW],
        open_reports=len(reports.items),
        more_reports=reports.cursor is not None,
        active=health.counts.active,
        submissions=health.counts.total,
        dead_letters=depth.dead,
        oldest_waiting_ms=health.oldest_waiting_ms,
        alerts=tuple(alert.text for alert in health.alerts),
    )
    return Overview(answer, health)


async def show_overview(services: Services, _request: NoParameters) -> OverviewAnswer:
    return (await read_overview(services)).answer


async def show_settings(services: Services, _request: NoParameters) -> SettingsAnswer:
    # The sentences are read from a source file, once.
    return SettingsAnswer(await asyncio.to_thread(view_settings, services.settings))


def view_settings(settings: Settings) -> tuple[SettingView, ...]:
    return tuple(_setting_view(facts, getattr(settings, facts.field)) for facts in describe_settings())


def _setting_view(facts: SettingFacts, value: object) -> SettingView:
    text = written_value(value)
    shown = "set, and not shown" if facts.is_secret and text else shown_location(text)
    return SettingView(facts.variable, facts.sentence, shown, text == facts.default, facts.is_secret)


async def read_used_release(kv: KV) -> UsedRelease | None:
    """The releases that have used the store; None before the first start."""
    entry = await kv.get(CONTROL_RELEASE)
    return None if entry is None else decode(entry, UsedRelease)


async def show_storage(services: Services, _request: NoParameters) -> StorageAnswer:
    try:
        await services.kv.check()
    except PlatformError as error:
        problem = error.public_message
    else:
        problem = ""
    settings = services.settings
    health, depth = await queue_health(), await services.broker.depth()
    used = await read_used_release(services.kv)
    return StorageAnswer(
        problem=problem,
        version=__version__,
        release_since=iso_time(used.since) if used else None,
        release_before=(used.previous or None) if used else None,
        process=services.worker_id,
        signing_key=await own_key_id(services),
        worker_keys=(await look_at_workers()).signing_keys,
        records=f"{services.kv.engine} ({settings.store.partition(':')[0]})",
        schema=await asyncio.to_thread(schema_version, settings),
        queue=services.broker.engine,
        content=services.blobs.engine,
        rules=services.scanner.ruleset,
        judge=" and ".join(one for one in (settings.judge_model, settings.second_judge_model) if one) or None,
        submissions=health.counts.total,
        unreadable=health.counts.unreadable,
        violations=len(health.violations),
        messages_ready=depth.ready,
        dead_letters=depth.dead,
    )


SHOW_OVERVIEW = action(
    show_overview,
    "system.overview",
    f"{SYSTEM}/overview",
    method="GET",
    right=Right.REVIEWER,
    summary="Show what waits for a person, and whether the queue moves",
    command="",
)
SHOW_SETTINGS = action(
    show_settings,
    "system.settings",
    f"{SYSTEM}/settings",
    method="GET",
    right=Right.ADMIN,
    summary="List the settings without their secrets",
    command="",
)
SHOW_STORAGE = action(
    show_storage,
    "system.storage",
    f"{SYSTEM}/storage",
    method="GET",
    right=Right.ADMIN,
    summary="Show where everything is stored, and whether it can be written now",
    command="",
)
