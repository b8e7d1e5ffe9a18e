"""The address of the MCP server, `/mcp`, for agents: there where the extra `mcp` is installed.

Streamable HTTP, without sessions: every request is answered by itself, so any process can answer it, in the
environment of that request like every other. The package takes a while to load and is loaded when somebody asks
(`mcp_server`). Requests must name a host that is ours, so that no page in a browser can be pointed here by a name
that it resolves to this machine.
"""

import asyncio
import importlib
import importlib.util
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.web.routing import Endpoint, post

ADDRESS = "/mcp"
#: What a request may hold: arguments of a tool, which are names and addresses. The package sends part of what it
#: refuses back.
MOST_BODY = 16_000
_SERVER = "vskill_platform.web.clients.mcp_server"


async def mcp(request: Request) -> Response:
    state = request.app.state
    if not hasattr(state, "mcp"):
        module: Any = await asyncio.to_thread(importlib.import_module, _SERVER)
        state.mcp = module.McpServer()
    response: Response = state.mcp.answer(request)
    return response


#: None without the package.
ENDPOINTS: tuple[Endpoint, ...] = ()
if importlib.util.find_spec("mcp") is not None:
    ENDPOINTS = (
        post(
            ADDRESS,
            mcp,
            no_scope="each tool declares its own",
            # A tool that changes something refuses a bad token itself.
            reads_only=True,
            documented=False,
            most_body=MOST_BODY,
            media="*/*",
        ),
    )
