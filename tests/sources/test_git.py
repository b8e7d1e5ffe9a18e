"""Fetching over real git: the default branch, one fetch for many skills, typed errors, and nothing left behind."""

import asyncio
import os
import resource
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.envs import make_submission
from tests.support.git_server import Repo, git_server, skill_md
from tests.support.lifetimes import running
from tests.support.patience import PATIENCE_S
from vskill_core.content import SkillFile
from vskill_core.errors import (
    InvalidInput,
    LimitExceeded,
    NoSkillFound,
    PlatformError,
    Shortage,
    SourceGone,
    SourceUnavailable,
    Unsupported,
)
from vskill_core.identity import Identity, normalise
from vskill_platform.sources.addresses import Hosts
from vskill_platform.sources.cache import CacheLimits
from vskill_platform.sources.command import (
    CommandLimits,
    Git,
    TimedOut,
    find_git,
    make_repository,
)
from vskill_platform.sources.git import FetchSettings, GitSource
from vskill_platform.sources.remote import _failure

pytestmark = pytest.mark.anyio

GIT = find_git()

TOOLS = normalise("https://github.com/ann/tools")


def at(path: str, commit: str | None = None, url: str = "https://github.com/ann/tools"):
    return make_submission("demo", identity=normalise(url, path), commit=commit)


def ten_skills() -> dict[str, bytes]:
    return {f"skills/s{n}/SKILL.md": skill_md(f"s{n}") for n in range(10)}


