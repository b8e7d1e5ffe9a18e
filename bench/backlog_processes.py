"""The processes that `backlog` measures: one for all roles, or one for each as the units in `deploy/systemd` run it."""

import configparser
import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from bench.scaling.sizes import free_port
from vskill_platform.settings import Settings

ROOT = Path(__file__).parent.parent
UNITS = ROOT / "deploy" / "systemd"
#: How long a process may take until it answers, and until it works.
UP_S = 60.0


class Role(msgspec.Struct, frozen=True):
    """One process of the platform."""

    arguments: tuple[str, ...]
    nice: int = 0
    #: Of the scheduler, as systemd calls it; empty: the usual one.
    policy: str = ""

    @classmethod
    def of_unit(cls, name: str) -> "Role":
        """As its unit runs it."""
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(UNITS / name)
        service = parser["Service"]
        _, *arguments = service["ExecStart"].split()
        return cls(tuple(arguments), service.getint("Nice", 0), service.get("CPUSchedulingPolicy", ""))


class Shape(msgspec.Struct, frozen=True):
    """Which processes run; the first one answers, and the last one works."""

    name: str
    roles: tuple[Role, ...]
    #: How many times as long as when idle a round of reads may take, and as when idle and written to.
    most_slower: float
    most_slower_than_changed: float


ONE_PROCESS = Shape(
    "one process", (Role(("serve", "--port", "%i")),), most_slower=2.0, most_slower_than_changed=1.75
)


def roles() -> Shape:
    """A process for each role."""
    units = ("vskill-web@.service", "vskill-schedule.service", "vskill-worker@.service")
    return Shape(
        "a process for each role",
        tuple(map(Role.of_unit, units)),
        most_slower=1.4,
        most_slower_than_changed=1.25,
    )


@contextmanager
def serving(
    shape: Shape, settings: Settings, folder: Path
) -> Iterator[tuple[int, "subprocess.Popen[bytes]"]]:
    """The platform on this folder, once it answers: its port, and the process that works."""
    port = free_port()
    with ExitStack() as stack:
        processes = [stack.enter_context(_running(role, settings, folder, port)) for role in shape.roles]
        _until_up(port)
        yield port, processes[-1]


@contextmanager
def _running(role: Role, settings: Settings, folder: Path, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("VSKILL_")},
        "VSKILL_DATA_DIR": str(folder),
        "VSKILL_LOG_LEVEL": "error",
        "VSKILL_RATE_LIMITS": settings.rate_limits,
    }
    arguments = [str(port) if one == "%i" else one for one in role.arguments]
    command = [sys.executable, "-m", "vskill_platform", *arguments]
    with subprocess.Popen(command, env=environ, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
        try:
            # Before it has begun any thread or process: each gets these from the one that begins it.
            if role.nice:
                os.setpriority(os.PRIO_PROCESS, process.pid, role.nice)
            if role.policy:
                policy = getattr(os, f"SCHED_{role.policy.upper()}")
                os.sched_setscheduler(process.pid, policy, os.sched_param(0))
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait()


def _until_up(port: int) -> None:
    deadline = time.monotonic() + UP_S
    while time.monotonic() < deadline:
        try:
            read(port, "/healthz")
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the server did not start")


def read(port: int, path: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise OSError(f"{path} answered {answer.status}")
        return body
    finally:
        connection.close()
