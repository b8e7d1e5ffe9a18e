"""The marketplace's pages, over really published skills: what they show, what they offer, and what they never do."""

import itertools
import re
from urllib.parse import urlencode

import msgspec
import pytest

from tests.support.acting import take_down
from tests.support.envs import ENGINES, active_env, run_until_quiet, skill_files
from tests.support.faults import HookedKV
from tests.support.html import Page, what_could_run
from tests.support.records import put_copies
from tests.support.site import open_site
from tests.support.skills import OTHER_TEXT
from vskill_core.content import SkillFile
from vskill_core.findings import (
    Coverage,
    Finding,
    FindingCategory,
    FindingKind,
    ScanStatus,
    Severity,
    StaticReport,
)
from vskill_platform.domain.blocklist import BlockEntry, place_target
from vskill_platform.intake.submit import submit_upload
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.store.skills.collections import add_skills, create_collection
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.web.drawing.avatars import HUES, avatar_of
from vskill_platform.web.pages.skills.skills import PAGE_SIZE

pytestmark = pytest.mark.anyio

SCRIPT = SkillFile("scripts/run.sh", "100755", b"#!/bin/sh\necho hello\ncurl https://example.org\n")


@pytest.fixture(params=ENGINES)
async def site(request, tmp_path):
    async with open_site(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
async def memory_site(tmp_path):
    async with open_site("memory", tmp_path) as opened:
        yield opened


# Home.


async def test_an_empty_registry_invites_to_submit(memory_site):
    page = await memory_site.page("/")
    assert "No skill is published yet" in page.text
    assert "/submit" in page.links


async def test_home_shows_what_is_new_and_that_nothing_is_stuck(site):
    canonical = await site.publish("csv-cleaner")
    page = await site.page("/")
    assert f"/skills/{canonical}" in page.links
    assert "Nothing is stuck, nothing is lost" in page.text
    assert "/queue" in page.links


async def test_home_leaves_out_what_was_blocked_since_it_chose_its_skills(site):
    """Whether the process knows the whole blocklist as it is, as it was, or could not read all of it."""
    gone = await site.publish("csv-stealer", namespace="eve")
    other = await site.publish("sql-eater", namespace="mal")
    there = await site.publish("tidy-notes")
    assert {f"/skills/{one}" for one in (gone, other, there)} <= set((await site.page("/")).links)
    await _block(site, gone)
    assert f"/skills/{gone}" not in (await site.page("/")).links
    await site.get("/api/v1/skills")
    assert f"/skills/{gone}" not in (await site.page("/")).links
    await _block(site, other)
    await site.env.kv.put("block:owner:nonsense", b"{")
    links = (await site.page("/")).links
    assert f"/skills/{there}" in links
    assert f"/skills/{gone}" not in links and f"/skills/{other}" not in links


async def test_home_recommends_no_skill_that_nobody_vouches_for(site):
    """Anybody can be the newest, and anybody can count installs."""
    canonical = await site.publish("csv-cleaner")
    await site.client.post(f"/api/v1/skills/{canonical}/installs", json={})
    page = await site.page("/")
    assert f"npx skills add http://platform.test/{canonical}" not in page.text
    assert "npx skills add http://platform.test/OWNER/REPOSITORY/SKILL" in page.text
    assert page.text.index("Search") < page.text.index("npx skills add") < page.text.index("All new skills")


async def test_home_recommends_what_is_certified(tmp_path):
    async with open_site("sqlite", tmp_path, policy_text="trusted: [upload/acme]") as site:
        certified = await site.publish("tidy-notes", namespace="acme")
        await site.publish("csv-cleaner")
        assert f"npx skills add http://platform.test/{certified}" in (await site.page("/")).text


async def test_home_recommends_what_an_admin_collected(memory_site):
    canonical = await memory_site.publish("csv-cleaner")
    with active_env(memory_site.env):
        await create_collection("starters", by="root", reason="a test")
        await add_skills("starters", [canonical], by="root", reason="a test")
    assert f"npx skills add http://platform.test/{canonical}" in (await memory_site.page("/")).text


async def test_home_shows_collections_that_have_a_page_of_their_own(memory_site):
    canonical = await memory_site.publish("csv-cleaner")
    await memory_site.publish("sql-review")
    with active_env(memory_site.env):
        await create_collection("starters", title="For a start", by="root", reason="a test")
        await create_collection("empty", by="root", reason="a test")
        await add_skills("starters", [canonical], by="root", reason="a test")
    home = await memory_site.page("/")
    assert "/collections/starters" in home.links and "/collections/empty" not in home.links
    page = await memory_site.page("/collections/starters")
    assert f"/skills/{canonical}" in page.links
    assert "npx skills add http://platform.test/collections/starters" in page.text
    assert "sql-review" not in page.text
    await memory_site.page("/collections/no-such", 404)


def test_a_name_has_one_picture_that_differs_from_others():
    pictures = {avatar_of(name) for name in ("acme", "mia", "upload~mia", "vskill-harbour")}
    assert len(pictures) == 4
    assert avatar_of("acme") in pictures
    assert all(0 <= one.hue < HUES and one.squares for one in map(avatar_of, ("", "ä" * 200, "a")))


async def test_home_says_so_when_the_queue_cannot_be_judged_instead_of_a_number(tmp_path):
    """C4: an unknown number is a dash, never a zero."""
    async with open_site("memory", tmp_path) as site:
        hooked = HookedKV(site.env.kv)
        site.move_to(msgspec.structs.replace(site.env, kv=hooked))
        hooked.failing.add("select")
        response = await site.get("/")
        assert response.status_code == 503
        hooked.failing = set()
        assert (await site.page("/")).text


# The list.


async def test_the_list_has_facets_with_counts_that_are_links(site):
    await site.publish("csv-cleaner", head="license: MIT")
    await site.publish("sql-review", head="license: Apache-2.0")
    page = await site.page("/skills")
    assert "/skills?licence=MIT#results" in page.links
    narrowed = await site.page("/skills?licence=MIT")
    assert "csv-cleaner" in narrowed.text
    assert "sql-review" not in narrowed.text
    assert "/skills" in narrowed.links


async def test_a_list_is_narrowed_by_what_a_skill_does_without_one_choice_after_the_other(site):
    await site.publish("prose-only")
    await site.publish("with-script", SCRIPT)
    page = await site.page("/skills")
    assert "/skills?without=network#results" in page.links
    narrowed = await site.page("/skills?without=network,scripts")
    assert [link.rpartition("/")[2] for link in _cards(narrowed)] == ["prose-only"]
    assert "1 skill" in narrowed.text
    # Each can be taken away alone, and the others stay.
    assert {
        "/skills?without=scripts",
        "/skills?without=network",
        "/skills?without=network,scripts,files#results",
    } <= set(narrowed.links)
    kept = {one["name"]: one["value"] for one in narrowed.all("input") if one.get("type") == "hidden"}
    assert kept["without"] == "network,scripts"


@pytest.mark.parametrize(
    ("query", "address"),
    [
        ("slides no network", "/skills?q=slides&without=network"),
        ("skill that makes slides  without Internet", "/skills?q=skill+that+makes+slides&without=network"),
        ("slides that needs no network access and no secrets", "/skills?q=slides&without=network,secrets"),
        ("offline slides", "/skills?q=slides&without=network"),
        ("no scripts, no install step", "/skills?without=scripts,installs"),
        # The long s is an s to whoever ignores case.
        ("WITHOUT ANY \u017fCRIPTS", "/skills?without=scripts"),
    ],
)
async def test_a_search_that_says_a_filter_in_words_offers_the_filter(memory_site, query, address):
    await memory_site.publish("md-slides")
    await memory_site.publish("network-scanner", SCRIPT)
    page = await memory_site.page(f"/skills?{urlencode({'q': query})}")
    assert address in page.links and "Did you mean" in page.text
    narrowed = await memory_site.page(address)
    assert [link.rpartition("/")[2] for link in _cards(narrowed)] == ["md-slides"]
    assert "Did you mean" not in narrowed.text


@pytest.mark.parametrize(
    "query", ["network scanner", "scripts", "without doubt", "noscript", "piano internet"]
)
async def test_a_search_that_names_what_a_skill_works_on_offers_no_filter(memory_site, query):
    await memory_site.publish("network-scanner", SCRIPT)
    page = await memory_site.page(f"/skills?{urlencode({'q': query})}")
    assert not any("without=" in link and "#" not in link for link in page.links)


async def test_an_offered_filter_keeps_those_that_are_chosen(memory_site):
    await memory_site.publish("md-slides")
    page = await memory_site.page("/skills?q=slides+without+secrets&without=network&licence=MIT")
    assert "/skills?q=slides&licence=MIT&without=network,secrets" in page.links


async def test_a_card_shows_the_facts_that_differ_and_no_badge_that_all_have(site):
    await site.publish("prose-only", head="license: MIT")
    await site.publish("with-script", SCRIPT)
    await site.publish("unread", SkillFile("run.tcl", "100644", b"puts 1\n"))
    text = (await site.page("/skills?sort=newest")).text.partition(" Results ")[2]
    for fact in (
        "no network found no scripts MIT",
        "network scripts no licence",
        "not read whole no licence",
    ):
        assert fact in text
    assert "Scanned" not in text and "T2" not in text


async def test_an_empty_list_names_the_filters_to_drop_and_what_is_left_then(site):
    await site.publish("prose-only", head="license: MIT")
    await site.publish("with-script", SCRIPT)
    page = await site.page("/skills?without=scripts&licence=Apache-2.0&sort=newest")
    assert "Nothing matches" in page.text and "Without “Licence: Apache-2.0”: 1 skill" in page.text
    assert "/skills?without=scripts&sort=newest" in page.links
    # Without the other one there is nothing either.
    assert "Without “No scripts”" not in page.text
    searched = await site.page("/skills?q=prose&minInstalls=10")
    assert "Without “Installs: 10 or more”: 1 skill" in searched.text
    neither = await site.page("/skills?licence=GPL-3.0&minInstalls=10")
    assert "Nothing matches" in neither.text and "remove the filters" in neither.text


async def test_counts_beside_a_narrowed_list_are_those_of_the_list(site):
    await site.publish("csv-cleaner", head="license: MIT")
    await site.publish("csv-script", SCRIPT, head="license: MIT")
    await site.publish("sql-review", SCRIPT)
    page = Page((await site.get("/skills?licence=MIT")).text)
    assert "No scripts 1" in page.text and "No secrets 2" in page.text
    assert "No secrets 3" in (await site.page("/skills")).text


async def test_the_list_is_sorted_and_paged_by_keyset(site):
    canonical = await site.publish("one")
    names = ["one", *await put_copies(site.env, await get_skill(canonical), 2 * PAGE_SIZE)]
    seen: list[list[str]] = []
    path = "/skills?sort=newest"
    for _ in range(4):
        page = await site.page(path)
        seen.append([link.rpartition("/")[2] for link in _cards(page)])
        following = [one["href"] for one in page.all("a") if one.get("rel") == "next"]
        if not following:
            break
        path = following[0]
    assert [len(shown) for shown in seen] == [PAGE_SIZE, PAGE_SIZE, 1]
    assert list(itertools.chain(*seen)) == ["one", *reversed(names[1:])]


async def test_a_search_finds_by_the_beginning_of_a_word(site):
    await site.publish("csv-cleaner")
    await site.publish("sql-review")
    page = await site.page("/skills?q=csv-cl")
    assert [link.rpartition("/")[2] for link in _cards(page)] == ["csv-cleaner"]


async def test_a_search_without_a_hit_says_what_to_do(memory_site):
    await memory_site.publish("csv-cleaner")
    assert "Nothing matches" in (await memory_site.page("/skills?q=zebra")).text


async def test_a_script_gets_only_the_results_and_no_cache_mixes_the_two(memory_site):
    await memory_site.publish("csv-cleaner")
    part = await memory_site.get("/skills?q=csv", headers={"hx-request-type": "partial"})
    assert "<html" not in part.text
    assert 'id="results"' in part.text
    assert "HX-Request-Type" in part.headers["vary"]


@pytest.mark.parametrize(
    "address", ["/?utm_source=x", "/docs?fbclid=1", "/skills?utm_source=a&utm_source=b&q=csv"]
)
async def test_parameters_of_others_are_ignored_on_pages(memory_site, address):
    await memory_site.page(address)


@pytest.mark.parametrize(
    "query",
    [
        "sort=size",
        "q=a&q=b",
        f"q={'x' * 300}",
        "without=sleep",
        "without=network,",
        "minInstalls=2",
        "minAge=x",
    ],
)
async def test_a_parameter_that_is_not_understood_is_said_and_not_ignored(memory_site, query):
    """E4."""
    page = await memory_site.page(f"/skills?{query}", 400)
    assert query.partition("=")[0] in page.text


async def test_a_broken_cursor_is_a_clear_error(memory_site):
    response = await memory_site.get("/skills?after=%00%ff")
    assert response.status_code in (200, 400)


async def test_what_was_blocked_a_moment_ago_is_not_in_the_list(site):
    canonical = await site.publish("csv-cleaner")
    await _block(site, canonical)
    assert _cards(await site.page("/skills")) == []


# One skill.


async def test_a_skill_page_offers_every_client_and_shows_the_text(site):
    canonical = await site.publish(
        "csv-cleaner", SCRIPT, body="Work on a **copy**.\n\nSee [notes](scripts/run.sh)."
    )
    page = await site.page(f"/skills/{canonical}")
    for command in (
        f"npx skills add http://platform.test/{canonical}",
        f"npx clawhub --registry http://platform.test/clawhub install {canonical.replace('/', '--')}",
        f"/plugin marketplace add http://platform.test/{canonical}/marketplace.json",
        f"http://platform.test/api/v1/skills/{canonical}/archive",
    ):
        assert command in page.text
    assert "VSKILL_API_BASE" not in page.text
    assert "Work on a copy" in page.text.replace(" . ", ".")
    assert f"/skills/{canonical}/files/scripts/run.sh" in page.links


async def test_a_skill_page_begins_with_the_command_that_installs_and_where_it_comes_from(memory_site):
    canonical = await memory_site.publish("csv-cleaner", body="Work on a copy.")
    text = (await memory_site.page(f"/skills/{canonical}")).text
    order = ("npx skills add", "version 1.0.0", "from an uploaded archive", "signed", "Work on a copy.")
    assert [text.index(one) for one in order] == sorted(text.index(one) for one in order)


async def test_a_shared_link_tells_title_and_description_and_no_picture(memory_site):
    page = await memory_site.page(f"/skills/{await memory_site.publish('csv-cleaner')}")
    told = {one["property"]: one["content"] for one in page.all("meta") if "property" in one}
    assert told["og:title"].startswith("csv-cleaner by ") and told["og:description"]
    assert "og:image" not in told


async def test_a_description_is_shown_to_people_without_its_markdown(memory_site):
    """An answer for programs keeps it as its author wrote it."""
    text = "Turns **slides** into `text`, see [more](https://example.org)."
    manifest = f"---\nname: marked\ndescription: {text}\n---\n# Marked\n"
    await submit_upload((SkillFile("SKILL.md", "100644", manifest.encode()),), namespace="ann", slug="marked")
    await run_until_quiet(memory_site.env)
    shown = "Turns slides into text, see more."
    for path in ("/", "/skills", "/skills?q=marked", "/palette?q=marked", "/skills/upload~ann/skills/marked"):
        page = await memory_site.page(path)
        assert shown in page.text and "**" not in page.text, path
    for path in ("/feed.xml", "/clawhub/api/v1/search?q=marked"):
        assert shown in (await memory_site.client.get(path)).text, path
    found = (await memory_site.client.get("/api/v1/skills/search?q=marked")).json()
    assert found["results"][0]["description"] == text


async def test_a_long_text_has_contents_whose_names_are_its_own(memory_site):
    """A heading called like a part of the page leads to the text, not to that part."""
    headings = ("Install", "Report", "Use `it`", "Limits")
    body = "\n\n".join(f"## {one}\n\nWords. See [limits](#limits)." for one in headings)
    canonical = await memory_site.publish("csv-cleaner", body=body)
    page = await memory_site.page(f"/skills/{canonical}")
    places = ["#readme-install", "#readme-report", "#readme-use-it", "#readme-limits"]
    assert [link for link in page.links if link in places][:4] == places
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids)) and {place[1:] for place in places} <= set(ids)
    short = await memory_site.publish("sql-review", body="## One\n\nWords.")
    assert "Contents" not in (await memory_site.page(f"/skills/{short}")).text


