"""Serves stylesheets, scripts and icons from memory.

Only names that `assets` found at the start can be asked for: no path reaches the file system.
"""

from starlette.requests import Request
from starlette.responses import Response

from vskill_core.errors import NotFound
from vskill_platform.web.assets import FILES
from vskill_platform.web.routing import page

FOR_EVER = "public, max-age=31536000, immutable"
#: Under an old release's hash the current file is served, but must not be cached.
ASK_AGAIN = "no-cache"


async def static_file(request: Request) -> Response:
    """A file by its name; the hash decides only how long it may be cached."""
    name = request.path_params["name"]
    found = FILES.get(name)
    if found is None:
        raise NotFound(f"There is no static file {name[:120]!r}.", name=name[:120])
    current = request.path_params["digest"] == found.digest
    headers = {"cache-control": FOR_EVER if current else ASK_AGAIN, "vary": "accept-encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, 200, {**headers, "content-encoding": "gzip"}, found.media)
    return Response(found.data, 200, headers, found.media)


ENDPOINTS = (page("/static/{digest}/{name:path}", static_file, stays_open=True),)
