"""The registries that a person has signed in to from this machine: an address and a token each, in a file that only
they can read."""

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from vskill_core.errors import InvalidInput, StoreCorrupt
from vskill_core.foreign_json import read_json

T = TypeVar("T")

FILE = "registries.json"
#: Variables of commands that act on a registry elsewhere; no other published client reads them.
REGISTRY_VARIABLE, TOKEN_VARIABLE = "VSKILL_PLATFORM_REGISTRY", "VSKILL_PLATFORM_TOKEN"
#: The ID token of a CI job, where its forge puts it into a variable that the job names, as GitLab does.
ID_TOKEN_VARIABLE = "VSKILL_PLATFORM_ID_TOKEN"  # noqa: S105 - its name


class RemoteVariables(msgspec.Struct, frozen=True):
    """What the environment says about registries elsewhere."""

    registry: str
    token: str | None
    #: Where tokens of registries are kept.
    folder: Path


def remote_variables(environ: Mapping[str, str] = os.environ) -> RemoteVariables:
    """The registry that commands act on where none is named, its token, and the folder of the person's own files."""
    home = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".config")
    return RemoteVariables(
        environ.get(REGISTRY_VARIABLE, ""),
        environ.get(TOKEN_VARIABLE) or None,
        Path(home) / "vskill-platform",
    )


#: Where GitHub hands out the ID token of a job, and what it wants to be shown.
GITHUB_VARIABLES = ("ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN")


def ci_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    names = (ID_TOKEN_VARIABLE, *GITHUB_VARIABLES, "GITHUB_ACTIONS", "GITLAB_CI")
    return {name: environ[name].strip() for name in names if environ.get(name)}


def check_address(text: str) -> str:
    """The registry's address without a slash at its end. A token goes over plain http to this machine only."""
    parts = urlsplit(text.strip())
    if (
        parts.scheme not in {"http", "https"}
        or not parts.hostname
        or parts.username
        or parts.query
        or parts.fragment
    ):
        fix = "give an address such as https://skills.example.org"
        raise InvalidInput(f"{text[:200]!r} is not the address of a registry.", field="registry", fix=fix)
    if parts.scheme == "http" and not _is_this_machine(parts.hostname):
        message = f"{text[:200]} is plain http, which others can read on the way."
        raise InvalidInput(message, field="registry", fix="use https")
    return text.strip().rstrip("/")


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_tokens(folder: Path) -> dict[str, str]:
    return read_own_file(folder / FILE, dict[str, str]) or {}


def write_tokens(folder: Path, tokens: dict[str, str]) -> Path:
    path = folder / FILE
    replace_file(path, tokens)
    return path


def read_own_file(path: Path, kind: type[T]) -> T | None:
    try:
        return read_json(path.read_bytes(), kind)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        message = f"{path} cannot be read: {error}. Remove it to begin anew."
        raise StoreCorrupt(message, file=str(path)) from error


def replace_file(path: Path, content: object) -> None:
    """Replace a file of the person's own as a whole: nobody else may read it, and a crash leaves the old one."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as written:
        written.write(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
    unfinished.replace(path)
