"""An opened credential, and how git gets it: in files of one call, which only this account may read. The secret is
never an argument or a variable of any process, and only the one host that the call is for gets a token, or a proof of
having the deploy key."""

import asyncio
import shlex
import shutil
import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec

from vskill_core.identity import Identity
from vskill_platform.domain.people.source_credential import covers
from vskill_platform.sources.ssh import CALL, KEY, SshCall, SshServer, call_of, client_command, require_client


class GitCredential(msgspec.Struct, frozen=True):
    """A token for https, or a deploy key for SSH."""

    id: str
    #: Whose it is; no other one's repositories get it.
    namespace: str
    #: What it is for: `host/owner` or `host/owner/repository`.
    address: str
    user: str
    secret: bytes
    #: Only a deploy key has one.
    ssh: SshServer | None = None

    def __repr__(self) -> str:
        return f"GitCredential({self.id!r}, {self.address!r})"

    @property
    def basic(self) -> str:
        return f"Basic {b64encode(self.user.encode() + b':' + self.secret).decode('ascii')}"

    def covers(self, place: Identity) -> bool:
        return covers(self.namespace, self.address, place)


class SecretFiles(msgspec.Struct, frozen=True):
    """What git is told about the files."""

    config: dict[str, str] = {}
    #: What it runs for SSH.
    ssh_command: str = "false"
    #: Where they are.
    folder: Path | None = None


@asynccontextmanager
async def secret_files(
    credential: GitCredential | None, url: str, pin: str, beside: Path, seconds: float
) -> AsyncIterator[SecretFiles]:
    """The files of one call, in a folder of its own that is gone afterwards."""
    if credential is None:
        yield SecretFiles()
        return
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=beside.parent, prefix="secret-"))
    try:
        if credential.ssh is None:
            yield await asyncio.to_thread(_write_token, credential, url, folder)
        else:
            call = call_of(credential.ssh, credential.user, pin, seconds)
            yield await asyncio.to_thread(_write_key, credential.secret, call, folder)
    finally:
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))


def _write_token(credential: GitCredential, url: str, folder: Path) -> SecretFiles:
    """A file for git's own helper, which answers for exactly this host, and only after the host has asked."""
    parts, file = urlsplit(url), folder / "credential"
    secret = quote(credential.secret, safe="")
    _write_file(
        file, f"{parts.scheme}://{quote(credential.user, safe='')}:{secret}@{parts.netloc}\n".encode()
    )
    return SecretFiles(config={"credential.helper": f"store --file={shlex.quote(str(file))}"})


def _write_key(secret: bytes, call: SshCall, folder: Path) -> SecretFiles:
    """Files for our SSH client."""
    require_client()
    _write_file(folder / KEY, secret)
    _write_file(folder / CALL, msgspec.json.encode(call))
    return SecretFiles(ssh_command=client_command(folder), folder=folder)


def _write_file(file: Path, data: bytes) -> None:
    file.touch(mode=0o600)
    file.write_bytes(data)
