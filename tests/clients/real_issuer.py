"""A real issuer as a process: npm's certified oidc-provider, with its people and keys in files."""

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import httpx2
from joserfc.jwk import RSAKey

from tests.clients.clients import Installed
from tests.support import lifetimes
from tests.support.people import ADDRESS
from tools.files import ROOT
from vskill_platform.setting_issuers import Issuer

CLIENT: dict[str, Any] = {"client_id": "the-registry", "client_secret": "a secret of 32 characters or more"}
SCOPES = ("openid", "profile", "email", "groups")


class RealIssuer:
    """The provider's process, for a registry at one address. A browser takes two names of this machine for two sites."""

    def __init__(
        self,
        installed: Installed,
        folder: Path,
        name: str,
        *,
        host: str = "127.0.0.1",
        registry: str = ADDRESS,
        **client: str,
    ) -> None:
        self._installed = installed
        self._folder = folder / name
        self._folder.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"http://{host}:{free.getsockname()[1]}"
        self.name = name
        back = [f"{registry}/signin/{name}/callback"]
        grants = ["authorization_code", "client_credentials"]
        self._write("client", {**CLIENT, **client, "redirect_uris": back, "grant_types": grants})
        self.write_job({})
        self.write_people(mia={"preferred_username": "mia", "groups": ["core"]})
        self.write_keys()

    def _write(self, name: str, value: Any) -> None:
        (self._folder / f"{name}.json").write_text(json.dumps(value))

    def write_people(self, **people: dict[str, Any]) -> None:
        self._write("people", people)

    def write_keys(self) -> None:
        key = RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"}, auto_kid=True)
        self._write("keys", {"keys": [key.as_dict(private=True)]})

    def write_job(self, claims: dict[str, Any]) -> None:
        self._write("job", claims)

    async def token_of_job(self, audience: str) -> str:
        """What a CI job gets that asks for a token to show somewhere."""
        asked = {"grant_type": "client_credentials", "resource": audience}
        client = (CLIENT["client_id"], quote_plus(CLIENT["client_secret"]))
        async with httpx2.AsyncClient(base_url=self.address) as job:
            answer = await job.post("/token", data=asked, auth=client)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    @contextmanager
    def running(self) -> Iterator[None]:
        script = ROOT / "tests" / "clients" / "node" / "issuer.mjs"
        command: list[str | Path] = [
            self._installed.node,
            script,
            self._installed.modules,
            self._folder,
            self.address,
        ]
        with lifetimes.running(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None and process.stdout.readline() == b"listening\n"
            yield

    @property
    def configured(self) -> Issuer:
        return Issuer(name=self.name, issuer=self.address, scopes=SCOPES, **CLIENT)