async def test_a_skill_page_names_related_skills_that_can_be_installed(site):
    canonical = await site.publish("csv-cleaner")
    same_owner = await site.publish("csv-joiner")
    same_topic = await site.publish("csv-sorter", namespace="ben")
    blocked = await site.publish("csv-stealer", namespace="eve")
    await _block(site, blocked)
    links = (await site.page(f"/skills/{canonical}")).links
    assert f"/skills/{same_owner}" in links and f"/skills/{same_topic}" in links
    assert f"/skills/{blocked}" not in links
    assert f"/skills/{canonical}" not in links[links.index(f"/skills/{same_owner}") :]


async def test_skills_that_fit_no_category_are_not_related(memory_site):
    canonical = await memory_site.publish("one")
    other = await memory_site.publish("two", namespace="ben")
    page = await memory_site.page(f"/skills/{canonical}")
    assert "/skills?category=other" in page.links
    assert "Also about" not in page.text and f"/skills/{other}" not in page.links


async def test_installs_are_drawn_by_week_with_the_same_numbers_as_a_table(memory_site):
    canonical = await memory_site.publish("csv-cleaner")
    assert "Installs a week" not in (await memory_site.page(f"/skills/{canonical}")).text
    await memory_site.client.post(f"/api/v1/skills/{canonical}/installs")
    page = await memory_site.page(f"/skills/{canonical}")
    assert "Installs a week" in page.text and "1 install in the last 13 weeks." in page.text
    assert any(attributes.get("role") == "img" for attributes in page.all("svg"))


