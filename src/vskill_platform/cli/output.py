"""Times and durations, as people read and write them."""

import click

from vskill_client.output import UNKNOWN


def show_duration(ms: int | None) -> str:
    """A duration in its two largest units, such as `2 h 5 min`."""
    if ms is None:
        return UNKNOWN
    if ms < 1000:
        return f"{ms} ms"
    parts = []
    rest = ms // 1000
    for name, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


class Duration(click.ParamType[int]):
    """A duration on the command line, such as `30s`, `10m`, `2h` or `1d`; the value is in milliseconds."""

    name = "duration"
    units = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}  # noqa: RUF012 - a constant table

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        number, unit = value[:-1], value[-1:]
        if not (number.isascii() and number.isdigit() and unit in self.units):
            self.fail(f"{value!r} is not a duration; write for example 30s, 10m, 2h or 1d", param, ctx)
        return int(number) * self.units[unit]
