"""Talking to a repository's host: what its head is, and fetching exactly one commit of it.

Every failure becomes one of the platform's errors, so that a host that is down is never mistaken for a repository
without a skill. git itself follows no redirect: this module reads it, checks it like a submitted URL, and follows it
once.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

import msgspec

from vskill_core.errors import (
    InvalidInput,
    LimitExceeded,
    NoSkillFound,
    PlatformError,
    SourceGone,
    SourceUnavailable,
)
from vskill_core.identity import Identity, normalise
from vskill_platform.ledger.clock import TimeLimit
from vskill_platform.machine.child_processes import EndedProgram
from vskill_platform.machine.shortages import has_memory_for, lack
from vskill_platform.sources import command
from vskill_platform.sources.addresses import Hosts, Route
from vskill_platform.sources.contract import RepositoryHead, no_repository
from vskill_platform.sources.credential import GitCredential
from vskill_platform.sources.ssh import SshFailed, failure

T = TypeVar("T")

#: Where a fetched commit is kept in its repository.
REF = "refs/vskill/fetched"
#: How a host names its default branch.
_BRANCHES = "refs/heads/"
_BRANCH = f"ref: {_BRANCHES}"
_INFO_REFS = "/info/refs"
_MOST_HEAD_BYTES = 16 * 1024
_SHOWN = 200


class CommitGone(Exception):
    """The host no longer has that commit."""


class _Redirected(Exception):
    """The host answers from another address."""


class Remote:
    """Repositories over the network."""

    def __init__(
        self, git: command.Git, hosts: Hosts, limits: command.CommandLimits, largest_file: int
    ) -> None:
        self._git = git
        self._hosts = hosts
        self._limits = limits
        self._largest_file = largest_file

    async def head(
        self, identity: Identity, folder: Path, wanted: str = "", credential: GitCredential | None = None
    ) -> RepositoryHead:
        """The commit that a branch is at, or else the default branch. `folder` is an empty repository to ask from."""
        branch: str | None = wanted or None
        asked = f"{_BRANCHES}{wanted}" if wanted else "HEAD"

        async def ask(route: Route) -> str:
            nonlocal branch
            done = await self._call(
                route, folder, "ls-remote", "--symref", "--end-of-options", route.url, asked
            )
            for line in done.out.decode("utf-8", "replace").splitlines():
                told, _, name = line.partition("\t")
                if name == "HEAD" and told.startswith(_BRANCH):
                    branch = told.removeprefix(_BRANCH)
                elif name == asked and is_commit(told):
                    return told
            raise no_branch(wanted) if wanted else _empty()

        head = await self._redirected_once(identity, ask, credential)
        return msgspec.structs.replace(head, branch=branch)

    async def fetch(
        self,
        identity: Identity,
        folder: Path,
        commit: str | None,
        branch: str = "",
        credential: GitCredential | None = None,
    ) -> RepositoryHead:
        """Bring one commit, or the head of a branch, into an empty folder; CommitGone if it is gone."""
        head = f"{_BRANCHES}{branch}" if branch else "HEAD"
        wanted = head if commit is None else commit

        async def bring(route: Route) -> str:
            await self._call(
                route,
                folder,
                "fetch",
                "--quiet",
                "--depth=1",
                "--no-tags",
                "--no-recurse-submodules",
                "--no-auto-maintenance",
                "--no-write-fetch-head",
                # Skip blobs that are too large for any skill, if the host supports that.
                f"--filter=blob:limit={self._largest_file + 1}",
                "--end-of-options",
                route.url,
                f"+{wanted}:{REF}",
            )
            return await asyncio.to_thread(_settle, folder)

        return await self._redirected_once(identity, bring, credential)

    async def _call(self, route: Route, folder: Path, *arguments: str) -> EndedProgram:
        try:
            done = await self._git.run(*arguments, folder=folder, limits=self._limits, route=route)
        except command.TimedOut:
            seconds = self._limits.seconds
            message = f"{route.host} did not deliver the repository within {seconds:g} s."
            raise SourceUnavailable(message, host=route.host) from None
        except SshFailed as failed:
            if (
                route.credential is None or route.credential.ssh is None
            ):  # pragma: no cover - only keys use SSH
                raise
            raise failure(route.host, route.credential.ssh, failed.problem) from None
        if done.code == 0:
            return done
        # A process ended by the kernel's limit does not say why.
        if await asyncio.to_thread(command.size_of, folder / "objects") >= self._limits.disk_bytes:
            raise command.too_large(self._limits)
        raise _failure(route, done.err)

    async def _redirected_once(
        self, identity: Identity, work: Callable[[Route], Awaitable[str]], credential: GitCredential | None
    ) -> RepositoryHead:
        route = await self._hosts.route(identity, credential=credential)
        try:
            return RepositoryHead(identity, await work(route))
        except _Redirected:
            moved, again = await self._follow(identity, route)
        try:
            return RepositoryHead(moved, await work(again))
        except _Redirected:
            raise SourceGone(f"{route.host} redirects more than once; give the last address.") from None

    async def _follow(self, identity: Identity, route: Route) -> tuple[Identity, Route]:
        """The redirect's target, checked by the same rules as a submitted URL. It gets the credential only if that is
        for the target, too."""
        if route.mirror:
            raise SourceGone(f"The mirror of {route.host} redirects, which a mirror must not.")
        target = await self._location(route)
        base, found, _ = target.partition(_INFO_REFS)
        if not found or urlsplit(base).scheme != route.protocol:
            raise SourceGone(
                f"{route.host} redirects to an address that is not a repository over {route.protocol}."
            )
        try:
            place = normalise(base)
        except InvalidInput as error:
            raise SourceGone(f"{route.host} redirects to an address that is not accepted: {error}") from None
        moved = msgspec.structs.replace(place, path=identity.path)
        if moved.repo_key == identity.repo_key:
            moved = identity
        url = f"{route.protocol}://{moved.host}{urlsplit(base).path}"
        return moved, await self._hosts.route(moved, url, credential=route.credential)

    async def _location(self, route: Route) -> str:
        """The target of the redirect, read from the pinned address without following it."""
        url = f"{route.url}{_INFO_REFS}?service=git-upload-pack"
        try:
            async with TimeLimit(self._limits.seconds):
                head = await _response_head(route, urlsplit(url).netloc, url)
        except (
            OSError,
            TimeoutError,
            ssl.SSLError,
            asyncio.IncompleteReadError,
            asyncio.LimitOverrunError,
        ) as error:
            raise SourceUnavailable(
                f"{route.host} cannot be reached at the moment.", host=route.host
            ) from error
        for line in head.splitlines():
            name, _, value = line.partition(":")
            if name.strip().lower() == "location":
                return urljoin(url, value.strip())
        raise SourceUnavailable(f"{route.host} redirects without an address.", host=route.host)


def is_commit(text: str) -> bool:
    """Forty hexadecimal digits: the only form of a commit that is ever given to git."""
    return len(text) == 40 and set(text) <= set("0123456789abcdef")


def _settle(folder: Path) -> str:
    """The commit that was fetched. Resets the configuration, in which git noted where to fetch the skipped blobs: they
    must stay missing."""
    commit = (folder / REF).read_text("ascii").strip()
    if not is_commit(commit):  # pragma: no cover - git wrote it
        raise InvalidInput("The repository's head is not a commit.", field="repo_url")
    command.write_config(folder)
    return commit


async def _response_head(route: Route, netloc: str, url: str) -> str:
    name, port, addresses = route.pin.split(":", 2)
    address = addresses.partition(",")[0].strip("[]")
    secure = ssl.create_default_context() if route.protocol == "https" else None
    reader, writer = await asyncio.open_connection(
        address, int(port), ssl=secure, server_hostname=name if secure else None, limit=_MOST_HEAD_BYTES
    )
    try:
        parts = urlsplit(url)
        agent = command.CONFIG["http.userAgent"]
        request = f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: {netloc}\r\nUser-Agent: {agent}\r\n"
        if route.credential is not None:
            request += f"Authorization: {route.credential.basic}\r\n"
        writer.write(f"{request}Accept: */*\r\nConnection: close\r\n\r\n".encode("ascii"))
        return (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


# Git's messages as errors. Lines from the host (`remote: …`) are ignored.

_GONE = (
    "not found",
    "returned error: 404",
    "returned error: 410",
    "returned error: 451",
    "returned error: 401",
    "could not read Username",
    "could not read Password",
    "terminal prompts disabled",
    "Authentication failed",
    "does not appear to be a git repository",
    "does not exist",
)
_NOT_GIT = ("is this a git repository", "dumb http transport", "invalid server response", "not valid: ")
_NO_COMMIT = ("not our ref", "unadvertised object", "couldn't find remote ref", "no such remote ref")
_OVER = ("died of signal", "File too large")
_OUT_OF_MEMORY = (
    "out of memory",
    "malloc failed",
    "unable to create thread",
    "mmap failed",
    "Cannot allocate memory",
)
#: Messages of git and the system about a shortage of this machine.
_SHORT = {
    "died of signal 9": "memory",
    "failed to map segment from shared object": "memory",
    "No space left on device": "disk space",
    "Too many open files": "open files",
    "Resource temporarily unavailable": "processes",
    "Cannot fork": "processes",
}
#: The only message if a limit ended the program that unpacks.
_KILLED = "fatal: fetch-pack: invalid index-pack output"


def _failure(route: Route, err: bytes) -> Exception:
    lines = [line for line in err.decode("utf-8", "replace").splitlines() if not line.startswith("remote:")]
    own = "\n".join(line for line in lines if "remote error:" not in line)
    said = "\n".join(lines)
    if "returned error: 30" in own and route.protocol != "ssh":
        return _Redirected()
    if "couldn't find remote ref HEAD" in own:
        return _empty()
    if any(words in said for words in _NO_COMMIT):
        return CommitGone()
    return _lasting(route, own) or _passing(route, lines)


def _lasting(route: Route, own: str) -> PlatformError | None:
    """Errors that a retry would not change, and shortages of this machine."""
    if any(words in own for words in _GONE):
        if route.credential is None:
            return no_repository(route.host)
        message = f"{route.host} shows no repository at that address, also with the namespace's credential."
        return SourceGone(message, host=route.host)
    if any(words in own for words in _NOT_GIT):
        return SourceGone(f"{route.host} does not answer as a git host at that address.", host=route.host)
    for words, lacking in _SHORT.items():
        if words in own:
            return lack(lacking)
    is_killed = own.strip() == _KILLED
    if (is_killed or any(words in own for words in _OUT_OF_MEMORY)) and not has_memory_for(
        command.MOST_MEMORY
    ):
        return lack("memory")
    if is_killed or any(words in own for words in (*_OVER, *_OUT_OF_MEMORY)):
        return LimitExceeded("The repository cannot be unpacked within the limits of memory and time.")
    if "object-format" in own or "mismatched algorithms" in own or "hash algorithm" in own:
        return SourceGone("The repository uses SHA-256 object names, which are not supported.")
    return None


def _passing(route: Route, lines: list[str]) -> SourceUnavailable:
    said = next((line for line in reversed(lines) if line.startswith(("fatal:", "error:"))), "no answer")
    shown = "".join(char if char.isprintable() else " " for char in said)[:_SHOWN]
    return SourceUnavailable(f"{route.host} cannot be reached at the moment: {shown}", host=route.host)


def no_branch(branch: str) -> NoSkillFound:
    """The error for a followed branch that the repository does not have."""
    return NoSkillFound(f"The repository has no branch {branch!r}.")


def _empty() -> NoSkillFound:
    return NoSkillFound("The repository is empty: it has no commit, and so no SKILL.md.")
