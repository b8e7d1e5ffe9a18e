"""Addresses for operators and their machines: is it up, is it ready, what do its metrics say."""

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform import __version__
from vskill_platform.domain.errors import PlatformError, StoreUnavailable
from vskill_platform.observability import METRICS_TYPE
from vskill_platform.submission_store import count_submissions
from vskill_platform.web.responses import json_response
from vskill_platform.worker_context import require_env

#: A store that takes longer to answer is not ready (E9).
READY_WITHIN_S = 3.0


async def where_to_look(_request: Request) -> Response:
    """Pages come later; until then, the addresses."""
    body = {
        "name": "vskill-platform",
        "version": __version__,
        "lookAt": {
            "/healthz": "the process is up",
            "/readyz": "the store answers and can be written",
            "/metrics": "metrics for Prometheus",
            "/api/v1/queue/health": "every violation of the queue's invariant, and what the queue does",
            "/api/v1/submissions/stats": "how many submissions there are, by state",
            "/api/v1/submissions/{id}": "one submission with its history",
            "/api/v1/skills/{owner}/{repo}/{slug}/versions/{number}/attestation": "what was verified, signed",
            "/api/v1/external-scans/{digest}": "what other analysers say about one content",
            "/api/v1/external-scans/{digest}/{provider}": "one of them; remote ones post their report here",
            "/.well-known/vskill-keys.json": "the public keys that sign, as a key set",
            "/.well-known/vskill-keys.pem": "the same keys as PEM",
        },
    }
    return json_response(body)


async def healthz(_request: Request) -> Response:
    """The process is up; nothing else is asked."""
    return json_response({"status": "ok", "version": __version__})


async def readyz(_request: Request) -> Response:
    """The store answers and can be written; otherwise 503 with the reason."""
    kv = require_env("kv").kv
    try:
        async with asyncio.timeout(READY_WITHIN_S):
            await kv.check()
    except TimeoutError:
        raise StoreUnavailable(f"The record store did not answer within {READY_WITHIN_S:g} s.") from None
    return json_response({"status": "ready", "store": kv.engine})


async def metrics(_request: Request) -> Response:
    """Everything in Prometheus's text format; submissions are counted for this answer."""
    env = require_env("metrics")
    try:
        counts = await count_submissions()
    except PlatformError as error:
        env.log.warning("submissions not counted for metrics", error=error.message, code=error.code)
        env.metrics.show_submissions(None)
    else:
        env.metrics.show_submissions({state.value: count for state, count in counts.by_state.items()})
    return Response(env.metrics.render(), media_type=METRICS_TYPE)
