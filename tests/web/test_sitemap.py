"""What search engines and marketplaces read of the whole registry: every skill, and nothing that is blocked."""

import xml.etree.ElementTree as ET  # our own documents only
from datetime import datetime

import httpx2
import msgspec
import pytest

from tests.support.counting_kv import CountingKV
from tests.support.envs import active_env
from tests.support.shelf import open_shelf
from vskill_core.errors import NotFound
from vskill_core.findings import Severity
from vskill_platform.actions.principal import ANYBODY, resolve
from vskill_platform.actions.skills.catalogue import iterate_catalogue
from vskill_platform.domain.blocklist import BlockEntry, parse_target
from vskill_platform.domain.recall.block_index import Blocklist
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.web.api.sitemap import MOST_ADDRESSES, PAGES, make_sitemap
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

BASE = "http://platform.test"
NAMESPACE = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
NOTHING_BLOCKED = Blocklist(0, {}, {})


@pytest.fixture(params=["memory", "sqlite"])
async def shelf(request, tmp_path):
    async with open_shelf(tmp_path, request.param) as opened:
        yield opened


def read(body: bytes) -> tuple[str, dict[str, str | None]]:
    """The kind of document, and its addresses with their last change."""
    root = ET.fromstring(body)
    found = {str(entry.findtext(f"{NAMESPACE}loc")): entry.findtext(f"{NAMESPACE}lastmod") for entry in root}
    assert len(found) == len(root)
    return root.tag.removeprefix(NAMESPACE), found


async def put_skills(kv, *slugs: str, updated_at: int = 1_700_000_000_000) -> None:
    for slug in slugs:
        record = {"name": slug, "current_version": "1.0.0", "current_digest": "d", "updated_at": updated_at}
        record["listed_as"] = {"public": slug}
        await kv.put(f"skill:acme/tools/{slug}", msgspec.json.encode(record))


async def test_robots_name_the_sitemap_and_close_what_is_no_page(client):
    answer = await client.get("/robots.txt")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    lines = answer.text.splitlines()
    assert lines[0] == "User-agent: *" and "Disallow: /admin" in lines
    assert lines[-1] == f"Sitemap: {BASE}/sitemap.xml"
    assert not [line for line in lines if line.removeprefix("Disallow: ") in PAGES]


async def test_whoever_finds_a_weakness_is_told_whom_to_tell(tmp_path):
    """RFC 9116: `Contact` and `Expires`, and the address of the file itself where it is known."""
    settings = {
        "security_contact": "mailto:security@example.org",
        "public_url": "https://skills.example.org/",
    }
    async with open_shelf(tmp_path, "memory", **settings) as shelf:
        answer = await shelf.client.get("/.well-known/security.txt")
        now = shelf.env.clock.now()
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    fields = dict(line.split(": ", 1) for line in answer.text.splitlines())
    assert fields["Contact"] == "mailto:security@example.org"
    assert fields["Canonical"] == "https://skills.example.org/.well-known/security.txt"
    until = datetime.fromisoformat(fields["Expires"]).timestamp() * 1000
    assert now + 170 * 86_400_000 < until < now + 181 * 86_400_000


async def test_without_a_contact_there_is_no_such_file(client):
    answer = await client.get("/.well-known/security.txt")
    assert answer.status_code == 404


async def test_the_sitemap_lists_every_page_and_skill_with_its_last_change(shelf):
    lint = await shelf.publish("lint")
    await shelf.publish("other", repo="https://git.example.org/group/tools")
    answer = await shelf.client.get("/sitemap.xml")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/xml; charset=utf-8")
    kind, found = read(answer.content)
    assert kind == "urlset"
    assert [*found][: len(PAGES)] == [f"{BASE}{path}" for path in PAGES]
    assert set(PAGES) == {path for path in PAGES if (await shelf.client.get(path)).status_code == 200}
    assert found[f"{BASE}/skills/{lint.canonical}"] is not None
    for address in found:
        assert (await shelf.client.get(address.removeprefix(BASE))).status_code == 200
    await put_skills(shelf.env.kv, "ü&<x>")
    assert (
        f"{BASE}/skills/acme/tools/%C3%BC%26%3Cx%3E"
        in read((await shelf.client.get("/sitemap.xml")).content)[1]
    )


async def test_what_is_blocked_or_withdrawn_leaves_both_documents_with_the_next_request(shelf):
    await shelf.publish("lint")
    skill = await shelf.publish("bad")
    assert "skills/acme/tools/bad" in (await shelf.client.get("/sitemap.xml")).text
    assert '"bad"' in (await shelf.client.get("/marketplace.json")).text
    with active_env(shelf.env):
        target = parse_target("place", "https://github.com/acme/tools/tree/main/skills/bad")
        await add_block(
            BlockEntry(
                target=target,
                reason="malware",
                severity=Severity.HIGH,
                threat_type="malware",
                discovered_at=1,
                discovered_by="admin:eve",
            )
        )
    assert skill.canonical == "acme/tools/bad"
    for path in ("/sitemap.xml", "/marketplace.json"):
        text = (await shelf.client.get(path)).text
        assert "tools/lint" in text and "tools/bad" not in text


