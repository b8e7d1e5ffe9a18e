"""Hostile repositories and uploads: each ends at the first attempt with its reason, and the worker takes the next one.

They are built with git's plumbing, served by a real git host, and worked by the real consumer.
"""

import asyncio
import gzip
import io
import os
import subprocess
import zipfile

import pytest

from tests.support.envs import open_test_env, skill_files
from tests.support.git_server import GitServer, Repo, git_server, skill_md
from tests.support.lifetimes import running
from tests.support.patience import PATIENCE_S
from tests.support.system_reads import get_submission
from vskill_core.archive_reading import read_archive
from vskill_core.errors import InvalidInput, LimitExceeded
from vskill_core.identity import normalise, submission_id
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.intake.submit import submit_repository, submit_upload
from vskill_platform.queue.consumer import run_consumer
from vskill_platform.submission_store import count_submissions

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

SKILL = skill_md("s")


def symlink_out(repo: Repo) -> None:
    repo.commit({"s/SKILL.md": SKILL, "s/passwd": ("120000", "/etc/passwd")})


def symlink_as_skill(repo: Repo) -> None:
    repo.commit({"s/SKILL.md": ("120000", "../../../etc/passwd")})


def symlinked_folder(repo: Repo) -> None:
    repo.commit({"s/SKILL.md": SKILL, "s/lib": ("120000", "../..")})


def huge_file(repo: Repo) -> None:
    repo.commit({"s/SKILL.md": SKILL, "s/model.bin": os.urandom(12_000_000)})
    repo.config("uploadpack.allowFilter", "true")


def huge_file_unfiltered(repo: Repo) -> None:
    repo.commit({"s/SKILL.md": SKILL, "s/model.bin": os.urandom(12_000_000)})


def too_much_in_all(repo: Repo) -> None:
    repo.commit({"s/SKILL.md": SKILL, **{f"s/{n}.bin": bytes([n]) * 9_000_000 for n in range(3)}})


def deep_tree(repo: Repo) -> None:
    repo.commit({"s/SKILL.md": SKILL, "s/" + "d/" * 40 + "x": b"x"})


def very_deep_tree(repo: Repo) -> None:
    """Long names on the way, too."""
    tree = repo.tree([("100644", "blob", repo.blob(b"x"), b"x")])
    for _ in range(3):
        tree = repo.tree([("040000", "tree", tree, b"d" * 200)])
    for _ in range(60):
        tree = repo.tree([("040000", "tree", tree, b"d")])
    skill = repo.tree([("100644", "blob", repo.blob(SKILL), b"SKILL.md"), ("040000", "tree", tree, b"deep")])
    repo.commit_tree(repo.tree([("040000", "tree", skill, b"s")]))


def tree_bomb(repo: Repo) -> None:
    """Ten levels of ten times the same: 10,000,000,000 files in eleven small objects."""
    tree = repo.tree([("100644", "blob", repo.blob(b"x"), b"f%d" % n) for n in range(10)])
    for _ in range(9):
        tree = repo.tree([("040000", "tree", tree, b"d%d" % n) for n in range(10)])
    skill = repo.tree([("100644", "blob", repo.blob(SKILL), b"SKILL.md"), ("040000", "tree", tree, b"bomb")])
    repo.commit_tree(repo.tree([("040000", "tree", skill, b"s")]))