def git_processes(marker: str) -> list[int]:
    """Processes whose command line has this in it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if marker.encode() in words and b"git" in words and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


async def until_no_git(server) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while git_processes(server.url):  # noqa: ASYNC110 - a process tells nobody but its parent
            await asyncio.sleep(0.01)


async def until_asked(server) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not server.requests:  # noqa: ASYNC110 - the server is a thread
            await asyncio.sleep(0.01)


async def test_A18_the_default_branch_is_asked_for_whatever_it_is_called(server, source):
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools")}, branch="trunk/new")
    fetched = await source.fetch(at(""))
    assert fetched.files == (SkillFile("SKILL.md", "100644", skill_md("tools")),)
    assert fetched.commit == repo.head()


async def test_modes_and_every_byte_arrive_as_they_are(server, source):
    script = b"\x00\xff\r\n#!/bin/sh\r\n"
    server.repo("ann/tools", {"a/SKILL.md": skill_md("a"), "a/run": ("100755", script), "b/else": b"outside"})
    fetched = await source.fetch(at("a"))
    assert [(file.path, file.mode, file.data) for file in fetched.files] == [
        ("SKILL.md", "100644", skill_md("a")),
        ("run", "100755", script),
    ]


async def test_ten_skills_of_a_repository_are_one_fetch(server, source):
    repo = server.repo("ann/tools", ten_skills())
    survey = await source.survey(TOOLS)
    assert [place.identity.path for place in survey.places] == [f"skills/s{n}" for n in range(10)]
    requests = len(server.requests)
    await asyncio.gather(*(source.fetch(at(f"skills/s{n}", repo.head())) for n in range(10)))
    assert len(server.requests) == requests
    assert server.asked("/info/refs") == 1


async def test_concurrent_submissions_wait_for_the_first_fetch(server, source):
    repo = server.repo("ann/tools", ten_skills())
    await asyncio.gather(*(source.fetch(at(f"skills/s{n}", repo.head())) for n in range(10)))
    assert server.asked("/info/refs") == 1


async def test_concurrent_questions_share_the_next_answer(server, source):
    server.repo("ann/tools", ten_skills())
    await asyncio.gather(*(source.inspect(normalise(TOOLS.url, f"skills/s{n}")) for n in range(10)))
    assert server.asked("/info/refs") <= 2


async def test_what_was_pushed_before_the_question_is_in_the_answer(server, source):
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    first = await source.inspect(TOOLS)
    second = repo.commit({"SKILL.md": skill_md("tools", "changed")})
    assert (await source.inspect(TOOLS)).commit == second != first.commit


async def test_the_commit_that_intake_saw_is_fetched_although_the_branch_moved_on(server, open_source):
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools", "first")})
    seen = repo.head()
    repo.commit({"SKILL.md": skill_md("tools", "second")})
    worker = open_source(Hosts((), rewrites=(server.rewrite(),)))
    fetched = await worker.fetch(at("", seen))
    assert fetched.commit == seen
    assert b"first" in fetched.files[0].data


async def test_a_commit_that_is_gone_gives_way_to_the_head(server, source):
    repo = server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    fetched = await source.fetch(at("", "1" * 40))
    assert fetched.commit == repo.head()


async def test_a_large_repository_is_read_from_disk_and_cleaned_up(server, open_source, tmp_path):
    files = {f"docs/f{n}.bin": os.urandom(4000) for n in range(600)}
    server.repo("ann/tools", {**files, "s/SKILL.md": skill_md("s"), "s/data": b"x"})
    source = open_source(Hosts((), rewrites=(server.rewrite(),)))
    fetched = await source.fetch(at("s"))
    assert [file.path for file in fetched.files] == ["SKILL.md", "data"]
    assert (await source.inspect(normalise(TOOLS.url, "s"))).skill_md == skill_md("s")
    assert [place.identity.path for place in (await source.survey(TOOLS)).places] == ["s"]
    await source.close()
    assert list((tmp_path / "fetch").iterdir()) == []


async def test_the_cache_is_bounded_and_what_is_evicted_leaves_the_disk(server, open_source, tmp_path):
    limits = CacheLimits(disk_bytes=3_000_000, fresh_s=-1.0)
    source = open_source(Hosts((), rewrites=(server.rewrite(),)), cache=limits)
    for number in range(4):
        server.repo(f"ann/r{number}", {"SKILL.md": skill_md("r"), "data": os.urandom(2_000_000)})
        await source.fetch(at("", url=f"https://github.com/ann/r{number}"))
    kept = [one for one in (tmp_path / "fetch").iterdir() if list((one / "objects" / "pack").iterdir())]
    assert len(kept) == 1


async def test_folders_that_a_dead_process_left_are_removed(server, source, tmp_path):
    left = tmp_path / "fetch" / "left"
    left.mkdir(parents=True)
    os.utime(left, (1, 1))
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    await source.fetch(at(""))
    assert not left.exists()


# Errors: each is what it is.


@pytest.mark.parametrize("status", [500, 502, 503, 429, 403])
async def test_B16_a_host_that_errs_is_unavailable(server, source, status):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    server.faults["/ann/tools"] = status
    with pytest.raises(SourceUnavailable) as caught:
        await source.fetch(at(""))
    assert caught.value.text("host") == "github.com"
    assert "SKILL.md" not in str(caught.value)
    server.faults.clear()
    assert await source.fetch(at(""))


async def test_B16_a_host_that_refuses_connections_is_unavailable(open_source):
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    source = open_source(Hosts((), rewrites=(f"https://github.com/=http://127.0.0.1:{port}/",)))
    with pytest.raises(SourceUnavailable):
        await source.inspect(TOOLS)


@pytest.mark.parametrize("status", [401, 404, 410])
async def test_a_repository_that_is_gone_or_private_is_gone(server, source, status):
    server.faults["/ann/tools"] = status
    with pytest.raises(SourceGone):
        await source.fetch(at(""))


async def test_E8_only_a_missing_skill_is_called_that_and_what_is_there_is_named(server, source):
    server.repo("ann/tools", {"a/SKILL.md": skill_md("a"), "b/skill.md": b"x"})
    with pytest.raises(NoSkillFound, match="at the root of the repository; there is one in a") as caught:
        await source.inspect(TOOLS)
    assert caught.value.details["found"] == ["a"]
    with pytest.raises(NoSkillFound, match=r"'b/skill\.md'"):
        await source.fetch(at("b"))
    server.repo("ann/none", {"README.md": b"x"})
    with pytest.raises(NoSkillFound, match="none anywhere"):
        await source.survey(normalise("https://github.com/ann/none"))


async def test_an_empty_repository_has_no_skill(server, source):
    server.repo("ann/tools")
    with pytest.raises(NoSkillFound, match="empty"):
        await source.inspect(TOOLS)


async def test_a_page_that_is_no_repository_is_gone(open_source, tmp_path):
    (tmp_path / "web" / "ann" / "tools" / "info").mkdir(parents=True)
    (tmp_path / "web" / "ann" / "tools" / "info" / "refs").write_text("<html>\n<body>hello</body>\n</html>\n")
    with running(
        [
            "python3",
            "-u",
            "-m",
            "http.server",
            "0",
            "--bind",
            "127.0.0.1",
            "--directory",
            str(tmp_path / "web"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        port = process.stdout.readline().split(b" port ")[1].split()[0].decode()
        source = open_source(Hosts((), rewrites=(f"https://github.com/=http://127.0.0.1:{port}/",)))
        with pytest.raises(SourceGone):
            await source.inspect(TOOLS)


async def test_failures_are_shared_by_those_who_wait_and_not_remembered(server, open_source):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    server.faults["/ann/tools"] = "hang"
    source = open_source(Hosts((), rewrites=(server.rewrite(),)), seconds=1.0)
    results = await asyncio.gather(*(source.inspect(TOOLS) for _ in range(5)), return_exceptions=True)
    assert {type(one) for one in results} == {SourceUnavailable}
    assert server.asked("/ann/tools") < len(results), "not one after the other"
    server.faults.clear()
    assert (await source.inspect(TOOLS)).commit


# Time, size and processes.


@pytest.mark.parametrize("fault", ["hang", "drip"])
async def test_a_host_that_hangs_is_cut_at_the_limit_and_no_process_stays(server, open_source, fault):
    server.faults["/ann/tools"] = fault
    source = open_source(Hosts((), rewrites=(server.rewrite(),)), seconds=1.0)
    with pytest.raises(SourceUnavailable, match="within 1 s"):
        await source.fetch(at(""))
    await until_no_git(server)


async def test_cancelling_kills_every_process_of_the_fetch(server, source, tmp_path):
    server.faults["/ann/tools"] = "hang"
    fetching = asyncio.create_task(source.fetch(at("")))
    await until_asked(server)
    assert git_processes(server.url)
    fetching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await fetching
    await until_no_git(server)
    assert list((tmp_path / "fetch").iterdir()) == []


async def test_a_caller_that_gives_up_does_not_take_the_others_with_it(server, source):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    server.faults["/ann/tools"] = "hang"
    first = asyncio.create_task(source.fetch(at("")))
    await until_asked(server)
    second = asyncio.create_task(source.fetch(at("")))
    await asyncio.sleep(0.05)
    server.faults.clear()
    first.cancel()
    assert (await second).files


@pytest.mark.parametrize("filters", ["true", "false"])
async def test_a_repository_that_is_too_large_is_refused_where_the_host_sends_all_of_it(
    server, open_source, filters
):
    repo = server.repo("ann/tools", {"s/SKILL.md": skill_md("s"), "video.bin": os.urandom(13_000_000)})
    repo.config("uploadpack.allowFilter", filters)
    source = open_source(Hosts((), rewrites=(server.rewrite(),)), disk_bytes=4_000_000)
    if filters == "true":
        assert len((await source.fetch(at("s"))).files) == 1
    else:
        with pytest.raises(LimitExceeded, match="larger than the 3 MiB"):
            await source.fetch(at("s"))


@pytest.mark.machine
async def test_more_fetches_than_slots_wait_and_waiting_too_long_is_nobodys_fault(server, open_source):
    server.repo("ann/b", {"SKILL.md": skill_md("b")})
    server.faults["/ann/a"] = "hang"
    source = open_source(Hosts((), rewrites=(server.rewrite(),)), at_once=1, seconds=4.0)
    hanging = asyncio.create_task(source.fetch(at("", url="https://github.com/ann/a")))
    await until_asked(server)
    # The slot is free when the first one's time is over, long before the second has waited as long.
    await asyncio.sleep(1.5)
    assert (await source.fetch(at("", url="https://github.com/ann/b"))).files
    with pytest.raises(SourceUnavailable):
        await hanging


@pytest.mark.slow
async def test_thirty_hanging_fetches_of_one_host_do_not_starve_another_hosts(server, open_source):
    """Those that find no slot are told after a moment that their host hangs, and wait in nobody's place."""
    server.repo("bob/b", {"SKILL.md": skill_md("b")})
    server.faults["/ann/"] = "hang"
    rewrites = (server.rewrite(), server.rewrite("gitlab.com"))
    source = open_source(Hosts((), rewrites=rewrites), seconds=30.0, patience_s=0.5)
    hanging = [
        asyncio.create_task(source.fetch(at("", url=f"https://github.com/ann/r{n}"))) for n in range(30)
    ]
    await until_asked(server)
    async with asyncio.timeout(PATIENCE_S):
        assert (await source.fetch(at("", url="https://gitlab.com/bob/b"))).files
        done, still = await asyncio.wait(hanging, timeout=10)
    assert (len(done), len(still)) == (22, 8)
    for one in done:
        with pytest.raises(SourceUnavailable, match=r"github\.com has not answered 8 other requests"):
            await one
    with pytest.raises(SourceUnavailable):
        await source.fetch(at("", url="https://github.com/ann/late"))
    for one in still:
        one.cancel()
    await asyncio.gather(*still, return_exceptions=True)


