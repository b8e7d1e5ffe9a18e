"""A skill made of nothing but attacks renders inert, on every page that shows any of it.

Names of files, the description, the licence, the body and every other field that a submitter fills come through the
real pipeline; fields that the pipeline would refuse are put into the record as if a check had failed.
"""

import msgspec
import pytest

from tests.support.acting import take_down
from tests.support.envs import run_until_quiet
from tests.support.html import Page, what_could_run
from tests.support.site import open_site
from vskill_core.content import SkillFile
from vskill_core.findings import (
    Coverage,
    Finding,
    FindingCategory,
    FindingKind,
    Severity,
    StaticReport,
)
from vskill_platform.domain import keys
from vskill_platform.intake.submit import submit_upload
from vskill_platform.store.external_scans import ExternalFinding, ExternalReport, ExternalStatus
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.web.app import ENDPOINTS

pytestmark = pytest.mark.anyio

SCRIPT = "<script>alert('{}')</script>"
ATTACK = '"><script>alert(1)</script><img src=x onerror=alert(1)><svg onload=alert(1)>'
QUOTED = "' onmouseover='alert(1)' x='"
TEMPLATE = "{{ 7 * 7 }}{% for x in (1,) %}{{ x }}{% endfor %}"
EVERYTHING = f"{ATTACK} {QUOTED} {TEMPLATE} javascript:alert(1) </title></textarea></script>"

BODY = f"""
# {ATTACK}

{ATTACK}

[click](javascript:alert(1)) [data](data:text/html,<script>alert(1)</script>) ![i](//evil.example/x.png)

<div hx-get="/admin" hx-trigger="load" style="position:fixed"></div>

| {ATTACK} |
|---|
| {QUOTED} |

```{ATTACK}
{ATTACK}
```
"""
PATHS = (
    "' onmouseover='alert(1)'.txt",
    "&lt;script&gt;alert(1)&lt;.md",
    "{{ 7+7 }}.html",
    "a b&c;d#e%41.svg",
    "javascript%3Aalert(1)",
    "ünïcödé/雪.txt",
)


def hostile_files() -> tuple[SkillFile, ...]:
    head = f"""---
name: attack
description: >-
  {EVERYTHING}
license: "{ATTACK.replace('"', "'")}"
compatibility: "{ATTACK.replace('"', "'")}"
metadata:
  category: "{ATTACK.replace('"', "'")}"
  author: "{ATTACK.replace('"', "'")}"
---
"""
    skill_md = SkillFile("SKILL.md", "100644", (head + BODY).encode())
    return (skill_md, *(SkillFile(path, "100755", (ATTACK + BODY).encode()) for path in PATHS))


class Hostile:
    """A scanner whose findings quote the attack, as a real one's excerpts do."""

    ruleset = "test-1"

    async def scan(self, files):
        findings = [
            Finding(
                EVERYTHING[:60],
                severity,
                FindingCategory.OBFUSCATION,
                kind,
                path,
                1,
                1,
                ATTACK,
                ATTACK,
                ATTACK,
            )
            for path in PATHS
            for severity, kind in (
                (Severity.LOW, FindingKind.MALICE),
                (Severity.MEDIUM, FindingKind.CAPABILITY),
            )
        ][:10]
        return StaticReport(self.ruleset, findings=tuple(findings), coverage=Coverage(1, 1))


@pytest.fixture
async def site(tmp_path):
    async with open_site("memory", tmp_path, scanner=Hostile()) as opened:
        submitted = await submit_upload(hostile_files(), namespace="attacker", slug="attack")
        await run_until_quiet(opened.env)
        assert submitted.submission is not None
        await _put_external_report(opened.env, (await get_skill(CANONICAL)).current_digest)
        yield opened


CANONICAL = "upload~attacker/skills/attack"
PLACE = f"/skills/{CANONICAL}"


async def _put_external_report(env, digest):
    found = ExternalFinding(EVERYTHING[:80], Severity.HIGH, PATHS[0], 1, ATTACK)
    report = ExternalReport(ATTACK, ExternalStatus.COMPLETE, 1, 2, ATTACK, findings=(found,), problem=ATTACK)
    await env.kv.put(keys.extscan(digest, "hostile"), msgspec.json.encode(report))


