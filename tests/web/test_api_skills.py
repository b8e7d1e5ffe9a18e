"""The API's reads of skills, in the shapes that the existing client reads."""

import hashlib
import io
import re
import tarfile
import zipfile

import pytest

from tests.support.envs import active_env
from tests.support.shelf import open_shelf
from vskill_core.capability import Lack
from vskill_core.content import SkillFile
from vskill_core.findings import Severity
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import (
    BlockEntry,
    digest_target,
    name_target,
    place_target,
    repository_target,
)
from vskill_platform.domain.client_hashes import content_hash
from vskill_platform.domain.downloads import archive_digests
from vskill_platform.domain.skills.skill import StatusRole
from vskill_platform.domain.skills.skill_changes import StatusChange, yank
from vskill_platform.store.recall.blocklist import add_block, remove_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.skills.installs import installs_by_skill
from vskill_platform.store.skills.reputation import follow_installs
from vskill_platform.store.skills.skills import update_skill

pytestmark = pytest.mark.anyio

DETAIL = "/api/v1/skills/acme/tools/lint"


@pytest.fixture(params=["memory", "sqlite"])
async def shelf(request, tmp_path):
    async with open_shelf(tmp_path, request.param) as opened:
        yield opened


async def block(shelf, target, reason="steals tokens"):
    entry = BlockEntry(target, Severity.CRITICAL, reason, "admin:eve", 1_000, threat_type="credential-theft")
    with active_env(shelf.env):
        await add_block(entry)


async def test_a_skill_is_read_by_all_forms_of_its_name(shelf):
    """Three segments, a flat name, and one encoded segment lead to the same answer (05-clients section 1)."""
    await shelf.publish("lint", "Be tidy.", version="1.2.0")
    answers = [
        await shelf.client.get(path)
        for path in (
            DETAIL,
            "/api/v1/skills/lint",
            "/api/v1/skills/acme%2Ftools%2Flint",
            "/api/v1/skills/acme%2Flint",
        )
    ]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    skill = answers[0].json()["skill"]
    assert (skill["name"], skill["author"], skill["currentVersion"]) == ("acme/tools/lint", "acme", "1.2.0")
    assert (skill["ownerSlug"], skill["repoSlug"], skill["skillSlug"]) == ("acme", "tools", "lint")
    assert skill["sha"] == content_hash(skill["content"].encode())
    assert "Be tidy." in skill["content"]
    assert skill["certTier"] == "SCANNED"
    assert skill["repoUrl"] == "https://github.com/acme/tools"
    assert skill["updatedAt"].endswith("Z")
    assert (skill["isBlocked"], skill["isWithdrawn"], skill["reason"]) == (False, False, None)
    for field in (
        "certScore",
        "vskillInstalls",
        "trustTier",
        "trustScore",
        "provenanceVerified",
        "description",
    ):
        assert skill[field] is not None


async def test_the_clients_content_type_on_a_read_is_accepted(shelf):
    await shelf.publish("lint")
    answer = await shelf.client.get(
        DETAIL, headers={"content-type": "application/json", "user-agent": "vskill-cli"}
    )
    assert answer.status_code == 200


async def test_A4_a_flat_name_of_two_skills_stays_with_its_holder(shelf):
    """The newcomer is found by its qualified and its full name, and neither is taken for the other."""
    await shelf.publish("lint")
    await shelf.publish("lint", repo="https://github.com/other/tools")
    meant = {
        "lint": "acme/tools/lint",
        "acme/tools/lint": "acme/tools/lint",
        "lint-other": "other/tools/lint",
        "other/tools/lint": "other/tools/lint",
    }
    for name, canonical in meant.items():
        answer = await shelf.client.get(f"/api/v1/skills/{name}")
        assert (answer.status_code, answer.json()["skill"]["name"]) == (200, canonical), name
        assert "x-legacy-ambiguous" not in answer.headers


async def test_A4_a_declared_name_of_two_skills_is_a_404_that_says_so(shelf):
    """Nobody holds what a front matter declares, so it is never a guess."""
    for folder in ("one", "two"):
        await shelf.publish_folder(folder, "lint")
    answer = await shelf.client.get("/api/v1/skills/lint")
    assert (answer.status_code, answer.headers["x-legacy-ambiguous"]) == (404, "true")
    assert "acme/tools/one" in answer.json()["error"] and "acme/tools/two" in answer.json()["error"]


