"""No process that holds a secret leaves it in a core dump, wherever the machine would write one."""

import os
import resource
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from tests.chaos.disk import children_of
from tests.cli.role_processes import COMMAND, announced
from tests.support.git_server import git_server, skill_md
from tests.support.lifetimes import running
from tests.support.patience import PATIENCE_S, wait_until
from tests.support.private_git import CANARY, KEY, WHY, basic, holding_canary
from vskill_core.identity import normalise
from vskill_platform.domain.people.namespace import namespace_of

pytestmark = pytest.mark.slow

#: As on a machine whose administrator wants core dumps.
WITH_DUMPS = ("sh", "-euc", 'ulimit -S -c "$(ulimit -H -c)"; exec "$@"', "sh")


def descendants_of(pid: int) -> list[int]:
    found = list(children_of(pid))
    return [*found, *(one for child in found for one in descendants_of(child))]


def test_whatever_aborts_during_a_fetch_with_a_credential_leaves_it_nowhere(tmp_path, environment):
    """The server, its worker, git and what git started, each by SIGABRT while the private host has been shown the
    credential and has not answered."""
    asked, dead = Event(), Event()
    folder, sealing_key = tmp_path / "work", tmp_path / "sealing.key"
    folder.mkdir()
    sealing_key.write_text(KEY)
    sealing_key.chmod(0o600)

    def hold_back() -> None:
        asked.set()
        assert dead.wait(PATIENCE_S)

    def run(*words: str, typed: str = "") -> None:
        subprocess.run([*COMMAND, *words], env=environment, cwd=folder, input=typed, text=True, check=True)

    with git_server(tmp_path / "git") as git:
        git.repo("acme/skills", {"lint/SKILL.md": skill_md("lint")})
        git.private["/acme"], url = basic(CANARY), f"{git.url}acme/skills"
        environment |= {
            "VSKILL_SEALING_KEY": str(sealing_key),
            "VSKILL_ALLOWED_PRIVATE_HOSTS": git.url.rstrip("/"),
            "PYTHONFAULTHANDLER": "1",
        }
        name = namespace_of(normalise(url))
        run("namespace", "visibility", "--yes", "--reason", WHY, name, "team")
        run("credential", "add-token", name, url, "--reason", WHY, typed=f"{CANARY}\n")
        git.on_authorized = hold_back
        serve, log = [*WITH_DUMPS, *COMMAND, "serve", "--port", "0"], tmp_path / "server.log"
        with (
            log.open("wb") as output,
            running(
                serve, env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=output, text=True
            ) as server,
        ):
            announced(server)
            run("follow", "add", url, "--reason", WHY)
            wait_until(asked.is_set, "the private host was not asked")
            family = [server.pid, *descendants_of(server.pid)]
            names = [Path(f"/proc/{pid}/comm").read_text().strip() for pid in family]
            assert any(one.startswith("git") for one in names), names
            limits = [resource.prlimit(pid, resource.RLIMIT_CORE)[0] for pid in family]
            assert max(limits) <= 1 and limits[0] == 1, dict(zip(names, limits, strict=True))
            for pid in family:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGABRT)
            assert server.wait(PATIENCE_S) == -signal.SIGABRT
            dead.set()
    assert log.read_bytes().count(b"Fatal Python error: Aborted") >= 2
    files = [one for one in tmp_path.rglob("*") if one.is_file()]
    assert [one for one in files if one.name.startswith("core")] == []
    # The file of the call that was cut off is for this account alone, and goes by itself.
    left = [one for one in files if holding_canary(one.read_bytes())]
    assert {(one.parent.name.split("-")[0], one.stat().st_mode & 0o777) for one in left} <= {
        ("secret", 0o600)
    }
