"""Plugins from the repository to the client: found as what they are, published as one thing of one digest, served whole
to clients of plugins, and as a skill that tells of the rest to all others."""

import base64
import hashlib
import io
import itertools
import json
import zipfile

import httpx2
import msgspec
import pytest

from tests.support.acting import approve, restore, take_down
from tests.support.browsing import form_fields
from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.git_packs import clone_texts
from tests.support.git_server import git_server, skill_md
from tests.support.handed_out import collect
from tests.support.namespaces import manage
from tests.support.people import csrf_in, make_account, signed_in, token_of
from tests.support.plugins import REMOTE, hooks, manifest, older, servers
from tests.support.system_reads import get_submission
from vskill_client.wire.submissions import RunFindings
from vskill_core.content import SkillFile
from vskill_core.errors import InvalidManifest, NoSkillFound, NotPermitted
from vskill_core.identity import normalise, submission_id
from vskill_core.kind import MADE_HERE, PLUGIN_SCHEMA, Kind
from vskill_platform.actions.principal import OPERATOR as OPERATOR_ACTOR
from vskill_platform.actions.submissions.submissions import FINDINGS
from vskill_platform.bootstrap import env_for
from vskill_platform.domain.people.namespace import EVERYTHING, NamespaceRole, Visibility
from vskill_platform.domain.skills.plugin_form import whole_plugin
from vskill_platform.domain.submissions.states import State
from vskill_platform.installation.backup import back_up
from vskill_platform.installation.backup import restore as restore_backup
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.discover import discover, submit_skills
from vskill_platform.intake.submit import submit_repository, submit_upload
from vskill_platform.settings import Settings
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.skills.catalogue import search_skills
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

URL, NEW = "https://github.com/ann/tools", "https://github.com/ann/new"
#: What an outsider would learn it by.
WORDS = ("ann/tools", "Sort the files", "Looks after")
OPERATOR = SubmittedBy(audiences=EVERYTHING, operator=True)


ADDRESS = "/marketplace/ann/tools/tools.git"
PLUGIN = {
    "plugin.json": manifest(version="1.2.0", license="MIT"),
    "skills/tidy/SKILL.md": skill_md("tidy", "Sort the files by their age."),
    "skills/rename/SKILL.md": skill_md("rename"),
}


