"""What other analysers say about a content, and the door through which remote ones report."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.blobs.contract import check_address
from vskill_platform.domain.errors import LimitExceeded, NotFound
from vskill_platform.external_scan.callback import (
    MOST_BODY_BYTES,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    SignedCall,
    receive_report,
)
from vskill_platform.external_scan.dispatch import provider_names
from vskill_platform.store.external_scans import (
    get_external_scan,
    list_external_scans,
    read_external_task,
)
from vskill_platform.web.responses import json_response


class Waiting(msgspec.Struct, frozen=True):
    """An analyser that was asked and has no report yet."""

    provider: str
    #: The task's: active, or failed for good.
    state: str
    outcome: str


class Taken(msgspec.Struct, frozen=True):
    """The answer to a call of a remote analyser."""

    digest: str
    provider: str
    #: False: it was known already, or a later one is stored.
    stored: bool


async def reports(request: Request) -> Response:
    """Every analyser's report about one content, and who still owes one."""
    digest = check_address(request.path_params["digest"])
    found = await list_external_scans(digest)
    known = {report.provider for report in found}
    waiting = [
        one for name in await provider_names() if name not in known and (one := await _task(digest, name))
    ]
    return json_response({"digest": digest, "reports": found, "waiting": waiting})


async def _task(digest: str, provider: str) -> Waiting | None:
    task = await read_external_task(digest, provider)
    return None if task is None else Waiting(provider, task.state.value, task.outcome)


async def report(request: Request) -> Response:
    """One analyser's report about one content."""
    digest, provider = _address(request)
    found = await get_external_scan(digest, provider)
    if found is None:
        raise NotFound(f"{provider} has not reported about {digest}", digest=digest, provider=provider)
    return json_response(found)


async def receive(request: Request) -> Response:
    """A remote analyser's signed report; the signature is what lets it in."""
    digest, provider = _address(request)
    headers = request.headers
    call = SignedCall(
        headers.get(TIMESTAMP_HEADER, ""), headers.get(SIGNATURE_HEADER, ""), await _body(request)
    )
    _, stored = await receive_report(digest, provider, call)
    return json_response(Taken(digest, provider, stored))


def _address(request: Request) -> tuple[str, str]:
    return check_address(request.path_params["digest"]), request.path_params["provider"][:80]


async def _body(request: Request) -> bytes:
    """The whole body, read only as far as it may go."""
    parts: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > MOST_BODY_BYTES:
            raise LimitExceeded(
                f"A report has at most {MOST_BODY_BYTES} bytes; send the worst findings only.",
                limit="body_bytes",
                allowed=MOST_BODY_BYTES,
            )
        parts.append(chunk)
    return b"".join(parts)
