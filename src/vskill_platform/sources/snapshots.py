"""One fetched commit: which files it holds, and the bytes of those that belong to a skill.

Nothing is ever checked out. Names come from `git ls-tree` and bytes from `git cat-file`; a small repository is read
whole, once, and its folder removed. Every list and every read has a limit, and what is refused names the file.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

from vskill_core.content import MODES, ContentLimits, SkillFile, check_files
from vskill_core.errors import InvalidInput, LimitExceeded, NoSkillFound, Shortage
from vskill_core.identity import SKILL_FILE
from vskill_core.kind import OLDER, STANDARD, UNSIGNED, is_manifest
from vskill_platform.machine.shortages import MACHINE
from vskill_platform.sources.command import (
    CommandLimits,
    CutOff,
    Git,
    ObjectReader,
    TimedOut,
    check_ending,
    size_of,
)
from vskill_platform.sources.contract import RepositoryHead
from vskill_platform.sources.listing import (
    TreeEntry,
    can_be_named,
    check_entry,
    digests_below,
    entry_of,
    file_in,
    folders_with_manifest,
    folders_with_skill,
    lines_below,
    lines_of,
    mode_of,
    path_of,
    shown_path,
    skill_file_in,
)

W = TypeVar("W")
F = TypeVar("F")

#: Limit of a whole repository's listing; longer ones are read folder by folder.
LISTING_BYTES = 16 * 1024 * 1024
#: A repository below both is read whole and kept in memory.
SMALL_PACK = 1024 * 1024
SMALL_FILES = 500
SMALL_BYTES = 4 * 1024 * 1024
#: Limit of one list of skills.
MOST_SKILLS = 1000
#: Of a repository that is not listed in memory, so many files are asked for one by one.
FEW_PATHS = 8
#: A longer SKILL.md is listed without its name.
LISTED_SKILL_BYTES = 256 * 1024
#: A commit with a longer message is not asked for its time.
MOST_COMMIT_BYTES = 64 * 1024
#: Far beyond every clock.
_LATEST_S = 1 << 36


class Snapshot:
    """A commit on disk, or in memory where it is small."""

    def __init__(
        self, git: Git, folder: Path, head: RepositoryHead, limits: ContentLimits, seconds: float
    ) -> None:
        self.commit = head.commit
        #: Where it was found.
        self.identity = head.identity
        self._git = git
        self._folder: Path | None = folder
        self._limits = limits
        self._cost = CommandLimits(seconds=seconds, out_bytes=LISTING_BYTES)
        self._lines: list[bytes] | None = None
        self._blobs: dict[str, bytes] | None = None
        #: The commit object, if the snapshot is in memory.
        self._about: bytes | None = None
        #: Disk and memory that it uses.
        self.disk_bytes = 0
        self.memory_bytes = 0

    async def load(self) -> None:
        """Read the list of names, and all content if it is small."""
        if self._folder is None:
            raise RuntimeError("a snapshot is loaded once")
        lines, cut = await self._list(self.commit)
        self._lines = None if cut else lines
        self.disk_bytes = await asyncio.to_thread(size_of, self._folder)
        if not cut and len(lines) <= SMALL_FILES and self.disk_bytes <= SMALL_PACK:
            await self._load_all(lines)
        self.memory_bytes += sum(map(len, self._lines or ()))

    async def remove(self) -> None:
        if self._folder is not None:
            folder, self._folder = self._folder, None
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        self.disk_bytes = 0

    async def files(self, folder: str) -> tuple[SkillFile, ...]:
        """The files of the skill or plugin in this folder; refuses what it may not hold before a byte is read."""
        entries = await self._entries(folder)
        if not any(entry.path in (SKILL_FILE, STANDARD, OLDER) for entry in entries):
            raise await self.no_skill(folder)
        with _in_full():
            for entry in entries:
                check_entry(entry, self._limits)
        blobs = await self._read(entries)
        files = tuple(SkillFile(entry.path, mode_of(entry), blobs[entry.id]) for entry in entries)
        with _in_full():
            check_files(files, self._limits)
        return files

    async def skill_md(self, folder: str) -> bytes:
        """The SKILL.md of a folder; NoSkillFound says what was found instead."""
        name = skill_file_in(folder)
        for entry in await self._find_entries([name]):
            with _in_full():
                check_entry(entry, self._limits)
            return (await self._read([entry]))[entry.id]
        raise await self.no_skill(folder)

    async def manifest(self, folder: str) -> SkillFile | None:
        """The manifest of the plugin in this folder, its path from the folder; None where it is no plugin. One that is
        a link or too large has no data here: the run refuses it with the reason."""
        for name in (OLDER, STANDARD):
            for data in (await self.texts([file_in(folder, name)])).values():
                if data is None or is_manifest(name, data):
                    return SkillFile(name, "100644", data or b"")
        return None

    async def plugins(self, below: str) -> dict[str, SkillFile]:
        """The same for every plugin at or below this folder that an address can name, by folder."""
        lines = self._lines if self._lines is not None else (await self._list(self.commit))[0]
        found = await _choose(folders_with_manifest, lines, below)
        named = {folder: found[folder] for folder in sorted(found) if can_be_named(folder)}
        wanted = {path: folder for folder in [*named][:MOST_SKILLS] for path in named[folder]}
        plugins: dict[str, SkillFile] = {}
        for path, data in (await self.texts(wanted)).items():
            folder = wanted[path]
            name = path.removeprefix(f"{folder}/") if folder else path
            if (data is None or is_manifest(name, data)) and (name == OLDER or folder not in plugins):
                plugins[folder] = SkillFile(name, "100644", data or b"")
        return plugins

    async def skill_folders(self, below: str) -> tuple[list[str], list[str], bool]:
        """Folders with a SKILL.md at or below this one, those that no URL can name, and whether there are more."""
        lines, cut = (self._lines, False) if self._lines is not None else await self._list(self.commit)
        found = await _choose(folders_with_skill, lines, below)
        named = sorted(path for path in found if can_be_named(path))
        odd = sorted(shown_path(path) for path in found if not can_be_named(path))
        return (
            named[:MOST_SKILLS],
            odd[:MOST_SKILLS],
            cut or len(named) > MOST_SKILLS or len(odd) > MOST_SKILLS,
        )

    async def skill_texts(self, folders: Sequence[str]) -> dict[str, bytes]:
        """The SKILL.md of each folder, if it is a plain file of a sane size."""
        wanted = {skill_file_in(folder): folder for folder in folders}
        there = await self.texts(wanted)
        return {wanted[path]: data for path, data in there.items() if data is not None}

    async def folder_digests(self, folders: Sequence[str]) -> dict[str, str]:
        lines = self._lines if self._lines is not None else (await self._list(self.commit))[0]
        return await _choose(digests_below, lines, folders)

    async def texts(self, paths: Collection[str]) -> dict[str, bytes | None]:
        """Those of these files that exist; None for one that is no plain file or too large."""
        there = await self._find_entries(paths)
        entries = [entry for entry in there if entry.mode in MODES]
        blobs = await self._small_blobs(entries)
        plain = {entry.path: blobs[entry.id] for entry in entries if entry.id in blobs}
        sane = {path: data for path, data in plain.items() if len(data) <= LISTED_SKILL_BYTES}
        return {entry.path: sane.get(entry.path) for entry in there}

    async def _small_blobs(self, entries: Sequence[TreeEntry]) -> dict[str, bytes]:
        """Bytes by id, of entries that exist and are of a sane size; for a snapshot in memory, of all."""
        if self._blobs is not None:
            return self._blobs
        async with self._objects() as reader:
            sizes = await reader.sizes([entry.id for entry in entries])
            ids = [one for one, size in sizes.items() if size is not None and size <= LISTED_SKILL_BYTES]
            return await reader.contents(ids)

    async def committed_at(self) -> int | None:
        """When the commit says that it was made, in milliseconds; None where it does not say."""
        about = self._about
        if about is None and self._blobs is None:
            async with self._objects() as reader:
                about = await self._read_commit(reader)
        return _committed_at(about) if about is not None else None

    async def _read_commit(self, reader: ObjectReader) -> bytes | None:
        size = (await reader.sizes([self.commit], b"commit"))[self.commit]
        if size is None or size > MOST_COMMIT_BYTES:
            return None
        return (await reader.contents([self.commit]))[self.commit]

    async def _find_entries(self, paths: Collection[str]) -> list[TreeEntry]:
        if self._lines is None and len(paths) <= FEW_PATHS:
            lines = [line for path in paths for line in (await self._list(self.commit, path))[0]]
        else:
            every = self._lines if self._lines is not None else (await self._list(self.commit))[0]
            lines = await _choose(lines_of, every, paths)
        return [entry for entry in map(entry_of, lines) if entry.path in paths]

    async def no_skill(self, folder: str) -> NoSkillFound:
        """The error for a folder without SKILL.md; it names folders that have one."""
        named, _, _ = await self.skill_folders("")
        where = f"in {folder!r}" if folder else "at the root of the repository"
        others = ", ".join(path or "the root" for path in named[:5])
        rest = f" and {len(named) - 5} more" if len(named) > 5 else ""
        hint = f"there is one in {others}{rest}" if named else "there is none anywhere in its default branch"
        wanted, ending = skill_file_in(folder).lower(), SKILL_FILE.lower().encode()
        paths = (path_of(line) for line in self._lines or () if line.lower().endswith(ending))
        if near := next((path for path in paths if path.lower() == wanted), ""):
            hint = f"there is {near!r}, but names are case-sensitive"
        if await self.texts([file_in(folder, STANDARD)]):
            hint += f". Its {UNSIGNED}"
        return NoSkillFound(f"There is no SKILL.md {where}; {hint}.", folder=folder, found=named[:20])

    async def _entries(self, folder: str) -> list[TreeEntry]:
        """Every entry below a folder, with paths relative to it; refuses more than a skill may hold."""
        if self._lines is not None:
            lines, cut = await _choose(lines_below, self._lines, folder), False
            start = len(folder) + 1 if folder else 0
        else:
            lines, cut = await self._list(f"{self.commit}:{folder}")
            start = 0
        if cut or len(lines) > self._limits.files:
            count = f"more than {self._limits.files}" if cut else f"{len(lines)}"
            raise LimitExceeded(
                f"The skill's folder holds {count} files; at most {self._limits.files} are allowed.",
                limit="files",
                allowed=self._limits.files,
            )
        return [TreeEntry(one.mode, one.id, one.path[start:]) for one in map(entry_of, lines)]

    async def _list(self, tree: str, path: str = "") -> tuple[list[bytes], bool]:
        """The lines of `git ls-tree`, without a truncated last one, and whether it was truncated."""
        arguments = (
            "ls-tree",
            "-r",
            "-z",
            "--full-tree",
            "--end-of-options",
            tree,
            *((path,) if path else ()),
        )
        too_much = LimitExceeded(
            "The repository's folders cannot be listed within the limits.", limit="depth"
        )
        try:
            done = await self._git.run(*arguments, folder=self._here(), limits=self._cost)
        except TimedOut:
            raise self._starved() from None
        if done.code != 0 and b"Not a valid object name" in done.err:
            return [], False
        if done.code != 0:
            check_ending(done.code)
            raise too_much
        lines = done.out.split(b"\0")
        return lines[:-1], done.cut

    async def _load_all(self, lines: Sequence[bytes]) -> None:
        ids = list({entry.id: None for entry in map(entry_of, lines) if entry.mode in MODES})
        async with self._objects() as reader:
            sizes = await reader.sizes(ids)
            there = [one for one in ids if sizes[one] is not None]
            if len(there) < len(ids) or sum(size or 0 for size in sizes.values()) > SMALL_BYTES:
                return
            self._blobs = await reader.contents(there)
            self._about = await self._read_commit(reader)
        self.memory_bytes = sum(map(len, self._blobs.values()))
        await self.remove()

    async def _read(self, entries: Sequence[TreeEntry]) -> dict[str, bytes]:
        if self._blobs is not None:
            self._check_sizes(entries, {entry.id: len(self._blobs[entry.id]) for entry in entries})
            return self._blobs
        ids = list(dict.fromkeys(entry.id for entry in entries))
        async with self._objects() as reader:
            self._check_sizes(entries, await reader.sizes(ids))
            return await reader.contents(ids)

    def _check_sizes(self, entries: Iterable[TreeEntry], sizes: dict[str, int | None]) -> None:
        total = 0
        for entry in entries:
            size = sizes[entry.id]
            if size is None or size > self._limits.bytes_file:
                most = self._limits.bytes_file
                raise LimitExceeded(
                    f"The file {shown_path(entry.path)} is larger than the {most} bytes that are accepted.",
                    limit="bytes_file",
                    allowed=most,
                    path=shown_path(entry.path),
                )
            total += size
        if total > self._limits.bytes_total:
            raise LimitExceeded(
                f"The skill's files have {total} bytes; at most {self._limits.bytes_total} are allowed.",
                limit="bytes_total",
                allowed=self._limits.bytes_total,
            )

    @asynccontextmanager
    async def _objects(self) -> AsyncIterator[ObjectReader]:
        """A reader; refuses objects that git cannot read within the limits."""
        try:
            async with self._git.objects(self._here(), self._cost) as reader:
                yield reader
        except TimedOut:
            raise self._starved() from None
        except CutOff:
            raise LimitExceeded("The repository's files cannot be unpacked within the limits.") from None

    def _starved(self) -> Shortage:
        seconds = self._cost.seconds
        message = (
            f"git got too little of the processor or the disk to read the repository within {seconds:g} s."
        )
        return Shortage(message, host=MACHINE)

    def _here(self) -> Path:
        if self._folder is None:
            raise RuntimeError("the snapshot was removed while it was in use")
        return self._folder


async def _choose(choose: Callable[[Sequence[bytes], W], F], lines: Sequence[bytes], wanted: W) -> F:
    """Run in a thread if the list is long; for a short one, starting a thread would take longer."""
    if len(lines) <= SMALL_FILES:
        return choose(lines, wanted)
    return await asyncio.to_thread(choose, lines, wanted)


def _committed_at(about: bytes) -> int | None:
    """From the line `committer name <address> seconds zone` of a commit."""
    head = about.partition(b"\n\n")[0]
    line = next((line for line in head.split(b"\n") if line.startswith(b"committer ")), b"")
    seconds = line.rpartition(b"> ")[2].partition(b" ")[0]
    known = seconds.isdigit() and len(seconds) < 12 and int(seconds) < _LATEST_S
    return int(seconds) * 1000 if known else None


@contextmanager
def _in_full() -> Iterator[None]:
    """Add the fix to an error's message: the author of a rejected skill reads only the message."""
    try:
        yield
    except InvalidInput as error:
        if error.fix and error.fix not in error.message:
            message = f"{error.message.rstrip('.')}; {error.fix}."
            raise InvalidInput(message, **error.details) from None
        raise
