"""`docs/reference/errors.md`: every code that an answer or a command can carry, from the one tree of errors.

`python -m tools.reference` writes it; `make check` and a test compare. Whoever finds a code in a log or in a client
looks it up here.
"""

from collections.abc import Iterator

import vskill_platform.scan.ruleset  # noqa: F401 - the one module that adds an error of its own
from vskill_platform.domain.errors import PlatformError

PATH = "docs/reference/errors.md"

HEAD = """\
# Errors

Every error has a stable `code`, which programs may compare, a status, and a message that names what is wrong and what
to do. The API answers with a problem document ([the API](api.md)), pages with a page, commands with one line and exit
code 1. A message may say more than the sentence here: which field, which file, which host. This page is written from
the code: `python -m tools.reference`.

A 503 says "come again" and carries `Retry-After`. [Troubleshoot](../how-to/troubleshoot.md) says what an operator does
about each of them.

| code | status | meaning |
|---|---|---|"""


def render() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_rows()]) + "\n"


def errors() -> dict[str, type[PlatformError]]:
    """Every error of the product by its code."""
    return {one.code: one for one in _below(PlatformError) if one.__module__.startswith("vskill_platform.")}


def _below(error: type[PlatformError]) -> Iterator[type[PlatformError]]:
    for one in error.__subclasses__():
        yield from _below(one)
    yield error


def _rows() -> Iterator[str]:
    ordered = sorted(errors().items(), key=lambda item: (item[1].status, item[0]))
    for code, error in ordered:
        words = " ".join((error.__doc__ or "").split()).replace("|", "/")
        yield f"| `{code}` | {error.status} | {words} |"