async def test_any_two_versions_can_be_chosen_and_compared(memory_site):
    for number in ("1.0.0", "1.1.0", "2.0.0"):
        canonical = await memory_site.publish("csv-cleaner", body=f"Text {number}.", version=number)
    page = await memory_site.page(f"/skills/{canonical}/versions")
    assert [one["name"] for one in page.all("select")] == ["from", "to"]
    changes = await memory_site.page(f"/skills/{canonical}/versions/diff?from=1.0.0&to=2.0.0")
    assert "-Text 1.0.0." in changes.text and "+Text 2.0.0." in changes.text
    assert sum("selected" in one for one in changes.all("option")) == 2


async def test_a_flat_name_leads_to_the_skill(memory_site):
    canonical = await memory_site.publish("csv-cleaner")
    response = await memory_site.get("/skills/csv-cleaner")
    assert response.status_code == 302
    assert response.headers["location"] == f"/skills/{canonical}".replace("~", "~")


async def test_a_skill_page_says_under_which_name_lists_have_it_and_why_not_its_own(memory_site):
    first = await memory_site.publish("lint", namespace="ann")
    second = await memory_site.publish("lint", namespace="ben")
    names = "/docs/docs/discussions/names.md"
    page = await memory_site.page(f"/skills/{first}")
    assert "Listed as lint" in page.text and names not in page.links
    page = await memory_site.page(f"/skills/{second}")
    assert "Listed as lint-upload-ben Why not lint?" in page.text and names in page.links


