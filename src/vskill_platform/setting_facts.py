"""What an operator is told about each setting: the admin page and `docs/reference/settings.md` are made of it."""

import functools
import inspect
import itertools
from typing import get_type_hints

import msgspec

from vskill_platform.setting_values import accepted_values
from vskill_platform.settings import CHOSEN, SECRETS, Settings, variable


class SettingFacts(msgspec.Struct, frozen=True):
    """What an operator is told about one setting."""

    field: str
    variable: str
    #: What it does.
    sentence: str
    #: Which values it takes, in words.
    accepts: str
    #: As one would write it; empty where there is none.
    default: str
    is_secret: bool


@functools.cache
def describe_settings() -> tuple[SettingFacts, ...]:
    kinds, defaults, sentences = get_type_hints(Settings, include_extras=True), Settings(), _sentences()
    return tuple(
        SettingFacts(
            name,
            variable(name),
            sentences[name],
            accepted_values(kinds[name]),
            written_value(getattr(defaults, name)),
            name in SECRETS,
        )
        for name in CHOSEN
    )


def written_value(value: object) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _sentences() -> dict[str, str]:
    lines = [line.strip() for line in inspect.getsource(Settings).splitlines()]
    return {
        below.partition(":")[0]: line.removeprefix("#: ")
        for line, below in itertools.pairwise(lines)
        if line.startswith("#: ")
    }
