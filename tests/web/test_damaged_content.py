"""Damaged content over HTTP: every protocol refuses it with a 503 that says that it is damaged, operators are told how,
and nobody gets a wrong byte."""

import httpx2
import pytest

from tests.support.damage import BREAKS
from tests.support.envs import active_env
from tests.support.shelf import open_shelf
from vskill_platform.store.stored_content import list_damage
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

SKILL = "acme/tools/lint"
#: Where files are handed out, with what a client calls it.
HANDED_OUT = {
    "zip": f"/api/v1/skills/{SKILL}/archive",
    "tar.gz": f"/api/v1/skills/{SKILL}/archive?format=tar.gz",
    "clawhub archive": "/clawhub/api/v1/download?slug=lint",
    "clawhub file": "/clawhub/api/v1/skills/lint/file?path=SKILL.md",
    "well-known": f"/{SKILL}/.well-known/skills/lint/SKILL.md",
    "agent skills": f"/{SKILL}/.well-known/agent-skills/1.0.0.md",
    "page of a file": f"/skills/{SKILL}/files/SKILL.md",
}


@pytest.fixture(params=["memory", "sqlite"])
async def shelf(request, tmp_path):
    async with open_shelf(tmp_path, request.param) as opened:
        yield opened


@pytest.mark.parametrize("kind", BREAKS)
async def test_every_protocol_refuses_damaged_files_and_says_when_to_come_again(shelf, kind):
    published = await shelf.publish("lint", "Be tidy.")
    for path in HANDED_OUT.values():
        answer = await shelf.client.get(path)
        assert answer.status_code == 200, (path, answer.text)
    await BREAKS[kind](shelf.env.blobs, published.current_digest)
    for name, path in HANDED_OUT.items():
        answer = await shelf.client.get(path)
        assert answer.status_code == 503, (name, answer.text)
        assert int(answer.headers["retry-after"]) > 0
        assert "Be tidy" not in answer.text
        assert "missing or damaged" in answer.text, name
        assert published.current_digest not in answer.text, name
    page = await shelf.client.get(f"/skills/{SKILL}")
    assert page.status_code == 200 and "SKILL.md cannot be shown" in page.text
    with active_env(shelf.env):
        (damage,) = await list_damage()
    assert (damage.kind, damage.named_by[0]) == (kind, f"version:{SKILL}:1.0.0")
    health = (await shelf.client.get("/api/v1/queue/health")).json()
    assert health["healthy"] is False and health["violations"] == []
    assert (await shelf.client.get("/readyz")).status_code == 200
    transport = httpx2.ASGITransport(create_app(shelf.env), client=("127.0.0.1", 1))
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as here:
        assert b"vskill_damaged_content 1.0" in (await here.get("/metrics")).content
