"""Every address, called with what its document allows and with what it does not, answers as its document says.

Streams are left out: they have no end. Of what a schema allows, the API may still refuse some (a cursor that it never
gave, an address that is none), with a 400 that says why, so the check that all of it is accepted is off.
"""

import asyncio
import threading
from contextlib import AsyncExitStack
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import load_all_checks
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.support.shelf import open_shelf
from vskill_platform.settings import Settings
from vskill_platform.store.accounts import Role
from vskill_platform.web.app import ENDPOINTS, create_app
from vskill_platform.web.openapi import document
from vskill_platform.web.server import address_of, bind, serve

#: Of each operation; the whole takes less than a minute.
EXAMPLES = 4
#: With rights these would take away the very rights that the other operations are called with.
WITHOUT_RIGHTS = "account"

load_all_checks()


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    """A registry with skills in it behind a real socket, in a thread of its own."""
    ready = threading.Event()
    state: dict[str, Any] = {}

    async def run() -> None:
        async with AsyncExitStack() as stack:
            opening = open_shelf(tmp_path_factory.mktemp("api"), "sqlite", rate_limits="off")
            shelf = await stack.enter_async_context(opening)
            for name, body in (("lint", "one"), ("lint", "two"), ("draw", "")):
                await shelf.publish(name, body)
            options = Settings(store="memory:", port=0)
            listener, stop = bind(options), asyncio.Event()
            state.update(
                address=address_of(listener),
                rights=await shelf.token("eve", Role.ADMIN),
                stop=lambda: loop.call_soon_threadsafe(stop.set),
            )
            serving = asyncio.create_task(serve(create_app(shelf.env), options, listener, stop))
            ready.set()
            await serving

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    assert ready.wait(30)
    yield state
    state["stop"]()
    thread.join(20)
    loop.close()


api = schemathesis.openapi.from_dict(document(ENDPOINTS))


@api.exclude(lambda context: bool(context.operation.definition.raw.get("x-stream"))).parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_address_answers_as_its_document_says(case, registry):
    rights = {} if WITHOUT_RIGHTS in case.operation.tags else registry["rights"]
    case.call_and_validate(
        base_url=registry["address"], headers=rights, excluded_checks=[positive_data_acceptance], timeout=20
    )