async def test_a_host_that_answers_slowly_is_waited_for(server, open_source):
    for n in range(6):
        server.repo(f"ann/r{n}", {"SKILL.md": skill_md(f"r{n}")})
    source = open_source(Hosts((), rewrites=(server.rewrite(),)), at_once=1, patience_s=PATIENCE_S)
    found = await asyncio.gather(
        *(source.fetch(at("", url=f"https://github.com/ann/r{n}")) for n in range(6))
    )
    assert all(one.files for one in found)


async def test_a_call_that_takes_too_long_is_ended_whatever_it_does(tmp_path):
    await asyncio.to_thread(make_repository, tmp_path / "r")
    git = Git(GIT)
    with pytest.raises(TimedOut):
        async with git.objects(tmp_path / "r", CommandLimits(seconds=0.2)):
            await asyncio.sleep(5)


@pytest.mark.parametrize("command", ["ls-tree", "cat-file", "fetch"])
async def test_a_git_that_others_kill_is_not_the_contents_fault(server, tmp_path, command):
    """As when memory is short: the real git, but one of its commands is killed."""
    killed = tmp_path / "git"
    killed.write_text(f'#!/bin/sh\n[ "$1" = {command} ] && kill -9 $$\nexec {GIT} "$@"\n')
    killed.chmod(0o755)
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    hosts = Hosts((), rewrites=(server.rewrite(),))
    source = GitSource(str(killed), hosts, FetchSettings(folder=tmp_path / "fetch"))
    with pytest.raises(Shortage, match="git was killed") as raised:
        await source.fetch(at(""))
    assert raised.value.text("host") == "this machine"
    await source.close()


