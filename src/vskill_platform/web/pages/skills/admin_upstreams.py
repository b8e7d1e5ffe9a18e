"""Admin pages of upstreams: all of them with a form for another one, and one with what its last look found."""

from vskill_platform.actions.skills.upstreams import (
    ADD_UPSTREAM,
    CHANGE_UPSTREAM,
    LIST_UPSTREAMS,
    PAUSE_UPSTREAM,
    REMOVE_UPSTREAM,
    RESUME_UPSTREAM,
    SHOW_UPSTREAM,
    SYNC_UPSTREAM,
)
from vskill_platform.stages.upstream_sources import SOURCES
from vskill_platform.web.pages.acting import answer_page, form

PAGE = "/admin/upstreams"
ONE = "/admin/upstream/{name}"

ENDPOINTS = (
    answer_page(
        PAGE, "upstreams.html", found=LIST_UPSTREAMS, kinds=[(kind.value, kind.value) for kind in SOURCES]
    ),
    answer_page(ONE, "upstream.html", found=SHOW_UPSTREAM),
    form(f"{PAGE}/add", ADD_UPSTREAM, "The upstream was added; it is being read.", at=PAGE),
    form(f"{ONE}/change", CHANGE_UPSTREAM, "The upstream was changed; it is being read again.", at=ONE),
    form(f"{ONE}/pause", PAUSE_UPSTREAM, "The upstream is paused.", at=ONE),
    form(f"{ONE}/resume", RESUME_UPSTREAM, "The upstream is being read again.", at=ONE),
    form(
        f"{ONE}/sync",
        SYNC_UPSTREAM,
        "The upstream is being read; reload this page to see what is found.",
        at=ONE,
    ),
    form(
        f"{ONE}/remove",
        REMOVE_UPSTREAM,
        "The upstream was removed; its skills stay.",
        at=ONE,
        to=PAGE,
        confirm=True,
    ),
)