async def test_files_are_listed_and_shown_with_lines_that_can_be_linked_to(site):
    canonical = await site.publish("csv-cleaner", SCRIPT)
    listed = await site.page(f"/skills/{canonical}/files")
    assert "executable" in listed.text
    shown = await site.page(f"/skills/{canonical}/files/scripts/run.sh")
    assert "echo hello" in shown.text
    assert any(attributes.get("id") == "L2" for tag, attributes in shown.elements if tag == "li")
    assert f"/api/v1/skills/{canonical}/file?path=scripts%2Frun.sh&version=1.0.0" in shown.links
    await site.page(f"/skills/{canonical}/files/no/such.txt", 404)


async def test_lines_of_prose_wrap_and_lines_of_code_do_not(memory_site):
    canonical = await memory_site.publish("csv-cleaner", SkillFile("run.py", "100644", b"print(1)\n"))
    shown = {
        name: await memory_site.get(f"/skills/{canonical}/files/{name}") for name in ("SKILL.md", "run.py")
    }
    assert 'class="lines lines--prose"' in shown["SKILL.md"].text
    assert 'class="lines"' in shown["run.py"].text


async def test_a_long_file_is_shown_in_parts_and_a_line_is_found_in_its_part(memory_site):
    lines = "".join(f"echo {number}\n" for number in range(1, 1502)).encode()
    canonical = await memory_site.publish("csv-cleaner", SkillFile("long.sh", "100644", lines))
    here = f"/skills/{canonical}/files/long.sh"
    first = await memory_site.page(here)
    assert "echo 1000" in first.text and "echo 1001" not in first.text
    assert f"{here}?part=2" in first.links
    second = await memory_site.page(f"{here}?part=2")
    assert any(attributes.get("id") == "L1501" for tag, attributes in second.elements if tag == "li")
    asked = await memory_site.get(f"{here}?line=1500")
    assert (asked.status_code, asked.headers["location"]) == (302, f"{here}?part=2#L1500")
    assert "echo 1501" in (await memory_site.page(f"{here}?part=99")).text


