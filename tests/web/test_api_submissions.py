"""Handing skills in over the API: the outcomes that the existing client tells apart, lists, and what an author may do."""

import pytest

from tests.support.envs import active_env, make_submission, put_record, run_until_quiet, skill_files
from tests.support.shelf import open_shelf
from vskill_core.errors import SourceUnavailable
from vskill_core.findings import Severity
from vskill_core.identity import normalise
from vskill_platform.domain.blocklist import BlockEntry, place_target
from vskill_platform.domain.submissions.states import State, StateCategory, category_of
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.recall.blocklist import add_block

pytestmark = pytest.mark.anyio

REPO = "https://github.com/acme/tools"
PLACE = "skills/lint"
URL = "/api/v1/submissions"


@pytest.fixture
async def shelf(tmp_path):
    async with open_shelf(tmp_path, rate_limits="off") as opened:
        yield opened


def put(shelf, name="lint", body="", repo=REPO):
    shelf.sources.put(repo, f"skills/{name}", skill_files(name, body))


async def submit(shelf, **changes):
    body = {"repoUrl": REPO, "skillName": "lint", "skillPath": PLACE, "source": "cli", **changes}
    return await shelf.client.post(URL, json={key: value for key, value in body.items() if value is not None})


async def test_outcome_1_a_new_place_is_201_with_the_submission(shelf):
    put(shelf)
    answer = await submit(shelf)
    body = answer.json()
    assert (answer.status_code, body["state"], body["skillName"], body["skillPath"]) == (
        201,
        "RECEIVED",
        "lint",
        PLACE,
    )
    assert body["id"].startswith("sub_") and body["createdAt"].endswith("Z")
    assert not {"duplicate", "alreadyVerified", "requeued", "blocked"} & set(body)


async def test_outcome_2_the_same_place_on_its_way_is_a_duplicate(shelf):
    put(shelf)
    first = (await submit(shelf)).json()
    answer = await submit(shelf)
    assert answer.status_code == 200
    assert (answer.json()["duplicate"], answer.json()["id"], answer.json()["submissionId"]) == (
        True,
        first["id"],
        first["id"],
    )
    assert answer.json()["state"] == "RECEIVED"


async def test_outcome_3_the_same_bytes_that_are_published_are_already_verified(shelf):
    put(shelf)
    first = (await submit(shelf)).json()
    await run_until_quiet(shelf.env)
    answer = await submit(shelf)
    assert (answer.status_code, answer.json()["alreadyVerified"], answer.json()["id"]) == (
        200,
        True,
        first["id"],
    )
    assert answer.json()["skillName"] == "lint"


async def test_outcome_4_changed_content_is_requeued(shelf):
    """B11: republishing is possible."""
    put(shelf)
    first = (await submit(shelf)).json()
    await run_until_quiet(shelf.env)
    put(shelf, body="another")
    answer = await submit(shelf)
    assert (answer.status_code, answer.json()["requeued"], answer.json()["id"]) == (200, True, first["id"])
    assert answer.json()["state"] == "RECEIVED"


async def test_outcome_5_what_is_blocked_is_told_so(shelf):
    put(shelf)
    first = (await submit(shelf)).json()
    with active_env(shelf.env):
        entry = BlockEntry(place_target(normalise(REPO, PLACE)), Severity.HIGH, "malware", "admin:eve", 1)
        await add_block(entry)
    answer = await submit(shelf)
    assert (answer.status_code, answer.json()["blocked"], answer.json()["submissionId"]) == (
        200,
        True,
        first["id"],
    )
    assert "malware" in answer.json()["reason"]


async def test_outcome_6_no_skill_at_the_path_is_a_422(shelf):
    put(shelf)
    answer = await submit(shelf, skillPath="skills/none")
    assert (answer.status_code, answer.json()["code"]) == (422, "no_skill_found")
    assert answer.json()["error"]


