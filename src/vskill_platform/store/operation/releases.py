"""Which release uses the store, and which one did before: after an upgrade, `doctor` and the page about storage say
what changed in between."""

from contextlib import suppress

import msgspec

from vskill_core.errors import Conflict
from vskill_core.release import __version__, release_numbers
from vskill_platform.domain.keys import CONTROL_RELEASE
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.ledger.kv.entries import ABSENT
from vskill_platform.records import decode


class UsedRelease(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record at `control:release`."""

    release: str
    #: its first start with this store
    since: int
    #: the one before it; empty where the store is new
    before: str = ""

    @property
    def is_older(self) -> bool:
        """Than the one that runs."""
        return release_numbers(self.release) < release_numbers(__version__)

    @property
    def previous(self) -> str:
        """The one before the one that runs; empty where there is none."""
        return self.release if self.is_older else self.before


async def note_release(kv: KV) -> None:
    """At the start of a process. One of an older release that starts beside newer ones changes nothing."""
    entry = await kv.get(CONTROL_RELEASE)
    used = None if entry is None else decode(entry, UsedRelease)
    if used is not None and not used.is_older:
        return
    noted = UsedRelease(__version__, kv.now(), used.release if used else "")
    # Several processes start at once; the first one's note is as good.
    with suppress(Conflict):
        await kv.put(
            CONTROL_RELEASE, msgspec.json.encode(noted), if_version=entry.version if entry else ABSENT
        )
