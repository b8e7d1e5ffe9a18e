"""The SSH client of one call, which git runs in place of `ssh`: `python -I -m … FOLDER [options] HOST COMMAND`.

It connects to checked addresses only, accepts a pinned host key only, offers one key, and passes bytes between git and
the server's command. Whom to connect to is in the folder's files (`sources.ssh`); of what git adds, only the command
counts. What the server writes to standard error is foreign: it is cut, and no more than part of a problem's text.
"""

import asyncio
import os
import sys
from pathlib import Path
from types import MappingProxyType

import asyncssh
import msgspec

from vskill_platform.sources.ssh import CALL, KEY, PROBLEM, SshCall, SshProblem

#: The first is preferred: every large forge has it. Without SHA-1 and DSA.
HOST_KEY_ALGORITHMS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)
#: As `protocol.version` of git's own settings; a server that does not take it answers by the older protocol.
GIT_PROTOCOL = MappingProxyType({"GIT_PROTOCOL": "version=2"})
CONNECT_S = 10.0
_MOST_SAID = 2000
_SHOWN = 200
_FAILED = 255


class _Pinned(asyncssh.SSHClient):
    """Accepts the pinned host keys, and remembers what was shown."""

    def __init__(self, host_keys: tuple[str, ...]) -> None:
        self._host_keys = host_keys
        self.shown = ""

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        del host, addr, port
        self.shown = key.get_fingerprint()
        return self.shown in self._host_keys


async def run(folder: Path, command: str) -> int:
    """The exit code of the server's command; what went wrong is in the folder before git sees the end of output."""
    call = msgspec.json.decode((folder / CALL).read_bytes(), type=SshCall)
    seen = _Pinned(call.host_keys)
    try:
        async with asyncio.timeout(call.seconds):
            code, said = await _talk(call, seen, folder / KEY, command)
        problem = SshProblem("refused", _plain(said)) if code else None
    except asyncssh.HostKeyNotVerifiable as error:
        code, problem = _FAILED, SshProblem("host key", seen.shown)
        if not seen.shown:
            problem = SshProblem("unreachable", _plain(error.reason))
    except asyncssh.PermissionDenied:
        code, problem = _FAILED, SshProblem("deploy key")
    except TimeoutError:
        code, problem = _FAILED, SshProblem("unreachable", f"no end within {call.seconds:g} s.")
    except Exception as error:  # noqa: BLE001 - whatever a server provokes is told, and none of it looks like git's words
        code, problem = _FAILED, SshProblem("unreachable", _plain(str(error) or repr(error)))
    if problem is not None:
        (folder / PROBLEM).write_bytes(msgspec.json.encode(problem))
    return code


async def _talk(call: SshCall, seen: _Pinned, key: Path, command: str) -> tuple[int, str]:
    connection = await _connect(call, seen, key)
    try:
        process = await connection.create_process(
            command,
            env=GIT_PROTOCOL,
            encoding=None,
            # Copies: git sees the end of the output when this process ends, and not before.
            stdin=os.fdopen(os.dup(0), "rb"),
            stdout=os.fdopen(os.dup(1), "wb"),
        )
        said = b""
        while chunk := await process.stderr.read(_MOST_SAID):
            said = (said + chunk)[-_MOST_SAID:]
        await process.wait_closed()
    finally:
        connection.abort()
    if process.exit_status is None:
        raise ConnectionError("the connection ended early.")
    return process.exit_status, said.decode("utf-8", "replace")


async def _connect(call: SshCall, seen: _Pinned, key: Path) -> asyncssh.SSHClientConnection:
    """A connection to the first address that answers."""
    failure: OSError | None = None
    for address in call.addresses:
        try:
            return await asyncssh.connect(
                address,
                call.port,
                client_factory=lambda: seen,
                client_version="vskill-platform",
                username=call.user,
                client_keys=[asyncssh.read_private_key(key)] if call.host_keys else None,
                known_hosts=([], [], []),
                server_host_key_algs=HOST_KEY_ALGORITHMS,
                preferred_auth=("publickey",),
                connect_timeout=CONNECT_S,
                login_timeout=call.seconds,
                config=None,
                agent_path=None,
                pkcs11_provider=None,
                gss_host=None,
                x509_trusted_certs=None,
                compression_algs=None,
            )
        except OSError as error:
            failure = error
    raise failure or OSError("no address.")


def _plain(text: str) -> str:
    """The last line that says something, for a message."""
    lines = [line for line in text.splitlines() if line.strip()]
    return "".join(char if char.isprintable() else " " for char in lines[-1])[:_SHOWN] if lines else ""


if __name__ == "__main__":
    sys.exit(asyncio.run(run(Path(sys.argv[1]), sys.argv[-1])))
