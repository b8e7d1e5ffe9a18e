"""No page prints a command that looks up a name that is nobody's: each page is drawn, as an admin sees it, and every
command on it is read. `make check` reads the documents, the templates and what commands print in the same way."""

from urllib.parse import urlsplit

import pytest

from tests.support.html import Page
from tests.support.people import signed_in
from tests.support.site import open_site
from tools.hygiene import unknown_installs
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.skills.collections import add_skills, create_collection
from vskill_platform.web.app import ENDPOINTS, create_app

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

#: Pages that name nothing; the links on them lead to the others.
BEGIN = [
    one.path for one in ENDPOINTS if one.media == "text/html" and one.method == "GET" and "{" not in one.path
]
#: Documents are read as they are written: on a page, colours cut a command into pieces.
DOCUMENTS = "/docs/docs/"


async def test_no_page_installs_by_a_name_that_is_nobodys(tmp_path):
    async with open_site("memory", tmp_path) as site:
        canonical = await site.publish("printed")
        await create_collection("team", by="admin:ada", reason="a test")
        await add_skills("team", [canonical], by="admin:ada", reason="a test")
        async with signed_in(create_app(site.env), site.env, "ada", Role.ADMIN) as ada:
            left, seen, found = list(BEGIN), set(BEGIN), {}
            while left:
                path = left.pop()
                answer = await ada.get(path)
                if not answer.headers.get("content-type", "").startswith("text/html"):
                    continue
                page = Page(answer.text)
                found[path] = page.texts
                links = {urlsplit(one).path for one in page.links if one.startswith("/")} - seen
                seen |= links
                left += [one for one in links if not one.startswith(DOCUMENTS)]
    assert {f"/skills/{canonical}", "/collections/team", "/docs/clients", "/admin/storage"} <= found.keys()
    commands = [
        text for texts in found.values() for text in texts if text.startswith(("npx ", "uvx ", "uv "))
    ]
    assert len(commands) > 10
    unknown = {path: unknown_installs("\n".join(texts)) for path, texts in found.items()}
    assert {path: names for path, names in unknown.items() if names} == {}
