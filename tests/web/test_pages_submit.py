"""Submitting by hand: an address, the skills found there, what became of each; and archives of one's own."""

import io
import zipfile

import pytest

from tests.support.envs import run_until_quiet
from tests.support.html import Page
from tests.support.site import open_example_site
from tests.support.system_reads import get_submission
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.store.people.accounts import Role, create_user
from vskill_platform.store.people.credentials import open_session
from vskill_platform.store.submissions.submission_lists import find_submissions
from vskill_platform.web.browser import SESSION_COOKIE

pytestmark = pytest.mark.anyio

TOUR = "https://github.com/vskill-examples/tour"


@pytest.fixture
async def site(tmp_path):
    async with open_example_site(tmp_path) as opened:
        yield opened


async def found(site, repo: str = TOUR) -> Page:
    response = await site.post("/submit/find", {"repo": repo}, seen="/submit")
    assert response.status_code == 200, response.text
    return Page(response.text)


async def test_the_skills_of_a_repository_are_found_and_shown_with_boxes(site):
    page = await found(site)
    paths = [one["value"] for one in page.all("input") if one.get("name") == "path"]
    assert paths
    assert all(one["type"] == "checkbox" for one in page.all("input") if one.get("name") == "path")
    assert (await find_submissions(audiences=EVERYTHING)).items == ()


async def test_one_chosen_skill_leads_to_its_timeline(site):
    page = await found(site)
    path = next(one["value"] for one in page.all("input") if one.get("name") == "path")
    response = await site.post("/submit/send", {"repo": TOUR, "path": path}, seen="/submit")
    assert response.status_code == 303, response.text
    place = response.headers["location"]
    assert place.startswith("/submissions/sub_")
    await run_until_quiet(site.env)
    record = await get_submission(place.rpartition("/")[2])
    assert record.state is State.PUBLISHED
    assert record.source.value == "web"


async def test_a_folder_in_the_address_narrows_what_is_found_and_what_is_sent(site):
    every = await found(site)
    first = next(one["value"] for one in every.all("input") if one.get("name") == "path")
    page = await found(site, f"{TOUR}/tree/main/{first}")
    assert [one["value"] for one in page.all("input") if one.get("name") == "path"] == [first]
    repo = next(one["value"] for one in page.all("input") if one.get("name") == "repo")
    response = await site.post("/submit/send", {"repo": repo, "path": first}, seen="/submit")
    assert response.status_code == 303, response.text


@pytest.mark.parametrize(
    ("repo", "told"),
    [
        ("", "Give the address"),
        ("not an address", "address"),
        ("https://internal.example/a/b", "internal.example"),
        ("https://github.com/vskill-examples/nothing-here", "no public repository"),
        ("file:///etc", ""),
    ],
)
async def test_what_is_wrong_with_an_address_is_said_at_its_field(site, repo, told):
    response = await site.post("/submit/find", {"repo": repo}, seen="/submit")
    assert 400 <= response.status_code < 600
    page = Page(response.text)
    field = next(one for one in page.all("input") if one.get("name") == "repo")
    assert field["value"] == repo
    assert field["aria-invalid"] == "true"
    assert page.has_class("field__error")
    assert told in page.text


async def test_nothing_chosen_is_said(site):
    response = await site.post("/submit/send", {"repo": TOUR}, seen="/submit")
    assert response.status_code == 400
    assert "No skill was chosen" in response.text


async def test_a_form_of_another_site_is_refused(site):
    response = await site.client.post("/submit/send", data={"repo": TOUR, "path": "x"})
    assert response.status_code == 403
    assert (await find_submissions(audiences=EVERYTHING)).items == ()


async def test_an_upload_needs_an_account(site):
    page = await site.page("/submit")
    assert any("/signin" in link for link in page.links)
    response = await site.client.post("/submit/upload", data={})
    assert response.status_code in (303, 401)


# Uploads.

SKILL_MD = "---\nname: packed\ndescription: A packed skill.\n---\n# Packed\n"


def archive(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        for name, text in files.items():
            opened.writestr(name, text)
    return made.getvalue()


@pytest.fixture
async def signed_in(site):
    user = await create_user(
        "alice", role=Role.AUTHOR, password="correct horse battery", by="admin:test", reason="a test"
    )
    site.client.cookies.set(SESSION_COOKIE, await open_session(user, "password"))
    return site


async def upload(site, data: bytes, name: str = ""):
    files = {"archive": ("skill.zip", data, "application/zip")}
    return await site.post("/submit/upload", {"name": name}, seen="/submit", files=files)


async def test_an_archive_goes_into_the_namespace_of_the_account(signed_in):
    response = await upload(signed_in, archive({"SKILL.md": SKILL_MD}))
    assert response.status_code == 303, response.text
    await run_until_quiet(signed_in.env)
    record = await get_submission(response.headers["location"].rpartition("/")[2])
    assert (record.identity.owner, record.identity.path) == ("alice", "packed")
    assert record.state is State.PUBLISHED
    assert record.submitter == "alice"


@pytest.mark.parametrize(
    ("data", "name", "field"),
    [
        (b"", "", "archive"),
        (b"not an archive", "", "archive"),
        (archive({"README.md": "no skill"}), "", "archive"),
        (archive({"SKILL.md": " \n"}), "given", "archive"),
        (archive({"SKILL.md": "no front matter, so no name"}), "", "name"),
        (archive({"../SKILL.md": SKILL_MD}), "", "archive"),
        (archive({"SKILL.md": SKILL_MD}), "../../etc", "name"),
    ],
)
async def test_what_is_wrong_with_an_archive_is_said_at_its_field(signed_in, data, name, field):
    response = await upload(signed_in, data, name)
    assert 400 <= response.status_code < 500
    page = Page(response.text)
    wrong = [one["name"] for one in page.all("input") if one.get("aria-invalid") == "true"]
    assert wrong == [field], page.text
    assert (await find_submissions(audiences=EVERYTHING)).items == ()


async def test_an_archive_that_is_too_large_is_refused_before_it_is_read(signed_in):
    response = await upload(signed_in, b"x" * 21_200_000)
    assert response.status_code == 413