async def test_code_is_coloured_and_what_hides_in_it_is_shown(memory_site):
    hostile = SkillFile("run.py", "100644", "import os  # \u202e<script>alert(1)</script>\n".encode())
    canonical = await memory_site.publish("csv-cleaner", hostile)
    text = (await memory_site.get(f"/skills/{canonical}/files/run.py")).text
    assert '<span class="hl-keyword">import</span>' in text
    assert '<span class="hl-hidden">&lt;U+202E&gt;</span>' in text
    assert what_could_run(text) == []


async def test_every_line_of_a_block_that_a_lexer_would_replace_is_shown(memory_site):
    canonical = await memory_site.publish("csv-cleaner", SkillFile("notes.md", "100644", OTHER_TEXT))
    page = await memory_site.page(f"/skills/{canonical}/files/notes.md")
    for line in OTHER_TEXT.decode().split("\n"):
        assert " ".join(line.split()) in page.text


async def test_a_file_that_is_not_text_is_not_shown_as_text(memory_site):
    canonical = await memory_site.publish("csv-cleaner", SkillFile("logo.bin", "100644", b"\x00\x01\x02"))
    page = await memory_site.page(f"/skills/{canonical}/files/logo.bin")
    assert "not text" in page.text


async def test_versions_are_listed_and_compared(site):
    await site.publish("csv-cleaner", body="First.", version="1.0.0")
    canonical = await site.publish("csv-cleaner", body="Second.", version="1.1.0")
    versions = await site.page(f"/skills/{canonical}/versions")
    link = f"/skills/{canonical}/versions/diff?from=1.0.0&to=1.1.0"
    assert link in versions.links
    changes = await site.page(link)
    assert "-First." in changes.text
    assert "+Second." in changes.text
    await site.page(f"/skills/{canonical}/versions/diff?from=9.9.9&to=1.1.0", 404)


