"""Remote analysers report by a signed call: `POST /api/v1/external-scans/{digest}/{provider}`.

The signature is HMAC-SHA256 over the timestamp, a dot and the body, with the provider's own secret. The body names the
content and the provider again, so an intercepted call cannot be sent to another URL; the timestamp bounds its age, and
a replay changes nothing.
"""

import hashlib
import hmac
import secrets

import msgspec

from vskill_core.errors import InvalidInput, NotFound, NotPermitted
from vskill_core.findings import Severity
from vskill_core.foreign_json import read_json
from vskill_platform.external_scan.contract import clean, summed_up
from vskill_platform.external_scan.dispatch import remote_secrets
from vskill_platform.store.external_scans import (
    ExternalFinding,
    ExternalReport,
    ExternalStatus,
    take_remote_report,
)
from vskill_platform.worker_context import require_env

TIMESTAMP_HEADER = "x-vskill-timestamp"
SIGNATURE_HEADER = "x-vskill-signature"
#: How far the two clocks may differ, and how old a call may be.
TOLERANCE_S = 300
MOST_BODY_BYTES = 1024 * 1024
#: Statuses that a remote analyser can report; only we say that it is missing or late.
REMOTE_STATUSES = (ExternalStatus.COMPLETE, ExternalStatus.INCOMPLETE, ExternalStatus.ERROR)
_SCHEME = "sha256="
_MOST_LINE = 10_000_000


class SignedCall(msgspec.Struct, frozen=True):
    """A received call, unchecked."""

    timestamp: str
    signature: str
    body: bytes


class RemoteFinding(msgspec.Struct, frozen=True, rename="camel"):
    """A finding as a remote analyser sends it."""

    rule_id: str
    severity: Severity
    file: str = ""
    line: int = 0
    message: str = ""


class RemoteReport(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The body of a call."""

    digest: str
    provider: str
    version: str
    status: ExternalStatus
    findings: tuple[RemoteFinding, ...] = ()
    problem: str = ""
    unread: tuple[str, ...] = ()


def sign(secret: str, timestamp_s: int, body: bytes) -> str:
    signed = f"{timestamp_s}.".encode() + body
    return _SCHEME + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


async def receive_report(digest: str, provider: str, call: SignedCall) -> tuple[ExternalReport, bool]:
    """Check and store a remote analyser's report; the report, and whether it was new."""
    signed_s = check_call(provider, call)
    sent = _decode(call.body)
    _check_address(sent, digest, provider)
    if not await require_env("blobs").blobs.has(digest):
        raise NotFound(f"There is no content {digest}.", digest=digest)
    now = require_env("clock").clock.now()
    report = ExternalReport(
        provider=provider,
        status=sent.status,
        started_at=signed_s * 1000,
        ended_at=now,
        version=clean(sent.version)[:80],
        unread=tuple(clean(path) for path in sent.unread),
        problem=clean(sent.problem),
        signed_s=signed_s,
        body_sha256=hashlib.sha256(call.body).hexdigest(),
    )
    report = summed_up(report, [_finding(one) for one in sent.findings])
    return report, await take_remote_report(digest, report)


def check_call(provider: str, call: SignedCall) -> int:
    """The time of a genuine and fresh call. Every other call gets the same error."""
    env = require_env("settings")
    # Compare even for unknown providers, so that timing does not reveal who is known.
    known = remote_secrets(env.settings).get(provider, (secrets.token_hex(),))
    signed_s = int(call.timestamp) if _is_number(call.timestamp) else 0
    given = call.signature.encode("utf-8", "replace")
    fits = [hmac.compare_digest(sign(one, signed_s, call.body).encode(), given) for one in known]
    fresh = abs(env.clock.now() // 1000 - signed_s) <= TOLERANCE_S
    if not (any(fits) and fresh):
        raise NotPermitted(
            f"The call is not signed as one of {provider[:80]!r}, or its timestamp is more than {TOLERANCE_S} s "
            f"away from this server's time."
        )
    return signed_s


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12


def _decode(body: bytes) -> RemoteReport:
    try:
        sent = read_json(body, RemoteReport)
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"The body is not a report: {error}", field="body", fix="send what docs/reference describes"
        ) from error
    if sent.status not in REMOTE_STATUSES:
        names = ", ".join(REMOTE_STATUSES)
        raise InvalidInput("A report has no such status.", field="status", fix=f"use one of {names}")
    return sent


def _check_address(sent: RemoteReport, digest: str, provider: str) -> None:
    for field, given, wanted in (("digest", sent.digest, digest), ("provider", sent.provider, provider)):
        if given != wanted:
            raise InvalidInput(
                f"The body is about another {field} than the address.",
                field=field,
                fix="post each report to its own address",
            )


def _finding(sent: RemoteFinding) -> ExternalFinding:
    line = sent.line if 0 <= sent.line <= _MOST_LINE else 0
    return ExternalFinding(clean(sent.rule_id), sent.severity, clean(sent.file), line, clean(sent.message))
