"""Answers in JSON."""

import msgspec
from starlette.responses import Response

from vskill_platform.web.wire import camel

JSON_TYPE = "application/json"


def json_response(value: object, status: int = 200) -> Response:
    """Every answer is computed from the records as they are now, so none is cached."""
    return Response(msgspec.json.encode(camel(value)), status, {"cache-control": "no-store"}, JSON_TYPE)