async def test_the_security_report_says_where_why_and_what_to_do(tmp_path):
    finding = Finding(
        "EX-999", Severity.MEDIUM, FindingCategory.EXFILTRATION, FindingKind.MISMATCH, "scripts/run.sh", 3, 1,
        "curl https://example.org", "It sends data away.", "Say so in the description.",
    )  # fmt: skip
    able = Finding(
        "CP-1",
        Severity.LOW,
        FindingCategory.DOWNLOAD_AND_RUN,
        FindingKind.CAPABILITY,
        "scripts/run.sh",
        3,
        why="Uses the network.",
    )
    async with open_site("memory", tmp_path, scanner=Saying(finding, able)) as site:
        canonical = await site.publish("csv-cleaner", SCRIPT)
        page = await site.page(f"/skills/{canonical}/security")
        for told in (
            "EX-999",
            "scripts/run.sh:3",
            "It sends data away.",
            "Say so in the description.",
            "Uses the network.",
        ):
            assert told in page.text
        assert f"/skills/{canonical}/files/scripts/run.sh#L3" in page.links
        assert f"/api/v1/skills/{canonical}/security.sarif" in page.links


async def test_a_blocked_skill_says_why_and_offers_no_install(site):
    """The block counts from the moment it is written, before anything was taken down."""
    canonical = await site.publish("csv-cleaner", SCRIPT, body="The text.")
    await _block(site, canonical)
    page = await site.page(f"/skills/{canonical}")
    assert "This skill is blocked and cannot be installed." in page.text
    assert "steals keys" in page.text
    _offers_nothing(page)
    assert "The text." not in page.text
    await site.page(f"/skills/{canonical}/files/SKILL.md", 404)
    assert f"/skills/{canonical}/files/SKILL.md" not in (await site.page(f"/skills/{canonical}/files")).links


@pytest.mark.parametrize("step", ["blocked a moment ago", "blocked and taken down"])
async def test_a_blocked_skill_shows_no_pass_anywhere(tmp_path, step):
    """On its pages, in JSON, on the badge, in the feed, in lists and in the indexes of clients."""
    async with open_site("memory", tmp_path) as site:
        canonical = await site.publish("csv-cleaner", SCRIPT, body="The text.")
        await _block(site, canonical)
        if step == "blocked and taken down":
            await take_down(canonical, by="system", reason="on the blocklist: steals keys")
        place, api = f"/skills/{canonical}", f"/api/v1/skills/{canonical}"
        for path in (place, f"{place}/security", f"{place}/versions", "/skills?q=csv-cleaner"):
            text = Page((await site.get(path, headers={"hx-request-type": "partial"})).text).text
            assert re.search(r"\b(Pass|Scanned|Verified|Certified|No known attack|of 100)\b", text) is None, (
                path
            )
        card = (await site.get("/api/v1/skills/search?q=csv-cleaner")).json()["results"][0]
        detail = (await site.get(api)).json()["skill"]
        for shown in (card, detail):
            assert (shown["certTier"], shown["certScore"], shown["trustScore"]) == ("BLOCKED", 0, 0)
            assert shown["isBlocked"]
        assert detail["trustReasons"] == []
        report = (await site.get(f"{api}/security")).json()
        assert (report["overallVerdict"], report["score"]) == ("FAIL", None)
        assert {one["status"] for one in report["providers"]} == {"FAIL"}
        assert "steals keys" in report["summary"]
        (version,) = (await site.get(f"{api}/versions")).json()["versions"]
        assert (version["certTier"], version["certScore"]) == ("BLOCKED", 0)
        badge = (await site.get(f"{api}/badge")).text
        assert "scanned" not in badge and ("blocked" in badge or "withdrawn" in badge)
        for index in (
            "/feed.xml",
            "/marketplace.json",
            "/.well-known/agent-skills/index.json",
            "/sitemap.xml",
        ):
            assert "csv-cleaner" not in (await site.get(index)).text, index


