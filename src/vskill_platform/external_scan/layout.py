"""A skill's files as an analyser sees them: flat, under names of ours, with an extension that says what they are.

Names from the skill never reach a program. So nothing in a skill can be taken for an option, switch an analyser off
(`.semgrepignore`, `.bandit`), or hide in a folder that analysers skip by default (`tests/`, `node_modules/`). A file
without an extension gets the one of the interpreter in its first line.
"""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import msgspec

from vskill_core.content import SkillFile

#: From authors' file extensions to those that analysers know.
ENDINGS = {
    ".py": ".py",
    ".pyw": ".py",
    ".sh": ".sh",
    ".bash": ".sh",
    ".zsh": ".sh",
    ".ksh": ".sh",
    ".js": ".js",
    ".mjs": ".js",
    ".cjs": ".js",
    ".jsx": ".jsx",
    ".ts": ".ts",
    ".mts": ".ts",
    ".cts": ".ts",
    ".tsx": ".tsx",
}
INTERPRETERS = {
    "python": ".py",
    "bash": ".sh",
    "sh": ".sh",
    "zsh": ".sh",
    "dash": ".sh",
    "ksh": ".sh",
    "node": ".js",
    "deno": ".ts",
    "bun": ".ts",
}


class Layout(msgspec.Struct, frozen=True):
    """The files that an analyser is given."""

    #: our name → the file
    files: dict[str, SkillFile]

    def path_of(self, name: str) -> str:
        """The skill's path of a file that an analyser names; empty if the analyser was not given it."""
        file = self.files.get(PurePosixPath(name).name)
        return "" if file is None else file.path

    def write(self, folder: Path) -> None:
        """Write them to the folder, not executable: they are read, not run."""
        for name, file in self.files.items():
            (folder / name).write_bytes(file.data)


def layout_of(files: Sequence[SkillFile], reads: frozenset[str]) -> Layout:
    kinds = ((file, kind_of(file)) for file in files)
    wanted = [(file, kind) for file, kind in kinds if kind in reads]
    return Layout({f"f{number:04}{kind}": file for number, (file, kind) in enumerate(wanted, start=1)})


def kind_of(file: SkillFile) -> str:
    """The kind by extension, or else by the first line; empty if no analyser reads it."""
    ending = PurePosixPath(file.path).suffix.lower()
    return ENDINGS[ending] if ending in ENDINGS else _by_first_line(file.data)


def _by_first_line(data: bytes) -> str:
    if not data.startswith(b"#!"):
        return ""
    words = data[2:256].split(b"\n", 1)[0].decode("ascii", "replace").split()
    names = [PurePosixPath(word).name.rstrip("0123456789.") for word in words if not word.startswith("-")]
    if names[:1] == ["env"]:
        names = [name for name in names[1:] if "=" not in name]
    return INTERPRETERS.get(names[0], "") if names else ""