def below(folder: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return {f"{folder}/{path}": data for path, data in files.items()}


@pytest.fixture
def server(tmp_path):
    with git_server(tmp_path / "served") as running:
        yield running


@pytest.fixture
async def env(tmp_path, server):
    async with open_test_env("sqlite", tmp_path, source_rewrites=(server.rewrite(),)) as opened:
        yield opened


@pytest.fixture
async def client(env):
    transport = httpx2.ASGITransport(create_app(env))
    async with httpx2.AsyncClient(transport=transport, base_url="http://registry.test") as opened:
        yield opened


async def state_of(path: str = ""):
    return await get_submission(submission_id(normalise(URL, path)))


async def published(env, path: str = "", **asked):
    await submit_repository(URL, path, by=OPERATOR, **asked)
    await run_until_quiet(env)
    record = await state_of(path)
    assert record.state is State.PUBLISHED, record.why
    return await get_skill(record.published.removeprefix("skill:"))


async def test_a_root_with_a_manifest_and_no_skill_is_one_plugin(env, server):
    server.repo("ann/tools", PLUGIN)
    found = await discover(URL)
    assert [(one.path, one.kind, one.part_of) for one in found.skills] == [
        ("", Kind.PLUGIN, None),
        ("skills/rename", Kind.SKILL, ""),
        ("skills/tidy", Kind.SKILL, ""),
    ]
    done = await submit_skills(URL, every=True)
    assert [one.skill_path for one in done.results] == [""] and not done.not_submitted
    skill = await published(env)
    assert (skill.canonical, skill.kind, skill.current_version) == ("ann/tools/tools", Kind.PLUGIN, "1.2.0")
    assert skill.about.licence == "MIT"


async def test_it_is_found_by_the_words_of_each_of_its_skills(env, server):
    server.repo(
        "ann/tools", {**PLUGIN, "skills/fold/SKILL.md": skill_md("fold").replace(b"for tests", b"origami")}
    )
    skill = await published(env)
    for words in ("tidy", "rename", "origami", "looks after files"):
        hits = await search_skills(words, audiences=EVERYTHING)
        assert [one.canonical for one in hits.items] == [skill.canonical], words


async def test_several_plugins_and_a_marketplace_are_found_as_such(env, server):
    listed: list[dict[str, object]] = [
        {"name": name, "source": f"./plugins/{name}"} for name in ("a", "b", "c")
    ]
    listed.append({"name": "far", "source": {"source": "github", "repo": "x/y"}})
    listed.append({"name": "out", "source": "../other"})
    marketplace = json.dumps({"name": "m", "owner": {"name": "ann"}, "plugins": listed}).encode()
    files = {
        ".claude-plugin/marketplace.json": marketplace,
        **below("plugins/a", PLUGIN),
        **below("plugins/b", {".claude-plugin/plugin.json": older("b"), "commands/go.md": b"Go."}),
        "plugins/c/README.md": b"no manifest",
        "grafana/plugin.json": b'{"type": "panel", "name": "x"}',
        "alone/SKILL.md": skill_md("alone"),
    }
    server.repo("ann/tools", files)
    found = await discover(URL)
    whole = [(one.path, one.kind) for one in found.skills if one.part_of is None]
    assert whole == [("alone", Kind.SKILL), ("plugins/a", Kind.PLUGIN), ("plugins/b", Kind.PLUGIN)]
    assert [told.partition(" of ")[0] for told in found.elsewhere] == [
        "The plugin 'c'",
        "The plugin 'far'",
        "The plugin 'out'",
    ]
    assert "add plugin.json there" in found.elsewhere[0]
    done = await submit_skills(URL)
    assert sorted(one.skill_path for one in done.results) == ["alone", "plugins/a", "plugins/b"]
    await run_until_quiet(env)
    assert {(await state_of(path)).state for path in ("alone", "plugins/a", "plugins/b")} == {State.PUBLISHED}


async def test_a_root_skill_with_a_manifest_stays_a_skill_until_a_maintainer_says_otherwise(env, server):
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools"), **PLUGIN})
    skill = await published(env)
    assert skill.kind is Kind.SKILL
    with pytest.raises(NotPermitted, match="Only a maintainer of ann"):
        await submit_repository(URL, kind=Kind.PLUGIN)
    again = await published(env, kind=Kind.PLUGIN)
    assert (again.kind, again.canonical) == (Kind.PLUGIN, skill.canonical)
    repo.commit({"SKILL.md": skill_md("tools", "newer"), **PLUGIN})
    assert (await published(env)).kind is Kind.PLUGIN


async def test_a_kind_never_changes_by_the_files(env, server):
    """A plugin that loses its manifest, and a skill that loses its SKILL.md, are refused with the fix."""
    repo = server.repo("ann/tools", PLUGIN)
    assert (await published(env)).kind is Kind.PLUGIN
    repo.commit({"SKILL.md": skill_md("tools")})
    await submit_repository(URL)
    await run_until_quiet(env)
    record = await state_of()
    assert record.state is State.REJECTED and "submit it with --kind skill" in record.why
    assert (await get_skill("ann/tools/tools")).current_version == "1.2.0"
    assert (await published(env, kind=Kind.SKILL)).kind is Kind.SKILL


@pytest.mark.parametrize("places", list(itertools.permutations(("foo", "foo/skills/foo", "skills/foo"))))
async def test_a_plugin_its_skill_and_skills_of_the_same_name_have_an_address_each(
    env, server, client, places
):
    """Whatever is published first keeps its names, and what is handed out of it stays byte for byte. A plugin and a skill
    that was published from inside it lead to each other."""
    files = {
        **below("foo", {"plugin.json": manifest("foo"), "skills/foo/SKILL.md": skill_md("foo")}),
        "skills/foo/SKILL.md": skill_md("foo", "Beside the plugin."),
    }
    server.repo("ann/tools", files)
    first = await published(env, places[0])
    assert first.canonical == "ann/tools/foo"
    asked = dict.fromkeys(("marketplaces", "checks"), ()) | {
        "indexes": ("/ann/tools/foo",),
        "names": ("foo", "ann/tools/foo"),
        "skills": ("ann/tools/foo",),
    }
    before = await collect(client, asked)
    found = {places[0]: first.canonical}
    for place in places[1:]:
        found[place] = (await published(env, place)).canonical
    after = await collect(client, asked)
    assert after.pop("clawhub").items() >= before.pop("clawhub").items()
    assert before == after and before["names"]["foo"][0] == 200
    texts = {place: (await client.get(f"/skills/{name}")).text for place, name in found.items()}
    # The rest of a page names other skills of the owner.
    told = {place: text.partition('"parts"')[2].partition("</section>")[0] for place, text in texts.items()}
    plugin, inside, beside = (found[place] for place in ("foo", "foo/skills/foo", "skills/foo"))
    assert len({plugin, inside, beside}) == 3
    assert f'href="/skills/{inside}"' in told["foo"] and f'href="/skills/{beside}"' not in told["foo"]
    assert f'href="/skills/{plugin}"' in told["foo/skills/foo"] and not told["skills/foo"]
    part = await client.get(f"/skills/{plugin}/-/foo", follow_redirects=True)
    assert part.status_code == 200 and "skills/foo/SKILL.md" in part.text
    assert (await client.get(f"/skills/{plugin}/-/nothing")).status_code == 404
    for name in found.values():
        assert (await clone_texts(client, f"/marketplace/{name}.git")).status == 200


async def test_a_plugin_is_served_whole_in_both_forms(env, server, client):
    local = {"type": "stdio", "command": "./bin/serve.sh", "args": ["--root", "${PLUGIN_ROOT}/data"]}
    declared = servers(docs=REMOTE, files=local)
    program = ("100755", b"#!/bin/sh\necho ready\n")
    server.repo(
        "ann/tools",
        {
            **PLUGIN,
            "plugin.json": manifest(license="MIT", strange=1),
            "mcp.json": declared,
            "bin/serve.sh": program,
        },
    )
    await submit_repository(URL)
    await run_until_quiet(env)
    record = await state_of()
    assert record.state is State.PUBLISHED, record.why
    texts = (await clone_texts(client, "/marketplace/ann/tools/tools.git")).texts
    assert declared.decode() in texts and PLUGIN["skills/tidy/SKILL.md"].decode() in texts
    assert not any(MADE_HERE in text for text in texts)
    made = [json.loads(text) for text in texts if text.startswith('{\n  "')]
    (said,) = [one for one in made if one.get("$schema") == PLUGIN_SCHEMA]
    assert said == {
        "$schema": PLUGIN_SCHEMA,
        "name": "tools",
        "version": "1.0.0",
        "description": said["description"],
        "license": "MIT",
    }
    (claude,) = [one for one in made if "mcpServers" in one and "$schema" not in one]
    root = "${CLAUDE_PLUGIN_ROOT}"
    assert claude["mcpServers"] == {
        "docs": {"type": "http", "url": REMOTE["url"], "headers": {}},
        "files": {
            "command": f"{root}/bin/serve.sh",
            "args": ["--root", f"{root}/data"],
            "env": {},
            "cwd": root,
        },
    }


async def test_clients_without_plugins_get_its_skills_and_are_told_of_the_rest(env, server, client):
    server.repo("ann/tools", {**PLUGIN, "mcp.json": servers(docs=REMOTE)})
    skill = await published(env)
    index = (await client.get("/.well-known/agent-skills/index.json")).json()
    (entry,) = index["skills"]
    assert (
        entry["name"] == "tools" and "has 1 server, which only clients of plugins use" in entry["description"]
    )
    archive = zipfile.ZipFile(io.BytesIO((await client.get(entry["url"])).content))
    text = archive.read("SKILL.md").decode()
    assert "`skills/tidy/SKILL.md`: " in text and "It also has 1 server." in text
    assert archive.read("skills/tidy/SKILL.md") == PLUGIN["skills/tidy/SKILL.md"]
    shown = (await client.get(f"/api/v1/skills/{skill.canonical}")).json()["skill"]
    assert shown["kind"] == "plugin" and shown["content"] == text
    claw = (await client.get("/clawhub/api/v1/skills/tools")).json()
    assert "which only clients of plugins use" in claw["skill"]["summary"]


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("mcp.json", servers(files={"type": "stdio", "command": "npx", "args": ["-y", "x@1.0.0"]})),
        ("mcp.json", servers(docs=REMOTE)),
        ("hooks/hooks.json", hooks()),
    ],
    ids=["program", "server", "hook"],
)
async def test_an_update_that_gains_a_program_a_server_or_a_hook_reaches_nobody_until_a_person_agrees(
    env, server, client, path, data
):
    repo = server.repo("ann/tools", PLUGIN)
    skill = await published(env)
    repo.commit({**PLUGIN, path: data})
    await submit_repository(URL)
    await run_until_quiet(env)
    record = await state_of()
    assert record.state is State.NEEDS_REVIEW, (path, record.why)
    assert (await get_skill(skill.canonical)).current_version == "1.2.0"
    texts = (await clone_texts(client, ADDRESS)).texts
    assert data.decode() not in texts and PLUGIN["skills/tidy/SKILL.md"].decode() in texts
    await approve(record.id, by="admin:eve", reason="I know it")
    await run_until_quiet(env)
    assert (await get_skill(skill.canonical)).current_version == "1.2.1"
    assert data.decode() in (await clone_texts(client, ADDRESS)).texts