async def test_pages_say_what_was_looked_at_and_show_no_score_without_a_judge(site):
    canonical = await site.publish("csv-cleaner", SCRIPT)
    for path in (f"/skills/{canonical}", f"/skills/{canonical}/security"):
        page = await site.page(path)
        assert "No known attack found by our rules (version " in page.text
        assert "The instructions were not read by a judge." in page.text
        assert "Score" not in page.text and "100 of 100" not in page.text
        assert "Nobody has proved control of the repository" in page.text
    report = (await site.get(f"/api/v1/skills/{canonical}/security")).json()
    assert report["summary"].startswith("No known attack found by our rules (version ")
    detail = (await site.get(f"/api/v1/skills/{canonical}")).json()["skill"]
    assert detail["trustScore"] == sum(one["points"] for one in detail["trustReasons"]) == 40


async def test_a_scan_that_did_not_end_has_no_score(tmp_path):
    async with open_site("memory", tmp_path, scanner=Broken()) as site:
        submitted = await submit_upload(skill_files("csv-cleaner"), namespace="tests", slug="csv-cleaner")
        await run_until_quiet(site.env)
        assert submitted.submission is not None
        submission_id = submitted.submission.id
        page = await site.page(f"/submissions/{submission_id}")
        assert "could not read everything. It has no result." in page.text
        assert "big.bin is too large" in page.text
        told = (await site.get(f"/api/v1/submissions/{submission_id}")).json()
        assert (told["scan"]["verdict"], told["scan"]["score"], told["decision"]["score"]) == (
            None,
            None,
            None,
        )
        found = (await site.get(f"/api/v1/submissions/{submission_id}/findings")).json()
        assert (found["verdict"], found["score"]) == (None, None)


async def test_a_version_that_was_taken_down_says_so(site):
    canonical = await site.publish("csv-cleaner", body="The text.")
    await take_down(canonical, by="admin:eve", reason="it broke the rules")
    page = await site.page(f"/skills/{canonical}")
    assert "it broke the rules" in page.text
    _offers_nothing(page)
    assert "The text." not in page.text


async def test_a_skill_that_does_not_exist_is_a_404_page(memory_site):
    page = await memory_site.page("/skills/nobody/nothing/none", 404)
    assert "nobody/nothing/none" in page.text


async def test_a_reader_reports_a_skill_and_the_form_says_what_is_missing(site):
    canonical = await site.publish("csv-cleaner")
    place = f"/skills/{canonical}"
    empty = await site.post(f"{place}/report", {"category": "spam", "reason": ""}, seen=place)
    assert empty.status_code == 400
    assert "Say what is wrong" in empty.text
    sent = await site.post(f"{place}/report", {"category": "spam", "reason": "It is spam."}, seen=place)
    assert sent.status_code == 303, sent.text
    assert "Thank you" in (await site.page(sent.headers["location"].partition("#")[0])).text
    again = await site.post(f"{place}/report", {"category": "spam", "reason": "It is spam."}, seen=place)
    assert "reported=again" in again.headers["location"]


# Owners, documents, errors.


async def test_an_owner_page_lists_what_that_owner_published(site):
    await site.publish("csv-cleaner", namespace="alice")
    await site.publish("sql-review", namespace="bob")
    page = await site.page("/owners/alice")
    assert [link.rpartition("/")[2] for link in _cards(page)] == ["csv-cleaner"]
    await site.page("/owners/nobody", 404)


@pytest.mark.slow
async def test_every_document_can_be_read_and_its_links_lead_somewhere(memory_site):
    index = await memory_site.page("/docs")
    documents = [link for link in index.links if link.startswith("/docs/")]
    assert "/docs/docs/glossary.md" in documents
    leads_from: dict[str, str] = {}
    for link in documents:
        for inner in (await memory_site.page(link)).links:
            if inner.startswith("/docs/"):
                leads_from.setdefault(inner.partition("#")[0], link)
    for inner in leads_from.keys() - set(documents):
        response = await memory_site.get(inner)
        assert response.status_code == 200, f"{leads_from[inner]} -> {inner}"