async def test_E8_a_host_that_is_down_is_a_503_and_not_a_missing_skill(shelf):
    put(shelf)
    shelf.sources.places[normalise(REPO, PLACE).key] = SourceUnavailable(
        "github.com is down", host="github.com"
    )
    answer = await submit(shelf)
    assert (answer.status_code, answer.json()["code"]) == (503, "source_unavailable")
    assert int(answer.headers["retry-after"]) > 0


async def test_a_name_without_a_path_is_found_in_the_repository(shelf):
    put(shelf)
    put(shelf, "draw")
    answer = await submit(shelf, skillPath=None, skillName="draw")
    assert (answer.status_code, answer.json()["skillPath"]) == (201, "skills/draw")
    assert (await submit(shelf, skillPath=None, skillName="none")).status_code == 422


async def test_a_repository_without_a_name_is_submitted_skill_by_skill(shelf):
    put(shelf)
    put(shelf, "draw")
    answer = await submit(shelf, skillPath=None, skillName=None)
    assert answer.status_code == 201
    assert [(one["skillPath"], one["state"]) for one in answer.json()["results"]] == [
        ("skills/draw", "RECEIVED"),
        ("skills/lint", "RECEIVED"),
    ]


async def test_many_places_each_have_an_outcome_of_their_own(shelf):
    put(shelf)
    places = [
        {"repoUrl": REPO, "skillPath": PLACE},
        {"repoUrl": REPO, "skillPath": "none"},
        {"repoUrl": "ftp://x/y/z"},
    ]
    answer = await shelf.client.post(f"{URL}/bulk", json={"submissions": places})
    first, second, third = answer.json()["results"]
    assert (first["state"], second["code"], third["code"]) == ("RECEIVED", "no_skill_found", "invalid_input")
    assert second["error"] and third["error"]


async def test_discovering_lists_skills_and_submits_none(shelf):
    put(shelf)
    found = (await shelf.client.post(f"{URL}/discover", json={"repoUrl": "acme/tools"})).json()
    assert [(one["name"], one["path"]) for one in found["skills"]] == [("lint", PLACE)]
    assert (await shelf.client.get(f"{URL}/stats")).json()["total"] == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "repoUrl"),
        (b"{", "body"),
        (b"[]", "body"),
        (b"{}", "repoUrl"),
        (b'{"repoUrl": 7}', "repoUrl"),
        (b'{"repoUrl": "https://github.com/x"}', "repoUrl"),
        (b'{"repoUrl": "' + b"a" * 3000 + b'"}', "repoUrl"),
        (b'{"repoUrl": "acme/tools", "skillPath": "../.."}', "skillPath"),
        (b'{"repoUrl": "\xff"}', "body"),
        (b"[" * 100_000, "body"),
    ],
)
async def test_a_bad_body_is_a_400_that_names_the_field(shelf, body, field):
    answer = await shelf.client.post(URL, content=body)
    assert answer.status_code == 400
    assert answer.json()["field"] == field


@pytest.mark.parametrize(
    ("body", "field", "also"),
    [
        ({"repoUrl": "acme\\tools"}, "repoUrl", "repoUrl has a backslash"),
        ({"repoUrl": "https://github.com/acme/tools/x"}, "repoUrl", "skillPath"),
        ({"repoUrl": "acme/tools", "skillPath": "a\\b"}, "skillPath", "skillPath has a backslash"),
        ({"repoUrl": "https://upload/a/b"}, "repoUrl", "reserved"),
    ],
)
async def test_a_refusal_names_fields_as_the_caller_wrote_them(shelf, body, field, also):
    for address in (URL, f"{URL}/discover"):
        told = (await shelf.client.post(address, json=body)).json()
        said = f"{told['detail']} {told['error']} {told['fix']}"
        assert told["field"] == field
        assert also in said and "repo_url" not in said and "skill_path" not in said
    (one,) = (await shelf.client.post(f"{URL}/bulk", json={"submissions": [body]})).json()["results"]
    assert one["error"] and "repo_url" not in one["error"] and "skill_path" not in one["error"]


