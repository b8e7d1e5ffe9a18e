"""The tables of the reference, each written from the declarations that the product itself works with.

`reference.PARTS` says which part of which page each of them is.
"""

from collections.abc import Iterable, Iterator

import vskill_platform.scan.ruleset  # noqa: F401 - the one module that adds an error of its own
from vskill_platform.domain.errors import PlatformError
from vskill_platform.settings import SettingFacts, describe_settings
from vskill_platform.web.limits import QUOTAS


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    titles = list(heads)
    lines = [titles, ["---"] * len(titles), *([_cell(value) for value in row] for row in rows)]
    return (
        "\n".join(f"| {' | '.join(line)} |" for line in lines)
        .replace("| --- ", "|---")
        .replace("--- |", "---|")
    )


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "/")


def settings() -> str:
    return table(
        ("variable", "default", "accepts", "what it is"),
        ((f"`{one.variable}`", _default(one), one.accepts, _sentence(one)) for one in describe_settings()),
    )


def _default(setting: SettingFacts) -> str:
    if setting.field == "broker":
        return "the store"
    return f"`{setting.default}`" if setting.default else "none"


def _sentence(setting: SettingFacts) -> str:
    return f"{setting.sentence} Never logged or shown." if setting.is_secret else setting.sentence


def errors() -> str:
    """Every code that an answer or a command can carry, from the one tree of errors."""
    ordered = sorted(error_codes().items(), key=lambda item: (item[1].status, item[0]))
    return table(
        ("code", "status", "meaning"),
        ((f"`{code}`", error.status, error.__doc__) for code, error in ordered),
    )


def error_codes() -> dict[str, type[PlatformError]]:
    """Every error of the product by its code."""
    return {one.code: one for one in _below(PlatformError) if one.__module__.startswith("vskill_platform.")}


def _below(error: type[PlatformError]) -> Iterator[type[PlatformError]]:
    for one in error.__subclasses__():
        yield from _below(one)
    yield error


def limits() -> str:
    return table(
        ("requests", "of an address, an hour", "of an account, an hour"),
        ((allowance.value, quota.address, quota.account) for allowance, quota in QUOTAS.items()),
    )
