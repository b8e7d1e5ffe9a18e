"""The door through which forges tell of pushes."""

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response

from vskill_client.wire.base import Wire
from vskill_core.errors import PlatformError
from vskill_platform.actions.skills.push_hooks import PUSHES
from vskill_platform.stages.push import MOST_BODY_BYTES, note, receive, require_taken
from vskill_platform.web.exchange import json_response, services_of
from vskill_platform.web.problems import platform_problem
from vskill_platform.web.routing import post, read_body
from vskill_platform.worker_context import run_with_worker_env


class PushTaken(Wire, frozen=True):
    """What became of a delivery."""

    #: `checked`, `ignored` or `repeated`
    outcome: str
    #: why; empty where a check was asked for
    reason: str


async def take(request: Request) -> Response:
    """A forge's delivery; the signature is what lets it in."""
    body = await read_body(request, MOST_BODY_BYTES)
    received = await receive(request.path_params["hook_id"][:100], request.headers, body)
    try:
        require_taken(received)
        answer: Response = json_response(PushTaken(received.outcome, received.reason))
    except PlatformError as error:
        answer = platform_problem(request, error)
    env = services_of(request)
    answer.background = BackgroundTask(run_with_worker_env, env, lambda: note(received))
    return answer


ENDPOINTS = (
    post(
        f"{PUSHES}/{{hook_id}}",
        take,
        no_scope="the signature lets in",
        stays_open=True,
        body_media="application/json",
        answer=PushTaken,
        problems=(400, 413),
        tag="follows",
        summary="Tell of a push, signed by a forge",
        most_body=MOST_BODY_BYTES,
    ),
)