async def test_a_git_that_cannot_be_started_is_not_the_contents_fault(server, open_source):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    source = open_source(Hosts((), rewrites=(server.rewrite(),)))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = {int(one.name) for one in await asyncio.to_thread(lambda: [*Path("/proc/self/fd").iterdir()])}
    resource.setrlimit(resource.RLIMIT_NOFILE, (next(n for n in range(soft) if n not in in_use), hard))
    try:
        with pytest.raises(Shortage):
            await source._git.run("version", folder=Path("/"), limits=CommandLimits())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (await source.fetch(at(""))).files


_LIMITED_BY_US = """
import resource, sys
from vskill_platform.sources.command import CommandLimits, _limit_resources

resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
_limit_resources(int(sys.argv[1]), CommandLimits())
"""


def test_git_never_gets_more_memory_than_the_server_may_have():
    """Not as root either, who could raise what a process has inherited."""
    with running(["sleep", "600"]) as program:
        resource.prlimit(program.pid, resource.RLIMIT_AS, (1 << 30, 1 << 30))
        subprocess.run([sys.executable, "-c", _LIMITED_BY_US, str(program.pid)], check=True)
        assert resource.prlimit(program.pid, resource.RLIMIT_AS) == (1 << 30, 1 << 30)


@pytest.mark.parametrize(
    ("said", "lacks"),
    [
        ("error: index-pack died of signal 9\nfatal: index-pack failed", "memory"),
        (
            "git-remote-http: error while loading shared libraries: libz.so.1: failed to map segment from shared object",
            "memory",
        ),
        ("fatal: write error: No space left on device", "disk space"),
        ("fatal: cannot create thread: Resource temporarily unavailable", "processes"),
        ("fatal: could not open 'x': Too many open files", "open files"),
    ],
)
async def test_what_git_says_of_the_machine_is_told_from_what_it_says_of_the_repository(said, lacks):
    route = await Hosts((), rewrites=("https://github.com/=http://127.0.0.1:9/",)).route(TOOLS)
    error = _failure(route, said.encode())
    assert isinstance(error, Shortage) and f"lacks {lacks}" in error.message
    assert isinstance(_failure(route, b"error: index-pack died of signal 24\n"), LimitExceeded)


