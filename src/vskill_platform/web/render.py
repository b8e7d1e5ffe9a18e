"""Pages: jinja templates that escape everything, with the few things that every page needs.

A template gets `principal`, `offers_admin`, `offers_review`, `browser`, `path`, `unread`, the addresses of static files
by `static(...)`, and filters for times and numbers; a number that is unknown is shown as a dash, never as zero (C4).
"""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from vskill_core.capability import describe_needs
from vskill_core.plain_text import plain_text
from vskill_core.plural import counted
from vskill_platform import __version__
from vskill_platform.actions.operation.system import SHOW_OVERVIEW
from vskill_platform.actions.review.review_queue import WAITING
from vskill_platform.domain.skills.listing import lacks_in
from vskill_platform.domain.skills.ranking import mark_words
from vskill_platform.domain.submissions.states import State, category_of
from vskill_platform.web.assets import static_address
from vskill_platform.web.browser import browser_of
from vskill_platform.web.drawing.avatars import avatar_of
from vskill_platform.web.exchange import principal_of, services_of

FOLDER = Path(__file__).parent / "templates"
#: The file viewer shows a long file in parts.
LINES_PER_PART = 1_000
UNKNOWN = "–"  # noqa: RUF001 - the dash that stands for a number nobody knows


#: Every template's text, read once: no request waits for a file.
TEMPLATES = MappingProxyType(
    {path.relative_to(FOLDER).as_posix(): path.read_text("utf-8") for path in sorted(FOLDER.rglob("*.html"))}
)


def render(request: Request, template: str, status: int = 200, /, **context: Any) -> Response:
    """A page, which browsers do not cache. It has a canonical URL if the operator set the registry's address."""
    base = services_of(request).settings.public_url
    text = (
        environment()
        .get_template(template)
        .render(
            request=request,
            path=request.url.path,
            page_address=base.rstrip("/") + quote(request.url.path) if base else "",
            principal=principal_of(request),
            offers_admin=SHOW_OVERVIEW.allows(principal_of(request)),
            offers_review=WAITING.allows(principal_of(request)),
            browser=browser_of(request),
            unread=request.scope.get("unread"),
            **context,
        )
    )
    return HTMLResponse(text, status, {"cache-control": "no-cache, private"})


@cache
def environment() -> jinja2.Environment:
    """The templates; foreign text is escaped wherever it appears, and a misspelt name is an error."""
    found = jinja2.Environment(
        loader=jinja2.DictLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.globals.update(static=static_address, version=__version__, UNKNOWN=UNKNOWN)
    found.filters.update(
        number=number, counted=counted, size=size, when=when, iso=iso, day=day, duration=duration
    )
    found.filters.update(as_state=State, category=category_of)
    found.filters.update(
        web_address=web_address,
        mark_words=mark_words,
        code_spans=code_spans,
        command_html=command_html,
        plain=plain_text,
        avatar=avatar_of,
        at_line=at_line,
        needs=lambda without: describe_needs(lacks_in(without)),
    )
    return found


@jinja2.pass_context
def web_address(context: jinja2.runtime.Context, text: str) -> str:
    """A foreign URL if a link may have it, else empty, whatever the record holds. A repository's URL must be https,
    unless the operator allows plain HTTP for its host."""
    if not text.startswith(("https://", "http://")):
        return ""
    host = text.partition("://")[2].partition("/")[0]
    by_http = services_of(context["request"]).settings.allowed_private_hosts
    return text.replace("https://", "http://", 1) if f"http://{host}" in by_http else text


def code_spans(text: str) -> list[tuple[str, bool]]:
    """A sentence in pieces, each with whether it is between backticks; a single backtick is a plain character."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        pieces[-2:] = ["`".join(pieces[-2:])]
    return [(piece, place % 2 == 1) for place, piece in enumerate(pieces) if piece]


def command_html(text: str) -> Markup:
    """A command whose lines may end at spaces and behind the slashes of an address: each piece is a span. A page has a
    dozen commands, so nothing is matched here."""
    html, cut = str(escape(text.replace("\0", ""))), "</span><span>"
    html = html.replace("//", "\0").replace("/", f"/{cut}").replace("\0", f"//{cut}")
    for space in " \n":
        html = html.replace(space, f"</span>{space}<span>")
    return Markup(f"<span>{html}</span>".replace("<span></span>", ""))  # noqa: S704 - escaped above


def at_line(query: str, line: int) -> str:
    """The query of an address of the file viewer, and the line in it: `?version=2&part=3#L2100`."""
    if line <= 0:
        return query
    part = (line - 1) // LINES_PER_PART + 1
    return query + (f"{'&' if query else '?'}part={part}" if part > 1 else "") + f"#L{line}"


def number(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def size(count: int | None) -> str:
    if count is None:
        return UNKNOWN
    amount = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    raise AssertionError


def iso(at: int | str | None) -> str:
    """A time, in milliseconds or as the API's text, as the value of a `<time datetime>`."""
    return "" if at is None else _moment(at).isoformat(timespec="seconds")


def day(at: int | str | None) -> str:
    return UNKNOWN if at is None else _moment(at).strftime("%-d %B %Y")


def when(at: int | str | None) -> str:
    """A time in full, in UTC."""
    return UNKNOWN if at is None else _moment(at).strftime("%-d %b %Y, %H:%M:%S UTC")


def _moment(at: int | str) -> datetime:
    return datetime.fromisoformat(at) if isinstance(at, str) else datetime.fromtimestamp(at / 1000, UTC)


def duration(ms: int | None) -> str:
    """How long, in the two largest units that matter."""
    if ms is None:
        return UNKNOWN
    if ms < 1000:
        return f"{max(0, ms)} ms"
    seconds = ms // 1000
    if seconds < 60:
        return f"{ms / 1000:.1f} s" if seconds < 10 else f"{seconds} s"
    parts = (
        (seconds // 86400, "d"),
        (seconds % 86400 // 3600, "h"),
        (seconds % 3600 // 60, "min"),
        (seconds % 60, "s"),
    )
    shown = [f"{amount} {unit}" for amount, unit in parts if amount]
    return " ".join(shown[:2])
