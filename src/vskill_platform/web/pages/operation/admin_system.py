"""The installation itself: webhooks, the audit, the settings without their secrets, where everything is kept, and
content that is damaged, with its repair."""

from vskill_platform.actions.operation.audit import READ_AUDIT
from vskill_platform.actions.operation.content import REPAIR_CONTENT, SHOW_CONTENT
from vskill_platform.actions.operation.system import SHOW_SETTINGS, SHOW_STORAGE
from vskill_platform.actions.telling.webhooks import ADD_WEBHOOK, LIST_WEBHOOKS, REMOVE_WEBHOOK
from vskill_platform.notifications.notices import NoticeType
from vskill_platform.web.pages.acting import answer_page, form

WEBHOOKS = "/admin/webhooks"
CONTENT = "/admin/content"

_WEBHOOKS = answer_page(WEBHOOKS, "webhooks.html", found=LIST_WEBHOOKS, events=list(NoticeType))

ENDPOINTS = (
    _WEBHOOKS,
    # The secret of a new one is shown once, by the answer to the form.
    form(f"{WEBHOOKS}/add", ADD_WEBHOOK, at=WEBHOOKS, shown_by=_WEBHOOKS),
    form(f"{WEBHOOKS}/remove", REMOVE_WEBHOOK, "The webhook was removed.", at=WEBHOOKS, confirm=True),
    answer_page("/admin/audit", "audit.html", ("before",), found=READ_AUDIT),
    answer_page("/admin/settings", "settings.html", found=SHOW_SETTINGS),
    answer_page("/admin/storage", "storage.html", found=SHOW_STORAGE),
    answer_page(CONTENT, "content.html", found=SHOW_CONTENT),
    form(
        f"{CONTENT}/repair",
        REPAIR_CONTENT,
        "The repair was asked for; reload this page to see how it ended.",
        at=CONTENT,
    ),
)
