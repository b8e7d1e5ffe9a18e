"""Every address, called with what its document allows and with what it does not, answers as its document says.

Streams are left out: they have no end. What a schema allows is accepted, or there is no such thing (404), or it is one of
the few refusals that no schema can say beforehand; those are named below, each by its operation and field.
"""

import asyncio
import os
import threading
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import load_all_checks
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.specs.openapi.checks import positive_data_acceptance

from tests.support.patience import PATIENCE_S
from tests.support.shelf import open_shelf
from vskill_platform.domain.skills.bundle import MEDIA_TYPE as TAR_TYPE
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import Role
from vskill_platform.web.app import ENDPOINTS, create_app
from vskill_platform.web.door.server import address_of, bind, serve
from vskill_platform.web.openapi import document

pytestmark = pytest.mark.slow

#: Of each operation, beside the cases at the edges of its schema; `make test-long` tries twenty.
EXAMPLES = int(os.environ.get("EXAMPLES", "4"))
#: With rights these would take away the very rights that the other operations are called with.
WITHOUT_RIGHTS = "account"

#: Refusals (400, documented) of what a schema allows, by operation: the field that they name. A cursor is good only if we
#: gave it out, an address only if it is a repository's on a host that is allowed, a password only if it is not easily guessed,
#: and some fields exclude or need one another, which the parameters of a query have no words for.
UNSAID = {
    "GET /api/v1/skills": {"after"},
    "GET /api/v1/submissions": {"after", "category", "sort"},
    "GET /api/v1/blocklist/check": {"name", "repoUrl"},
    "POST /api/v1/submissions": {"repoUrl"},
    "POST /api/v1/submissions/discover": {"repoUrl"},
    "POST /api/v1/skills/installs": {"skillName"},
    "POST /api/v1/skills/{name}/installs": {"repoUrl"},
    "GET /api/v1/lock": {"skills"},
    "POST /api/v1/webhooks": {"url"},
    "POST /api/v1/admin/queue/pause": {"durationMs"},
    "GET /api/v1/repositories": {"after"},
    "GET /api/v1/repositories/health": {"repoUrl"},
    "POST /api/v1/repositories/check": {"repoUrl"},
    "GET /api/v1/admin/audit": {"before", "after", "until"},
    "GET /api/v1/admin/audit/after": {"after"},
    "POST /api/cli/device/token": {"device_code", "grant_type"},
    "POST /api/v1/admin/accounts": {"name", "password"},
    "POST /api/v1/admin/accounts/{name}/password": {"password"},
}
#: Operations whose texts mean something that only the registry knows: a refusal names the field.
MEANT = frozenset(
    {
        "GET /api/v1/follows",
        "GET /api/v1/follows/show",
        "GET /api/v1/follows/webhook",
        "GET /api/v1/publishers",
        "GET /api/v1/reports",
        "GET /api/v1/review",
        "GET /api/v1/upstreams/{name}",
        "GET /api/v1/upstreams/{name}/entries",
        "POST /api/v1/admin/access/scim/{issuer}",
        "POST /api/v1/admin/access/scim/{issuer}/remove",
        "POST /api/v1/blocklist/entries",
        "POST /api/v1/blocklist/entries/lift",
        "POST /api/v1/collections",
        "POST /api/v1/memory",
        "POST /api/v1/namespaces/{name}/credentials/key",
        "POST /api/v1/namespaces/{name}/credentials/token",
        "POST /api/v1/namespaces/{name}/credentials/{credential_id}/host-key",
        "POST /api/v1/namespaces/{name}/hand-over",
        "POST /api/v1/namespaces/{name}/members",
        "POST /api/v1/namespaces/{name}/members/remove",
        "POST /api/v1/namespaces/{name}/quotas",
        "POST /api/v1/namespaces/{name}/review",
        "POST /api/v1/owners/check",
        "POST /api/v1/owners/claim",
        "POST /api/v1/owners/transfer",
        "POST /api/v1/policy/rescan",
        "POST /api/v1/policy/try",
        "POST /api/v1/follows",
        "POST /api/v1/follows/pushes/{hook_id}",
        "POST /api/v1/follows/remove",
        "POST /api/v1/follows/webhook",
        "POST /api/v1/publishers",
        "POST /api/v1/publishers/exchange",
        "POST /api/v1/publishers/{publisher_id}/remove",
        "POST /api/v1/review/bulk",
        "POST /api/v1/teams/{name}",
        "POST /api/v1/teams/{name}/add",
        "POST /api/v1/upstreams",
        "POST /api/v1/upstreams/{name}/ask",
        "POST /api/v1/upstreams/{name}/change",
        "POST /api/v1/upstreams/{name}/pause",
        "POST /api/v1/upstreams/{name}/remove",
        "POST /api/v1/upstreams/{name}/resume",
        "POST /api/v1/upstreams/{name}/sync",
    }
)

load_all_checks()


def accepted(context: Any, response: Any, case: Any) -> bool | None:
    """What the document allows is accepted, but for what it cannot say."""
    unsaid = UNSAID.get(case.operation.label, ())
    if response.status_code == HTTPStatus.BAD_REQUEST:
        refusal = response.json()
        field = refusal.get("field")
        is_meant = case.operation.label in MEANT and field is not None
        # No text that an action takes may hold control characters, and 1.0 is a whole number to a schema only.
        is_general = any(said in refusal["detail"] for said in ("control characters", "is not a number"))
        if field in unsaid or is_meant or is_general:
            return None
    return positive_data_acceptance(context, response, case)


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
            serving = asyncio.create_task(
                serve(create_app(shelf.env), options, listener, stop, metrics=shelf.env.metrics)
            )
            ready.set()
            await serving

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE_S)
    yield state
    state["stop"]()
    thread.join(PATIENCE_S)
    loop.close()


DOCUMENT = document(ENDPOINTS)


def is_left_out(operation: dict[str, Any]) -> bool:
    """Streams go on for ever, and no archive can be made up from a schema."""
    taken = operation.get("requestBody", {}).get("content", {})
    return bool(operation.get("x-stream")) or not taken.keys().isdisjoint({"application/zip", TAR_TYPE})


OPERATIONS = [
    (method, path)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
    if not is_left_out(operation)
]


@pytest.fixture(scope="module")
def api() -> Any:
    found = schemathesis.openapi.from_dict(DOCUMENT)
    # A field may be so much too long that the whole body is refused for its size.
    found.config.checks.negative_data_rejection.expected_statuses.append(
        str(int(HTTPStatus.REQUEST_ENTITY_TOO_LARGE))
    )
    return found


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def call(case, registry):
    rights = {} if WITHOUT_RIGHTS in case.operation.tags else registry["rights"]
    case.call_and_validate(
        base_url=registry["address"],
        headers=rights,
        excluded_checks=[positive_data_acceptance],
        additional_checks=[accepted],
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_address_answers_as_its_document_says(method, path, api, registry):
    """What an operation is called with is made up here: the plugin of schemathesis would do it when tests are collected,
    and every test process collects all of them."""
    build_operation_test(
        config=api.config,
        operation=api[path][method],
        test_func=call,
        given_kwargs={},
        feedback=FeedbackSources(),
    )(registry=registry)
