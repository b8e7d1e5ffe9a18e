"""An update that can do what the live version cannot goes to a reviewer, through the real pipeline and scanner.

There are no histories of real skills to measure this on, so the histories here are made up: each is a first version
and an update of it.
"""

import json
from collections.abc import AsyncIterator

import pytest

from tests.incidents.steps import record_of
from tests.support.acting import approve
from tests.support.compiled_rules import bundled_engine
from tests.support.envs import ENGINES, open_test_env, run_until_quiet, submit_skill
from tests.support.scanners import InlineScanner
from tests.support.system_reads import get_submission
from vskill_core.capability import CapabilityContext, CapabilityKind, SkillCapability
from vskill_core.content import SkillFile, digest_of_files
from vskill_core.kind import PLUGIN_SCHEMA
from vskill_platform.domain.skills.skill import Certification
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.domain.verdicts.policy import DEFAULT_POLICY
from vskill_platform.store.verdicts.capability_signals import DOUBTFUL, Gains, capability_signals
from vskill_platform.worker_context import Env
from vskill_scan.plugins.forms import SERVERS_SCHEMA

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def scanner() -> InlineScanner:
    return InlineScanner(bundled_engine())


@pytest.fixture(params=ENGINES)
async def env(request, tmp_path, scanner) -> AsyncIterator[Env]:
    async with open_test_env(request.param, tmp_path, scanner=scanner) as opened:
        yield opened


def script(text: str, path: str = "run.sh") -> tuple[SkillFile, ...]:
    return (SkillFile(path, "100644", text.encode()),)


async def published(env: Env, body: str = "", **options: object) -> Submission:
    record = record_of(await submit_skill("tidy", body, **options))  # type: ignore[arg-type]
    await run_until_quiet(env)
    return await get_submission(record.id)


