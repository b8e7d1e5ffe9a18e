"""E6 over the API: a submission's place, state and reasons are for everybody; who submitted it, who decided about it and
which machine worked on it are for those who may know. And the same people may act as on the pages."""

import msgspec
import pytest

from tests.support.acting import approve
from tests.support.envs import active_env, make_submission, put_record, run_until_quiet, skill_files
from tests.support.owners import set_owners
from tests.support.shelf import open_shelf
from vskill_core.identity import normalise
from vskill_platform.domain.submissions import attempts
from vskill_platform.domain.submissions.states import State
from vskill_platform.queue.control import pause_queue
from vskill_platform.store.claims import HeldClaim, claim_submission
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.owners import Owner

pytestmark = pytest.mark.anyio

REPO = "https://github.com/acme/tools"
PLACE = "skills/lint"
URL = "/api/v1/submissions"
#: Names that stand nowhere else in an answer.
AUTHOR, REVIEWER, MACHINE = "melusine", "quentin", "engine-room-7"


@pytest.fixture
async def shelf(tmp_path):
    async with open_shelf(tmp_path, rate_limits="off") as opened:
        opened.sources.put(REPO, PLACE, skill_files("lint"))
        yield opened


async def submitted(shelf, headers=None) -> str:
    body = {"repoUrl": REPO, "skillPath": PLACE}
    number: str = (await shelf.client.post(URL, json=body, headers=headers or {})).json()["id"]
    return number


@pytest.mark.parametrize("path", ["", "/runs"])
async def test_E6_names_are_for_those_who_may_know(shelf, path):
    """A stranger learns that somebody submitted, reviewed and worked, when and why; never who, nor on which machine."""
    author, reviewer = await shelf.token(AUTHOR), await shelf.token(REVIEWER, Role.REVIEWER)
    number = await submitted(shelf, author)
    await run_until_quiet(shelf.env)
    again = await shelf.client.post(f"{URL}/{number}/rerun", json={"reason": "once more"}, headers=reviewer)
    with active_env(shelf.env, worker_id=MACHINE):
        await claim_submission(number, again.json()["run"])
    place = f"{URL}/{number}{path}"
    nobody: dict[str, str] = {}
    for headers in (nobody, await shelf.token("bob")):
        text = (await shelf.client.get(place, headers=headers)).text
        assert '"worker":"a worker"' in text
        assert '"actor":"a reviewer"' in text
        assert '"submitter":null' in text
        assert not any(name in text for name in (AUTHOR, REVIEWER, MACHINE))
    own = (await shelf.client.get(place, headers=author)).text
    assert f'"submitter":"{AUTHOR}"' in own
    assert not any(name in own for name in (REVIEWER, MACHINE))
    whole = (await shelf.client.get(place, headers=reviewer)).text
    for words in (f'"submitter":"{AUTHOR}"', f'"actor":"admin:{REVIEWER}"', f'"worker":"{MACHINE}"'):
        assert words in whole


async def test_E6_the_first_step_is_its_submitters(shelf):
    author = await shelf.token(AUTHOR)
    number = await submitted(shelf, author)
    place = f"{URL}/{number}"
    assert (await shelf.client.get(place)).json()["history"][0]["actor"] == "its submitter"
    assert (await shelf.client.get(place, headers=author)).json()["history"][0]["actor"] == f"user:{AUTHOR}"


async def test_E6_reasons_name_nobody(shelf):
    """They are public wherever they are shown: after a worker's death, an approval and a pause."""
    reviewer = await shelf.token(REVIEWER, Role.REVIEWER)
    number = await submitted(shelf)
    judged = make_submission("judged", state=State.NEEDS_REVIEW, digest="d" * 64)
    stuck = make_submission("stuck", state=State.TIER1_SCANNING, claimed_until=1)
    assert stuck.claim is not None
    with active_env(shelf.env, worker_id=MACHINE) as env:
        held = await claim_submission(number, 1)
        assert isinstance(held, HeldClaim)
        await put_record(env, _taken_over(held.record, env.kv.now() + 60_000))
        await put_record(env, judged)
        claim = msgspec.structs.replace(stuck.claim, worker=MACHINE)
        await put_record(env, msgspec.structs.replace(stuck, claim=claim))
        await approve(judged.id, by=f"admin:{REVIEWER}", reason="read it all")
        await pause_queue(60_000, reason="an upgrade", by=f"admin:{REVIEWER}")
    public = ("/queue", "/api/v1/queue/health", URL, *(f"{URL}/{one}" for one in (number, judged.id)))
    for place in (*public, f"/submissions/{number}", f"/submissions/{judged.id}"):
        text = (await shelf.client.get(place)).text
        assert not any(name in text for name in (REVIEWER, MACHINE)), place
    health = "/api/v1/queue/health"
    assert "claim expired" in (await shelf.client.get(health)).json()["violations"][0]["problem"]
    assert (await shelf.client.get(health)).json()["pause"]["by"] == "a reviewer"
    assert (await shelf.client.get(health, headers=reviewer)).json()["pause"]["by"] == f"admin:{REVIEWER}"


def _taken_over(record, now):
    return attempts.claim(record, token="t", worker=MACHINE, now=now, event_ids=["take-1", "take-2"])


async def test_who_has_proved_to_control_the_repository_may_cancel(shelf):
    """As on the pages; having been the first to submit is not what counts."""
    number = await submitted(shelf)
    owner, stranger = await shelf.token("octo"), await shelf.token("bob")
    await set_owners(shelf.env, normalise(REPO, ""), Owner("octo", 1, "file"))
    why = {"reason": "not ready yet"}
    refused = await shelf.client.post(f"{URL}/{number}/cancel", json=why, headers=stranger)
    assert refused.status_code == 403
    assert "claim the repository" in refused.json()["fix"]
    done = await shelf.client.post(f"{URL}/{number}/cancel", json=why, headers=owner)
    assert (done.status_code, done.json()["state"]) == (200, "DEQUEUED")
