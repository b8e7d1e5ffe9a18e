"""ClawHub's protocol without its client: pages, names, the multipart form of older clients, and what is refused."""

import hashlib
import io
import json
import zipfile
from typing import Any

import pytest

from tests.clients.test_discovery import block
from tests.support.envs import active_env, run_until_quiet
from tests.support.records import put_copies
from tests.support.shelf import open_shelf
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.recall.takedowns import TAKE_DOWN, TakeDownSkill
from vskill_platform.domain.skills.skill import StatusRole
from vskill_platform.domain.skills.skill_changes import StatusChange, take_down, yank
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.skills.skills import get_skill, update_skill

pytestmark = pytest.mark.anyio

API = "/clawhub/api/v1"
ADMIN = Principal("ada", Role.ADMIN)
SKILL_MD = b"---\nname: sent\ndescription: A skill that was sent.\n---\n# Sent\n"


@pytest.fixture
async def shelf(tmp_path):
    async with open_shelf(tmp_path) as opened:
        yield opened


async def test_the_site_names_the_base_of_the_protocol(shelf):
    answer = (await shelf.client.get("/.well-known/clawhub.json")).json()
    assert answer["apiBase"] == "http://platform.test/clawhub"


async def test_lists_go_page_by_page(shelf):
    for name in ("a", "b", "c"):
        await shelf.publish(name)
    seen, cursor = [], ""
    while True:
        page = (await shelf.client.get(f"{API}/skills", params={"limit": 2, "cursor": cursor})).json()
        seen += [one["slug"] for one in page["items"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert sorted(seen) == ["a", "b", "c"]
    wrong = await shelf.client.get(f"{API}/skills", params={"sort": "sideways"})
    assert wrong.status_code == 400 and "no order" in wrong.text


async def test_lists_by_the_beginning_of_a_slug(shelf):
    for name in ("alpha", "alpine", "beta"):
        await shelf.publish(name)
    page = (await shelf.client.get(f"{API}/skills", params={"prefix": "alp"})).json()
    assert [one["slug"] for one in page["items"]] == ["alpha", "alpine"]
    exact = (await shelf.client.get(f"{API}/search", params={"q": "beta", "mode": "exact"})).json()
    assert [one["slug"] for one in exact["results"]] == ["beta"]


async def test_a_slug_means_its_holder_and_the_others_have_names_of_their_own(shelf):
    await shelf.publish("lint")
    await shelf.publish("lint", repo="https://github.com/acme/re--po")
    await shelf.publish("lint", repo="https://github.com/other/tools")
    found = (await shelf.client.get(f"{API}/skills/lint")).json()
    assert (found["skill"]["slug"], found["owner"]["handle"]) == ("lint", "acme")
    listed = {one["slug"] for one in (await shelf.client.get(f"{API}/skills")).json()["items"]}
    assert listed == {"lint", "lint-acme", "lint-other"}
    for flat in (*listed, "acme--re--po--lint"):
        answer = (await shelf.client.get(f"{API}/skills/{flat}")).json()
        assert answer["skill"]["slug"] == ("lint-acme" if flat.startswith("acme--") else flat)
    for slug, handle in (("lint", "acme"), ("lint-acme", "acme"), ("lint", "other"), ("lint-other", "other")):
        answer = await shelf.client.get(f"{API}/skills/{slug}", params={"ownerHandle": handle})
        assert answer.json()["owner"]["handle"] == handle


async def test_a_declared_name_of_several_skills_is_refused_with_the_list_of_them(shelf):
    for folder in ("one", "two"):
        await shelf.publish_folder(folder, "night")
    refused = await shelf.client.get(f"{API}/skills/night")
    assert refused.status_code == 409
    document = refused.json()
    assert document["code"] == "AMBIGUOUS_SKILL_SLUG" and len(document["matches"]) == 2
    for one in document["matches"]:
        assert (await shelf.client.get(f"{API}/skills/{one['ref']}")).status_code == 200
    assert (await shelf.client.get(f"{API}/skills/lint", params={"ownerHandle": "nobody"})).status_code == 404
    assert (await shelf.client.get(f"{API}/skills/a--b--c")).status_code == 404


async def test_a_withdrawn_skill_has_no_version_and_install_says_why(shelf):
    skill = await shelf.publish("gone")
    with active_env(shelf.env):
        change = StatusChange(StatusRole.OWNER, "user:ada", shelf.env.kv.now(), "superseded by another")
        await update_skill(skill.canonical, lambda known: yank(known, change))
    detail = (await shelf.client.get(f"{API}/skills/gone")).json()
    assert detail["latestVersion"] is None and detail["moderation"]["isMalwareBlocked"] is False
    install = await shelf.client.get(f"{API}/skills/gone/install")
    assert install.status_code == 410
    assert install.json()["ok"] is False and "superseded by another" in install.json()["message"]
    assert (await shelf.client.get(f"{API}/download", params={"slug": "gone"})).status_code == 410
    assert (await shelf.client.get(f"{API}/skills/gone/versions/1.0.0")).status_code == 410
    assert (await shelf.client.get(f"{API}/search", params={"q": "gone"})).json()["results"] == []


@pytest.mark.parametrize(
    ("threat_type", "verdict"), [("credential-theft", "malicious"), ("", "suspicious")], ids=["named", "not"]
)
async def test_a_skill_that_a_reviewer_took_down_is_not_called_clean(shelf, threat_type, verdict):
    await shelf.publish("thief")
    request = TakeDownSkill(skill="thief", reason="it steals tokens", threat_type=threat_type)
    await TAKE_DOWN(shelf.env, ADMIN, request)
    for path in ("thief", "thief/moderation"):
        told = (await shelf.client.get(f"{API}/skills/{path}")).json()["moderation"]
        assert (told["verdict"], told["isMalwareBlocked"]) == (verdict, bool(threat_type))
        assert (told["reasonCodes"], told["summary"]) == (["taken-down"], "it steals tokens")
        # The client would ask whether to install it anyway, and then hear that there is nothing.
        assert not told["isSuspicious"]


async def test_a_blocked_skill_is_marked_and_others_of_its_repository_are_suspicious(shelf):
    await shelf.publish("bad")
    await shelf.publish("good")
    await block(shelf, "https://github.com/acme/tools/tree/main/skills/bad")
    bad = (await shelf.client.get(f"{API}/skills/bad")).json()["moderation"]
    assert bad["isMalwareBlocked"] and bad["verdict"] == "malicious" and bad["summary"] == "steals tokens"
    good = (await shelf.client.get(f"{API}/skills/good")).json()["moderation"]
    assert good["isSuspicious"] and not good["isMalwareBlocked"]
    assert (await shelf.client.get(f"{API}/download", params={"slug": "bad"})).status_code == 403
    assert (await shelf.client.get(f"{API}/skills/bad/install")).status_code == 403


async def test_install_names_a_download_that_is_the_archive(shelf):
    await shelf.publish("lint")
    answer = (await shelf.client.get(f"{API}/skills/lint/install")).json()
    assert answer["installKind"] == "archive"
    served = await shelf.client.get(answer["archive"]["downloadUrl"])
    assert zipfile.ZipFile(io.BytesIO(served.content)).namelist() == ["SKILL.md"]


async def test_resolve_knows_every_version_by_its_fingerprint(shelf):
    await shelf.publish("lint", "old")
    await shelf.publish("lint", "new")
    record = (await shelf.client.get(f"{API}/skills/lint/versions/1.0.0")).json()["version"]
    text = "\n".join(f"{one['path']}:{one['sha256']}" for one in record["files"])
    asked = {"slug": "lint", "hash": hashlib.sha256(text.encode()).hexdigest()}
    answer = (await shelf.client.get(f"{API}/resolve", params=asked)).json()
    assert answer == {"match": {"version": "1.0.0"}, "latestVersion": {"version": "1.0.1"}}
    versions = (await shelf.client.get(f"{API}/skills/lint/versions", params={"limit": 1})).json()
    assert [one["version"] for one in versions["items"]] == ["1.0.1"] and versions["nextCursor"] == "1"


async def test_a_version_that_was_taken_down_is_lower_than_every_other(shelf):
    """So an update replaces it, also by a version before it."""
    await shelf.publish("lint", "old")
    await shelf.publish("lint", "new")
    record = (await shelf.client.get(f"{API}/skills/lint/versions/1.0.1")).json()["version"]
    text = "\n".join(f"{one['path']}:{one['sha256']}" for one in record["files"])
    asked = {"slug": "lint", "hash": hashlib.sha256(text.encode()).hexdigest()}
    why = StatusChange(StatusRole.REVIEWER, "admin:eve", 1, "it misleads")
    with active_env(shelf.env):
        await update_skill("acme/tools/lint", lambda skill: take_down(skill, why, number="1.0.1"))
    answer = (await shelf.client.get(f"{API}/resolve", params=asked)).json()
    assert answer == {"match": {"version": "0.0.0-recalled"}, "latestVersion": {"version": "1.0.0"}}


async def test_the_form_of_older_clients_is_an_upload_like_any_other(shelf):
    token = await shelf.token("ada")
    payload = json.dumps({"slug": "sent", "displayName": "Sent", "version": "1.0.0", "changelog": ""})
    files = [("files", ("SKILL.md", SKILL_MD)), ("files", ("scripts/run.sh", b"#!/bin/sh\n"))]
    answer = await shelf.client.post(f"{API}/skills", data={"payload": payload}, files=files, headers=token)
    assert answer.status_code == 200, answer.text
    assert answer.json()["publicationStatus"] == "pending"
    with active_env(shelf.env):
        await run_until_quiet(shelf.env)
        assert (await get_skill("upload~ada/skills/sent")).current_version == "1.0.0"
    again = await shelf.client.post(f"{API}/skills", data={"payload": payload}, files=files, headers=token)
    assert again.json()["publicationStatus"] == "published"


async def test_publishing_needs_a_token_and_what_was_sent(shelf):
    body = {"slug": "sent", "files": [{"path": "SKILL.md", "size": 3, "sha256": "0" * 64}]}
    assert (await shelf.client.post(f"{API}/skills", json=body)).status_code == 401
    token = await shelf.token("ada")
    missing = await shelf.client.post(f"{API}/skills", json=body, headers=token)
    assert missing.status_code == 404 and "was not uploaded" in missing.text
    reading = await shelf.token("bob", scopes=("read",))
    assert (await shelf.client.post(f"{API}/skills", json=body, headers=reading)).status_code == 403
    form = await shelf.client.post(f"{API}/skills", data={"x": "y"}, files={"f": b""}, headers=token)
    assert form.status_code == 400 and "has no payload" in form.text


async def test_bytes_that_are_not_the_tickets_are_refused(shelf):
    token = await shelf.token("ada")
    asked = {"path": "SKILL.md", "size": 2, "sha256": hashlib.sha256(b"ab").hexdigest()}
    ticket = (await shelf.client.post(f"{API}/skills/-/upload-url", json=asked, headers=token)).json()
    wrong = await shelf.client.post(ticket["uploadUrl"], content=b"cd", headers=token)
    assert wrong.status_code == 400
    right = await shelf.client.post(ticket["uploadUrl"], content=b"ab", headers=token)
    assert right.json()["storageId"] == ticket["uploadTicket"]
    large = {**asked, "size": 11 * 1024 * 1024}
    assert (
        await shelf.client.post(f"{API}/skills/-/upload-url", json=large, headers=token)
    ).status_code == 400


async def test_an_error_is_a_sentence_because_the_client_prints_what_it_gets(shelf):
    asked = {
        "/skills/nothing": "Skill not found: nothing",
        "/download?slug=nothing": "Not found, or sign-in needed",
        "/whoami": "Sign in",
        "/stars/nothing": "This registry does not offer /clawhub/api/v1/stars/nothing.",
    }
    for path, words in asked.items():
        answer = await shelf.client.get(API + path, headers={"accept": "application/json"})
        assert answer.status_code in (401, 404)
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.text.startswith(words) and "{" not in answer.text, answer.text
    refused = await shelf.client.get(f"{API}/whoami", headers={"authorization": "Bearer vsk_none"})
    assert refused.status_code == 401 and "The token is not valid" in refused.text


async def test_a_version_that_would_not_be_published_is_refused(shelf):
    """The client says that it published the version that it proposed, whatever the registry makes of it."""
    token = await shelf.token("ada")

    async def publish(version: str, text: bytes) -> Any:
        payload = {"payload": json.dumps({"slug": "sent", "version": version})}
        files = [("files", ("SKILL.md", text))]
        answer = await shelf.client.post(f"{API}/skills", data=payload, files=files, headers=token)
        with active_env(shelf.env):
            await run_until_quiet(shelf.env)
        return answer

    assert (await publish("1.0.0", SKILL_MD)).status_code == 200
    refused = await publish("1.1.0", SKILL_MD + b"more\n")
    assert refused.status_code == 400
    assert "would be published as 1.0.1, not as 1.1.0" in refused.text
    assert "write version: 1.1.0 into SKILL.md, or publish with --version 1.0.1" in refused.text
    assert (await publish("1.0.1", SKILL_MD + b"more\n")).status_code == 200
    declared = SKILL_MD.replace(b"---\n", b"---\nversion: 1.1.0\n", 1)
    assert "as 1.1.0, not as 1.0.2" in (await publish("1.0.2", declared)).text
    assert (await publish("1.1.0", declared)).status_code == 200
    with active_env(shelf.env):
        assert (await get_skill("upload~ada/skills/sent")).current_version == "1.1.0"


async def test_as_many_hits_as_are_asked_for(shelf):
    await put_copies(shelf.env, await shelf.publish("one"), 250)
    found = (await shelf.client.get(f"{API}/search", params={"q": "copy", "limit": 1000})).json()["results"]
    assert len(found) == 250
    listed = (await shelf.client.get(f"{API}/skills", params={"limit": 1000})).json()
    assert (len(listed["items"]), listed["nextCursor"]) == (251, None)
    await shelf.publish("copy-last", repo="https://github.com/other/tools")
    asked = {"q": "copy", "limit": 200, "owner": "other"}
    (one,) = (await shelf.client.get("/api/search", params=asked)).json()["skills"]
    assert one["id"] == "other/tools/copy-last"
    many = (await shelf.client.get("/api/search", params={"q": "copy", "limit": 1000})).json()["skills"]
    assert len(many) == 251
