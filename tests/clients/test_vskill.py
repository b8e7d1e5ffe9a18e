"""The `vskill` command against our API: one exchange for each row of what it asks, sent as it sends it (a content type
even on GET, encoded segments, chunked bodies), with every field that it reads, and the error paths. Accounts are in
`test_vskill_account`, the event streams of its companion in `test_vskill_streams`."""

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from tests.clients.test_discovery import block
from tests.support.envs import active_env, run_until_quiet, skill_files
from tests.support.shelf import Shelf, open_shelf
from vskill_core.content import SkillFile
from vskill_core.findings import Severity
from vskill_platform.domain.blocklist import BlockEntry, parse_target
from vskill_platform.domain.skills.skill import StatusRole
from vskill_platform.domain.skills.skill_changes import StatusChange, take_down, yank
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.skills.installs import installs_by_skill
from vskill_platform.store.skills.skills import update_skill

pytestmark = pytest.mark.anyio

REPO = "https://github.com/acme/tools"
NAME = "acme/tools/lint"
HEADERS = {"content-type": "application/json", "user-agent": "vskill-cli", "accept": "*/*"}


class Command:
    """Asks as the command does."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        self.headers = dict(HEADERS)

    async def ask(
        self, method: str, path: str, body: Any = None, *, code: int = 200, chunked: bool = False
    ) -> httpx2.Response:
        content: Any = None if body is None else json.dumps(body).encode()
        if chunked:
            content = _chunks(content)
        answer = await self.shelf.client.request(method, path, headers=self.headers, content=content)
        assert answer.status_code == code, (answer.status_code, answer.text)
        assert "location" not in answer.headers
        if code >= 400:
            assert isinstance(answer.json()["error"], str) and answer.json()["error"]
        return answer

    async def get(self, path: str, **options: Any) -> Any:
        return (await self.ask("GET", path, **options)).json()

    async def post(self, path: str, body: Any, **options: Any) -> Any:
        return (await self.ask("POST", path, body, **options)).json()

    async def log_in(self, name: str = "ada") -> None:
        token = await self.shelf.token(name)
        assert token["Authorization"].startswith("Bearer vsk_")
        self.headers |= token


async def _chunks(data: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(data), 7):
        yield data[begin : begin + 7]


@pytest.fixture
async def vskill(tmp_path):
    async with open_shelf(tmp_path) as opened:
        yield Command(opened)


def path_of(name: str) -> str:
    """Three parts are three segments; any other name is one, encoded."""
    parts = name.split("/")
    return "/".join(parts) if len(parts) == 3 else quote(name, safe="")


def holds(found: dict[str, Any], **kinds: Any) -> None:
    for name, kind in kinds.items():
        assert name in found and isinstance(found[name], kind), (name, found.get(name))


NUMBER, TEXT, MAYBE = (int, float), str, (str, type(None))


async def test_search(vskill):
    await vskill.shelf.publish("lint")
    await vskill.shelf.publish("lint-bad", repo="https://github.com/evil/tools")
    await block(vskill.shelf, "https://github.com/evil/tools/tree/main/skills/lint-bad")
    found = await vskill.get("/api/v1/skills/search?q=lint&limit=20")
    assert found["total"] == 2 and found["pagination"]["hasMore"] is False
    good, bad = found["results"]
    holds(good, name=TEXT, author=TEXT, repoUrl=TEXT, certTier=TEXT, trustScore=NUMBER, trustTier=TEXT)
    holds(good, description=TEXT, vskillInstalls=int, isBlocked=bool, isTainted=bool, currentVersion=TEXT)
    holds(
        good,
        ownerSlug=TEXT,
        repoSlug=TEXT,
        skillSlug=TEXT,
        alternateRepos=list,
        githubStars=(int, type(None)),
    )
    assert (good["ownerSlug"], good["repoSlug"], good["skillSlug"]) == ("acme", "tools", "lint")
    assert bad["isBlocked"] is True and bad["severity"] == "critical"
    holds(bad, threatType=MAYBE)
    assert (await vskill.get("/api/v1/skills/search?q=nothingatall&limit=5"))["results"] == []
    await vskill.ask("GET", "/api/v1/skills/search?q=lint&limit=1000", code=400)


@pytest.mark.parametrize("name", [NAME, "lint", "acme/lint"])
async def test_one_skill_by_either_form_of_its_name(vskill, name):
    await vskill.shelf.publish("lint", "Body.")
    skill = (await vskill.get(f"/api/v1/skills/{path_of(name)}"))["skill"]
    assert skill["name"] == NAME and skill["currentVersion"] == "1.0.0"
    holds(skill, author=TEXT, certTier=TEXT, certScore=NUMBER, sha=TEXT, description=TEXT, content=TEXT)
    holds(skill, vskillInstalls=int, updatedAt=TEXT, repoUrl=TEXT, trustTier=TEXT, trustScore=NUMBER)
    holds(skill, provenanceVerified=bool)
    assert skill["content"].startswith("---\nname: lint") and "Body." in skill["content"]


async def test_an_unknown_and_an_ambiguous_name(vskill):
    await vskill.ask("GET", "/api/v1/skills/acme/tools/nothing", code=404)
    plain = await vskill.ask("GET", "/api/v1/skills/nothing", code=404)
    assert "x-legacy-ambiguous" not in plain.headers
    for folder in ("one", "two"):
        await vskill.shelf.publish_folder(folder, "night")
    several = await vskill.ask("GET", "/api/v1/skills/night", code=404)
    assert several.headers["x-legacy-ambiguous"] == "true"


async def test_a_short_name_means_its_first_skill_whoever_publishes_another(vskill):
    await vskill.shelf.publish("lint")
    await vskill.shelf.publish("lint", repo="https://github.com/other/tools")
    assert (await vskill.get("/api/v1/skills/lint"))["skill"]["name"] == "acme/tools/lint"
    assert (await vskill.get("/api/v1/skills/lint-other"))["skill"]["name"] == "other/tools/lint"


async def test_what_cannot_be_installed_has_a_word_of_its_own_for_its_tier(vskill):
    """The command prints VERIFIED where the tier is null."""
    await vskill.shelf.publish("gone")
    await vskill.shelf.publish("bad")
    await block(vskill.shelf, f"{REPO}/tree/main/skills/bad")
    why = StatusChange(StatusRole.OWNER, "user:ada", 1, "not ready")
    with active_env(vskill.shelf.env):
        await update_skill("acme/tools/gone", lambda skill: yank(skill, why))
    for name, tier in (("bad", "BLOCKED"), ("gone", "WITHDRAWN")):
        skill = (await vskill.get(f"/api/v1/skills/acme/tools/{name}"))["skill"]
        assert (skill["certTier"], skill["trustScore"]) == (tier, 0)
        (found,) = (await vskill.get(f"/api/v1/skills/search?q={name}&limit=5"))["results"]
        assert found["certTier"] == tier
    (version,) = (await vskill.get("/api/v1/skills/acme/tools/bad/versions"))["versions"]
    assert version["certTier"] == "BLOCKED"


async def test_versions_newest_first(vskill):
    await vskill.shelf.publish("lint", "old")
    await vskill.shelf.publish("lint", "new", extra=(SkillFile("more.txt", "100644", b"x\n"),))
    for name in (NAME, "lint"):
        versions = (await vskill.get(f"/api/v1/skills/{path_of(name)}/versions"))["versions"]
        assert [one["version"] for one in versions] == ["1.0.1", "1.0.0"]
        for one in versions:
            holds(one, certTier=TEXT, createdAt=TEXT, contentHash=TEXT, certScore=NUMBER, diffSummary=TEXT)
    for missing in ("acme/tools/nothing", "nothing"):
        await vskill.ask("GET", f"/api/v1/skills/{path_of(missing)}/versions", code=404)


async def test_diff_and_compare(vskill):
    await vskill.shelf.publish("lint", "old")
    await vskill.shelf.publish("lint", "new", extra=(SkillFile("more.txt", "100644", b"x\n"),))
    base = f"/api/v1/skills/{NAME}/versions"
    diff = await vskill.get(f"{base}/diff?from=1.0.0&to=1.0.1")
    assert {name: type(value) for name, value in diff.items()} == dict.fromkeys(
        ("from", "to", "diffSummary", "contentDiff"), str
    )
    assert "-old" in diff["contentDiff"] and "+new" in diff["contentDiff"]
    same = await vskill.get(f"{base}/diff?from=1.0.1&to=1.0.1")
    assert same["contentDiff"] == "" and isinstance(same["diffSummary"], str)
    files = (await vskill.get(f"{base}/compare?from=1.0.0&to=1.0.1"))["files"]
    for one in files:
        holds(one, filename=TEXT, status=TEXT, additions=int, deletions=int, patch=TEXT)
    assert {one["filename"]: one["status"] for one in files} == {"SKILL.md": "modified", "more.txt": "added"}
    for wrong in ("?from=1.0.0", "?to=1.0.0", "", "?from=1.0.0&to=9.9.9", "?from=9.9.9&to=1.0.0"):
        for what in ("diff", "compare"):
            await vskill.ask("GET", f"{base}/{what}{wrong}", code=400)
    for what in ("diff", "compare"):
        await vskill.ask("GET", f"/api/v1/skills/a/b/c/versions/{what}?from=1.0.0&to=1.0.1", code=404)


async def test_security(vskill):
    await vskill.shelf.publish("lint")
    report = await vskill.get(f"/api/v1/skills/{NAME}/security")
    assert report["overallVerdict"] == "PASS" and report["reportUrl"]
    for one in report["providers"]:
        holds(one, provider=TEXT, status=TEXT, verdict=MAYBE, criticalCount=int)
        assert one["status"] in {"PASS", "FAIL", "PENDING", "TIMED_OUT"}
    await vskill.ask("GET", "/api/v1/skills/a/b/c/security", code=404)


async def test_the_six_outcomes_of_a_submission(vskill):
    shelf = vskill.shelf
    shelf.sources.put(REPO, "skills/lint", skill_files("lint"))
    body = {"repoUrl": REPO, "skillName": "lint", "skillPath": "skills/lint", "source": "cli"}
    created = await vskill.post("/api/v1/submissions", body, code=201)
    assert created["state"] == "RECEIVED" and created["skillPath"] == "skills/lint"
    holds(created, id=TEXT, skillName=TEXT, createdAt=TEXT)
    duplicate = await vskill.post("/api/v1/submissions", body)
    assert duplicate["duplicate"] is True and duplicate["id"] == duplicate["submissionId"] == created["id"]
    holds(duplicate, state=TEXT)
    with active_env(shelf.env):
        await run_until_quiet(shelf.env)
    verified = await vskill.post("/api/v1/submissions", body)
    assert verified["alreadyVerified"] is True
    holds(verified, id=TEXT, skillName=TEXT)
    shelf.sources.put(REPO, "skills/lint", skill_files("lint", "changed"))
    requeued = await vskill.post("/api/v1/submissions", body)
    assert requeued["requeued"] is True and requeued["id"] == created["id"]
    holds(requeued, state=TEXT)
    await block(shelf, f"{REPO}/tree/main/skills/lint")
    blocked = await vskill.post("/api/v1/submissions", body)
    assert blocked["blocked"] is True and blocked["submissionId"] == created["id"]
    await vskill.post("/api/v1/submissions", {**body, "skillName": "x", "skillPath": "nowhere"}, code=422)


async def test_a_repository_without_a_name_submits_each_of_its_skills(vskill):
    for name in ("one", "two"):
        vskill.shelf.sources.put(REPO, f"skills/{name}", skill_files(name))
    found = await vskill.post("/api/v1/submissions", {"repoUrl": "acme/tools", "source": "cli"}, code=201)
    assert sorted(one["skillName"] for one in found["results"]) == ["one", "two"]


async def test_a_chunked_submission_of_the_companion_and_its_record(vskill):
    vskill.shelf.sources.put(REPO, "skills/lint", skill_files("lint"))
    body = {"repoUrl": REPO, "skillPath": "skills/lint"}
    made = await vskill.post("/api/v1/submissions", body, code=201, chunked=True)
    with active_env(vskill.shelf.env):
        await run_until_quiet(vskill.shelf.env)
    record = await vskill.get(f"/api/v1/submissions/{made['id']}")
    assert record["state"] == "PUBLISHED"
    assert [one["to"] for one in record["history"]][-1] == "PUBLISHED"
    holds(record, scan=dict, timings=dict, position=(dict, type(None)))
    assert all(isinstance(spent, int) for spent in record["timings"].values())
    await vskill.ask("GET", "/api/v1/submissions/sub_nothing", code=404)
    await vskill.post("/api/v1/submissions", {"repoUrl": "::"}, code=400)
    await vskill.post("/api/v1/submissions", {"source": "cli"}, code=400)


async def test_installs_are_counted_by_every_form_of_a_name(vskill):
    await vskill.shelf.publish("lint")
    await vskill.shelf.publish("lint", repo="https://github.com/other/tools")
    for path, body in (
        (f"/api/v1/skills/{NAME}/installs", {}),
        ("/api/v1/skills/lint/installs", {"repoUrl": "acme/tools"}),
        ("/api/v1/skills/lint/installs", {"repoUrl": REPO}),
        ("/api/v1/skills/installs", {"skillName": "lint", "repoUrl": "other/tools"}),
    ):
        answer = await vskill.shelf.client.post(path, headers=HEADERS, json=body)
        assert answer.is_success, answer.text
    await vskill.post("/api/v1/skills/nothing/installs", {}, code=404)
    await vskill.post("/api/v1/skills/installs", {}, code=400)


async def test_installs_of_several_skills_are_counted_in_one_call(vskill):
    """As the client reports a plugin; a name that nobody has loses none of the others."""
    await vskill.shelf.publish("lint")
    await vskill.shelf.publish("draw")
    batch = {
        "skills": [
            {"skillName": "lint", "repoUrl": REPO, "version": "1.0.0"},
            {"skillName": "draw"},
            {"skillName": "nothing"},
        ]
    }
    answer = await vskill.post("/api/v1/skills/installs", batch)
    assert answer == {"counted": [NAME, "acme/tools/draw"], "unknown": ["nothing"]}
    with active_env(vskill.shelf.env):
        assert await installs_by_skill() == {NAME: 1, "acme/tools/draw": 1}


async def test_check_updates_in_order_with_names_as_sent(vskill):
    first = await vskill.shelf.publish("lint", "old")
    await vskill.shelf.publish("lint", "new")
    current = (await vskill.get(f"/api/v1/skills/{NAME}"))["skill"]["sha"]
    asked = [
        {"name": "lint", "currentVersion": "1.0.0"},
        {"name": "nothing", "currentVersion": "1.0.0"},
        {"name": NAME, "currentVersion": "1.0.1"},
        {"name": NAME, "currentVersion": "0.0.1", "sha": current},
        {"name": NAME, "currentVersion": "1.0.1", "sha": first.content_hash},
    ]
    results = (await vskill.post("/api/v1/skills/check-updates", {"skills": asked}))["results"]
    assert [one["name"] for one in results] == [one["name"] for one in asked]
    assert [one["updateAvailable"] for one in results] == [True, False, False, False, True]
    assert [one["latest"] for one in results] == ["1.0.1", None, "1.0.1", "1.0.1", "1.0.1"]
    assert results[0]["installed"] == "1.0.0" and results[0]["versionBump"] == "patch"
    holds(results[0], certTier=TEXT, certScore=NUMBER)
    await vskill.post("/api/v1/skills/check-updates", {"skills": asked * 21}, code=400)
    for wrong in ({}, {"skills": [{"currentVersion": "1.0.0"}]}, {"skills": "lint"}):
        await vskill.post("/api/v1/skills/check-updates", wrong, code=400)


@pytest.mark.parametrize("known_by", ["number", "content"])
async def test_a_client_that_has_a_recalled_version_is_told(vskill, known_by):
    await vskill.shelf.publish("lint", "old")
    bad = await vskill.shelf.publish("lint", "bad")
    has = {"currentVersion": "1.0.1"} if known_by == "number" else {"sha": f"sha256:{bad.content_hash}"}
    asked = {"skills": [{"name": NAME, **has}]}
    (before,) = (await vskill.post("/api/v1/skills/check-updates", asked))["results"]
    assert (before["revoked"], before["recall"]) == (False, None)

    with active_env(vskill.shelf.env):
        now, target = vskill.shelf.env.kv.now(), parse_target("digest", str(bad.current_digest))
        await add_block(BlockEntry(target, Severity.CRITICAL, "steals tokens", "system", now, now))
        await reapply_blocklist()
    (after,) = (await vskill.post("/api/v1/skills/check-updates", asked))["results"]
    told = {"revoked": True, "latest": "1.0.0", "updateAvailable": True}
    assert after.items() >= told.items()
    assert (after["recall"]["reason"], after["recall"]["replacement"]) == ("steals tokens", "1.0.0")
    assert after["recall"]["since"].endswith("Z")
    (other,) = (
        await vskill.post(
            "/api/v1/skills/check-updates", {"skills": [{"name": NAME, "currentVersion": "1.0.0"}]}
        )
    )["results"]
    assert (other["revoked"], other["updateAvailable"]) == (False, False)


async def test_a_client_that_has_a_version_that_was_taken_down_is_told(vskill):
    skill = await vskill.shelf.publish("lint", "old")
    with active_env(vskill.shelf.env):
        change = StatusChange(StatusRole.REVIEWER, "admin:eve", 1_700_000_000_000, "its author asked for it")
        await update_skill(skill.canonical, lambda known: take_down(known, change))
    asked = {"skills": [{"name": NAME, "currentVersion": "1.0.0"}]}
    (told,) = (await vskill.post("/api/v1/skills/check-updates", asked))["results"]
    since = "2023-11-14T22:13:20.000Z"
    recall = {
        "status": "taken-down",
        "reason": "its author asked for it",
        "since": since,
        "replacement": None,
    }
    assert (told["revoked"], told["reason"]) == (True, "withdrawn")
    assert told["recall"].items() >= recall.items()


async def test_the_blocklist_and_whether_one_is_on_it(vskill):
    await vskill.shelf.publish("lint")
    await block(vskill.shelf, f"{REPO}/tree/main/skills/lint")
    whole = await vskill.ask("GET", "/api/v1/blocklist")
    listed = whole.json()
    assert listed["count"] == 1 and listed["lastUpdated"] and whole.headers["etag"]
    (entry,) = listed["entries"]
    holds(entry, skillName=MAYBE, sourceUrl=MAYBE, contentHash=MAYBE, threatType=MAYBE, severity=TEXT)
    holds(entry, reason=TEXT, evidenceUrls=list, discoveredAt=TEXT)
    again = await vskill.shelf.client.get(
        "/api/v1/blocklist", headers={**HEADERS, "if-none-match": whole.headers["etag"]}
    )
    assert again.status_code == 304
    check = "/api/v1/blocklist/check?name=lint&repoUrl="
    hit = await vskill.get(check + quote(REPO, safe=""))
    assert hit["blocked"] is True and hit["entry"]["reason"] == "steals tokens"
    other = await vskill.get(check + quote("https://github.com/other/tools", safe=""))
    assert other["blocked"] is False and not other.get("entry")
    holds(other, rejected=bool, tainted=bool)
    neighbour = await vskill.get("/api/v1/blocklist/check?name=fine&repoUrl=" + quote(REPO, safe=""))
    assert neighbour["blocked"] is False and neighbour["tainted"] is True and neighbour["taintReason"]
    await vskill.ask("GET", "/api/v1/blocklist/check", code=400)
    await vskill.ask("GET", "/api/v1/blocklist/check?name=lint&repoUrl=%3A%3A", code=400)
    await vskill.ask("GET", "/api/v1/blocklist?since=now", code=400)


async def test_a_blocked_content_is_known_by_its_hash(vskill):
    skill = await vskill.shelf.publish("lint")
    with active_env(vskill.shelf.env):
        now, target = vskill.shelf.env.kv.now(), parse_target("digest", skill.current_digest)
        await add_block(BlockEntry(target, Severity.CRITICAL, "steals tokens", "system", now, now))
    hit = await vskill.get(f"/api/v1/blocklist/check?name=else&hash={skill.current_digest}")
    assert hit["blocked"] is True and hit["entry"]["reason"] == "steals tokens"
    other = await vskill.get(f"/api/v1/blocklist/check?name=else&hash={'0' * 64}")
    assert other["blocked"] is False and "entry" not in other


async def test_a_rejected_skill_is_told_by_the_check(vskill):
    vskill.shelf.sources.put(REPO, "skills/odd", (SkillFile("SKILL.md", "100644", b"not text: \xff"),))
    made = await vskill.post("/api/v1/submissions", {"repoUrl": REPO, "skillPath": "skills/odd"}, code=201)
    with active_env(vskill.shelf.env):
        await run_until_quiet(vskill.shelf.env)
    state = (await vskill.get(f"/api/v1/submissions/{made['id']}"))["state"]
    found = await vskill.get("/api/v1/blocklist/check?name=odd&repoUrl=" + quote(REPO, safe=""))
    assert found["rejected"] is True
    rejection = found["rejection"]
    holds(
        rejection, skillName=TEXT, reason=TEXT, score=(int, float, type(None)), repoUrl=TEXT, rejectedAt=TEXT
    )
    assert rejection["state"] == state


async def test_too_many_submissions_are_told_when_to_come_back(vskill):
    vskill.shelf.sources.put(REPO, "skills/lint", skill_files("lint"))
    body = {"repoUrl": REPO, "skillPath": "skills/lint"}
    for _ in range(10):
        answer = await vskill.shelf.client.post("/api/v1/submissions", headers=HEADERS, json=body)
        assert answer.is_success
    limited = await vskill.ask("POST", "/api/v1/submissions", body, code=429)
    assert int(limited.headers["retry-after"]) > 0
    await vskill.log_in()
    assert (
        await vskill.shelf.client.post("/api/v1/submissions", headers=vskill.headers, json=body)
    ).is_success


async def test_what_is_counted_by_the_hour_says_when_to_come_back(vskill):
    await vskill.shelf.publish("lint")
    path = f"/api/v1/skills/{NAME}/installs"
    codes = [(await vskill.shelf.client.post(path, headers=HEADERS, json={})).status_code for _ in range(60)]
    assert set(codes) <= {200, 201}
    limited = await vskill.ask("POST", path, {}, code=429)
    assert int(limited.headers["retry-after"]) > 0


async def test_the_companions_lists_counts_and_positions(vskill):
    vskill.shelf.sources.put(REPO, "skills/lint", skill_files("lint"))
    await vskill.ask("GET", "/api/v1/submissions?mine=1", code=401)
    await vskill.log_in()
    made = await vskill.post("/api/v1/submissions", {"repoUrl": REPO, "skillPath": "skills/lint"}, code=201)
    mine = await vskill.get("/api/v1/submissions?mine=1")
    assert [one["id"] for one in mine["submissions"]] == [made["id"]]
    positions = await vskill.get(f"/api/v1/submissions/positions?ids={made['id']},sub_nothing")
    (one,) = positions["positions"]
    assert one["id"] == made["id"] and one["position"]["place"] == 1
    stats = await vskill.get("/api/v1/submissions/stats")
    assert stats["degraded"] is False and stats["total"] == stats["active"] == 1
    health = await vskill.get("/api/v1/queue/health")
    assert health["healthy"] is True and health["violations"] == []
    many = ",".join(f"sub_{number}" for number in range(500))
    for wrong in ("submissions/positions", f"submissions/positions?ids={many}", "submissions?mine=perhaps"):
        await vskill.ask("GET", f"/api/v1/{wrong}", code=400)
