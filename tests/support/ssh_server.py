"""A real git host over SSH, made of asyncssh: it lets in the keys that it was given, and runs `git upload-pack`.

It can be told to misbehave: to say nothing, to end the connection in the middle, to send slowly, to show another key.
"""

import asyncio
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

import asyncssh

from tests.support.git_server import GIT_ENV
from tests.support.lifetimes import start_async

Fault = Literal["", "cut", "drip", "hang"]
_CUT_AFTER = 200


class SshGitServer:
    """Serves the repositories below a folder, and notes what it was asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        #: Fingerprints of the keys that are let in.
        self.let_in: set[str] = set()
        #: Of every key that was offered.
        self.offered: list[str] = []
        #: Every command that was run.
        self.commands: list[str] = []
        self.connections = 0
        self.fault: Fault = ""
        #: What it says in place of serving anything.
        self.refusal: str | None = None
        #: Called while a command waits for its answer.
        self.on_command: Callable[[], None] = lambda: None
        self._host_key = asyncssh.generate_private_key("ssh-ed25519")
        self._acceptor: asyncssh.SSHAcceptor | None = None
        #: Commands that are being served.
        self._served: set[asyncio.Task[None]] = set()
        self.port = 0

    @property
    def host_key(self) -> str:
        return self._host_key.get_fingerprint()

    async def start(self) -> None:
        self._acceptor = await asyncssh.listen(
            "127.0.0.1",
            self.port,
            server_factory=lambda: _Login(self),
            server_host_keys=[self._host_key],
            process_factory=self._serve,
            encoding=None,
        )
        self.port = self._acceptor.get_port()

    async def stop(self) -> None:
        """Close the port, and end the git of each command whose client has gone without a word."""
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.wait_closed()
        for served in (left := tuple(self._served)):
            served.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def replace_host_key(self) -> None:
        """Go on at the same port with another key, as somebody in between would."""
        await self.stop()
        self._host_key = asyncssh.generate_private_key("ssh-ed25519")
        await self.start()

    async def _serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        serving = asyncio.create_task(self._run(process))
        self._served.add(serving)
        serving.add_done_callback(self._served.discard)
        with suppress(asyncio.CancelledError):
            await serving

    async def _run(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        command = process.command or ""
        self.commands.append(command)
        self.on_command()
        program, place = shlex.split(command)
        assert program == "git-upload-pack", command
        if self.fault == "hang":
            await process.stdin.read()
            process.exit(1)
            return
        if self.refusal is not None:
            process.stderr.write(self.refusal.encode())
            process.exit(1)
            return
        await self._upload(process, place)

    async def _upload(self, process: asyncssh.SSHServerProcess[bytes], place: str) -> None:
        settings = {
            "GIT_PROTOCOL": process.env.get("GIT_PROTOCOL", ""),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        }
        git = await start_async(
            "git",
            "upload-pack",
            str(self.root / place),
            env={**GIT_ENV, **settings},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        relays = [
            asyncio.create_task(self._feed(process, git)),
            asyncio.create_task(self._send(process, git)),
        ]
        try:
            await relays[1]
            said = await git.stderr.read() if git.stderr else b""
            process.stderr.write(said)
            process.exit(await git.wait())
        except (ConnectionError, asyncssh.Error):
            return
        finally:
            for relay in relays:
                relay.cancel()
            await asyncio.gather(*relays, return_exceptions=True)
            if git.returncode is None:
                git.kill()
            await git.communicate()

    async def _feed(self, process: asyncssh.SSHServerProcess[bytes], git: asyncio.subprocess.Process) -> None:
        assert git.stdin is not None
        while chunk := await process.stdin.read(64 * 1024):
            git.stdin.write(chunk)
            await git.stdin.drain()
        git.stdin.close()

    async def _send(self, process: asyncssh.SSHServerProcess[bytes], git: asyncio.subprocess.Process) -> None:
        assert git.stdout is not None
        size = 1 if self.fault == "drip" else 64 * 1024
        while chunk := await git.stdout.read(size):
            if self.fault == "cut":
                process.stdout.write(chunk[:_CUT_AFTER])
                process.channel.get_connection().abort()
                raise ConnectionError
            process.stdout.write(chunk)
            await process.stdout.drain()
            if self.fault == "drip":
                await asyncio.sleep(0.05)


class _Login(asyncssh.SSHServer):
    def __init__(self, server: SshGitServer) -> None:
        self._server = server

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        del conn
        self._server.connections += 1

    def begin_auth(self, username: str) -> bool:
        return bool(username)

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        self._server.offered.append(key.get_fingerprint())
        return username == "git" and key.get_fingerprint() in self._server.let_in


@asynccontextmanager
async def ssh_git_server(root: Path) -> AsyncIterator[SshGitServer]:
    server = SshGitServer(root)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