async def test_a_document_is_found_without_its_folder_and_ending(memory_site):
    response = await memory_site.get("/docs/glossary")
    assert (response.status_code, response.headers["location"]) == (302, "/docs/docs/glossary.md")
    await memory_site.page("/docs/no-such-thing", 404)
    await memory_site.page("/docs/..%2f..%2fetc%2fpasswd", 404)


async def test_an_unknown_address_is_a_page_for_people_and_a_problem_for_programs(memory_site):
    page = await memory_site.page("/no/such/page", 404)
    assert "/skills" in page.links
    answer = await memory_site.client.get("/no/such/page", headers={"accept": "application/json"})
    assert answer.json()["status"] == 404


# All of them.


async def test_no_page_holds_anything_that_could_run_and_every_page_has_its_landmarks(site):
    canonical = await site.publish("csv-cleaner", SCRIPT, version="1.0.0")
    place = f"/skills/{canonical}"
    for path in ("/", "/skills", "/skills?q=csv", place, f"{place}/files", f"{place}/files/SKILL.md",
                 f"{place}/versions", f"{place}/security", "/owners/tests", "/submit", "/docs"):  # fmt: skip
        response = await site.get(path)
        assert response.status_code == 200, path
        assert what_could_run(response.text) == [], path
        page = Page(response.text)
        assert len(page.all("main")) == len(page.all("h1")) == len(page.all("title")) == 1, path
        assert page.all("html")[0]["lang"] == "en"
        ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
        assert len(ids) == len(set(ids)), path
        _headings_have_no_gap(response.text, path)


@pytest.mark.slow
async def test_every_link_of_every_page_leads_somewhere(memory_site):
    canonical = await memory_site.publish("csv-cleaner", SCRIPT, version="1.0.0")
    await memory_site.publish("csv-cleaner", SCRIPT, body="More.", version="1.1.0")
    place = f"/skills/{canonical}"
    answered: dict[str, int] = {}
    for path in (
        "/",
        "/skills",
        place,
        f"{place}/files",
        f"{place}/versions",
        f"{place}/security",
        "/submit",
        "/docs",
    ):
        for link in (await memory_site.page(path)).links:
            target = link.partition("#")[0]
            if target.startswith("/") and target not in answered:
                answered[target] = (await memory_site.get(target)).status_code
    assert len(answered) > 20
    assert {link: status for link, status in answered.items() if status != 200} == {}


async def test_pages_take_few_store_round_trips_whatever_the_size(tmp_path):
    """Once warm: a list, a search, and each page about a skill ask the store at most three times, beside the one question
    that every request begins with: whether who may read what has changed."""
    async with open_site("sqlite", tmp_path) as site:
        for number in range(5):
            canonical = await site.publish(f"skill-{number}", SCRIPT)
        counted = CountedKV(site.env.kv)
        site.move_to(msgspec.structs.replace(site.env, kv=counted))
        place = f"/skills/{canonical}"
        for path in (
            "/skills",
            "/skills?q=skill",
            place,
            f"{place}/files",
            f"{place}/versions",
            f"{place}/security",
        ):
            await site.page(path)
            counted.asked.clear()
            await site.page(path)
            # The page of a skill also asks for what is related: by owner and by topic.
            assert len(counted.asked) <= (5 if path == place else 4), (path, counted.asked)


class CountedKV(HookedKV):
    """Notes every question to the store."""

    def __init__(self, inner):
        super().__init__(inner)
        self.asked = []

    def _maybe_fail(self, operation):
        self.asked.append(operation)


class Saying:
    """A scanner that says what a test wants to see on a page."""

    ruleset = "test-1"

    def __init__(self, *findings):
        self.findings = findings

    async def scan(self, files):
        return StaticReport(self.ruleset, findings=self.findings, coverage=Coverage(len(files), len(files)))


class Broken(Saying):
    """A scanner that cannot read everything."""

    async def scan(self, files):
        return StaticReport(self.ruleset, ScanStatus.INCOMPLETE, problem="big.bin is too large")


def _cards(page: Page) -> list[str]:
    return [one["href"] for one in page.all("a") if "data-item" in one]


def _offers_nothing(page: Page) -> None:
    assert "npx" not in page.text
    assert "/archive" not in page.text
    assert not any("/attestation" in link for link in page.links)


def _headings_have_no_gap(text: str, path: str) -> None:
    levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
    for before, after in itertools.pairwise(levels):
        assert after <= before + 1, f"{path}: h{before} is followed by h{after}"


async def _block(site, canonical):
    skill = await get_skill(canonical)
    now = site.env.kv.now()
    await add_block(
        BlockEntry(place_target(skill.identity), Severity.CRITICAL, "steals keys", "admin:eve", now)
    )
