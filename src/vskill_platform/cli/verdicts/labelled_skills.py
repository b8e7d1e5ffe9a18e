"""A folder of labelled skills, laid out as PART/LABEL/OWNER/NAME or PART/LABEL/NUMBER: what `judge evaluate` and the
benchmarks measure with."""

from collections.abc import Iterator
from pathlib import Path

#: Which part of the set a skill belongs to, and its label there.
Label = tuple[str, str]


def labelled_skills(folder: Path) -> dict[Path, Label]:
    """Every skill below the folder. A skill's folder is the outermost with a file in it."""
    return {
        skill: (part.name, label.name)
        for part in _folders(folder)
        for label in _folders(part)
        for skill in _skills(label)
    }


def _skills(folder: Path) -> Iterator[Path]:
    for below in _folders(folder):
        if any(path.is_file() for path in below.iterdir()):
            yield below
        else:
            yield from _skills(below)


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir())