async def test_fetched_files_that_somebody_removed_are_fetched_again(server, open_source, tmp_path):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools"), "big.txt": "x" * 5_000_000})
    source = open_source(Hosts((), rewrites=(server.rewrite(),)))
    await source.survey(TOOLS)
    await asyncio.to_thread(shutil.rmtree, tmp_path / "fetch")
    with pytest.raises(Shortage):
        await source.survey(TOOLS)
    assert (await source.survey(TOOLS)).places
    assert (await source.head(TOOLS)).commit


# Nothing of the machine is used, and nothing of a stranger's is run.


async def test_no_configuration_of_user_or_system_is_used(server, source, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    elsewhere = f'[url "http://127.0.0.1:9/"]\n\tinsteadOf = {server.url}\n'
    (home / ".gitconfig").write_text(elsewhere)
    (home / ".netrc").write_text("machine 127.0.0.1 login x password y\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_DIR", str(home))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    assert (await source.fetch(at(""))).files


async def test_hooks_and_filters_of_a_repository_never_run(server, source, tmp_path):
    marker = tmp_path / "ran"
    hook = ("100755", f"#!/bin/sh\ntouch {marker}\n")
    repo = server.repo(
        "ann/tools",
        {
            "SKILL.md": skill_md("tools"),
            "hooks/post-checkout": hook,
            ".gitattributes": "* filter=lfs diff=lfs\n",
            ".lfsconfig": "[lfs]\n\turl = http://127.0.0.1:9/\n",
        },
    )
    for name in ("post-checkout", "reference-transaction", "post-receive", "post-update"):
        (repo.folder / "hooks" / name).write_text(hook[1])
        (repo.folder / "hooks" / name).chmod(0o755)
    assert len((await source.fetch(at(""))).files) == 4
    assert not marker.exists()


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc",
        "ext::sh -c touch% /tmp/x",
        "fd::17",
        "--upload-pack=touch x",
        "-oProxyCommand=x",
        "ftp://h/a/b",
        "https://github.com/-a/--upload-pack=x",
        "https://github.com/ann/tools\n",
        "/etc/passwd",
        "../..",
    ],
)
def test_what_is_no_public_address_never_becomes_one(url):
    try:
        identity = normalise(url)
    except InvalidInput:
        return
    assert identity.url.startswith("https://")
    assert "\n" not in identity.url and " " not in identity.url