GIT = "git+https://github.com/ann/server"
NPX, UVX = {"type": "stdio", "command": "npx"}, {"type": "stdio", "command": "uvx"}
EVERY_PART = {
    **PLUGIN,
    "mcp.json": servers(
        own={"type": "stdio", "command": "./bin/serve.sh"},
        pinned={**NPX, "args": ["-y", "@ann/server@1.2.3"]},
        loose={**NPX, "args": ["-y", "@ann/loose"]},
        git={**UVX, "args": ["--from", GIT, "serve"]},
        commit={**UVX, "args": ["--from", f"{GIT}@{'a' * 40}", "serve"]},
        docs={**REMOTE, "headers": {"X-Tenant": "${TENANT}"}},
    ),
    "bin/serve.sh": ("100755", b"#!/bin/sh\necho ready\n"),
    "hooks/hooks.json": hooks(),
    "commands/go.md": b"Go.\n",
    "agents/critic.md": b"Criticise.\n",
    "com.example.client/rules.txt": b"Rules.\n",
}


async def test_every_kind_of_part_is_reviewed_on_the_card_and_in_the_comparison(env, server, client):
    """With its file and line, from the submission to the page; what is fetched when it starts is said to be unread."""
    files = {path: data for path, data in EVERY_PART.items() if path != "mcp.json"}
    repo = server.repo("ann/tools", files)
    skill = await published(env)
    repo.commit(EVERY_PART)
    await submit_repository(URL)
    await run_until_quiet(env)
    record = await state_of()
    assert record.state is State.NEEDS_REVIEW, record.why
    found = await FINDINGS(env, OPERATOR_ACTOR, RunFindings(submission_id=record.id))
    told = [
        (one.kind, one.value) for one in found.capabilities or () if one.kind in {"program", "server", "hook"}
    ]
    pin = f"{GIT}@{'a' * 40}"
    assert told == [
        ("program", "./bin/serve.sh (in the plugin)"),
        ("program", "npx -y @ann/loose (fetched when it starts, not pinned)"),
        ("program", "npx -y @ann/server@1.2.3 (fetched when it starts, pinned)"),
        ("program", f"uvx --from {GIT} serve (fetched when it starts, not pinned)"),
        ("program", next(value for _, value in told if value.startswith(f"uvx --from {pin} serve (fetched"))),
        ("server", next(value for kind, value in told if kind == "server")),
        ("hook", "Stop: true 0"),
    ]
    assert told[5][1].startswith(f"{REMOTE['url']} [X-Tenant; ") and "${TENANT}" not in told[5][1]
    await approve(record.id, by="admin:eve", reason="I know it")
    await run_until_quiet(env)
    report = (await client.get(f"/api/v1/skills/{skill.canonical}/security")).json()
    placed = {(one["kind"], one["value"]): (one["file"], one["line"]) for one in report["capabilities"]}
    assert {placed[one] for one in told} == {("mcp.json", 1), ("hooks/hooks.json", 1)}
    unread = sorted(value.split()[3].rstrip(",") for kind, value in placed if kind == "unread")
    assert unread == ["@ann/loose", "@ann/server@1.2.3", GIT, pin]
    compared = await client.get(f"/api/v1/skills/{skill.canonical}/versions/compare?from=1.2.0&to=1.2.1")
    added = [(one["kind"], one["value"]) for one in compared.json()["capabilities"]["added"]]
    assert set(told[:6]) <= set(added) and told[6] not in added
    page = (
        (await client.get(f"/skills/{skill.canonical}"))
        .text.partition('"parts"')[2]
        .partition("</section>")[0]
    )
    for word in (
        "loose",
        "commands/go.md",
        "agents/critic.md",
        "com.example.client",
        "/-/tidy",
        "/-/rename",
        "Stop",
    ):
        assert word in page, word


