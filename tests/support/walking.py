"""Walks over many routes within one test, which then says of each route that fails what is wrong with it."""

from collections.abc import Awaitable, Callable, Iterable

from vskill_platform.web.routing import Endpoint

#: A fault in what all routes share fails all of them: some are shown whole.
MOST_SHOWN = 5


def name_of(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


async def walk(routes: Iterable[Endpoint], check: Callable[[Endpoint], Awaitable[None]]) -> None:
    """Check every route; fail with the names of those whose check failed, and why."""
    failed: dict[str, str] = {}
    for endpoint in routes:
        try:
            await check(endpoint)
        except AssertionError as error:
            failed[name_of(endpoint)] = str(error)
    shown = [f"{name}: {why}" for name, why in failed.items()][:MOST_SHOWN]
    assert not failed, "\n".join([f"{len(failed)} routes failed: {', '.join(failed)}", *shown])
