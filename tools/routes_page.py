"""The addresses of `docs/reference/routes.md`, from the table that the requests are routed by.

For programs the OpenAPI document says more; this page shows all of it at once, pages and forms included.
"""

from collections.abc import Iterable, Iterator

from tools.route_words import WORDS
from tools.tables import table
from vskill_platform.web.app import ENDPOINTS
from vskill_platform.web.openapi import TAGS
from vskill_platform.web.routing import Endpoint


def render(endpoints: Iterable[Endpoint] = ENDPOINTS) -> str:
    """Every address, by area."""
    listed = list(endpoints)
    return "\n".join([*_api(listed), *_pages(listed)])


def _api(endpoints: list[Endpoint]) -> Iterator[str]:
    for tag in TAGS:
        own = [one for one in endpoints if one.documented and one.tag == tag]
        if own:
            yield f"## {tag}\n\n{_table(own)}\n"


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
    yield f"## {title}\n\n{words}\n\n{_table(endpoints)}\n"


def _is_page(endpoint: Endpoint) -> bool:
    return endpoint.media == "text/html" or endpoint.is_stream or endpoint.path.startswith("/static/")


def _table(endpoints: list[Endpoint]) -> str:
    named = ((f"{one.method} {one.path}", one) for one in endpoints)
    return table(
        ("route", "for", "what it does"),
        ((f"`{name}`", _who(one), _what(name, one)) for name, one in named),
    )


def _what(name: str, endpoint: Endpoint) -> str:
    """Its own words, or those of the action that it offers."""
    summary = endpoint.action.summary if endpoint.action else ""
    return endpoint.summary or WORDS.get(name) or summary


def _who(endpoint: Endpoint) -> str:
    if endpoint.action is None:
        return "everybody"
    return f"{endpoint.action.right.meaning}, scope `{endpoint.token_scope}`"