SKILL = {"skills/a/SKILL.md": skill_md("a")}
MEGABYTE = b" " * 1_000_000


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"plugin.json": manifest("Not A Name")}, "plugin.json line 1: the manifest does not fit the form"),
        (
            {"plugin.json": manifest(**{"$schema": PLUGIN_SCHEMA.replace("1.0.0", "2.0.0")}), **SKILL},
            f'names no version of the standard; write "$schema": "{PLUGIN_SCHEMA}".',
        ),
        (
            {"plugin.json": manifest(author={"name": "Ann", "phone": "1"}), **SKILL},
            "has an `author` with more than name, email and url; leave the rest out.",
        ),
        ({"plugin.json": manifest()}, "The plugin has no part that a client would use; put its skills into"),
        (
            {"plugin.json": manifest(), "mcp.json": servers(**{f"s{n}": REMOTE for n in range(200)})},
            "mcp.json line 1: it declares 200 servers, and at most 50 of a plugin are read; split it into",
        ),
        (
            {"plugin.json": manifest(), "hooks/hooks.json": hooks(200)},
            "hooks/hooks.json line 1: it declares 200 hooks, and at most 50 of a plugin are read; split it into",
        ),
        (
            {".claude-plugin/plugin.json": older() + MEGABYTE, **SKILL},
            "bytes, and at most 262144 are read; keep only what a client needs in it.",
        ),
        (
            {"plugin.json": manifest() + MEGABYTE, **SKILL},
            "bytes, and at most 262144 are read; keep only what a client needs in it.",
        ),
        (
            {".claude-plugin/plugin.json": b'{"name": "a", "name": "b"}', **SKILL},
            "the key 'name' stands twice",
        ),
        (
            {"plugin.json": manifest(), "skills/a/SKILL.md": ("120000", b"../../secret")},
            "is a symbolic link, which a skill may not hold; replace it by the file",
        ),
        (
            {"plugin.json": manifest(), "skills": ("120000", b"../../secret")},
            "'skills' is a symbolic link, which a skill may not hold; replace it by the file",
        ),
        (
            {"plugin.json": ("120000", b"other.json"), "other.json": manifest(), **SKILL},
            "'plugin.json' is a symbolic link, which a skill may not hold; replace it by the file",
        ),
        (
            {"plugin.json": manifest(), "servers/far": ("160000", "1" * 40), **SKILL},
            "is a submodule, which a skill may not hold; copy its files into the folder",
        ),
    ],
)
async def test_a_plugin_that_no_client_would_take_is_refused_with_a_sentence_and_its_fix(
    env, server, client, files, sentence
):
    """What was published before stays as it is."""
    repo = server.repo("ann/tools", PLUGIN)
    skill = await published(env)
    before = (await clone_texts(client, ADDRESS)).texts
    repo.commit(files)
    server.repo("ann/new", files)
    for url in (URL, NEW):
        await submit_repository(url)
        await run_until_quiet(env)
        record = await get_submission(submission_id(normalise(url)))
        assert record.state is State.REJECTED and sentence in record.why, record.why
    assert (await get_skill(skill.canonical)).current_version == "1.2.0"
    assert (await clone_texts(client, ADDRESS)).texts == before


