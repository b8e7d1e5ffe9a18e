"""Records as they are stored: JSON in, typed structs out, and an account of every record that was skipped."""

from typing import TypeVar

import msgspec

from vskill_platform.domain.errors import PlatformError, RecordMalformed
from vskill_platform.env import Env
from vskill_platform.kv.entries import Entry

T = TypeVar("T")

#: A log line names at most this many skipped keys; the count is always whole.
KEYS_IN_LOG = 20


def decode(entry: Entry, kind: type[T]) -> T:
    """The typed record, or RecordMalformed, which names the key and what is wrong with it."""
    try:
        return msgspec.json.decode(entry.value, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordMalformed(f"{entry.key}: {error}", key=entry.key, reason=str(error)) from error


class Skips:
    """What one call left out, by reason: counted, shown in metrics, and logged once."""

    def __init__(self, operation: str) -> None:
        self._operation = operation
        self._keys: dict[str, list[str]] = {}

    def failed(self, failures: dict[str, PlatformError]) -> None:
        for key in failures:
            self.add("failed", key)

    def missing(self, keys: tuple[str, ...]) -> None:
        for key in keys:
            self.add("missing", key)

    def add(self, reason: str, key: str) -> None:
        self._keys.setdefault(reason, []).append(key)

    def decode(self, entry: Entry, kind: type[T]) -> T | None:
        """The typed record, or None and a note that it was malformed."""
        try:
            return decode(entry, kind)
        except RecordMalformed:
            self.add("malformed", entry.key)
            return None

    @property
    def count(self) -> int:
        return sum(map(len, self._keys.values()))

    def report(self, env: Env) -> None:
        """Say it once; nothing is ever skipped in silence."""
        for reason, keys in self._keys.items():
            env.metrics.records_skipped.labels(self._operation, reason).inc(len(keys))
            env.log.warning(
                "records skipped",
                operation=self._operation,
                reason=reason,
                count=len(keys),
                keys=keys[:KEYS_IN_LOG],
            )
