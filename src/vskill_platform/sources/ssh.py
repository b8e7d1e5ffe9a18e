"""Repositories over SSH: what git gets for a call with a deploy key, and what its connection failed with.

git runs our own client (`sources.ssh_client`) in place of `ssh`, so that no program of the system, no agent and no
configuration of anybody takes part. The client tells its failure in a file: what git prints may be a server's words.
"""

import importlib.util
import shlex
import sys
from pathlib import Path
from typing import Literal

import msgspec

from vskill_core.errors import PlatformError, SourceGone, SourceUnavailable

#: Files of one call, in its folder.
CALL = "call"
KEY = "key"
PROBLEM = "problem"
CLIENT = "vskill_platform.sources.ssh_client"
#: What git says if the server's command has told it nothing.
_NOTHING_READ = b"Could not read from remote repository"
#: What servers say of a repository that this key may not read.
_GONE = (
    "not found",
    "not be found",
    "does not exist",
    "does not appear to be",
    "denied",
    "unauthorized",
    "no such",
)


class SshServer(msgspec.Struct, frozen=True):
    """Where a deploy key is used."""

    port: int
    #: Fingerprints (`SHA256:…`) of the host keys that it may show; without one, a connection only asks for it.
    host_keys: tuple[str, ...]


class SshCall(msgspec.Struct, frozen=True):
    """What the client is given."""

    user: str
    name: str
    port: int
    #: Of the name, checked before.
    addresses: tuple[str, ...]
    host_keys: tuple[str, ...]
    seconds: float


class SshProblem(msgspec.Struct, frozen=True):
    """Why a connection failed."""

    kind: Literal["host key", "deploy key", "unreachable", "refused"]
    #: The fingerprint that was shown, or what was said.
    text: str = ""


class SshFailed(Exception):
    """A call failed by its connection."""

    def __init__(self, problem: SshProblem) -> None:
        super().__init__(problem.kind)
        self.problem = problem


def require_client() -> None:
    """Raise if this process has no SSH client: another one may have it, so work waits."""
    if importlib.util.find_spec("asyncssh") is None:
        message = "Deploy keys cannot be used here: the extra `ssh` is not installed."
        raise SourceUnavailable(message, host="the extra `ssh`", fix="ask the operator to install it")


def call_of(server: SshServer, user: str, pin: str, seconds: float) -> SshCall:
    """The call for `name:port:addresses`, as routes have them."""
    name, port, addresses = pin.split(":", 2)
    plain = tuple(one.strip("[]") for one in addresses.split(","))
    return SshCall(user, name, int(port), plain, server.host_keys, seconds)


def client_command(folder: Path) -> str:
    """The client as git's shell runs it; git adds the host and the server's command. Nothing foreign is in it."""
    return shlex.join([sys.executable, "-I", "-m", CLIENT, str(folder)])


def check_connection(folder: Path, err: bytes) -> None:
    """Raise SshFailed if git failed because its connection did."""
    file = folder / PROBLEM
    if not file.exists():
        return
    problem = msgspec.json.decode(file.read_bytes(), type=SshProblem)
    # A server that has answered git also fails: then git says why.
    if problem.kind != "refused" or _NOTHING_READ in err:
        raise SshFailed(problem)


def failure(host: str, server: SshServer, problem: SshProblem) -> PlatformError:
    """The error for a call that failed by its connection."""
    text = problem.text
    if problem.kind == "host key":
        return _unknown_host_key(host, server, text)
    if problem.kind == "deploy key":
        message = (
            f"{host} does not accept the namespace's deploy key: add its public half to the repository there."
        )
        return SourceGone(message, host=host)
    if problem.kind == "refused" and any(words in text.lower() for words in _GONE):
        message = f"{host} shows no repository at that address, also with the namespace's deploy key."
        return SourceGone(message, host=host)
    return SourceUnavailable(
        f"{host} cannot be reached by SSH at the moment: {text or 'it ended without an answer.'}", host=host
    )


def _unknown_host_key(host: str, server: SshServer, shown: str) -> SourceUnavailable:
    """No content is wrong, and the right key may be back or be given: work waits for the host."""
    message = f"{host} shows the SSH host key {shown}"
    if server.host_keys:
        wanted = " or ".join(server.host_keys)
        message += (
            f" and not {wanted}, so nothing was sent. Somebody may be in between, or the host has a new key: an owner "
            "of the namespace compares it with what the host publishes, and gives it to the deploy key"
        )
    return SourceUnavailable(f"{message}.", host=host, host_key=shown)