async def test_of_a_repository_nothing_is_left_out_without_a_word(env, server):
    """A manifest that cannot be read stands for a plugin, and is refused with the reason; a file of a marketplace is told
    of."""
    server.repo(
        "ann/tools",
        {
            "link/plugin.json": ("120000", b"other.json"),
            "long/plugin.json": manifest() + MEGABYTE,
            **below("long", SKILL),
            ".claude-plugin/marketplace.json": MEGABYTE,
        },
    )
    found = await discover(URL)
    assert [(one.path, one.kind) for one in found.skills if one.problem] == [
        ("link", Kind.PLUGIN),
        ("long", Kind.PLUGIN),
    ]
    assert all("keep a short plain file there" in one.problem for one in found.skills if one.problem)
    (told,) = found.elsewhere
    assert told.endswith("is a link or too large, and was not read; keep a short plain file there.")
    done = await submit_skills(URL)
    assert [one.skill_path for one in done.results] == ["link", "long"]
    await run_until_quiet(env)
    assert {(await state_of(path)).state for path in ("link", "long")} == {State.REJECTED}


async def test_a_folder_with_neither_is_told_so(env, server):
    """An author who forgot what makes a file a manifest is told what it lacks."""
    panel = b'{"type": "panel"}'
    server.repo("ann/tools", {"README.md": b"hello", "panel/plugin.json": panel})
    lacking = r"There is no SKILL\.md .*\. Its plugin\.json would make it a plugin if it said \"\$schema\": "
    with pytest.raises(NoSkillFound, match=lacking):
        await submit_repository(URL, "panel")
    uploaded = (SkillFile("plugin.json", "100644", panel),)
    with pytest.raises(NoSkillFound, match=lacking):
        await submit_upload(uploaded, namespace="local", slug="tools", by=OPERATOR)
    with pytest.raises(NoSkillFound):
        await discover(URL)


