"""`install` and `verify` against a registry: what arrives is what was verified, nothing of one's own is lost, and a
registry that lies or misbehaves changes nothing on this machine."""

import asyncio
import io
import json
import os
import stat
import sys
import tarfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx2
import pytest

from tests.support.acting import principal_for, take_down, yank
from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from tests.support.lifetimes import running
from vskill_client.caller import MOST_ANSWER
from vskill_core.content import SkillFile
from vskill_platform.actions.recall.blocklist import BLOCK, BlockSomething
from vskill_platform.domain.blocklist import TargetKind
from vskill_platform.store.skills.installs import installs_by_skill

NAME = "upload~ann/skills/tidy"
SCRIPT = SkillFile("scripts/run.sh", "100755", b"#!/bin/sh\necho tidy\n")


def publish(registry, body: str = "", version: str = "1.0.0", name: str = "tidy") -> None:
    async def work(env) -> None:
        await submit_skill(name, body, namespace="ann", version=version, extra=(SCRIPT,))
        await run_until_quiet(env)

    registry["do"](work)


@pytest.fixture
def project(tmp_path, monkeypatch, home):
    """An empty folder that a person works in."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def there(registry, project, run):
    """Commands on the registry, which has one skill."""
    publish(registry)
    return lambda *words, code=0: run("--registry", registry["address"], *words, code=code)


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_skill_is_installed_and_can_be_verified_where_it_is(there, project, registry):
    said = there("install", NAME).stdout
    folder = project / ".claude" / "skills" / "tidy"
    assert files_in(folder) == ["SKILL.md", "scripts/run.sh"]
    assert stat.S_IMODE((folder / "scripts" / "run.sh").stat().st_mode) & stat.S_IXUSR
    assert f"Installed {NAME} 1.0.0 in .claude/skills/tidy (2 files)." in said
    digest = json.loads(there("install", "tidy", "--json").stdout)["digest"]
    assert f"digest {digest}, signed with key " in said
    assert files_in(project) == [
        ".claude/skills/.vskill-platform/tidy.json",
        ".claude/skills/tidy/SKILL.md",
        ".claude/skills/tidy/scripts/run.sh",
    ]
    verified = json.loads(there("verify", folder, "--json").stdout)
    assert (verified["skill"], verified["version"], verified["status"]) == (NAME, "1.0.0", "live")
    assert registry["do"](lambda env: installs_by_skill()) == {NAME: 1}


def test_a_version_is_chosen_by_its_number_and_updated_in_place(there, project, registry):
    publish(registry, "more", "1.1.0")
    folder = project / ".claude" / "skills" / "tidy"
    there("install", f"{NAME}@1.0.0")
    assert "more" not in (folder / "SKILL.md").read_text()
    assert " 1.1.0 in " in there("install", "tidy").stdout, "an unchanged folder is replaced"
    assert "more" in (folder / "SKILL.md").read_text()
    assert "Already installed: " in there("install", "tidy").stdout
    missing = there("install", f"{NAME}@9.9.9", code=1).stderr
    assert "has no version '9.9.9'; its versions: 1.1.0, 1.0.0" in missing
    assert "is not SKILL or SKILL@VERSION" in there("install", "tidy@", code=1).stderr
    assert "There is no skill nothing" in there("install", "nothing", code=1).stderr


def test_a_changed_folder_is_replaced_only_by_force(there, project, registry):
    there("install", NAME)
    publish(registry, "more", "1.1.0")
    mine = project / ".claude" / "skills" / "tidy" / "SKILL.md"
    mine.write_text("my own words")
    said = there("install", NAME, code=1).stderr
    assert "was changed since 1.0.0 was installed; use --force" in said
    assert mine.read_text() == "my own words"
    assert "is not the content of" in there("verify", mine.parent, code=1).stderr
    there("install", NAME, "--force")
    assert "more" in mine.read_text()
    there("verify", mine.parent)


def test_what_is_there_and_was_not_installed_is_left_alone(there, project):
    own = project / "skills" / "tidy"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text("mine")
    assert "was not installed by this command" in there("install", NAME, "--into", "skills", code=1).stderr
    (project / "linked").mkdir()
    (project / "linked" / "tidy").symlink_to(own)
    said = there("install", NAME, "--into", "linked", "--force", code=1).stderr
    assert "is not a folder" in said and (own / "SKILL.md").read_text() == "mine"
    (project / "file").write_text("x")
    assert "--into: " in there("install", NAME, "--into", "file", code=1).stderr
    assert files_in(project / "skills") == ["tidy/SKILL.md"]


@pytest.mark.parametrize(
    ("refuse", "words"),
    [
        (
            lambda env: yank(NAME, "1.0.0", account="ann", reason="it was wrong"),
            "was withdrawn: it was wrong",
        ),
        (
            lambda env: take_down(NAME, "1.0.0", by="admin:eve", reason="it steals"),
            "was taken down: it steals",
        ),
        (
            lambda env: BLOCK(
                env,
                principal_for("admin:eve"),
                BlockSomething(kind=TargetKind.NAME, target="tidy", reason="no"),
            ),
            "is blocked: ",
        ),
    ],
    ids=["yanked", "taken down", "blocked"],
)
def test_what_was_withdrawn_is_refused_with_the_reason(there, project, registry, refuse, words):
    registry["do"](refuse)
    assert words in there("install", NAME, code=1).stderr
    assert words in there("install", f"{NAME}@1.0.0", code=1).stderr
    assert files_in(project) == []


def test_a_folder_is_verified_by_its_own_record_a_key_or_a_name(there, run, project, registry):
    there("install", NAME)
    folder = Path(".claude/skills/tidy")
    said = run("verify", folder, code=1).stderr
    assert f"vskill-platform --registry {registry['address']} verify {folder}" in said
    keys = project / "keys.json"
    keys.write_bytes(httpx2.get(f"{registry['address']}/.well-known/vskill-keys.json").content)
    offline = run("verify", folder, "--keys", keys).stdout
    assert "not asked" in offline and f"{NAME}@1.0.0" in offline
    (project / "copy").mkdir()
    (project / "copy" / "SKILL.md").write_bytes((folder / "SKILL.md").read_bytes())
    assert "say which skill it is with --skill" in there("verify", "copy", code=1).stderr
    assert f"not the content of {NAME}" in there("verify", "copy", "--skill", "tidy", code=1).stderr
    folder.rename(project / "moved")
    assert "1.0.0" in there("verify", "moved", "--skill", "tidy").stdout
    envelope = project / "attestation.json"
    path = f"{registry['address']}/api/v1/skills/{NAME}/versions/1.0.0/attestation"
    envelope.write_bytes(httpx2.get(path).content)
    assert "live" in there("verify", envelope, "--folder", "moved").stdout
    registry["do"](lambda env: take_down(NAME, None, by="admin:eve", reason="it steals"))
    for words in (("moved", "--skill", "tidy"), (envelope, "--folder", "moved")):
        assert "was taken down: it steals" in there("verify", *words, code=1).stderr


@pytest.fixture
def here(data_dir):
    """The store of this machine, which has one skill."""

    async def fill() -> None:
        async with open_test_env("sqlite", data_dir) as env:
            await submit_skill("tidy", namespace="local", extra=(SCRIPT,))
            await run_until_quiet(env)

    data_dir.mkdir()
    asyncio.run(fill())


def test_it_works_on_the_store_of_this_machine_too(run, project, here):
    assert (
        "Installed upload~local/skills/tidy 1.0.0 in here/tidy"
        in run("install", "tidy", "--into", "here").stdout
    )
    assert "live" in run("verify", "here/tidy").stdout
    assert "upload~local/skills/tidy" in run("search", "tidy").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("umask", "script", "text"), [(0o022, 0o755, 0o644), (0o002, 0o775, 0o664), (0o077, 0o700, 0o600)]
)
def test_what_is_installed_is_shared_as_the_persons_umask_says(project, here, umask, script, text):
    command = [sys.executable, "-m", "vskill_platform", "install", "tidy", "--into", "mine"]
    with running(command, umask=umask) as process:
        assert process.wait(60) == 0
    modes = {
        path.relative_to(project / "mine").as_posix(): stat.S_IMODE(path.stat().st_mode)
        for path in (project / "mine").rglob("*")
    }
    assert modes == {
        ".vskill-platform": script,
        ".vskill-platform/tidy.json": text,
        "tidy": script,
        "tidy/SKILL.md": text,
        "tidy/scripts": script,
        "tidy/scripts/run.sh": script,
    }


@pytest.mark.parametrize("words", [("queue", "health"), ("doctor",), ("install", "tidy")], ids=" ".join)
def test_a_command_in_somebodys_process_leaves_the_umask_as_it_is(run, project, here, words):
    before = os.umask(0o027)
    try:
        run(*words)
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)


# Registries that lie.


class Liar:
    """A registry's answers with some of them replaced."""

    def __init__(self, address: str) -> None:
        self.real = address
        #: By how a path ends: status, headers and body.
        self.lies: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.seen: list[tuple[str, str | None]] = []