async def test_a_refusal_names_query_parameters_as_the_caller_wrote_them(shelf):
    answer = await shelf.client.get("/api/v1/blocklist/check", params={"name": "lint", "repoUrl": "ftp://x"})
    assert (answer.status_code, answer.json()["field"]) == (400, "repoUrl")


@pytest.mark.parametrize(
    ("method", "address", "name"),
    [
        ("GET", "/api/v1/blocklist/check?name=lint&repo_url=https://github.com/acme/tools", "repo_url"),
        ("GET", "/api/v1/blocklist/check?name=lint&repo_url=a&repo_url=b", "repo_url"),
        ("POST", f"{URL}?skill_path=x", "skill_path"),
    ],
)
async def test_E4_a_refused_query_parameter_is_named_as_it_was_typed(shelf, method, address, name):
    answer = await shelf.client.request(method, address, json={"repoUrl": REPO} if method == "POST" else None)
    told = answer.json()
    assert (answer.status_code, told["field"]) == (400, name)
    assert f"query parameter '{name}'" in told["detail"]


async def test_a_refusal_repeats_what_it_refuses_as_it_was_typed(shelf):
    typed = "skill name_skill_name skill_path"
    body = {"repoUrl": f"https://github.com/o/{typed}"}
    told = (await shelf.client.post(URL, json=body)).json()
    assert (told["field"], told["detail"]) == ("repoUrl", f"'{typed}' is not a valid name.")
    (one,) = (await shelf.client.post(f"{URL}/bulk", json={"submissions": [body]})).json()["results"]
    assert one["error"] == f"{told['detail'].rstrip('.')}: {told['fix']}."


async def test_a_submission_tells_its_position_timings_and_scan(shelf):
    put(shelf)
    put(shelf, "draw")
    await submit(shelf, skillPath="skills/draw")
    number = (await submit(shelf)).json()["id"]
    waiting = (await shelf.client.get(f"{URL}/{number}")).json()
    assert waiting["position"]["place"] == 2
    positions = (await shelf.client.get(f"{URL}/positions", params={"ids": f"{number},sub_none"})).json()
    assert [(one["id"], one["position"]["place"]) for one in positions["positions"]] == [(number, 2)]
    await run_until_quiet(shelf.env)
    done = (await shelf.client.get(f"{URL}/{number}")).json()
    assert (done["state"], done["position"], done["publishedSkill"]) == ("PUBLISHED", None, "acme/tools/lint")
    assert done["scan"]["verdict"] == "PASS"
    assert set(done["timings"]) >= {"RECEIVED", "TIER1_SCANNING"}
    assert [event["to"] for event in done["history"]][:2] == ["RECEIVED", "TIER1_SCANNING"]


async def test_earlier_runs_stay_readable(shelf):
    put(shelf)
    number = (await submit(shelf)).json()["id"]
    await run_until_quiet(shelf.env)
    put(shelf, body="another")
    await submit(shelf)
    runs = (await shelf.client.get(f"{URL}/{number}/runs")).json()["runs"]
    assert [(one["run"], one["state"]) for one in runs] == [(2, "RECEIVED"), (1, "PUBLISHED")]


@pytest.mark.parametrize("category", list(StateCategory))
async def test_E3_a_category_finds_every_one_of_its_states(shelf, category):
    for number, state in enumerate(State):
        await put_record(shelf.env, make_submission(state.lower(), state=state, at=number))
    found = (await shelf.client.get(URL, params={"category": category.value})).json()["submissions"]
    assert {one["state"] for one in found} == {
        state.value for state in State if category_of(state) is category
    }


