"""The door through which remote analysers report."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Wire
from vskill_platform.actions.verdicts.external_scans import EXTERNAL_SCANS
from vskill_platform.external_scan import callback
from vskill_platform.ledger.blobs.contract import check_address
from vskill_platform.web.exchange import json_response
from vskill_platform.web.routing import post, read_body


class Taken(Wire, frozen=True):
    """The answer to a call of a remote analyser."""

    digest: str
    provider: str
    #: false: it was known already, or a later one is stored
    stored: bool


async def receive(request: Request) -> Response:
    """A remote analyser's signed report; the signature is what lets it in."""
    digest, provider = check_address(request.path_params["digest"]), request.path_params["provider"][:80]
    headers = request.headers
    body = await read_body(request, callback.MOST_BODY_BYTES)
    call = callback.SignedCall(
        headers.get(callback.TIMESTAMP_HEADER, ""), headers.get(callback.SIGNATURE_HEADER, ""), body
    )
    _, stored = await callback.receive_report(digest, provider, call)
    return json_response(Taken(digest, provider, stored))


ENDPOINTS = (
    post(
        f"{EXTERNAL_SCANS}/{{provider}}",
        receive,
        no_scope="the signature lets in",
        stays_open=True,
        body_media="application/json",
        answer=Taken,
        problems=(404, 409, 422),
        tag="external scans",
        summary="Send a remote analyser's signed report",
        most_body=callback.MOST_BODY_BYTES,
    ),
)
