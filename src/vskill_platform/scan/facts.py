"""Facts that need no syntax: addresses, what the front matter declares, archives with their password."""

from collections.abc import Iterator

from vskill_platform.scan.model import Fact, Layer


def facts_of(layer: Layer) -> Iterator[Fact]:
    yield from ()
