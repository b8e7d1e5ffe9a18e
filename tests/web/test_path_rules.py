"""What a part of an address or a name may be: the document's patterns say exactly what is refused, and a refusal names the
part."""

import re

import pytest

from vskill_client.wire.base import PLAIN
from vskill_core.identity import has_control_characters

DIGEST = "a" * 64


def test_the_documented_pattern_is_what_is_refused():
    """Every character up to U+FFFF, and the tags beyond; what cannot be sent as UTF-8 aside."""
    codes = (*range(0xD800), *range(0xE000, 0x10000), *range(0xE0000, 0xE0200))
    sent = [chr(code) for code in codes]
    refused = {char for char in sent if has_control_characters(char)}
    assert refused == {char for char in sent if not re.fullmatch(PLAIN, char)}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/v1/skills/a%01b", "name"),
        ("/api/v1/skills/acme/to%E2%80%AEols/lint", "repo"),
        ("/api/v1/skills/acme/tools/lint%0A/versions", "slug"),
        ("/api/v1/submissions/sub%00", "submission_id"),
        ("/api/v1/external-scans/00", "digest"),
        (f"/api/v1/external-scans/{DIGEST.upper()}", "digest"),
        ("/api/v1/blocklist/check?name=a%01b", "name"),
        ("/api/v1/submissions/positions?ids=a%C2%9C", "ids"),
    ],
)
async def test_what_no_name_can_be_is_refused_by_the_part_it_stands_in(client, path, field):
    answer = await client.get(path)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert answer.json()["fix"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/skills/acme/tools/%E6%97%A5%E6%9C%AC",
        "/api/v1/skills/f%C3%BCr",
        "/api/v1/skills/100%25",
        "/api/v1/skills/a:b",
    ],
)
async def test_a_name_in_any_language_is_looked_up(client, path):
    assert (await client.get(path)).status_code == 404


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["//api/v1/skills", "///api/v1/skills", "//api/v1/skills/search?q=x"])
async def test_an_address_that_ends_in_a_slash_can_stand_before_a_path(client, path):
    answer = await client.get(f"http://platform.test{path}")
    assert answer.status_code == 200
    assert answer.content == (await client.get("/" + path.lstrip("/"))).content


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["//evil.example/account", "//account", "///account"])
async def test_no_path_leads_a_browser_to_another_site(client, path):
    answer = await client.get(f"http://platform.test{path}", headers={"accept": "text/html"})
    assert "//" not in answer.headers.get("location", "")
    assert answer.status_code in (303, 404)
