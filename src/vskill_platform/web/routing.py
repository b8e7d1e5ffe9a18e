"""How a route is declared: its path, its view, and every query parameter that it understands.

A parameter that a route does not name is refused, so that a misspelt filter never looks like an empty answer
(E4).
"""

from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vskill_platform.domain.errors import InvalidInput

View = Callable[[Request], Awaitable[Response]]


def get(path: str, view: View, query: Sequence[str] = ()) -> Route:
    """A route for reading (GET and HEAD)."""
    return Route(path, _checked(view, tuple(query)), methods=["GET"], name=path)


def post(path: str, view: View, query: Sequence[str] = ()) -> Route:
    """A route that changes something; its view says who may."""
    return Route(path, _checked(view, tuple(query)), methods=["POST"], name=f"POST {path}")


def _checked(view: View, query: tuple[str, ...]) -> View:
    async def endpoint(request: Request) -> Response:
        check_query(request, query)
        return await view(request)

    return endpoint


def check_query(request: Request, known: tuple[str, ...]) -> None:
    """Refuse a parameter that the route does not know, or that is given twice."""
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if name not in known:
            fix = f"use only {', '.join(known)}" if known else "leave it out: this address takes none"
            raise InvalidInput(
                f"There is no query parameter {name[:80]!r} here; {fix}.", field=name[:80], fix=fix
            )
        if names.count(name) > 1:
            message = f"The query parameter {name!r} is given more than once."
            raise InvalidInput(message, field=name, fix="give it once")
