"""Publishing from CI, with npm's certified oidc-provider as the forge: it signs what a forge says about a job. What no
honest issuer can be made to do is in `tests/web/test_ci_publishing.py`."""

import pytest

from tests.clients.real_issuer import RealIssuer
from tests.clients.test_npm_oidc import ShiftedClock
from tests.support.ci_jobs import WORKFLOW, ci_world
from tests.support.envs import active_env, run_until_quiet
from tests.support.people import ADDRESS
from tests.support.system_reads import get_submission
from vskill_platform.sign_in.oidc import LOOK_AGAIN_MS, SKEW_S

pytestmark = [pytest.mark.anyio, pytest.mark.node]

#: What the issuer itself says of every token.
OWN = ("iss", "aud", "iat", "exp", "jti", "sub")
EVIL = "evil/ci/.github/workflows/publish.yml@refs/heads/main"
REFUSED = {
    "acme/other": {
        "repository": "acme/other",
        "workflow_ref": "acme/other/x@r",
        "job_workflow_ref": "acme/other/x@r",
    },
    "allows the workflow": dict.fromkeys(
        ("workflow_ref", "job_workflow_ref"), "acme/skills/.github/workflows/ci.yml@refs/heads/main"
    ),
    "allows refs/heads/feature": {"ref": "refs/heads/feature"},
    "runs what others propose": {"event_name": "pull_request", "ref": "refs/pull/7/merge"},
    f"{EVIL} is not in acme/skills": {"job_workflow_ref": EVIL},
}


async def test_a_job_of_the_right_workflow_publishes_and_every_other_is_told_why_not(tmp_path, installed):
    forge, clock = RealIssuer(installed, tmp_path, "forge"), ShiftedClock()
    async with ci_world(tmp_path / "world", clock=clock, issuers=(forge.address,)) as world:
        assert (await world.add(ref="refs/heads/main")).status_code == 201
        right = {name: said for name, said in world.claims().items() if name not in OWN}

        async def refused(token: str) -> str:
            answer = await world.exchange(token)
            assert answer.status_code == 403, answer.text
            return str(answer.json()["detail"])

        with forge.running():
            for sentence, lie in REFUSED.items():
                forge.write_job({**right, **lie})
                assert sentence in await refused(await forge.token_of_job(ADDRESS))
            forge.write_job(right)
            elsewhere = await forge.token_of_job("https://other.example")
            assert "its audience is https://other.example" in await refused(elsewhere)
            token = await forge.token_of_job(ADDRESS)
            let_in = await world.exchange(token)
            assert let_in.status_code == 200, let_in.text
            assert "it was used before" in await refused(token)
            late = await forge.token_of_job(ADDRESS)
        forge.write_keys()
        with forge.running():
            clock.shift += LOOK_AGAIN_MS + 1
            newer = await world.exchange(await forge.token_of_job(ADDRESS))
            assert newer.status_code == 200, newer.text
            assert "its signature is not one of" in await refused(late), "its key is gone"
            token = await forge.token_of_job(ADDRESS)
            clock.shift += (300 + SKEW_S) * 1000
            assert "it has expired" in await refused(token)
            clock.shift = 0
        job = {"authorization": f"Bearer {let_in.json()['token']}"}
        sent = await world.submit(job)
        assert sent.status_code == 201, sent.text
        with active_env(world.env):
            await run_until_quiet(world.env)
            record = await get_submission(sent.json()["id"])
    assert record.published is not None and record.publisher is not None, record.history
    assert record.publisher.issuer == forge.address and record.publisher.workflow == WORKFLOW