@contextmanager
def lying(address: str):
    liar = Liar(address)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            liar.seen.append((self.path, self.headers.get("authorization")))
            for ending, (status, headers, body) in liar.lies.items():
                if self.path.partition("?")[0].endswith(ending):
                    return self._answer(status, headers, body)
            real = httpx2.get(liar.real + self.path)
            return self._answer(real.status_code, {}, real.content)

        do_POST = do_GET  # noqa: N815 - the library's name

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                return

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield liar, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def packed(*names: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 1
            archive.addfile(info, io.BytesIO(b"x"))
    return out.getvalue()


@pytest.mark.parametrize(
    ("ending", "answer", "words"),
    [
        ("/archive", (200, {}, packed("SKILL.md")), "is not the content that was verified"),
        ("/archive", (200, {}, packed("SKILL.md", "../../escaped")), "is not accepted"),
        ("/archive", (200, {}, packed("SKILL.md", "/etc/escaped")), "is not accepted"),
        ("/archive", (200, {}, bytes(MOST_ANSWER + 1)), "answered with more than"),
        ("/archive", (200, {"content-encoding": "gzip"}, b"x"), "an unexpected encoding"),
        ("/archive", (302, {"location": "http://127.0.0.1:1/x"}, b""), "sends on to 'http://127.0.0.1:1/x'"),
        ("/attestation", (200, {}, b"{}"), "was not installed"),
        ("/vskill-keys.json", (200, {}, b'{"keys": []}'), "lists no keys"),
        ("/status", (200, {}, b"[]"), "did not answer as a registry"),
        ("/status", (500, {}, b'{"detail": "\\u001b[2J"}'), "\N{REPLACEMENT CHARACTER}[2J"),
    ],
    ids=[
        "other",
        "above",
        "absolute",
        "large",
        "packed",
        "redirect",
        "unsigned",
        "keyless",
        "shape",
        "escape",
    ],
)
def test_a_registry_that_lies_installs_nothing(
    there, run, project, registry, ending, answer, words, monkeypatch
):
    monkeypatch.setenv("VSKILL_PLATFORM_TOKEN", registry["token"])
    with lying(registry["address"]) as (liar, address):
        liar.lies[ending] = answer
        said = run("--registry", address, "install", NAME, code=1).stderr
    assert words in said and said.count("\n") == 1
    assert list(project.rglob("*")) == []


def test_an_attestation_of_another_version_or_skill_is_not_enough(there, run, project, registry):
    publish(registry, "more", "1.1.0")
    real = f"{registry['address']}/api/v1/skills/{NAME}"
    with lying(registry["address"]) as (liar, address):
        liar.lies["/1.1.0/attestation"] = (200, {}, httpx2.get(f"{real}/versions/1.0.0/attestation").content)
        said = run("--registry", address, "install", f"{NAME}@1.1.0", code=1).stderr
        assert f"The attestation is about {NAME}@1.0.0, not about {NAME}@1.1.0." in said
        state = json.loads(httpx2.get(f"{real}/status").content)
        liar.lies = {"/status": (200, {}, json.dumps({**state, "skill": "evil/x/.."}).encode())}
        assert (
            "answered about 'evil/x/..' instead" in run("--registry", address, "install", NAME, code=1).stderr
        )
        run("--registry", address, "install", "tidy", code=1)
    assert list(project.rglob("*")) == []