async def test_an_uploaded_plugin_is_one_submission_and_the_same_bytes_are_known(env):
    files = tuple(SkillFile(path, "100644", data) for path, data in PLUGIN.items())
    active_env(env)
    first = await submit_upload(files, namespace="local", slug="tools", by=OPERATOR)
    await run_until_quiet(env)
    assert first.submission is not None
    record = await get_submission(first.submission.id)
    assert record.state is State.PUBLISHED, record.why
    assert (await get_skill("upload~local/skills/tools")).kind is Kind.PLUGIN
    again = await submit_upload(files, namespace="local", slug="tools", by=OPERATOR)
    assert again.outcome.value == "already verified"
    with pytest.raises(InvalidManifest, match="There is no manifest of a plugin"):
        await submit_upload(
            (SkillFile("SKILL.md", "100644", skill_md("x")),),
            namespace="local",
            slug="other",
            by=OPERATOR,
            kind=Kind.PLUGIN,
        )


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (
            {".claude-plugin/plugin.json": older("other")},
            "its name is not that of plugin.json, and each client believes another file; write the same name into both.",
        ),
        (
            {".claude-plugin/plugin.json": older(version="9.0.0")},
            "its version is not that of plugin.json, and each client believes another file; write the same version into",
        ),
        (
            {".claude-plugin/plugin.json": older(skills=["../../secrets"])},
            "it names a path that leaves the plugin's folder; keep what it needs inside the folder.",
        ),
        (
            {".claude-plugin/plugin.json": older(hooks="../hooks.json")},
            "it names a path that leaves the plugin's folder; keep what it needs inside the folder.",
        ),
        (
            {"plugin.json": manifest(hooks={})},
            "the field 'hooks' is none of the standard, and clients ignore it; move it below `extensions`.",
        ),
        (
            {"mcp.json": json.dumps({"mcpServers": {"docs": REMOTE}}).encode()},
            'it does not fit the form, so clients of the standard start none of its servers; write "$schema": ',
        ),
        (
            {"mcp.json": servers(docs=REMOTE) + MEGABYTE},
            "a client may start what was not read: mcp.json has 1000162 bytes, and at most 262144 are read; keep only",
        ),
        (
            {"hooks/hooks.json": hooks() + MEGABYTE},
            "hooks/hooks.json has 1000076 bytes, and at most 262144 are read; keep only what a client needs in it",
        ),
        (
            {"mcp.json": servers(away={"type": "stdio", "command": "./../../bin/sh"})},
            "names a path that leaves the plugin's folder; keep what it needs inside the folder.",
        ),
        (
            {"mcp.json": servers(odd={**REMOTE, "shell": True})},
            "the server 'odd' does not fit the form: Object contains unknown field `shell`; correct the field that it names.",
        ),
        (
            {"mcp.json": servers(docs={**REMOTE, "headers": {"Authorization": "Bearer abcdefghijklmnop"}})},
            "the header 'Authorization' of the server 'docs' holds what looks like a secret; take it from",
        ),
        (
            {"mcp.json": servers(own={"type": "stdio", "command": "x", "env": {"KEY": "abcdefghijklmnop"}})},
            "the variable 'KEY' of the server 'own' holds what looks like a secret; take it from",
        ),
    ],
)
async def test_what_is_wrong_with_a_part_is_in_the_report_with_its_fix(env, server, files, sentence):
    """And never with the value, which may be a secret."""
    server.repo("ann/tools", {**PLUGIN, **files})
    done = await submit_repository(URL)
    await run_until_quiet(env)
    assert done.submission is not None and (await state_of()).state in (State.PUBLISHED, State.NEEDS_REVIEW)
    found = await FINDINGS(env, OPERATOR_ACTOR, RunFindings(submission_id=done.submission.id))
    told = [found.reason, *(one.remedy for one in found.findings)]
    assert any(sentence in one for one in told), told
    assert b"abcdefghijklmnop" not in msgspec.json.encode(found)


async def test_a_private_plugin_and_its_parts_are_nowhere_for_whoever_may_not_read_it(env, server, client):
    """By its parts' words, addresses, lists and repositories, and to a member they are all there."""
    server.repo("ann/tools", PLUGIN)
    await manage(env, "ann", Visibility.TEAM, "user:mia")
    await make_account(env, "mia", Role.AUTHOR)
    member = {"authorization": f"Bearer {await token_of(env, 'mia', 'read')}"}
    await published(env)
    places = (
        "/api/v1/skills/search?q=tidy",
        "/skills?q=rename",
        "/skills/ann/tools/tools",
        "/skills/ann/tools/tools/-/tidy",
        "/api/v1/skills/ann/tools/tools",
        "/ann/.well-known/agent-skills/index.json",
        "/ann/tools/tools/.well-known/agent-skills/index.json",
        "/clawhub/api/v1/search?q=tidy",
        "/ann/marketplace.json",
    )
    for place in places:
        hidden = await client.get(place, follow_redirects=True)
        # An answer may repeat what it was asked.
        asked = place if hidden.status_code == 404 else ""
        assert not any(word in hidden.text and word not in asked for word in WORDS), place
        if not place.startswith("/skills"):
            shown = await client.get(place, headers=member)
            assert any(word in shown.text for word in WORDS), place
    assert (await clone_texts(client, ADDRESS)).status == 401
    assert (await clone_texts(client, ADDRESS, headers=member)).status == 200