@pytest.mark.parametrize(
    "url", ["ssh://git@github.com/ann/tools", "git://github.com/ann/tools", "git@github.com:ann/tools"]
)
async def test_other_protocols_are_fetched_over_https_or_not_at_all(server, source, url):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    assert (await source.inspect(normalise(url))).commit
    assert server.requests


@pytest.mark.parametrize("protocol", ["ext", "file", "ssh", "git"])
async def test_git_itself_refuses_every_protocol_but_that_of_the_route(tmp_path, protocol):
    Repo(tmp_path / "victim").commit({"SKILL.md": skill_md("x")})
    await asyncio.to_thread(make_repository, tmp_path / "r")
    address = {"ext": "ext::true", "file": f"file://{tmp_path}/victim"}.get(
        protocol, f"{protocol}://127.0.0.1:9/x"
    )
    hosts = Hosts((), rewrites=("https://github.com/=http://127.0.0.1:9/",))
    route = await hosts.route(TOOLS)
    done = await Git(GIT).run(
        "ls-remote", "--end-of-options", address, folder=tmp_path / "r", limits=CommandLimits(), route=route
    )
    assert done.code != 0
    assert f"transport '{protocol}' not allowed".encode() in done.err


async def test_a_path_that_looks_like_an_option_is_only_a_path(server, source):
    server.repo("ann/tools", {"--output=x/SKILL.md": skill_md("x"), "-rf/SKILL.md": skill_md("y")})
    assert [one.identity.path for one in (await source.survey(TOOLS)).places] == ["--output=x", "-rf"]
    assert len((await source.fetch(at("--output=x"))).files) == 1


async def test_a_mirror_may_be_a_folder(open_source, tmp_path):
    repo = Repo(tmp_path / "mirror" / "ann" / "tools.git")
    repo.commit({"SKILL.md": skill_md("tools")})
    source = open_source(Hosts((), rewrites=(f"https://github.com/=file://{tmp_path}/mirror/",)))
    assert (await source.fetch(at(""))).commit == repo.head()


async def test_a_disk_that_cannot_be_written_is_nobodys_fault(server, tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})
    settings = FetchSettings(folder=tmp_path / "taken")
    source = GitSource(GIT, Hosts((), rewrites=(server.rewrite(),)), settings)
    with pytest.raises(SourceUnavailable, match="cannot be fetched at the moment"):
        await source.fetch(at(""))


async def test_a_store_in_memory_fetches_into_a_temporary_folder_and_leaves_nothing(server):
    server.repo("ann/tools", {"SKILL.md": skill_md("tools"), "data": os.urandom(2_000_000)})
    source = GitSource(GIT, Hosts((), rewrites=(server.rewrite(),)), FetchSettings())
    await source.fetch(at(""))
    root = source._folders._root
    assert root is not None and root.is_dir()
    await source.close()
    assert not root.exists()


# Redirects.


def private_hosts(*ports: int) -> Hosts:
    return Hosts((), tuple(f"http://127.0.0.1:{port}" for port in ports))


async def test_a_renamed_repository_is_found_and_says_where_it_is_now(server, open_source):
    repo = server.repo("ann/new", {"s/SKILL.md": skill_md("s")})
    server.faults["/ann/old"] = f"{server.url}ann/new"
    source = open_source(private_hosts(server.port))
    place = await source.inspect(Identity(f"127.0.0.1:{server.port}", "ann", "old", "s"))
    assert (place.identity.repo, place.identity.path, place.commit) == ("new", "s", repo.head())
    fetched = await source.fetch(
        make_submission("d", identity=Identity(f"127.0.0.1:{server.port}", "ann", "old", "s"))
    )
    assert fetched.commit == repo.head()


