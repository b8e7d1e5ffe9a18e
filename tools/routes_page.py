"""`docs/reference/routes.md`: every address of the web side, from the table that the requests are routed by.

`python -m tools.reference` writes it; `make check` and a test compare. For programs the OpenAPI document says more;
this page is for whoever wants to see all of it at once, pages and forms included.
"""

from collections.abc import Iterable, Iterator

from tools.route_words import WORDS
from vskill_platform.web.app import ENDPOINTS
from vskill_platform.web.openapi import TAGS
from vskill_platform.web.principal import Guard
from vskill_platform.web.routing import Endpoint

PATH = "docs/reference/routes.md"

HEAD = """\
# Routes

Every address that a registry answers, by area. [The API](api.md) says how requests and answers are made, and
`/api/openapi.json` of a running registry describes each parameter and each answer. This page is written from the
table that requests are routed by: `python -m tools.reference`.

*Everybody* needs no account. Other roles include those below them: an admin may do what a reviewer may. Where a
scope is named, a token must have it.
"""

_ROLES = {Guard.PUBLIC: "everybody"}


def render(endpoints: Iterable[Endpoint] = ENDPOINTS) -> str:
    """The whole page."""
    listed = list(endpoints)
    return "\n".join([HEAD, *_api(listed), *_pages(listed)]).rstrip("\n") + "\n"


def _api(endpoints: list[Endpoint]) -> Iterator[str]:
    for tag in TAGS:
        own = [one for one in endpoints if one.documented and one.tag == tag]
        if own:
            yield f"## {tag}\n\n| route | for | what it does |\n|---|---|---|"
            yield from (_row(one, one.summary) for one in own)
            yield ""


def _pages(endpoints: list[Endpoint]) -> Iterator[str]:
    yield from _section(
        "Protocols of other clients",
        "Addresses that existing install clients ask for, each in the form that its client expects.",
        [one for one in endpoints if not one.documented and not _is_page(one)],
    )
    yield from _section(
        "Pages and forms",
        "What people see in a browser. A form works without scripts and carries a secret of its session.",
        [one for one in endpoints if not one.documented and _is_page(one)],
    )


def _section(title: str, words: str, endpoints: list[Endpoint]) -> Iterator[str]:
    yield f"## {title}\n\n{words}\n\n| route | for | what it is |\n|---|---|---|"
    yield from (_row(one, one.summary or _about(one)) for one in endpoints)
    yield ""


def _is_page(endpoint: Endpoint) -> bool:
    return endpoint.media == "text/html" or endpoint.is_stream or endpoint.path.startswith("/static/")


def _row(endpoint: Endpoint, text: str) -> str:
    scope = f", scope `{endpoint.scope}`" if endpoint.scope else ""
    who = _ROLES.get(endpoint.guard, endpoint.guard.value)
    return f"| `{endpoint.method} {endpoint.path}` | {who}{scope} | {text.replace('|', '/')} |"


def _about(endpoint: Endpoint) -> str:
    return WORDS.get(f"{endpoint.method} {endpoint.path}", "")