async def test_a_recalled_plugin_is_gone_for_every_client_and_comes_back(env, server, client):
    server.repo("ann/tools", {**PLUGIN, "mcp.json": servers(docs=REMOTE)})
    skill = await published(env)
    await take_down(skill.canonical, by="admin:eve", reason="it steals tokens")
    assert (await clone_texts(client, ADDRESS)).status == 403
    assert (await client.get("/.well-known/agent-skills/index.json")).json() == {"skills": []}
    listed = (await clone_texts(client, "/marketplace.git")).plugins["tools"]
    assert listed["version"].endswith(".withdrawn") and "it steals tokens" in listed["description"]
    revoked = (await client.get("/api/v1/revocations")).json()
    assert skill.canonical in json.dumps(revoked)
    await restore(skill.canonical, by="admin:eve", reason="it was a mistake")
    assert PLUGIN["skills/tidy/SKILL.md"].decode() in (await clone_texts(client, ADDRESS)).texts


async def test_what_a_client_downloads_is_what_is_attested_and_the_made_file_is_named(env, server, client):
    server.repo("ann/tools", PLUGIN)
    skill = await published(env)
    about = f"/api/v1/skills/{skill.canonical}/versions/1.2.0/attestation"
    envelope = (await client.get(about)).json()
    statement = json.loads(base64.b64decode(envelope["payload"]))
    assert statement["predicate"]["generated"] == ["SKILL.md"]
    archive = (await client.get(f"/api/v1/skills/{skill.canonical}/archive?format=zip")).content
    digests = [one["digest"] for one in statement["subject"]]
    assert {"sha256": hashlib.sha256(archive).hexdigest()} in digests
    inside = zipfile.ZipFile(io.BytesIO(archive))
    own = {one["path"]: one["sha256"] for one in statement["predicate"]["files"]}
    assert own == {name: hashlib.sha256(inside.read(name)).hexdigest() for name in inside.namelist()}


async def test_a_backup_of_a_plugin_restores_all_that_is_handed_out_of_it(env, server, client, tmp_path):
    server.repo("ann/tools", {**PLUGIN, "mcp.json": servers(docs=REMOTE)})
    skill = await published(env)
    part = f"/skills/{skill.canonical}/-/tidy"
    asked = dict.fromkeys(("marketplaces", "checks"), ()) | {
        "indexes": ("/", "/ann"),
        "names": ("tools", skill.canonical),
        "skills": (skill.canonical,),
    }
    before, page = await collect(client, asked), (await client.get(part, follow_redirects=True)).text
    await back_up(env.settings, tmp_path / "backup.tar", with_keys=True)
    place = tmp_path / "elsewhere"
    place.mkdir()
    store = f"sqlite:{place / 'vskill.db'}"
    other = Settings(data_dir=str(place), store=store, source_rewrites=(server.rewrite(),))
    assert not (await restore_backup(other, tmp_path / "backup.tar")).damaged
    async with env_for(other, clock=env.clock) as there:
        with active_env(there):
            assert await get_skill(skill.canonical) == skill
            assert (await search_skills("rename", audiences=EVERYTHING)).items
        transport = httpx2.ASGITransport(create_app(there))
        async with httpx2.AsyncClient(transport=transport, base_url="http://registry.test") as restored:
            assert await collect(restored, asked) == before
            assert (await restored.get(part, follow_redirects=True)).text == page


def object_in(files: tuple[SkillFile, ...], path: str) -> dict | None:
    return next((json.loads(file.data) for file in files if file.path == path), None)


def form_of(files: dict[str, object]) -> tuple[SkillFile, ...]:
    given = {".claude-plugin/plugin.json": json.loads(older()), **files}
    made = tuple(SkillFile(path, "100644", json.dumps(data).encode()) for path, data in given.items())
    return whole_plugin("short", "1.0.0", "Said.", made)


async def test_one_of_the_older_form_gets_the_standard_s_where_that_loses_nothing():
    root = "${CLAUDE_PLUGIN_ROOT}"
    servers_then = {
        "files": {"command": f"{root}/serve.sh", "args": [f"{root}/data"], "env": {"A": "b"}},
        "docs": {"type": "sse", "url": REMOTE["url"]},
    }
    made = form_of({".mcp.json": {"mcpServers": servers_then}})
    assert object_in(made, "plugin.json") == {
        "$schema": PLUGIN_SCHEMA,
        "name": "short",
        "version": "1.0.0",
        "description": "Said.",
    }
    now = object_in(made, "mcp.json")
    assert now is not None and now["mcpServers"] == {
        "files": {
            "type": "stdio",
            "command": "./serve.sh",
            "args": ["${PLUGIN_ROOT}/data"],
            "env": {"A": "b"},
        },
        "docs": {"type": "sse", "url": REMOTE["url"], "headers": {}},
    }
    assert object_in(made, ".mcp.json") == {"mcpServers": servers_then}


