"""What owners do on pages. That every entry point leaves the same records is in tests/actions/test_entry_points.py."""

import re

import pytest

from tests.support.envs import run_until_quiet
from tests.support.git_server import git_server, skill_md
from tests.support.owners import set_owners
from tests.support.people import Person, signed_in
from tests.support.site import open_site
from vskill_core.identity import normalise
from vskill_platform.actions.people.owners import PROOF_FILE
from vskill_platform.intake.submit import submit_repository
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.owners import Owner
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

URL = "https://github.com/ann/tools"
FILES = {"SKILL.md": skill_md("tools")}


@pytest.fixture
def git(tmp_path):
    with git_server(tmp_path / "served") as server:
        yield server


@pytest.fixture
async def site(tmp_path, git):
    async with open_site("memory", tmp_path, source_rewrites=(git.rewrite(),)) as opened:
        yield opened


@pytest.fixture
async def ann(site):
    async with signed_in(create_app(site.env), site.env, "ann", Role.AUTHOR) as person:
        yield person


async def own(site, account: str) -> None:
    await set_owners(site.env, normalise(URL), Owner(account, site.env.kv.now(), "file"))


async def claim_by_form(ann: Person) -> str:
    """Claim it, and find the token on the page."""
    page = await ann.send("/account/claim", repo_url=URL)
    assert page.status_code == 201 and page.headers["cache-control"] == "no-store"
    found = re.search(r"vskill-owner-[\w-]+", page.text)
    assert found is not None and PROOF_FILE in page.text
    return found[0]


async def test_a_password_account_claims_checks_and_hands_over(site, git, ann):
    repo = git.repo("ann/tools", FILES)
    page = await ann.get(f"/account?claim={URL}")
    assert f'value="{URL}"' in page.text and "You control no repository yet" in page.text
    token = await claim_by_form(ann)
    shown = (await ann.get("/account")).text
    assert token not in shown and "Time left" in shown and "New token" in shown
    said = await ann.do("/account/check", repo_url=URL)
    assert f"There is no file {PROOF_FILE}" in said and "commit it with the token" in said
    repo.commit({**FILES, PROOF_FILE: token})
    assert "is yours now" in await ann.do("/account/check", repo_url=URL)
    assert "proved by the file" in (await ann.get("/account")).text
    assert "Nothing was changed" in await ann.do(
        "/account/transfer", repo_url=URL, to="bob", reason="moved on"
    )
    async with signed_in(create_app(site.env), site.env, "bob", Role.AUTHOR) as bob:
        sent = {"repo_url": URL, "to": "bob", "reason": "moved on", "confirm": "yes"}
        assert await ann.do("/account/transfer", **sent) == f"{URL} now belongs to bob."
        assert "handed over by ann: moved on" in (await bob.get("/account")).text
    assert "You control no repository yet" in (await ann.get("/account")).text


async def test_a_host_that_is_down_is_told_on_the_page(git, ann):
    await claim_by_form(ann)
    git.faults["/ann"] = 503
    assert "github.com" in await ann.do("/account/check", repo_url=URL)


async def test_an_owner_withdraws_brings_back_and_deletes_on_the_skills_page(site, ann):
    name = await site.publish("tidy", namespace="ann")
    await site.publish("tidy", namespace="ann", body="more")
    place = f"/skills/{name}"
    versions = await ann.get(f"{place}/versions")
    assert f'action="{place}/yank"' in versions.text
    back = f"{place}/versions"
    said = await ann.do(f"{place}/yank", version="1.0.1", reason="broken", back=back)
    assert said == "Version 1.0.1 is withdrawn. Version 1.0.0 is current."
    shown = (await ann.get(back)).text
    assert "broken" in shown and f'action="{place}/unyank"' in shown
    said = await ann.do(f"{place}/unyank", version="1.0.1", reason="mended", back=back)
    assert said == "Version 1.0.1 can be installed again."
    refused = await ann.do(f"{place}/delete", reason="gone", back=place)
    assert "tick the box" in refused
    assert "is deleted" in await ann.do(f"{place}/delete", reason="gone", confirm="yes")
    assert (await get_skill(name)).withdrawn


async def test_only_owners_see_the_forms_and_others_the_way_to_claim(site, git, ann):
    git.repo("ann/tools", FILES)
    name = await published_repository(site)
    for path in (f"/skills/{name}", f"/owners/{name.partition('/')[0]}"):
        assert "claim=" not in (await site.get(path)).text, "nobody is signed in"
        assert f"/account?claim={URL.replace(':', '%3A')}" in (await ann.get(path)).text
    assert "This skill is yours" not in (await ann.get(f"/skills/{name}")).text
    refused = await ann.do(f"/skills/{name}/delete", reason="mine", confirm="yes", back=f"/skills/{name}")
    assert "Only a maintainer" in refused and "claim the repository on your account page" in refused
    await own(site, "ann")
    page = (await ann.get(f"/skills/{name}")).text
    assert "This skill is yours" in page and "Claim it" not in page
    assert "These repositories are yours" in (await ann.get(f"/owners/{name.partition('/')[0]}")).text


async def published_repository(site) -> str:
    await submit_repository(URL)
    await run_until_quiet(site.env)
    return "ann/tools/tools"