def gained(kind: CapabilityKind, value: str, **more: object) -> SkillCapability:
    return SkillCapability(kind, value, "run.sh", 4, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", CapabilityKind)
@pytest.mark.parametrize("context", CapabilityContext)
@pytest.mark.parametrize("shell", [True, False])
def test_only_what_is_acted_on_is_doubtful_and_a_host_only_in_a_shell(kind, context, shell):
    told = capability_signals(Gains((gained(kind, "x", context=context, shell=shell),), "1.0.0"))
    doubtful = kind in DOUBTFUL and context not in (CapabilityContext.LINK, CapabilityContext.PATTERNS)
    assert bool(told) is (doubtful and (shell or kind is not CapabilityKind.HOST))


@pytest.mark.parametrize(("letters", "named"), [("abc", ""), ("abcde", ", 2 more")])
def test_the_sentence_names_each_thing_with_its_place_and_counts_the_rest(letters, named):
    hosts = (gained(CapabilityKind.HOST, f"{letter}.example", shell=True) for letter in letters)
    (signal,) = capability_signals(Gains((*hosts, gained(CapabilityKind.SECRET, "SSH keys")), "1.2.0"))
    assert signal.reason == (
        "unlike version 1.2.0, it reads a secret (SSH keys at run.sh:4), and runs shell commands that use a host "
        f"(a.example at run.sh:4, b.example at run.sh:4, c.example at run.sh:4{named})"
    )


QUIET = "#!/bin/sh\ncurl -fsS https://api.weather.gov/points | jq .\n"
LOUD = QUIET + "curl -fsS https://stats.collector-example.dev/ping\n"


async def test_an_update_with_a_shell_and_a_new_host_waits_and_says_which_host_and_where(env):
    first = await published(env, extra=script(QUIET))
    assert first.state is State.PUBLISHED
    second = await published(env, extra=script(LOUD))
    assert second.state is State.NEEDS_REVIEW
    said = "it runs shell commands that use a host (stats.collector-example.dev at run.sh:3)"
    passed = "otherwise it passed the static scan; no judge is configured"
    assert second.why == f"unlike version 1.0.0, {said}; {passed}"


def plugin(**servers: object) -> tuple[SkillFile, ...]:
    manifest = {"$schema": PLUGIN_SCHEMA, "name": "tidy"}
    declared = {"$schema": SERVERS_SCHEMA, "mcpServers": servers}
    hooks = servers.pop("hooks", {})
    given = {"plugin.json": manifest, "mcp.json": declared, "hooks/hooks.json": {"hooks": hooks}}
    return tuple(
        SkillFile(path, "100644", json.dumps(data, indent=1).encode()) for path, data in given.items()
    )


PINNED = {"type": "stdio", "command": "npx", "args": ["-y", "@x/a@1.2.3"]}


@pytest.mark.parametrize(
    ("gained_part", "said"),
    [
        ({"b": {**PINNED, "args": ["-y", "@x/a@1.2.4"]}}, "starts a program (npx -y @x/a@1.2.4"),
        (
            {"b": {"type": "sse", "url": "https://b.example.dev/"}},
            "talks to a server (https://b.example.dev/",
        ),
        ({"hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}}, "runs something by itself (Stop: true at"),
    ],
)
async def test_an_update_that_gains_a_program_a_server_or_a_hook_waits_until_a_person_agrees(
    env, gained_part, said
):
    first = await published(env, extra=plugin(a=PINNED))
    assert first.state is State.PUBLISHED
    same = await published(env, "Said anew.", extra=plugin(a=PINNED))
    assert (same.state, same.published_version) == (State.PUBLISHED, "1.0.1")
    second = await published(env, extra=plugin(a=PINNED, **gained_part))
    assert second.state is State.NEEDS_REVIEW
    assert f"unlike version 1.0.1, it {said}" in second.why
    await approve(second.id, by="admin:eve", reason="I know these servers")
    await run_until_quiet(env)
    assert (await get_submission(second.id)).published_version == "1.0.2"


async def test_an_update_with_only_a_link_in_its_text_is_published(env):
    await published(env, extra=script(QUIET))
    second = await published(
        env, "Read more at https://docs.collector-example.dev/intro.", extra=script(QUIET)
    )
    assert second.state is State.PUBLISHED
    assert second.published_version == "1.0.1"


async def test_a_first_publication_has_no_such_signal(env):
    assert (await published(env, extra=script(LOUD))).state is State.PUBLISHED


async def test_a_reviewer_who_approves_these_bytes_publishes_them_and_the_next_update_is_compared_with_them(
    env,
):
    await published(env, extra=script(QUIET))
    waiting = await published(env, extra=script(LOUD))
    await approve(waiting.id, by="admin:eve", reason="a known statistics host")
    await run_until_quiet(env)
    approved = await get_submission(waiting.id)
    assert approved.state is State.PUBLISHED
    assert approved.decision is not None and approved.decision.certification == Certification.CERTIFIED
    third = await published(env, extra=script(LOUD + "# a comment\n"))
    assert third.state is State.PUBLISHED


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "#!/bin/sh\necho 'alias t=tidy' >> ~/.bashrc\n",
            "outlives the session (a shell profile at run.sh:2)",
        ),
        (
            '#!/bin/sh\njq . "$WEATHER_API_KEY"\n',
            "reads a secret (environment variable WEATHER_API_KEY at run.sh:2)",
        ),
    ],
)
async def test_persistence_and_secrets_wait_by_default(env, text, said):
    await published(env, extra=script("#!/bin/sh\necho hello\n"))
    second = await published(env, extra=script(text))
    assert second.state is State.NEEDS_REVIEW
    assert said in second.why


PYTHON = 'import urllib.request\nurllib.request.urlopen("https://{}/x")\n'
STARTING = PYTHON + 'import subprocess\nsubprocess.run(["git", "status"])\n'
INSTALLS = "Run `pip install requests` first."


@pytest.mark.parametrize("chosen", ["installs", "hosts"])
@pytest.mark.parametrize("held", [False, True])
async def test_installs_and_hosts_of_programs_wait_only_where_the_operator_says_so(
    tmp_path, scanner, chosen, held
):
    rule = f"rules: [{{name: gained, when: 'gained.{chosen}.exists(one, one.acts)', then: review}}]"
    text = f"extends: open\n{rule}" if held else DEFAULT_POLICY
    async with open_test_env("memory", tmp_path, policy_text=text, scanner=scanner) as env:
        await published(env, extra=script(PYTHON.format("api.weather.gov"), "run.py"))
        body = INSTALLS if chosen == "installs" else ""
        host = "api.weather.gov" if body else "api.tides-example.dev"
        second = await published(env, body, extra=script(PYTHON.format(host), "run.py"))
    assert second.state is (State.NEEDS_REVIEW if held else State.PUBLISHED)


async def test_without_rules_nothing_waits(tmp_path, scanner):
    async with open_test_env("memory", tmp_path, policy_text="", scanner=scanner) as env:
        await published(env, extra=script(QUIET))
        assert (await published(env, extra=script(LOUD))).state is State.PUBLISHED


async def test_the_live_version_is_scanned_again_where_the_rules_have_changed(env):
    """A report by other rules is not compared with: what they did not see would look new."""
    first = await published(env, extra=script(QUIET))
    assert first.digest is not None
    await env.kv.delete(f"scan:{first.digest}:{env.scanner.ruleset}")
    assert (await published(env, "Other words.", extra=script(QUIET))).state is State.PUBLISHED
    assert await env.kv.get(f"scan:{first.digest}:{env.scanner.ruleset}") is not None


async def test_a_live_version_whose_files_are_gone_sends_the_update_to_a_reviewer(tmp_path, scanner):
    async with open_test_env("sqlite", tmp_path, scanner=scanner) as env:
        first = await published(env, extra=script(QUIET))
        assert first.digest is not None
        await env.kv.delete(f"scan:{first.digest}:{env.scanner.ruleset}")
        for file in (tmp_path / "blobs").rglob(f"*{first.digest[4:]}*"):
            file.unlink()
        second = await published(env, "Other words.", extra=script(QUIET))
    assert second.state is State.NEEDS_REVIEW
    assert "whose files are missing or damaged" in second.why


#: Made-up histories of honest skills: what changes, and whether a person must look.
HISTORIES = [
    ("a typing error", script(QUIET), "Tidies rooms.", script(QUIET), "Tidies all rooms.", False),
    (
        "another option of the same command",
        script(QUIET),
        "",
        script(QUIET.replace("-fsS", "-fsSL")),
        "",
        False,
    ),
    ("a new path at the same host", script(QUIET), "", script(QUIET.replace("points", "alerts")), "", False),
    ("a link", script(QUIET), "", script(QUIET), "See https://www.weather.gov/documentation.", False),
    ("a new file of text", script(QUIET), "", (*script(QUIET), *script("Notes.\n", "notes.md")), "", False),
    ("one more local command", script(QUIET), "", script(QUIET + "git status\n"), "", False),
    ("the script moves", script(QUIET), "", script(QUIET, "scripts/run.sh"), "", False),
    ("a second service", script(QUIET), "", script(QUIET + "curl https://api.tides-example.dev\n"), "", True),
    ("a command in the text", (), "", (), "```bash\ncurl https://api.tides-example.dev\n```", True),
    (
        "a host in a comment",
        script(QUIET),
        "",
        script(QUIET + "# https://api.tides-example.dev\n"),
        "",
        False,
    ),
    (
        "a host in a program that starts commands",
        script(STARTING.format("api.weather.gov"), "run.py"),
        "",
        script(STARTING.format("api.tides-example.dev"), "run.py"),
        "",
        True,
    ),
    (
        "a host in a program that starts none",
        script(PYTHON.format("api.weather.gov"), "run.py"),
        "",
        script(PYTHON.format("api.tides-example.dev"), "run.py"),
        "",
        False,
    ),
    (
        "a token for the service",
        script(QUIET),
        "",
        script(QUIET.replace("jq .", 'jq ."$WEATHER_TOKEN"')),
        "",
        True,
    ),
    ("a job every hour", script(QUIET), "", script(QUIET + "echo '0 * * * * run' | crontab -\n"), "", True),
]


@pytest.mark.parametrize(
    ("what", "before", "said", "after", "then", "waits"), HISTORIES, ids=[h[0] for h in HISTORIES]
)
async def test_small_histories(tmp_path, scanner, what, before, said, after, then, waits):
    async with open_test_env("memory", tmp_path, scanner=scanner) as env:
        first = await published(env, said, extra=before)
        assert first.state is State.PUBLISHED
        second = await published(env, then, extra=after)
    assert digest_of_files(before) != digest_of_files(after) or said != then
    assert second.state is (State.NEEDS_REVIEW if waits else State.PUBLISHED), second.why