async def all_pages(site) -> list[str]:
    listed = await site.page(f"{PLACE}/files")
    files = [link for link in listed.links if f"{PLACE}/files/" in link]
    assert len(files) == len(PATHS) + 1
    submissions = [link for link in (await site.page(PLACE)).links if link.startswith("/submissions/")]
    known = {one.path for one in ENDPOINTS}
    shared = [
        path for path in ("/", "/skills", "/queue", "/owners/attacker") if path in known or "{" not in path
    ]
    shared = [path for path in shared if path in known or path.startswith("/owners/")]
    searches = [f"/skills?q={q}" for q in ("attack", "%22%3E%3Cscript%3Ealert(1)%3C/script%3E")]
    facets = ["/skills?owner=%22%3E%3Cimg+src%3Dx+onerror%3Dalert(1)%3E"]
    return [
        *shared,
        *searches,
        *facets,
        PLACE,
        *files,
        f"{PLACE}/files",
        f"{PLACE}/versions",
        f"{PLACE}/security",
        *submissions,
    ]


async def test_every_page_about_it_is_inert(site):
    for path in await all_pages(site):
        response = await site.get(path)
        assert response.status_code == 200, path
        _inert(response.text, path)


async def test_it_is_shown_as_the_text_that_it_is(site):
    """Escaped, not removed: a reader sees what the author wrote."""
    page = await site.page(PLACE)
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7 * 7 }}" in page.text


async def test_every_field_of_its_record_is_inert_even_where_a_check_failed(site):
    """Fields that admission would never let through: name, owner, repository, address, category, licence, version."""
    skill = await get_skill(CANONICAL)
    assert skill.listing is not None
    version = msgspec.structs.replace(skill.versions[0], by=ATTACK, reason=ATTACK, declared=ATTACK)
    hostile = msgspec.structs.replace(
        skill,
        name=EVERYTHING,
        owner=EVERYTHING,
        repo=EVERYTHING,
        slug=EVERYTHING,
        description=EVERYTHING,
        repo_url="javascript:alert(1)",
        aliases=(EVERYTHING,),
        versions=(version,),
        identity=msgspec.structs.replace(
            skill.identity, host="example.org", owner=ATTACK, repo=ATTACK, path=ATTACK
        ),
        listing=msgspec.structs.replace(
            skill.listing, category=EVERYTHING, licence=EVERYTHING, agent=EVERYTHING
        ),
    )
    await site.env.kv.put(keys.skill(CANONICAL), msgspec.json.encode(hostile))
    for path in (
        "/",
        "/skills",
        "/skills?q=script",
        PLACE,
        f"{PLACE}/files",
        f"{PLACE}/versions",
        f"{PLACE}/security",
    ):
        response = await site.get(path)
        assert response.status_code == 200, (path, response.text[:500])
        _inert(response.text, path)


async def test_the_reason_of_a_takedown_is_inert(site):
    await take_down(CANONICAL, by=f"admin:{ATTACK}"[:60], reason=EVERYTHING)
    for path in (PLACE, f"{PLACE}/versions"):
        response = await site.get(path)
        _inert(response.text, path)
        assert "alert(1)" in Page(response.text).text


@pytest.mark.parametrize(
    "path",
    [
        "/skills/%3Cscript%3Ealert(1)%3C%2Fscript%3E/x/y",
        "/skills/%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E",
        "/owners/%3Cscript%3Ealert(1)%3C/script%3E",
        "/docs/%3Cscript%3Ealert(1)%3C/script%3E",
        "/%3Cscript%3Ealert(1)%3C/script%3E",
        "/skills?q=%3Cscript%3Ealert(1)%3C/script%3E",
        "/skills?%3Cscript%3Ealert(1)%3C/script%3E=1",
        "/submit?repo=%22%3E%3Cscript%3Ealert(1)%3C/script%3E",
        f"{PLACE}/files/%3Cscript%3Ealert(1)%3C/script%3E",
        f"{PLACE}?reported=%3Cscript%3E",
        f"{PLACE}/versions/diff?from=%3Cscript%3E&to=x",
    ],
)
async def test_an_address_made_of_an_attack_is_inert(site, path):
    response = await site.get(path)
    assert response.status_code in (200, 302, 400, 404)
    assert "set-cookie: x" not in str(response.headers).lower()
    if response.headers["content-type"].startswith("text/html"):
        _inert(response.text, path)


async def test_a_redirect_cannot_carry_a_header(site):
    response = await site.get("/skills/attack%0d%0aset-cookie:%20x=1")
    assert "x=1" not in response.headers.get("set-cookie", "")
    assert response.status_code in (400, 404)


def _inert(text: str, path: str) -> None:
    assert what_could_run(text) == [], path
    page = Page(text)
    assert all(one.get("src", "").startswith("/static/") for one in page.all("script")), path
    assert all(one.get("src", "").startswith("/api/v1/skills/") for one in page.all("img")), path
    assert not any(
        "hx-get" in attributes and tag == "div" and attributes["hx-get"] == "/admin"
        for tag, attributes in page.elements
    )
    assert "49" not in [word.strip() for word in page.texts], path
