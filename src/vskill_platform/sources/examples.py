"""The bundled examples as git repositories, so that they are fetched, scanned and decided like any other skill.

They are text in their own format (`examples/README.txt`) and become bare repositories in the data folder, which serves
as a mirror for their made-up owners on the public host. They do not exist until `serve --demo` writes them.
"""

import os
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec

from vskill_core.content import Mode, SkillFile, digest_of_files
from vskill_platform.domain.submissions.states import State
from vskill_platform.settings import Settings
from vskill_platform.sources.command import find_git

BUNDLED = Path(__file__).parents[1] / "examples"
HOST = "github.com"
BRANCH = "main"
BESIDE = "_repository"

_MODES = {"": "100644", "755": "100755", "link": "120000"}
#: Every copy of an example has the same commits, with a fixed author and fixed times, a month apart.
_FIRST_COMMIT_S = 1_767_600_000
_MONTH_S = 30 * 24 * 3600
_COMMITTER = "Examples <examples@example.org>"
_GIT_SECONDS = 30


class ExampleFile(msgspec.Struct, frozen=True):
    """One file of an example; the mode is git's."""

    path: str
    mode: str
    data: bytes


Version = tuple[ExampleFile, ...]


class Example(msgspec.Struct, frozen=True):
    """One skill with its versions, oldest first."""

    name: str
    versions: tuple[Version, ...]
    #: The state that its last version ends in.
    expect: State = State.PUBLISHED
    #: Whether its content counts as known malware if the examples are loaded.
    known_bad: bool = False
    #: The repository's first commit with it.
    since: int = 1

    def at(self, commit: int) -> Version | None:
        """Its files in the repository's commit of that number; None where it is not there yet."""
        if commit < self.since:
            return None
        return self.versions[min(commit - self.since, len(self.versions) - 1)]

    def changes_in(self, commit: int) -> bool:
        return self.since <= commit < self.since + len(self.versions)


class ExampleRepository(msgspec.Struct, frozen=True):
    """A repository of examples."""

    owner: str
    name: str
    skills: tuple[Example, ...]
    beside: Version
    #: How many of its commits the demonstration submits.
    submit: int

    @property
    def url(self) -> str:
        return f"https://{HOST}/{self.owner}/{self.name}"

    @property
    def commits(self) -> int:
        return max(skill.since + len(skill.versions) - 1 for skill in self.skills)

    def folder(self, root: Path) -> Path:
        return root / self.owner / self.name

    def files(self, commit: int) -> Iterator[ExampleFile]:
        yield from self.beside
        for skill in self.skills:
            for file in skill.at(commit) or ():
                yield msgspec.structs.replace(file, path=f"{skill.name}/{file.path}")


def examples_folder(settings: Settings) -> Path:
    return Path(settings.data_dir) / "examples"


def example_rewrites(settings: Settings) -> tuple[str, ...]:
    """The rewrites that make this folder the mirror of the examples' owners. They apply even before the folder exists,
    so that a server need not be restarted."""
    folder = examples_folder(settings).absolute()
    owners = sorted({repository.owner for repository in bundled_repositories()})
    return tuple(f"https://{HOST}/{owner}/={(folder / owner).as_uri()}/" for owner in owners)


@cache
def bundled_repositories() -> tuple[ExampleRepository, ...]:
    return tuple(_repository(folder) for folder in sorted(BUNDLED.glob("*/*")) if folder.is_dir())


def known_bad_digests() -> tuple[str, ...]:
    bad = [skill for repository in bundled_repositories() for skill in repository.skills if skill.known_bad]
    return tuple(digest_of_files(_skill_files(version)) for skill in bad for version in skill.versions)


def write_commit(repository: ExampleRepository, root: Path, number: int) -> None:
    """Advance the repository to the commit of that number, with its history; it never goes back."""
    folder = repository.folder(root)
    git = find_git()
    if not (folder / "HEAD").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _git(git, folder, b"", "init", "--quiet", "--bare", f"--initial-branch={BRANCH}")
        _git(git, folder, b"", "config", "uploadpack.allowFilter", "true")
    if commit_of(repository, root) >= number:
        return
    stream = b"".join(_commit(repository, one) for one in range(1, number + 1))
    _git(git, folder, stream, "fast-import", "--quiet", "--date-format=raw")


def commit_of(repository: ExampleRepository, root: Path) -> int:
    """The number of the commit that the repository stands at; 0 where there is none."""
    folder = repository.folder(root)
    if not (folder / "HEAD").exists():
        return 0
    counted = _git(find_git(), folder, b"", "rev-list", "--count", "--all")
    return int(counted or b"0")


# From the text to the structs.


def _repository(folder: Path) -> ExampleRepository:
    texts = {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.txt"))}
    head, (beside,) = _parse(texts.pop(BESIDE))
    skills = tuple(_example(name, text) for name, text in texts.items())
    most = max(skill.since + len(skill.versions) - 1 for skill in skills)
    return ExampleRepository(
        folder.parent.name, folder.name, skills, beside, min(int(head.get("submit", most)), most)
    )


def _example(name: str, text: str) -> Example:
    head, versions = _parse(text)
    return Example(
        name,
        versions,
        State(head.get("expect", State.PUBLISHED.value)),
        head.get("known-bad") == "yes",
        int(head.get("from", "1")),
    )


def _parse(text: str) -> tuple[dict[str, str], tuple[Version, ...]]:
    """The lines before the first file, and the files of each version."""
    begin, *sections = f"\n{text}".split("\n=== ")
    head = dict(line.split(": ", 1) for line in begin.splitlines() if ": " in line)
    versions: list[dict[str, ExampleFile]] = [{}]
    for section in sections:
        title, _, content = section.partition("\n")
        if title == "next version":
            versions.append(dict(versions[-1]))
            continue
        path, _, mode = title.partition(" ")
        data = content.rstrip("\n") if mode == "link" else content.rstrip("\n") + "\n"
        versions[-1][path] = ExampleFile(path, _MODES[mode], data.encode())
    return head, tuple(tuple(files.values()) for files in versions)


def _skill_files(version: Sequence[ExampleFile]) -> tuple[SkillFile, ...]:
    modes: dict[str, Mode] = {"100644": "100644", "100755": "100755"}
    files = [SkillFile(file.path, modes[file.mode], file.data) for file in version]
    return tuple(sorted(files, key=lambda file: file.path))


# From the structs to git.


def _commit(repository: ExampleRepository, number: int) -> bytes:
    when = _FIRST_COMMIT_S + number * _MONTH_S
    text = f"Version {number} of the examples"
    head = f"commit refs/heads/{BRANCH}\nmark :{number}\ncommitter {_COMMITTER} {when} +0000\n"
    behind = f"from :{number - 1}\n" if number > 1 else ""
    parts = [f"{head}data {len(text)}\n{text}\n{behind}deleteall\n".encode()]
    for file in repository.files(number):
        parts.append(b"M %s inline %s\n" % (file.mode.encode(), file.path.encode()))
        parts.append(b"data %d\n%s\n" % (len(file.data), file.data))
    return b"".join([*parts, b"\n"])


def _git(program: str, folder: Path, feed: bytes, *arguments: str) -> bytes:
    """Run git on our own folder, without the machine's configuration."""
    environment = {
        "PATH": f"{Path(program).parent}{os.pathsep}{os.defpath}",
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_DIR": "." if arguments[0] != "init" else str(folder.absolute()),
    }
    done = subprocess.run(
        [program, *arguments],
        cwd=folder,
        input=feed,
        env=environment,
        capture_output=True,
        check=True,
        timeout=_GIT_SECONDS,
    )
    return done.stdout.strip()