async def test_lists_are_paged_searched_and_sorted(shelf):
    for number in range(5):
        await put_record(shelf.env, make_submission(f"skill{number}", at=1_000 + number))
    for params, expected in (
        ({}, [4, 3, 2, 1, 0]),
        ({"direction": "asc"}, [0, 1, 2, 3, 4]),
        ({"sort": "created"}, [4, 3, 2, 1, 0]),
        ({"state": "RECEIVED"}, [4, 3, 2, 1, 0]),
    ):
        seen, after = [], None
        while True:
            answer = await shelf.client.get(
                URL, params={**params, "limit": 2, **({"after": after} if after else {})}
            )
            page = answer.json()
            seen += [one["skillName"] for one in page["submissions"]]
            after = page["after"]
            if after is None:
                break
        assert seen == [f"skill{number}" for number in expected], params
    found = (await shelf.client.get(URL, params={"q": "skill3"})).json()
    assert [one["skillName"] for one in found["submissions"]] == ["skill3"]


@pytest.mark.parametrize(
    ("query", "field"),
    [("state=WRONG", "state"), ("category=x", "category"), ("state=RECEIVED&category=waiting", "category"),
     ("state=RECEIVED&sort=created", "sort"), ("q=x&after=y", "after"), ("after=y", "after"), ("mine=2", "mine")],
)  # fmt: skip
async def test_E4_a_filter_that_cannot_be_served_is_a_400_that_names_it(shelf, query, field):
    answer = await shelf.client.get(f"{URL}?{query}")
    assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_mine_shows_what_the_account_submitted_and_needs_one(shelf):
    put(shelf)
    put(shelf, "draw")
    ada = await shelf.token("ada")
    body = {"repoUrl": REPO, "skillPath": PLACE}
    assert (await shelf.client.post(URL, json=body, headers=ada)).status_code == 201
    await submit(shelf, skillPath="skills/draw")
    found = (await shelf.client.get(f"{URL}?mine=1", headers=ada)).json()["submissions"]
    assert [one["skillName"] for one in found] == ["lint"]
    narrowed = (await shelf.client.get(f"{URL}?mine=1&state=PUBLISHED", headers=ada)).json()["submissions"]
    assert narrowed == []
    assert (await shelf.client.get(f"{URL}?mine=1")).status_code == 401


async def test_only_its_submitter_or_a_reviewer_cancels_and_reruns(shelf):
    put(shelf)
    ada, bob = await shelf.token("ada"), await shelf.token("bob")
    eve = await shelf.token("eve", Role.REVIEWER)
    number = (await shelf.client.post(URL, json={"repoUrl": REPO, "skillPath": PLACE}, headers=ada)).json()[
        "id"
    ]
    why = {"reason": "not ready yet"}
    assert (await shelf.client.post(f"{URL}/{number}/cancel", json=why)).status_code == 401
    assert (await shelf.client.post(f"{URL}/{number}/cancel", json=why, headers=bob)).status_code == 403
    assert (
        await shelf.client.post(f"{URL}/{number}/cancel", json={"reason": ""}, headers=ada)
    ).status_code == 400
    done = await shelf.client.post(f"{URL}/{number}/cancel", json=why, headers=ada)
    assert (done.status_code, done.json()["state"]) == (200, "DEQUEUED")
    assert done.json()["history"][-1]["actor"] == "user:ada"
    assert (await shelf.client.post(f"{URL}/{number}/cancel", json=why, headers=ada)).status_code == 409
    again = await shelf.client.post(f"{URL}/{number}/rerun", json=why, headers=eve)
    assert (again.json()["state"], again.json()["run"]) == ("RECEIVED", 2)


async def test_a_token_without_the_scope_does_not_submit(shelf):
    put(shelf)
    reading = await shelf.token("ada", scopes=("read",))
    answer = await shelf.client.post(URL, json={"repoUrl": REPO, "skillPath": PLACE}, headers=reading)
    assert (answer.status_code, answer.json()["needs"]) == (403, "submit")


