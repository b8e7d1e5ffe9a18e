"""Which stored content a record names.

Versions, runs and lists of skills name bundles of files by digest: these must be there and whole. Any other record may
name content in a way that only its own part knows, so the collector keeps whatever looks named.
"""

import msgspec
import re2

from vskill_platform.domain import keys
from vskill_platform.domain.skills.git_list import GitList

#: Records that name bundles of files.
NAMING = tuple(kind.prefix for kind in (keys.version, keys.sub, keys.subrun, keys.git_list))
#: Records that tell something about content and need none of it.
ABOUT_CONTENT = (
    *(kind.prefix for kind in (keys.scan, keys.judge, keys.extscan, keys.rescan, keys.suppress, keys.ruling)),
    *(kind.prefix for kind in (keys.block, keys.hand_in, keys.attestation, keys.audit, keys.damage)),
    *(kind.prefix for kind in (keys.upload, keys.token, keys.session, keys.user)),
    "task:",
    # Its content is named by a version too.
    keys.sketch.prefix,
)

_ADDRESS = re2.compile(rb"\b[0-9a-f]{64}\b")


class _Requested(msgspec.Struct, frozen=True):
    """The next run of a submission, as far as it names content."""

    upload: str | None = None


class _Naming(msgspec.Struct, frozen=True):
    """A version or a run, as far as it names content."""

    digest: str | None = None
    upload: str | None = None
    rerun_requested: _Requested | None = None


def bundles_named(key: str, value: bytes) -> tuple[str, ...]:
    """The digests of the bundles that this record names, each once. One that cannot be read names none: queue health
    reports it."""
    if not key.startswith(NAMING):
        return ()
    try:
        if key.startswith(keys.git_list.prefix):
            return (msgspec.json.decode(value, type=GitList).served.digest,)
        record = msgspec.json.decode(value, type=_Naming)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    rerun = record.rerun_requested
    named = (record.digest, record.upload, rerun.upload if rerun else None)
    return tuple(dict.fromkeys(one for one in named if one))


def addresses_in(key: str, value: bytes) -> frozenset[str]:
    """Every address that stands in the record: more than it names, and never less."""
    if key.startswith(ABOUT_CONTENT):
        return frozenset()
    return frozenset(found.decode() for found in _ADDRESS.findall(value))