@pytest.mark.parametrize(
    ("public_url", "cache", "other_host"),
    [
        (BASE, "public, max-age=0, must-revalidate", BASE),
        # The answer holds the host that the request names, so nobody keeps it for others.
        ("", "private, no-cache", "http://other.test"),
    ],
    ids=["public address", "address of the request"],
)
async def test_a_document_is_kept_until_a_skill_or_the_blocklist_changes(
    shelf, public_url, cache, other_host
):
    counted = CountingKV(shelf.env.kv)
    settings = msgspec.structs.replace(shelf.env.settings, public_url=public_url)
    app = create_app(msgspec.structs.replace(shelf.env, kv=counted, settings=settings))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=BASE) as client:
        await put_skills(counted, "lint")
        for path in ("/sitemap.xml", "/marketplace.json"):
            first = await client.get(path)
            assert first.headers["cache-control"] == cache
            read_once = counted.calls["scan"]
            await counted.put("sub:sub_1", b"{}")
            again = await client.get(path, headers={"if-none-match": first.headers["etag"]})
            assert (again.status_code, again.content) == (304, b"")
            assert counted.calls["scan"] == read_once
            await put_skills(counted, "lint", f"more-{len(path)}")
            changed = await client.get(path, headers={"if-none-match": first.headers["etag"]})
            assert changed.status_code == 200 and f"more-{len(path)}" in changed.text
            other = await client.get(path, headers={"host": "other.test"})
            assert [host for host in (BASE, "http://other.test") if f"{host}/" in other.text] == [other_host]


@pytest.mark.parametrize("count", [0, 6, 7, 20, 21])
async def test_beyond_the_most_addresses_it_is_an_index_whose_pages_hold_each_once(shelf, count):
    assert MOST_ADDRESSES == 50_000
    most = 10
    slugs = [f"s{number:02}" for number in range(count)]
    await put_skills(shelf.env.kv, *slugs)

    async def made(page: int | None) -> tuple[str, dict[str, str | None]]:
        with active_env(shelf.env):
            skills = iterate_catalogue(await resolve(ANYBODY))
            return read(await make_sitemap(BASE, NOTHING_BLOCKED, skills, page, most))

    kind, found = await made(None)
    if count + len(PAGES) <= most:
        assert (kind, len(found)) == ("urlset", count + len(PAGES))
        return
    pages = [int(address.removeprefix(f"{BASE}/sitemap.xml?page=")) for address in found]
    assert kind == "sitemapindex" and pages == list(range(1, -(-(count + len(PAGES)) // most) + 1))
    assert all(changed is not None for changed in found.values())
    listed = [address for page in pages for address in (await made(page))[1]]
    assert listed == [f"{BASE}{path}" for path in (*PAGES, *(f"/skills/acme/tools/{slug}" for slug in slugs))]
    with pytest.raises(NotFound, match="no page 9"):
        await made(9)


async def test_a_page_that_does_not_exist_is_not_found_and_a_wrong_one_refused(client):
    assert (await client.get("/sitemap.xml?page=1")).status_code == 200
    missing = await client.get("/sitemap.xml?page=2")
    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    for wrong in ("0", "x", "50001"):
        assert (await client.get(f"/sitemap.xml?page={wrong}")).status_code == 400


async def test_a_malformed_record_or_time_hides_no_skill(shelf):
    await put_skills(shelf.env.kv, "a", "c")
    await put_skills(shelf.env.kv, "late", updated_at=10**17)
    await shelf.env.kv.put("skill:acme/tools/b", b"{")
    _, found = read((await shelf.client.get("/sitemap.xml")).content)
    assert [*found][len(PAGES) :] == [f"{BASE}/skills/acme/tools/{slug}" for slug in ("a", "c", "late")]
    assert found[f"{BASE}/skills/acme/tools/late"] is None


async def test_the_marketplace_of_everything_names_every_skill(shelf):
    slugs = [f"s{number:03}" for number in range(450)]
    await put_skills(shelf.env.kv, *slugs)
    document = (await shelf.client.get("/marketplace.json")).json()
    assert [plugin["name"] for plugin in document["plugins"]] == slugs
    assert "truncated" not in document["metadata"]


async def test_the_marketplace_of_everything_names_a_skill_as_a_narrower_one_does(shelf):
    await shelf.publish("lint")
    await shelf.publish("lint", repo="https://github.com/Other/tools")
    await shelf.publish("alone")
    whole = {one["homepage"]: one for one in (await shelf.client.get("/marketplace.json")).json()["plugins"]}
    parts = [
        plugin
        for owner in ("acme", "other")
        for plugin in (await shelf.client.get(f"/{owner}/marketplace.json")).json()["plugins"]
    ]
    assert len(parts) == 3
    assert [whole[one["homepage"]] for one in parts] == parts
    assert [one["author"]["name"] for one in parts] == ["acme", "acme", "Other"]
    assert {one["name"] for one in parts} == {"alone", "lint", "lint-other"}


async def test_browsers_find_the_icon_the_search_and_the_feed_by_themselves(shelf):
    icon = await shelf.client.get("/favicon.ico")
    assert (icon.status_code, icon.headers["content-type"]) == (200, "image/svg+xml")
    described = await shelf.client.get("/opensearch.xml")
    (url,) = ET.fromstring(described.content).iter("{http://a9.com/-/spec/opensearch/1.1/}Url")
    assert url.get("template") == f"{BASE}/skills?q={{searchTerms}}"
    page = (await shelf.client.get("/skills", headers={"accept": "text/html"})).text
    for address in ("/opensearch.xml", "/feed.xml"):
        assert f'href="{address}"' in page
    assert 'rel="canonical"' not in page


async def test_a_page_names_its_one_address_where_the_registry_has_one(tmp_path):
    async with open_shelf(tmp_path, "memory", public_url="https://skills.example/") as shelf:
        page = (await shelf.client.get("/skills?utm_source=x", headers={"accept": "text/html"})).text
    assert '<link rel="canonical" href="https://skills.example/skills">' in page