async def test_the_blocklist_check_is_scoped_by_repository(shelf):
    """D10: a block of one repository's skill says nothing about another's of that name."""
    await shelf.publish("google")
    await shelf.publish("google", repo="https://github.com/other/tools")
    with active_env(shelf.env):
        target = place_target(normalise(REPO, "skills/google"))
        await add_block(BlockEntry(target, Severity.HIGH, "malware", "admin:eve", 1, content_hash="c" * 64))
    check = "/api/v1/blocklist/check"
    hit = (await shelf.client.get(check, params={"name": "google", "repoUrl": REPO})).json()
    assert (hit["blocked"], hit["entry"]["reason"], hit["tainted"]) == (True, "malware", True)
    other = (await shelf.client.get(check, params={"name": "google", "repoUrl": "other/tools"})).json()
    assert (other["blocked"], other["tainted"]) == (False, False) and "entry" not in other
    for asked, blocked in (
        # Whose skill of that name it is, nobody said.
        ({"name": "google"}, False),
        ({"name": "google", "version": "1.0.0"}, True),
        ({"name": "google-other"}, False),
        ({"name": "google-other", "version": "1.0.0"}, False),
        ({"name": "acme/tools/google"}, True),
    ):
        assert (await shelf.client.get(check, params=asked)).json()["blocked"] is blocked, asked
    assert (await shelf.client.get(check, params={"hash": "c" * 64})).json()["blocked"] is True
    assert (await shelf.client.get(check)).status_code == 400
    listed = (await shelf.client.get("/api/v1/blocklist")).json()
    assert (listed["count"], listed["entries"][0]["skillName"]) == (1, "google")


async def test_the_blocklist_check_tells_a_refusal(shelf):
    record = make_submission("lint", identity=normalise(REPO, PLACE), state=State.REJECTED, at=5)
    await put_record(shelf.env, record)
    found = (
        await shelf.client.get("/api/v1/blocklist/check", params={"name": "lint", "repoUrl": REPO})
    ).json()
    assert (found["blocked"], found["rejected"]) == (False, True)
    assert (found["rejection"]["state"], found["rejection"]["skillName"]) == ("REJECTED", "lint")
    assert found["rejection"]["reason"] and found["rejection"]["rejectedAt"].endswith("Z")
    other = {"name": "lint", "repoUrl": "other/tools"}
    assert (await shelf.client.get("/api/v1/blocklist/check", params=other)).json()["rejected"] is False


async def test_reports_are_filed_once_by_an_account_and_once_by_an_address(shelf):
    await shelf.publish("lint")
    ada = await shelf.token("ada")
    path, body = (
        "/api/v1/skills/acme/tools/lint/reports",
        {"reason": "It phones home.", "category": "malware"},
    )
    statuses = [(await shelf.client.post(path, json=body)).status_code for _ in range(2)]
    assert statuses == [201, 200]
    first = await shelf.client.post(path, json=body, headers=ada)
    again = await shelf.client.post(path, json=body, headers=ada)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert (first.json()["new"], again.json()["new"]) == (True, False)


async def test_webhooks_are_an_admins_and_show_their_secret_once(shelf):
    ada, eve = await shelf.token("ada"), await shelf.token("eve", Role.ADMIN)
    body = {"url": "https://example.org/hook", "events": ["skill.published"]}
    assert (await shelf.client.post("/api/v1/webhooks", json=body)).status_code == 401
    assert (await shelf.client.post("/api/v1/webhooks", json=body, headers=ada)).status_code == 403
    made = await shelf.client.post("/api/v1/webhooks", json=body, headers=eve)
    assert made.status_code == 201 and made.json()["secret"].startswith("whsec_")
    listed = await shelf.client.get("/api/v1/webhooks", headers=eve)
    assert made.json()["secret"] not in listed.text
    number = made.json()["webhook"]["id"]
    assert (await shelf.client.delete(f"/api/v1/webhooks/{number}", headers=eve)).status_code == 204
    assert (await shelf.client.delete(f"/api/v1/webhooks/{number}", headers=eve)).status_code == 404
    bad = {"url": "https://user:pass@example.org/", "events": ["skill.published"]}
    assert (await shelf.client.post("/api/v1/webhooks", json=bad, headers=eve)).status_code == 400
