"""The installation itself: webhooks, the audit, the settings without their secrets, and where everything is kept."""

import asyncio

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform import __version__
from vskill_platform.actions.webhooks import ADD_WEBHOOK, LIST_WEBHOOKS, REMOVE_WEBHOOK, NewWebhook
from vskill_platform.actions.wire import Asked
from vskill_platform.bootstrap import schema_version
from vskill_platform.domain.errors import PlatformError
from vskill_platform.notifications.notices import NoticeType
from vskill_platform.queue.health import queue_health
from vskill_platform.settings import SettingFacts, Settings, describe_settings, shown_location, written_value
from vskill_platform.store.audit import list_audit
from vskill_platform.store.webhooks import list_webhooks
from vskill_platform.web.auth import text_of, values_of
from vskill_platform.web.flash import see_other
from vskill_platform.web.pages.acting import act_by_form, acting, admin_page, require_confirmed
from vskill_platform.web.principal import Guard
from vskill_platform.web.routing import form, page, query_of
from vskill_platform.worker_context import require_env

WEBHOOKS = "/admin/webhooks"
AUDIT_PAGE = 50
EVENTS = tuple(kind.value for kind in NoticeType)


class AuditQuery(Asked, frozen=True):
    """Which page of the audit."""

    before: str | None = None


class ShownSetting(msgspec.Struct, frozen=True):
    """A setting as an admin sees it."""

    name: str
    sentence: str
    value: str
    is_default: bool
    is_secret: bool


async def webhooks(request: Request) -> Response:
    return await _webhooks(request)


async def _webhooks(request: Request, made: NewWebhook | None = None) -> Response:
    return admin_page(
        request,
        "webhooks.html",
        201 if made else 200,
        hooks=await list_webhooks(),
        events=EVENTS,
        made=made,
    )


@acting(WEBHOOKS)
async def add(request: Request) -> Response:
    """Its secret is shown once, by this answer."""
    made = await act_by_form(request, ADD_WEBHOOK, events=await values_of(request, "events"))
    return await _webhooks(request, made)


@acting(WEBHOOKS)
async def remove(request: Request) -> Response:
    await require_confirmed(request)
    await act_by_form(request, REMOVE_WEBHOOK, webhook_id=await text_of(request, "webhook", 100))
    return see_other(request, WEBHOOKS, "It gets nothing more.")


async def audit(request: Request) -> Response:
    before = query_of(request, AuditQuery).before
    found = await list_audit(before=before, limit=AUDIT_PAGE)
    return admin_page(request, "audit.html", found=found, is_first=before is None)


async def settings(request: Request) -> Response:
    # The sentences are read from a source file, once.
    shown = await asyncio.to_thread(shown_settings, require_env("settings").settings)
    return admin_page(request, "settings.html", settings=shown)


def shown_settings(settings: Settings) -> tuple[ShownSetting, ...]:
    """Every setting; of a secret only that it is set, of a server's location everything but the password."""
    return tuple(_shown(facts, getattr(settings, facts.field)) for facts in describe_settings())


def _shown(facts: SettingFacts, value: object) -> ShownSetting:
    text = written_value(value)
    shown = "set, and not shown" if facts.is_secret and text else shown_location(text)
    return ShownSetting(facts.variable, facts.sentence, shown, text == facts.default, facts.is_secret)


async def storage(request: Request) -> Response:
    """Where everything is kept, and whether it can be written now."""
    env = require_env("kv")
    try:
        await env.kv.check()
    except PlatformError as error:
        problem = error.message
    else:
        problem = ""
    return admin_page(
        request,
        "storage.html",
        problem=problem,
        health=await queue_health(),
        depth=await env.broker.depth(),
        facts=(
            ("Version", __version__),
            ("Process", env.worker_id),
            ("Records", f"{env.kv.engine} ({env.settings.store.partition(':')[0]})"),
            ("Schema", str(schema_version(env.settings) or "none")),
            ("Queue", env.broker.engine),
            ("Content", env.blobs.engine),
            ("Rules", env.scanner.ruleset),
            ("Judge", env.settings.judge_model or "none: skills are certified SCANNED at most"),
        ),
    )


ENDPOINTS = (
    page(WEBHOOKS, webhooks, action=LIST_WEBHOOKS),
    form(f"{WEBHOOKS}/add", add, action=ADD_WEBHOOK),
    form(f"{WEBHOOKS}/remove", remove, action=REMOVE_WEBHOOK),
    page("/admin/audit", audit, guard=Guard.ADMIN, query=AuditQuery),
    page("/admin/settings", settings, guard=Guard.ADMIN),
    page("/admin/storage", storage, guard=Guard.ADMIN),
)