def blob_bomb(repo: Repo) -> None:
    """60 megabytes of zeros, a few kilobytes on the wire."""
    with running(
        ["git", "hash-object", "-w", "--stdin"],
        cwd=repo.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for _ in range(60):
            process.stdin.write(bytes(1_000_000))
        process.stdin.close()
        bomb = process.stdout.read().decode().strip()
    skill = repo.tree([("100644", "blob", repo.blob(SKILL), b"SKILL.md"), ("100644", "blob", bomb, b"zeros")])
    repo.commit_tree(repo.tree([("040000", "tree", skill, b"s")]))


def case_collision(repo: Repo) -> None:
    repo.commit({"s/SKILL.md": SKILL, "s/run.sh": b"echo good", "s/Run.sh": b"echo bad"})


def unicode_collision(repo: Repo) -> None:
    repo.commit({"s/SKILL.md": SKILL, "s/\u00e9": b"a", "s/e\u0301": b"b"})


def submodule(repo: Repo) -> None:
    modules = '[submodule "x"]\n\tpath = s/x\n\turl = file:///etc\n'
    repo.commit({".gitmodules": modules, "s/SKILL.md": SKILL, "s/x": ("160000", "1" * 40)})


def newline_in_name(repo: Repo) -> None:
    repo.commit({"s/SKILL.md": SKILL, "s/a\nb": b"x"})


def not_text_in_name(repo: Repo) -> None:
    repo.commit({"s/SKILL.md": SKILL, "s/a\udcff\udcfe": b"x"})


def direction_in_name(repo: Repo) -> None:
    repo.commit({"s/SKILL.md": SKILL, "s/a\u202egpj.exe": b"x"})


def parent_in_name(repo: Repo) -> None:
    """git's own tools refuse to make these names, so the tree is written byte by byte."""
    entry = b"100644 SKILL.md\0" + bytes.fromhex(repo.blob(SKILL))
    up = b"100644 ../up\0" + bytes.fromhex(repo.blob(b"x"))
    skill = _raw_tree(repo, up + entry)
    repo.commit_tree(repo.tree([("040000", "tree", skill, b"s")]))


def repository_in_name(repo: Repo) -> None:
    inner = _raw_tree(repo, b"100755 post-checkout\0" + bytes.fromhex(repo.blob(b"touch x")))
    git_folder = b"40000 .git\0" + bytes.fromhex(inner)
    skill = _raw_tree(repo, git_folder + b"100644 SKILL.md\0" + bytes.fromhex(repo.blob(SKILL)))
    repo.commit_tree(_raw_tree(repo, b"40000 s\0" + bytes.fromhex(skill)))


def same_name_twice(repo: Repo) -> None:
    entries = [b"100644 run.sh\0" + bytes.fromhex(repo.blob(text)) for text in (b"good", b"bad")]
    skill = _raw_tree(repo, b"100644 SKILL.md\0" + bytes.fromhex(repo.blob(SKILL)) + b"".join(entries))
    repo.commit_tree(_raw_tree(repo, b"40000 s\0" + bytes.fromhex(skill)))


def hundred_thousand_files(repo: Repo) -> None:
    blob = repo.blob(b"x")
    files = repo.tree([("100644", "blob", blob, b"f%06d" % n) for n in range(100_000)])
    skill = repo.tree(
        [("100644", "blob", repo.blob(SKILL), b"SKILL.md"), ("040000", "tree", files, b"files")]
    )
    repo.commit_tree(repo.tree([("040000", "tree", skill, b"s")]))


def bad_front_matter(repo: Repo) -> None:
    repo.commit({"s/SKILL.md": b"---\nname: a\nx: " + b"&a [*a]" * 10_000 + b"\n---\n"})


def _raw_tree(repo: Repo, content: bytes) -> str:
    done = subprocess.run(
        ["git", "hash-object", "-w", "-t", "tree", "--literally", "--stdin"],
        cwd=repo.folder,
        input=content,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


HOSTILE = {
    symlink_out: "'passwd' is a symbolic link",
    symlink_as_skill: "is a symbolic link",
    symlinked_folder: "'lib' is a symbolic link",
    huge_file: "'model.bin' is larger than",
    huge_file_unfiltered: "'model.bin' is larger than",
    too_much_in_all: "bytes; at most",
    deep_tree: "exceeds the limit depth",
    very_deep_tree: "exceeds the limit",
    tree_bomb: "files; at most 1000 are allowed",
    blob_bomb: "'zeros' is larger than",
    case_collision: "rename one of the two",
    unicode_collision: "rename one of the two",
    submodule: "'x' is a submodule",
    newline_in_name: "is not accepted",
    not_text_in_name: "is not accepted",
    direction_in_name: "is not accepted",
    parent_in_name: "is not accepted",
    repository_in_name: "is not accepted",
    same_name_twice: "rename one of the two",
    hundred_thousand_files: "100001 files; at most 1000 are allowed",
    bad_front_matter: "more than 65536 characters",
}

URL = "https://github.com/eve/evil"
GOOD = "https://github.com/ann/good"


async def worked(env, *ids: str, seconds: float = PATIENCE_S) -> list[Submission]:
    """The real consumer, until each of these has ended."""
    stop = asyncio.Event()
    worker = asyncio.create_task(run_consumer(env, stop))
    try:
        async with asyncio.timeout(seconds):
            while True:
                records = [await get_submission(one) for one in ids]
                if all(record.state.ends_run for record in records):
                    return records
                await asyncio.sleep(0.02)
    finally:
        stop.set()
        await worker


async def refused_at_the_door() -> str:
    """The reason, where intake sees at once that there is no skill to submit; else it is submitted."""
    try:
        await submit_repository(URL, "s")
    except (InvalidInput, LimitExceeded) as error:
        return str(error)
    return ""


def prepare(server: GitServer, build) -> None:
    server.repo("ann/good", {"SKILL.md": skill_md("good")})
    build(server.repo("eve/evil"))


@pytest.mark.parametrize("build", HOSTILE, ids=lambda build: build.__name__)
async def test_a_hostile_repository_ends_at_the_first_attempt_and_the_next_one_is_taken(tmp_path, build):
    with git_server(tmp_path / "served") as server:
        await asyncio.to_thread(prepare, server, build)
        async with open_test_env(
            "sqlite", tmp_path, source_rewrites=(server.rewrite(),), max_concurrency=1
        ) as env:
            reason = await refused_at_the_door()
            if reason:
                assert HOSTILE[build] in reason
                assert (await count_submissions(audiences=EVERYTHING)).total == 0
            ids = [] if reason else [submission_id(normalise(URL, "s"))]
            await submit_repository(GOOD)
            *evil, good = await worked(env, *ids, submission_id(normalise(GOOD)))
            assert good.state is State.PUBLISHED
            for record in evil:
                assert (record.state, record.attempts.started) == (State.REJECTED, 1)
                assert HOSTILE[build] in record.history[-1].reason, record.history[-1].reason


@pytest.mark.parametrize(
    "build", [symlink_out, submodule, hundred_thousand_files, tree_bomb], ids=lambda b: b.__name__
)
async def test_what_lies_outside_the_skills_folder_is_ignored(tmp_path, build):
    """The same trees, beside an honest skill instead of in it."""

    def prepare_beside(server: GitServer) -> None:
        repo = server.repo("eve/evil")
        build(repo)
        honest = repo.tree([("100644", "blob", repo.blob(skill_md("honest")), b"SKILL.md")])
        evil = subprocess.run(
            ["git", "rev-parse", "HEAD:s"], cwd=repo.folder, capture_output=True, check=True, text=True
        ).stdout.strip()
        repo.commit_tree(
            repo.tree([("040000", "tree", evil, b"evil"), ("040000", "tree", honest, b"honest")])
        )

    with git_server(tmp_path / "served") as server:
        await asyncio.to_thread(prepare_beside, server)
        async with open_test_env("sqlite", tmp_path, source_rewrites=(server.rewrite(),)) as env:
            await submit_repository(URL, "honest")
            (record,) = await worked(env, submission_id(normalise(URL, "honest")))
            assert (record.state, record.attempts.started) == (State.PUBLISHED, 1)


async def test_hooks_in_a_repository_are_only_files(tmp_path):
    marker = tmp_path / "ran"
    hook = ("100755", f"#!/bin/sh\ntouch {marker}\n")
    with git_server(tmp_path / "served") as server:
        server.repo(
            "eve/evil", {"s/SKILL.md": SKILL, "s/hooks/post-checkout": hook, ".githooks/pre-commit": hook}
        )
        async with open_test_env("sqlite", tmp_path, source_rewrites=(server.rewrite(),)) as env:
            await submit_repository(URL, "s")
            (record,) = await worked(env, submission_id(normalise(URL, "s")))
            assert record.state.ends_run and record.attempts.started == 1
    assert not marker.exists()


async def test_a_bomb_that_is_uploaded_is_refused_at_the_door(tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("SKILL.md", SKILL)
        archive.writestr("zeros", bytes(10_000_000))
    async with open_test_env("sqlite", tmp_path) as env:
        for bomb in (out.getvalue(), gzip.compress(bytes(300_000_000), 1)):
            with pytest.raises((InvalidInput, LimitExceeded)):
                read_archive(bomb)
        good = await submit_upload(skill_files("good"), namespace="tests", slug="good")
        assert good.submission is not None
        (record,) = await worked(env, good.submission.id)
        assert record.state is State.PUBLISHED


async def test_a_host_that_hangs_in_the_middle_of_a_run_costs_only_its_own_time(tmp_path):
    """The worker that has it is cut at the fetch's budget; the submission waits, and others go on."""
    with git_server(tmp_path / "served") as server:
        repo = server.repo("eve/evil", {"SKILL.md": SKILL})
        server.repo("ann/good", {"SKILL.md": skill_md("good")})
        async with open_test_env(
            "sqlite", tmp_path, source_rewrites=(server.rewrite(),), fetch_budget_ms=6_000
        ) as env:
            await submit_repository(URL)
            await submit_repository(GOOD)
        server.faults["/eve"] = "hang"
        assert repo.head()
        async with open_test_env(
            "sqlite", tmp_path, source_rewrites=(server.rewrite(),), fetch_budget_ms=6_000
        ) as env:
            (good,) = await worked(env, submission_id(normalise(GOOD)))
            assert good.state is State.PUBLISHED
            stop = asyncio.Event()
            worker = asyncio.create_task(run_consumer(env, stop))
            async with asyncio.timeout(PATIENCE_S):
                number = submission_id(normalise(URL))
                while (evil := await get_submission(number)).attempts.unavailable == 0:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            stop.set()
            await worker
            assert (evil.state, evil.attempts.failed) == (State.RECEIVED, 0)
            assert evil.attempts.waiting_for == "github.com"