async def test_a_redirect_to_the_same_repository_in_another_spelling_is_the_same_place(server, open_source):
    server.repo("ann/tools", {"SKILL.md": skill_md("s")})
    server.faults["/ann/tools/"] = f"{server.url}ann/tools.git/"
    source = open_source(private_hosts(server.port))
    asked = Identity(f"127.0.0.1:{server.port}", "ann", "tools")
    assert (await source.inspect(asked)).identity == asked


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:9/ann/x",
        "http://169.254.169.254/latest/x",
        "http://localhost/a/b",
        "file:///etc/x",
        "gopher://x/y/z",
    ],
)
async def test_a_redirect_to_the_inside_is_refused(server, open_source, target):
    server.faults["/ann/old"] = target
    source = open_source(Hosts(("*",), (f"http://127.0.0.1:{server.port}",)))
    with pytest.raises((InvalidInput, SourceGone)):
        await source.inspect(Identity(f"127.0.0.1:{server.port}", "ann", "old"))


async def test_a_redirect_is_not_followed_by_git_itself(server, open_source, tmp_path):
    """The second host is never asked, because the address that the first one gave is not allowed."""
    with git_server(tmp_path / "inside") as inside:
        inside.repo("ann/x", {"SKILL.md": skill_md("x")})
        server.faults["/ann/old"] = f"{inside.url}ann/x"
        source = open_source(private_hosts(server.port))
        with pytest.raises(PlatformError):
            await source.inspect(Identity(f"127.0.0.1:{server.port}", "ann", "old"))
        assert inside.requests == []


async def test_only_the_first_redirect_is_followed(server, open_source):
    server.repo("ann/c", {"SKILL.md": skill_md("c")})
    server.faults["/ann/a"] = f"{server.url}ann/b"
    server.faults["/ann/b"] = f"{server.url}ann/c"
    source = open_source(private_hosts(server.port))
    with pytest.raises(SourceGone, match="more than once"):
        await source.inspect(Identity(f"127.0.0.1:{server.port}", "ann", "a"))


async def test_a_mirror_may_not_redirect(server, source):
    server.faults["/ann/tools"] = f"{server.url}ann/x"
    with pytest.raises(SourceGone, match="mirror"):
        await source.inspect(TOOLS)


async def test_the_connection_goes_to_the_address_that_was_checked(server, open_source):
    """The name has no address of its own: only the pin leads to the server."""
    server.repo("ann/tools", {"SKILL.md": skill_md("tools")})

    async def resolve(_name: str, _port: int) -> list[str]:
        return ["127.0.0.1"]

    host = f"git.invalid:{server.port}"
    source: GitSource = open_source(Hosts((), (f"http://{host}",), resolve=resolve))
    assert (await source.inspect(Identity(host, "ann", "tools"))).commit


async def test_those_who_share_an_answer_keep_the_folder_that_they_asked_for(server, source):
    """Skills of one repository that are submitted at the same time are submissions of their own."""
    server.repo("ann/tools", ten_skills())
    wanted = [normalise("https://github.com/ann/tools", f"skills/s{n}") for n in range(10)]
    places = await asyncio.gather(*map(source.inspect, wanted))
    assert [place.identity for place in places] == wanted
    assert [place.skill_md for place in places] == [skill_md(f"s{n}") for n in range(10)]


@pytest.mark.parametrize(
    ("said", "fine"),
    [
        ("git version 2.37.0", True),
        ("git version 2.50.1 (Apple Git-155)", True),
        ("git version 3.0.rc1", True),
        ("git version 2.36.9", False),
        ("git version 1.8.3.1", False),
        ("something else", False),
    ],
)
def test_a_git_that_is_too_old_is_told_at_the_start(tmp_path, monkeypatch, said, fine):
    program = tmp_path / "git"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    if fine:
        assert find_git() == str(program)
        return
    with pytest.raises(Unsupported, match=r"install git 2\.37 or newer"):
        find_git()


def test_a_git_that_does_not_run_is_told_at_the_start(tmp_path, monkeypatch):
    (tmp_path / "git").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(Unsupported, match="does not work"):
        find_git()
