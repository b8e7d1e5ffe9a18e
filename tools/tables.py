"""The tables of the reference, each written from the declarations that the product itself works with.

`reference.PARTS` says which part of which page each of them is.
"""

from collections.abc import Iterable, Iterator
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

import vskill_scan.rules.ruleset  # noqa: F401 - the one module that adds an error of its own
from vskill_core.errors import PlatformError
from vskill_core.form import MEANINGS, SKIPPED_BY_SKILLS, NoteCode
from vskill_platform.actions.action import Action
from vskill_platform.actions.operation.audit import AuditView
from vskill_platform.actions.table import ACTIONS
from vskill_platform.actions.wire import field_texts
from vskill_platform.domain.verdicts.facts import CapabilityFacts, Facts
from vskill_platform.domain.verdicts.policy import Needs, PolicyText, RuleText
from vskill_platform.observing.metrics import DECLARED
from vskill_platform.queue.alerts import AlertCode
from vskill_platform.queue.jobs import JOBS
from vskill_platform.setting_facts import SettingFacts, describe_settings
from vskill_platform.web.door.limits import QUOTAS
from vskill_platform.web.pages.table import ENDPOINTS


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


def notes() -> str:
    rows = (
        (f"`{code.value}`", MEANINGS[code], "no" if code in SKIPPED_BY_SKILLS else "yes") for code in NoteCode
    )
    return table(("note", "what it means", "`skills` installs it"), rows)


def facts() -> str:
    """A table for each struct of facts; what a field holds links to the struct of its entries."""
    parts = [_fields(Facts)]
    for name, kind in get_type_hints(Facts).items():
        inner = _struct_of(kind)
        if inner is not None and name != "gained":
            parts.append(f"### {name}\n\n{_fields(inner)}")
    return "\n\n".join([*parts, f"### Entries of the card\n\n{_fields(CapabilityFacts)}"])


def policy_keys() -> str:
    parts = [_fields(PolicyText), f"`needs`:\n\n{_fields(Needs)}", f"A rule:\n\n{_fields(RuleText)}"]
    return "\n\n".join(parts)


def _fields(kind: type[msgspec.Struct]) -> str:
    texts = field_texts(kind)
    rows = (
        (f"`{name}`", _type_words(hint), texts.get(name, "")) for name, hint in get_type_hints(kind).items()
    )
    return table(("name", "type", "what it is"), rows)


def _struct_of(kind: Any) -> type[msgspec.Struct] | None:
    found = get_args(kind)[0] if get_origin(kind) is tuple else kind
    return found if isinstance(found, type) and issubclass(found, msgspec.Struct) else None


def _type_words(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return "list"
    if _struct_of(kind) is not None:
        return "object"
    return {bool: "true or false", int: "whole number"}.get(kind, "text")


def settings() -> str:
    return table(
        ("variable", "what it is", "default", "accepts"),
        ((f"`{one.variable}`", _sentence(one), _default(one), one.accepts) for one in describe_settings()),
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
    return {one.code: one for one in _below(PlatformError) if one.__module__.startswith("vskill_")}


def _below(error: type[PlatformError]) -> Iterator[type[PlatformError]]:
    for one in error.__subclasses__():
        yield from _below(one)
    yield error


def audit_fields() -> str:
    texts = field_texts(AuditView)
    return table(("field", "what it says"), ((f"`{name}`", texts[name]) for name in texts))


def metrics() -> str:
    return table(
        ("metric", "kind", "labels", "what it is"),
        ((f"`{one.name}`", one.kind, _code(one.labels), one.sentence) for one in DECLARED),
    )


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def alerts() -> str:
    return table(("alert", "it holds when"), ((f"`{one}`", one.meaning) for one in AlertCode))


def jobs() -> str:
    rows = ((f"`{one.name}`", _interval(one.every_ms), one.purpose, one.consequence) for one in JOBS)
    return table(("job", "every", "what it does", "without it"), rows)


def _interval(ms: int) -> str:
    minutes, seconds = divmod(ms // 1000, 60)
    return f"{minutes} min" if minutes and not seconds else f"{ms // 1000} s"


def actions() -> str:
    """Every action, who may do it, and where."""
    return table(
        ("action", "what it does", "who may", "scope of a token", "API", "page", "command", "MCP tool"),
        (
            (
                f"`{one.name}`",
                one.summary,
                one.right.meaning,
                f"`{one.scope}`",
                f"`{one.method} {one.path}`",
                *(f"`{place}`" if place else "none" for place in (page_of(one), one.command, one.mcp)),
            )
            for one in sorted(ACTIONS, key=lambda one: one.name)
        ),
    )


def page_of(action: Action[Any, Any]) -> str:
    """The address of the page or form that offers an action; empty where there is none."""
    shown = [one for one in ENDPOINTS if action.name in one.shows]
    named = [one for one in ENDPOINTS if one.action is action]
    # A form before the page that it is on.
    named.sort(key=lambda one: (one.method == "GET") is not (action.method == "GET"))
    return next((one.path for one in (*shown, *named)), "")


def limits() -> str:
    return table(
        ("requests", "of an address, an hour", "of an account, an hour"),
        ((allowance.value, quota.address, quota.account) for allowance, quota in QUOTAS.items()),
    )
