"""Pages that show the answer of an action and need no view of their own."""

from typing import Any

import httpx2
import pytest

from vskill_client.wire.base import ActionRequest
from vskill_platform.actions.action import action
from vskill_platform.actions.principal import Right
from vskill_platform.web.app import ENDPOINTS, create_app
from vskill_platform.web.pages.acting import answer_page

pytestmark = pytest.mark.anyio


class ShowProbe(ActionRequest, frozen=True, kw_only=True):
    """A probe."""

    probe_id: str
    depth: str = "shallow"


@pytest.mark.parametrize(
    ("takes", "query", "depth"), [((), "", "shallow"), (("depth",), "?depth=deep", "deep")]
)
async def test_a_page_asks_with_its_path_and_with_the_parameters_that_it_takes(env, takes, query, depth):
    asked: list[ShowProbe] = []

    async def show(request: ShowProbe) -> None:
        asked.append(request)

    show_probe: Any = action(
        show, "probe.show", "/api/v1/probes/{probe_id}", right=Right.ANYONE, summary="Show a probe"
    )
    page = answer_page("/probes/{probe_id}", "settings.html", takes, found=show_probe)
    transport = httpx2.ASGITransport(create_app(env, (*ENDPOINTS, page)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
        await client.get(f"/probes/7{query}")
    assert asked == [ShowProbe(probe_id="7", depth=depth)]