async def test_what_a_client_asks_its_user_for_and_starts_is_handed_out_and_nothing_that_was_not_read():
    """Other plugins that it asks for come from elsewhere, and were not looked at."""
    read = {
        "userConfig": {"key": {"type": "string"}},
        "hooks": ["./a.json", {"Stop": [{"command": "true"}]}],
        "monitors": [{"name": "log", "command": "tail -F x", "description": "Log"}],
    }
    inside = {"experimental": {"monitors": "./m.json"}, "settings": {"agent": "x"}}
    more = {"experimental": {"monitors": "./m.json", "new": 1}, "settings": {"agent": "x", "env": {"A": "b"}}}
    given = {"name": "x", **read, **more, "dependencies": ["other"], "version": "9"}
    files = (SkillFile(".claude-plugin/plugin.json", "100644", json.dumps(given).encode()),)
    made = object_in(whole_plugin("short", "1.0.0", "Said.", files), ".claude-plugin/plugin.json")
    assert made == {"name": "short", "version": "1.0.0", "description": "Said.", **read, **inside}


@pytest.mark.parametrize(
    "files",
    [
        {"hooks/hooks.json": {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}},
        {"commands/go.md": "Go."},
        {"commands/go.md": "Go.", "plugin.json": {"name": "of another tool"}},
        {".mcp.json": {"mcpServers": ["a"]}},
        {".mcp.json": {"mcpServers": {"a": {"url": REMOTE["url"]}}}},
        {".mcp.json": {"mcpServers": {"a": {"command": "x", "cwd": "/tmp"}}}},
        {".mcp.json": {"mcpServers": {"a": {"type": "http", "url": "http://docs.example.org/"}}}},
        {"more.json": {"mcpServers": {}}, ".lsp.json": {"go": {"command": "gopls"}}},
    ],
)
async def test_one_of_the_older_form_gets_nothing_by_the_standard_that_would_lose_a_part(files):
    made = form_of(files)
    assert object_in(made, "plugin.json") is None and object_in(made, "mcp.json") is None
    said = object_in(made, ".claude-plugin/plugin.json")
    assert said is not None and said["name"] == "short"


async def test_a_maintainer_changes_the_kind_on_the_page_and_nobody_else_is_offered_it(env, server):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools"), **PLUGIN})
    skill = await published(env)
    place, app = f"/skills/{skill.canonical}", create_app(env)
    await manage(env, "ann", Visibility.PUBLIC, "user:mia", role=NamespaceRole.MAINTAINER)
    async with signed_in(app, env, "zoe", Role.AUTHOR) as zoe:
        text = (await zoe.client.get(place)).text
        assert f"{place}/kind" not in text
        sent = {"csrf": csrf_in(text), "repo_url": URL, "kind": "plugin"}
        assert (await zoe.client.post(f"{place}/kind", data=sent)).status_code != 200
    await run_until_quiet(env)
    assert (await get_skill(skill.canonical)).kind is Kind.SKILL
    async with signed_in(app, env, "mia", Role.AUTHOR) as mia:
        fields = form_fields((await mia.client.get(place)).text, f"{place}/kind")
        assert (await mia.client.post(f"{place}/kind", data=fields)).status_code == 303
        await run_until_quiet(env)
        assert (await get_skill(skill.canonical)).kind is Kind.PLUGIN
        assert form_fields((await mia.client.get(place)).text, f"{place}/kind")["kind"] == "skill"


async def test_the_skills_of_a_plugin_are_skills_of_mcp_at_addresses_of_their_own(env, server):
    """Also the one that is called as the plugin is."""
    files = {**PLUGIN, "skills/tools/SKILL.md": skill_md("tools"), "skills/tools/more.md": b"# More\n"}
    server.repo("ann/tools", files)
    await published(env)
    transport = httpx2.ASGITransport(create_app(env))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as client:

        async def ask(method: str, **params: object) -> dict:
            headers = {"accept": "application/json, text/event-stream"}
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            answer = await client.post("/mcp", json=body, headers=headers)
            return dict(answer.json()["result"])

        place = "skill://ann/tools/tools"
        listed = {one["uri"]: one for one in (await ask("skills/list"))["skills"]}
        assert set(listed) == {
            f"{place}/SKILL.md",
            *(f"{place}/-/{name}/SKILL.md" for name in ("rename", "tidy", "tools")),
        }
        tools = listed[f"{place}/-/tools/SKILL.md"]
        assert [one["uri"] for one in tools["resources"]] == [
            f"{place}/-/tools/SKILL.md",
            f"{place}/-/tools/more.md",
        ]
        for one in tools["resources"]:
            (read,) = (await ask("resources/read", uri=one["uri"]))["contents"]
            assert f"sha256:{hashlib.sha256(read['text'].encode()).hexdigest()}" == one["digest"]
        assert (await ask("skills/get", uri=tools["uri"]))["skill"] == tools
        inside = await ask("resources/directory/read", uri=f"{place}/-/tools")
        assert [one["name"] for one in inside["resources"]] == ["SKILL.md", "more.md"]