async def test_an_unknown_skill_is_a_404_with_an_error_text(shelf):
    for path in (
        DETAIL,
        "/api/v1/skills/none",
        f"{DETAIL}/versions",
        f"{DETAIL}/files",
        f"{DETAIL}/security",
    ):
        answer = await shelf.client.get(path)
        assert answer.status_code == 404, path
        assert answer.json()["error"]


async def test_an_answer_is_tagged_and_a_client_that_has_it_is_told_so(shelf):
    await shelf.publish("lint")
    for path in (
        DETAIL,
        "/api/v1/skills",
        "/api/v1/skills/search?q=lint",
        f"{DETAIL}/versions",
        "/api/v1/blocklist",
    ):
        first = await shelf.client.get(path)
        again = await shelf.client.get(path, headers={"if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b""), path
        assert again.headers["etag"] == first.headers["etag"]


async def test_A12_what_changes_is_seen_by_the_very_next_read(shelf):
    """Kept answers are used only while the store says that nothing changed."""
    await shelf.publish("lint", "one")
    assert "one" in (await shelf.client.get(DETAIL)).json()["skill"]["content"]
    assert len((await shelf.client.get("/api/v1/skills")).json()["skills"]) == 1
    await shelf.publish("lint", "two")
    await shelf.publish("draw")
    skill = (await shelf.client.get(DETAIL)).json()["skill"]
    assert ("two" in skill["content"], skill["currentVersion"]) == (True, "1.0.1")
    assert len((await shelf.client.get("/api/v1/skills")).json()["skills"]) == 2
    assert len((await shelf.client.get("/api/v1/skills/search?q=draw")).json()["results"]) == 1


@pytest.mark.parametrize("kind", ["place", "repository", "digest", "name"])
async def test_a_block_is_effective_at_once_and_says_why(shelf, kind):
    """Before any pass of the queue has applied it: lists leave it out, search marks it, nothing is handed out."""
    skill = await shelf.publish("lint")
    await shelf.publish("draw", repo="https://github.com/ada/art")
    assert (await shelf.client.get(DETAIL)).json()["skill"]["isBlocked"] is False
    targets = {
        "place": place_target(skill.identity),
        "repository": repository_target(skill.identity),
        "digest": digest_target(skill.current_digest or ""),
        "name": name_target("lint"),
    }
    await block(shelf, targets[kind])
    shown = (await shelf.client.get(DETAIL)).json()["skill"]
    assert (shown["isBlocked"], shown["trustTier"], shown["content"]) == (True, "T0", "")
    assert (shown["reason"], shown["threatType"], shown["severity"]) == (
        "steals tokens",
        "credential-theft",
        "critical",
    )
    assert [one["name"] for one in (await shelf.client.get("/api/v1/skills")).json()["skills"]] == [
        "ada/art/draw"
    ]
    found = (await shelf.client.get("/api/v1/skills/search?q=small+skill")).json()["results"]
    assert [(one["skillSlug"], one["isBlocked"]) for one in found] == [("draw", False), ("lint", True)]
    for path in ("archive", "file", "files"):
        refused = await shelf.client.get(f"{DETAIL}/{path}")
        assert (refused.status_code, refused.json()["code"]) == (403, "blocked"), path
        assert "steals tokens" in refused.json()["error"]
    with active_env(shelf.env):
        await reapply_blocklist()
    refused = await shelf.client.get(f"{DETAIL}/archive")
    assert (refused.status_code, refused.json()["code"]) == (403, "blocked")
    with active_env(shelf.env):
        await remove_block(targets[kind])
    assert (await shelf.client.get(f"{DETAIL}/archive")).status_code == 403, (
        "taken down until a run brings it back"
    )


async def test_a_yanked_version_is_gone_with_the_owners_reason(shelf):
    await shelf.publish("lint", "one")
    await shelf.publish("lint", "two")

    def gone(number):
        return lambda skill: yank(
            skill, StatusChange(StatusRole.OWNER, "user:ada", 5, "broken on Windows"), number=number
        )

    with active_env(shelf.env):
        await update_skill("acme/tools/lint", gone("1.0.1"))
    refused = await shelf.client.get(f"{DETAIL}/archive?version=1.0.1")
    assert (refused.status_code, refused.json()["code"]) == (410, "withdrawn")
    assert "broken on Windows" in refused.json()["error"]
    assert (await shelf.client.get(DETAIL)).json()["skill"]["currentVersion"] == "1.0.0"
    with active_env(shelf.env):
        await update_skill("acme/tools/lint", gone("1.0.0"))
    shown = (await shelf.client.get(DETAIL)).json()["skill"]
    assert (shown["isWithdrawn"], shown["currentVersion"], shown["reason"]) == (
        True,
        None,
        "broken on Windows",
    )
    assert (await shelf.client.get(f"{DETAIL}/file")).status_code == 410


async def test_versions_come_newest_first_with_what_changed(shelf):
    script = SkillFile("run.sh", "100755", b"echo hello\n")
    await shelf.publish("lint", "one")
    await shelf.publish("lint", "two", extra=(script,))
    versions = (await shelf.client.get(f"{DETAIL}/versions")).json()["versions"]
    assert [one["version"] for one in versions] == ["1.0.1", "1.0.0"]
    assert versions[0]["diffSummary"] == "1 file changed, 1 file added"
    assert versions[1]["diffSummary"] == "first version"
    assert versions[0]["isCurrent"] and versions[0]["certTier"] == "SCANNED"
    assert versions[0]["contentHash"] != versions[1]["contentHash"]


async def test_two_versions_are_compared_as_text(shelf):
    await shelf.publish("lint", "one")
    await shelf.publish(
        "lint", "two", extra=(SkillFile("a.bin", "100644", b"\0\1"), SkillFile("b.txt", "100644", b"x\n"))
    )
    query = {"from": "1.0.0", "to": "1.0.1"}
    found = (await shelf.client.get(f"{DETAIL}/versions/diff", params=query)).json()
    assert (found["from"], found["to"], found["diffSummary"]) == (
        "1.0.0",
        "1.0.1",
        "1 file changed, 2 files added",
    )
    assert "-one" in found["contentDiff"] and "+two" in found["contentDiff"]
    files = (await shelf.client.get("/api/v1/skills/lint/versions/compare", params=query)).json()["files"]
    assert [(one["filename"], one["status"], one["additions"], one["deletions"]) for one in files] == [
        ("SKILL.md", "modified", 1, 1),
        ("a.bin", "added", 0, 0),
        ("b.txt", "added", 1, 0),
    ]
    assert (files[1]["patch"], files[1]["note"]) == ("", "not text")
    same = (await shelf.client.get(f"{DETAIL}/versions/diff", params={"from": "1.0.0", "to": "1.0.0"})).json()
    assert same["contentDiff"] == ""


@pytest.mark.parametrize("query", [{}, {"from": "1.0.0"}, {"to": "1.0.0"}, {"from": "1.0.0", "to": "9.9.9"}])
async def test_a_comparison_with_a_missing_or_unknown_version_is_a_400(shelf, query):
    await shelf.publish("lint")
    for what in ("diff", "compare"):
        answer = await shelf.client.get(f"{DETAIL}/versions/{what}", params=query)
        assert answer.status_code == 400
        assert answer.json()["field"] in ("from", "to")


async def test_files_are_listed_and_read_as_what_no_browser_runs(shelf):
    page = SkillFile("docs/page.html", "100644", b"<script>alert(1)</script>")
    await shelf.publish("lint", extra=(page, SkillFile("tool", "100755", b"\xff\xfe\0")))
    listed = (await shelf.client.get(f"{DETAIL}/files")).json()["files"]
    assert [(one["path"], one["mode"]) for one in listed] == [
        ("SKILL.md", "100644"),
        ("docs/page.html", "100644"),
        ("tool", "100755"),
    ]
    answer = await shelf.client.get(f"{DETAIL}/file", params={"path": "docs/page.html"})
    assert answer.content == page.data
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"].startswith('attachment; filename="page.html"')
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    binary = await shelf.client.get(f"{DETAIL}/file", params={"path": "tool"})
    assert binary.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    "path", ["../../etc/passwd", "/etc/passwd", "..%2f..%2fetc/passwd", "SKILL.md/../x", "docs"]
)
async def test_a_path_that_is_no_file_of_the_skill_is_a_404(shelf, path):
    await shelf.publish("lint")
    answer = await shelf.client.get(f"{DETAIL}/file", params={"path": path})
    assert answer.status_code == 404


async def test_archives_are_those_that_the_attestation_names(shelf):
    extra = (SkillFile("run.sh", "100755", b"echo hello\n"),)
    skill = await shelf.publish("lint", extra=extra)
    packed = await shelf.client.get(f"{DETAIL}/archive")
    tarball = await shelf.client.get(f"{DETAIL}/archive?format=tar.gz&version=1.0.0")
    with zipfile.ZipFile(io.BytesIO(packed.content)) as found:
        names = found.namelist()
    with tarfile.open(fileobj=io.BytesIO(tarball.content)) as opened:
        assert opened.getnames() == names == ["SKILL.md", "run.sh"]
    files = shelf.sources.places[skill.identity.key]
    assert archive_digests(files).zip == hashlib.sha256(packed.content).hexdigest()
    assert packed.headers["content-disposition"].startswith('attachment; filename="lint-1.0.0.zip"')
    again = await shelf.client.get(f"{DETAIL}/archive", headers={"if-none-match": packed.headers["etag"]})
    assert again.status_code == 304


async def test_the_list_is_filtered_sorted_and_paged_to_its_end(shelf):
    for number in range(5):
        await shelf.publish(f"skill-{number}", repo=f"https://github.com/owner{number % 2}/tools")
    seen, after = [], None
    while True:
        params = {"limit": 2, "sort": "newest", **({"after": after} if after else {})}
        page = (await shelf.client.get("/api/v1/skills", params=params)).json()
        seen += [one["skillSlug"] for one in page["skills"]]
        after = page["pagination"]["after"]
        assert page["pagination"]["hasMore"] is (after is not None)
        if after is None:
            break
    assert seen == [f"skill-{number}" for number in range(4, -1, -1)]
    narrowed = (await shelf.client.get("/api/v1/skills?owner=owner1")).json()["skills"]
    assert {one["ownerSlug"] for one in narrowed} == {"owner1"} and len(narrowed) == 2
    none = (await shelf.client.get("/api/v1/skills?certification=CERTIFIED")).json()
    assert none["skills"] == []
    facets = (await shelf.client.get("/api/v1/skills/facets")).json()
    assert (facets["total"], facets["certification"]) == (5, {"SCANNED": 5})


async def test_lists_searches_and_counts_take_the_same_filters(shelf):
    script = SkillFile("run.sh", "100644", b"#!/bin/sh\ncurl https://api.example.dev/x\n")
    await shelf.publish("prose", "Tidies.")
    await shelf.publish("online", "Tidies.", extra=(script,))
    for path, field in (("", "skills"), ("/search?q=tools", "results")):
        sign = "&" if "?" in path else "?"
        found = (await shelf.client.get(f"/api/v1/skills{path}{sign}without=network,scripts")).json()[field]
        assert [(one["skillSlug"], one["without"]) for one in found] == [("prose", list(Lack))]
    counts = (await shelf.client.get("/api/v1/skills/facets?without=secrets")).json()
    assert (counts["total"], counts["without"]["network"]) == (2, 1)
    refused = (await shelf.client.get("/api/v1/skills?without=sleep")).json()
    assert "network, secrets, installs, scripts, files" in refused["fix"]


@pytest.mark.parametrize(
    "query",
    [
        *("limit=0", "limit=101", "limit=x", "sort=best", "after=%00", "trust=T9", "state=x"),
        *("without=sleep", "without=network%20secrets", "provenance=unknown", "minInstalls=2", "minAge=-1"),
    ],
)
async def test_a_list_refuses_what_it_does_not_understand_by_name(shelf, query):
    answer = await shelf.client.get(f"/api/v1/skills?{query}")
    assert answer.status_code == 400
    assert answer.json()["field"] == query.partition("=")[0]


async def test_search_finds_by_words_with_all_that_the_client_reads(shelf):
    await shelf.publish("lint")
    found = (await shelf.client.get("/api/v1/skills/search?q=lin&limit=5")).json()
    assert (found["total"], found["pagination"]["hasMore"], found["truncated"]) == (1, False, False)
    (hit,) = found["results"]
    fields = (
        "name author repoUrl certTier trustScore trustTier description vskillInstalls githubStars isBlocked isTainted "
        "threatType severity ownerSlug repoSlug skillSlug currentVersion alternateRepos"
    )
    assert set(fields.split()) <= set(hit)


async def test_a_skill_beside_a_blocked_one_is_tainted(shelf):
    await shelf.publish("lint")
    other = await shelf.publish("draw")
    await block(shelf, place_target(other.identity))
    assert (await shelf.client.get(DETAIL)).json()["skill"]["isTainted"] is True


async def test_the_security_report_names_every_analyser_and_finding(shelf):
    await shelf.publish("lint")
    found = (await shelf.client.get(f"{DETAIL}/security")).json()
    assert (found["overallVerdict"], found["version"]) == ("PASS", "1.0.0")
    own = found["providers"][0]
    assert (own["provider"], own["status"], own["verdict"], own["criticalCount"]) == (
        "vskill-platform",
        "PASS",
        "PASS",
        0,
    )
    assert found["reportUrl"]
    sarif = await shelf.client.get(f"{DETAIL}/security.sarif")
    assert sarif.headers["content-type"] == "application/sarif+json"
    assert sarif.json()["version"] == "2.1.0"


async def test_a_blocked_version_has_a_report_that_fails(shelf):
    skill = await shelf.publish("lint")
    await block(shelf, digest_target(skill.current_digest or ""))
    found = (await shelf.client.get(f"{DETAIL}/security")).json()
    assert (found["overallVerdict"], found["reason"]) == ("FAIL", "steals tokens")


async def test_a_badge_is_a_picture_of_how_the_skill_stands(shelf):
    skill = await shelf.publish("lint")
    answer = await shelf.client.get("/api/v1/skills/lint/badge")
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "scanned 1.0.0" in answer.text
    await block(shelf, place_target(skill.identity))
    assert "blocked" in (await shelf.client.get(f"{DETAIL}/badge")).text


async def test_installs_are_counted_by_day_for_the_skill_that_is_meant(shelf):
    await shelf.publish("lint")
    await shelf.publish("lint", repo="https://github.com/other/tools")
    assert (await shelf.client.post(f"{DETAIL}/installs")).status_code == 201
    assert (
        await shelf.client.post("/api/v1/skills/lint/installs", json={"repoUrl": "other/tools"})
    ).status_code == 201
    body = {"skillName": "lint", "repoUrl": "https://github.com/acme/tools"}
    assert (await shelf.client.post("/api/v1/skills/installs", json=body)).status_code == 201
    for short in ("lint", "lint-other"):
        assert (await shelf.client.post(f"/api/v1/skills/{short}/installs", json={})).status_code == 201
    elsewhere = {"repoUrl": "nobody/tools"}
    assert (await shelf.client.post("/api/v1/skills/lint/installs", json=elsewhere)).status_code == 404
    with active_env(shelf.env):
        assert await installs_by_skill() == {"acme/tools/lint": 3, "other/tools/lint": 2}
    assert (await shelf.client.get(DETAIL)).json()["skill"]["vskillInstalls"] == 3


@pytest.mark.parametrize("name", ["acme/tools/lint", "lint", "notes", "acme/notes"])
async def test_an_install_from_another_repository_counts_for_nobody_here(shelf, name):
    """`notes` is the only skill of its name, `lint` is one of two."""
    for skill in ("lint", "notes"):
        await shelf.publish(skill)
    await shelf.publish("lint", repo="https://github.com/other/tools")
    foreign = {"repoUrl": "https://github.com/somebody/else"}
    one = {"skillName": name, **foreign}
    assert (await shelf.client.post("/api/v1/skills/installs", json=one)).status_code == 404
    answer = (await shelf.client.post("/api/v1/skills/installs", json={"skills": [one]})).json()
    assert (answer["counted"], answer["unknown"]) == ([], [name])
    with active_env(shelf.env):
        assert await installs_by_skill() == {}
    own = {"skillName": name, "repoUrl": "acme/tools"}
    assert (await shelf.client.post("/api/v1/skills/installs", json=own)).status_code == 201


async def test_a_skill_shows_the_installs_of_now_and_lists_follow_by_a_job(shelf):
    await shelf.publish("lint")

    async def shown() -> tuple[int, int, int, int]:
        detail = (await shelf.client.get(DETAIL)).json()["skill"]["vskillInstalls"]
        page = (await shelf.client.get("/skills/acme/tools/lint", headers={"accept": "text/html"})).text
        clawhub = (await shelf.client.get("/clawhub/api/v1/skills/lint")).json()["skill"]["stats"]
        (listed,) = (await shelf.client.get("/api/v1/skills")).json()["skills"]
        (on_page,) = re.findall(r"(\d+) installs?<", page)
        return detail, int(on_page), clawhub["downloads"], listed["vskillInstalls"]

    with active_env(shelf.env):
        cursor = await follow_installs(None)
    assert await shown() == (0, 0, 0, 0)
    for number in (1, 2):
        await shelf.client.post(f"{DETAIL}/installs")
        assert await shown() == (number, number, number, number - 1)
        with active_env(shelf.env):
            cursor = await follow_installs(cursor)
        assert await shown() == (number, number, number, number)
    with active_env(shelf.env):
        await shelf.env.kv.put(keys.installs("acme/tools/lint", "2020-01-01"), b"many")
    assert (await shown())[0] == 2


async def test_updates_are_answered_in_order_with_the_names_as_sent(shelf):
    skill = await shelf.publish("lint", "one", version="1.0.0")
    await shelf.publish("lint", "two", version="1.1.0")
    current = (await shelf.client.get(DETAIL)).json()["skill"]
    body = {
        "skills": [
            {"name": "lint", "currentVersion": "1.0.0"},
            {"name": "none", "currentVersion": "1.0.0"},
            {"name": "acme/tools/lint", "currentVersion": "1.1.0"},
            {"name": "acme/tools/lint", "currentVersion": "0.9.0", "sha": current["sha"]},
            {"name": "acme/tools/lint", "currentVersion": "1.0.0", "sha": skill.content_hash},
            {"name": "lint", "currentVersion": "0.1.0"},
        ]
    }
    results = (await shelf.client.post("/api/v1/skills/check-updates", json=body)).json()["results"]
    assert [one["name"] for one in results] == [one["name"] for one in body["skills"]]
    assert [(one["latest"], one["updateAvailable"], one["versionBump"]) for one in results] == [
        ("1.1.0", True, "minor"),
        (None, False, None),
        ("1.1.0", False, None),
        ("1.1.0", False, None),
        ("1.1.0", True, "minor"),
        ("1.1.0", True, "major"),
    ]
    assert (results[0]["installed"], results[0]["certTier"]) == ("1.0.0", "SCANNED")


async def test_more_than_a_hundred_skills_are_refused(shelf):
    body = {"skills": [{"name": "x", "currentVersion": "1.0.0"}] * 101}
    assert (await shelf.client.post("/api/v1/skills/check-updates", json=body)).status_code == 400


async def test_the_feed_lists_new_skills_and_escapes_what_is_not_ours(shelf):
    await shelf.publish("lint")
    answer = await shelf.client.get("/feed.xml")
    assert answer.headers["content-type"] == "application/atom+xml; charset=utf-8"
    assert "<title>lint</title>" in answer.text
    assert "http://platform.test/skills/acme/tools/lint" in answer.text


async def test_an_attestation_is_answered(shelf):
    await shelf.publish("lint")
    answer = await shelf.client.get(f"{DETAIL}/versions/1.0.0/attestation")
    assert (answer.status_code, answer.json()["payloadType"]) == (200, "application/vnd.in-toto+json")
