"""`python -m vskill_scan.make_memory FOLDER`: makes a memory from folders of public skills.

The same folders, date and rules give the same bytes. `--part` takes some of the owners, so that a memory can be scored
on skills of owners whom it has not seen.
"""

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import msgspec
import re2

from vskill_core.content import SkillFile
from vskill_core.errors import PlatformError
from vskill_core.findings import StaticReport
from vskill_core.folders import read_folder
from vskill_core.identity import SKILL_FILE, normalise
from vskill_core.naming import hyphenate, slugify
from vskill_scan.engine import Engine
from vskill_scan.memory.install_hosts import hosts_named
from vskill_scan.memory.memory import FORMAT, Memory, MemoryContent
from vskill_scan.memory.notices import acting_entries
from vskill_scan.memory.sketch import sketch_of
from vskill_scan.reading.manifest import read_manifest
from vskill_scan.rules.ruleset import bundled_rules

#: Of an origin or a name.
LONGEST = 120
_REPOSITORY = re2.compile(r"(?m)^ *repository: *[\"']?(https://[^\s\"']+)")


class PublicSkill(msgspec.Struct, frozen=True):
    """A folder, and whose it is."""

    folder: Path
    #: marketplace and handle, or the vendor
    owner: str
    #: the vendor whose it is; empty on a marketplace
    vendor: str

    @property
    def share(self) -> str:
        """What decides to which part it belongs: a vendor's skills are split one by one."""
        return f"{self.owner}/{self.folder.name}" if self.vendor else self.owner


def skills_below(folder: Path, vendors: Iterable[str]) -> Iterator[PublicSkill]:
    """The skills of `MARKETPLACE/OWNER/SKILL`, and of `VENDOR/SKILL` for vendors."""
    for source in _folders(folder):
        if source.name in vendors:
            yield from (PublicSkill(one, source.name, source.name) for one in _folders(source))
        else:
            for owner in _folders(source):
                handle = f"{source.name}/{owner.name}"
                yield from (PublicSkill(one, handle, "") for one in _folders(owner))


def _folders(folder: Path) -> list[Path]:
    return sorted(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink())


def is_in_part(skill: PublicSkill, part: int, parts: int) -> bool:
    """Parts are counted from 1."""
    return int(hashlib.sha256(skill.share.encode()).hexdigest(), 16) % parts == part - 1


class _Facts(msgspec.Struct):
    """What is known so far."""

    origins: list[str] = []
    repositories: dict[int, str] = {}
    sizes: bytearray = msgspec.field(default_factory=bytearray)
    sketches: list[int] = []
    cards: list[int] = []
    #: owners by host and by name
    hosts: dict[str, set[str]] = {}
    names: dict[str, set[str]] = {}
    vendors: dict[str, str] = {}

    def add(self, skill: PublicSkill, files: tuple[SkillFile, ...], report: StaticReport) -> None:
        number, (name, repository) = len(self.origins), _describe(skill, files)
        self.origins.append(f"{skill.owner}/{name}"[:LONGEST])
        if repository:
            self.repositories[number] = repository
        sketch = sketch_of(files)
        self.sizes.append(len(sketch))
        self.sketches += (one << 16 | number for one in sketch)
        self.cards += (number << 48 | one for one in acting_entries(report))
        for host in hosts_named(report.capabilities or ()):
            self.hosts.setdefault(host, set()).add(skill.owner)
        self.names.setdefault(name, set()).add(skill.owner)
        if skill.vendor:
            self.vendors[name] = skill.vendor


def _describe(skill: PublicSkill, files: tuple[SkillFile, ...]) -> tuple[str, str]:
    """Its name, and the repository that its front matter names; empty where that names none."""
    name, repository = slugify(skill.folder.name), ""
    text = next((file.data for file in files if file.path == SKILL_FILE), b"")
    head = text.decode("utf-8", "replace").removeprefix("---").partition("\n---")[0]
    # What cannot be submitted as it is, is known by its text and its hosts all the same.
    with contextlib.suppress(PlatformError):
        name = read_manifest(text).name if skill.vendor else name
    with contextlib.suppress(PlatformError):
        if said := _REPOSITORY.search(head):
            repository = normalise(said[1]).repo_key
    return hyphenate(name)[:LONGEST] or "unnamed", repository


def make_memory(skills: Iterable[PublicSkill], date: str) -> bytes:
    """The file."""
    engine, facts = Engine(bundled_rules(), read_manifest), _Facts()
    for skill in skills:
        files = read_folder(skill.folder)
        facts.add(skill, files, engine.scan(files))
    content = MemoryContent(
        format=FORMAT,
        date=date,
        ruleset=engine.version,
        origins=facts.origins,
        repositories=facts.repositories,
        sizes=bytes(facts.sizes),
        sketches=_packed(facts.sketches),
        cards=_packed(facts.cards),
        hosts={host: len(owners) for host, owners in sorted(facts.hosts.items())},
        names={name: len(owners) for name, owners in sorted(facts.names.items())},
        vendors=dict(sorted(facts.vendors.items())),
    )
    return msgspec.msgpack.encode(content)


def _packed(numbers: Iterable[int]) -> bytes:
    return b"".join(one.to_bytes(8, "little") for one in sorted(set(numbers)))


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to write."
)
@click.option("--date", required=True, help="The day of which it tells, as YYYY-MM-DD.")
@click.option("--vendor", "vendors", multiple=True, help="A folder whose skills are all of one maker.")
@click.option("--part", default="1/1", show_default=True, help="Take these owners only, such as 1/2.")
def main(*, folder: Path, output: Path, date: str, vendors: tuple[str, ...], part: str) -> None:
    """Make a memory from public skills, which lie in FOLDER as MARKETPLACE/OWNER/SKILL and, for a vendor, as
    VENDOR/SKILL."""
    number, _, parts = part.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise click.BadParameter("write it as 1/2", param_hint="--part")
    chosen = [one for one in skills_below(folder, vendors) if is_in_part(one, int(number), int(parts))]
    data = make_memory(chosen, date)
    memory = Memory.load(data).check()
    output.write_bytes(data)
    click.echo(f"{output}: {memory.words}, {len(memory.hosts):,} hosts, {len(data):,} bytes, {memory.digest}")


if __name__ == "__main__":
    main()
