"""The admin area's front page: is everything well, what waits for a person, what do the jobs do; and the pages of the
installation: judges, webhooks, audit, settings, stores and stored content."""

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.operation.audit import READ_AUDIT
from vskill_platform.actions.operation.content import REPAIR_CONTENT, SHOW_CONTENT
from vskill_platform.actions.operation.queue import STATUS
from vskill_platform.actions.operation.system import SHOW_OVERVIEW, SHOW_SETTINGS, SHOW_STORAGE, read_overview
from vskill_platform.actions.telling.webhooks import ADD_WEBHOOK, LIST_WEBHOOKS, REMOVE_WEBHOOK
from vskill_platform.actions.verdicts.judges import SHOW_JUDGES, TRY_JUDGES
from vskill_platform.notifications.notices import NoticeType
from vskill_platform.web.documents import DOCUMENTS, notes_since
from vskill_platform.web.drawing.markdown import Style, render_markdown
from vskill_platform.web.exchange import principal_of, services_of
from vskill_platform.web.pages.acting import admin_page, answer_page, form
from vskill_platform.web.routing import page


async def dashboard(request: Request) -> Response:
    reader = principal_of(request)
    found = await read_overview(services_of(request))
    return admin_page(
        request,
        "dashboard.html",
        health=found.health,
        overview=found.answer,
        shows_queue=STATUS.allows(reader),
    )


JUDGES = "/admin/judges"
WEBHOOKS = "/admin/webhooks"
CONTENT = "/admin/content"

_JUDGES = answer_page(JUDGES, "judges.html", found=SHOW_JUDGES)
_WEBHOOKS = answer_page(WEBHOOKS, "webhooks.html", found=LIST_WEBHOOKS, events=list(NoticeType))


def _render_notes(release: str) -> Markup:
    notes = "\n\n".join(f"## {one.release}\n\n{one.text}" for one in notes_since(release))
    return render_markdown(notes, Style(shift=1, base="/docs/", known=frozenset(DOCUMENTS))).html


ENDPOINTS = (
    page("/admin", dashboard, action=SHOW_OVERVIEW),
    _JUDGES,
    form(f"{JUDGES}/try", TRY_JUDGES, at=JUDGES, shown_by=_JUDGES),
    _WEBHOOKS,
    # The secret of a new one is shown once, by the answer to the form.
    form(f"{WEBHOOKS}/add", ADD_WEBHOOK, at=WEBHOOKS, shown_by=_WEBHOOKS),
    form(f"{WEBHOOKS}/remove", REMOVE_WEBHOOK, "The webhook was removed.", at=WEBHOOKS, confirm=True),
    answer_page(
        "/admin/audit",
        "audit.html",
        ("before", "after", "who", "what", "about", "outcome", "until"),
        found=READ_AUDIT,
    ),
    answer_page("/admin/settings", "settings.html", found=SHOW_SETTINGS),
    answer_page("/admin/storage", "storage.html", found=SHOW_STORAGE, notes_since=_render_notes),
    answer_page(CONTENT, "content.html", found=SHOW_CONTENT),
    form(
        f"{CONTENT}/repair",
        REPAIR_CONTENT,
        "The repair was asked for; reload this page to see how it ended.",
        at=CONTENT,
    ),
)
