"""`python -m vskill_scan.make_memory FOLDER`: makes a memory from folders of public skills.

The same folders, date and rules give the same bytes. `--part` takes some of the owners, so that a memory can be scored
on skills of owners whom it has not seen.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import msgspec

from vskill_core.folders import read_folder
from vskill_scan.engine import Engine
from vskill_scan.memory.making import PublicFacts, facts_of, pack_memory
from vskill_scan.memory.memory import Memory
from vskill_scan.reading.manifest import read_manifest
from vskill_scan.rules.ruleset import bundled_rules


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


def make_memory(skills: Iterable[PublicSkill], date: str) -> bytes:
    """The file."""
    engine = Engine(bundled_rules(), read_manifest)

    def tell(skill: PublicSkill) -> PublicFacts:
        files, is_vendor = read_folder(skill.folder), bool(skill.vendor)
        return facts_of(files, engine.scan(files), skill.folder.name, skill.owner, is_vendor=is_vendor)

    return pack_memory(map(tell, skills), date, engine.version)


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
