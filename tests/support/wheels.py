"""The wheel, and a fresh environment with it: as on a machine where somebody has installed the package."""

import os
import subprocess
import sys
import venv
import zipfile
from importlib import metadata
from pathlib import Path

from hatchling.build import build_wheel
from packaging.requirements import Requirement

from tools.files import ROOT


def make_wheel(folder: Path, part: str = "") -> Path:
    """The wheel of this checkout, or of one of its parts, in the folder."""
    before = Path.cwd()
    os.chdir(ROOT / part)
    try:
        return folder / build_wheel(str(folder))
    finally:
        os.chdir(before)


def make_environment(folder: Path, wheel: Path) -> Path:
    """A fresh environment with the wheel and the packages of requirements.lock, and no other.

    The packages are linked from this environment, so that nothing is downloaded.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    for pin in (Requirement(line.removesuffix("\\")) for line in lines if "==" in line and line[0] != " "):
        try:
            found = metadata.distribution(pin.name)
        except metadata.PackageNotFoundError:
            assert pin.marker, f"{pin.name} is in the lock and not installed: run 'make setup'"
            continue
        _link(found, site)
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-deps",
         "--no-index", "--no-input", "--disable-pip-version-check", str(wheel)],
        check=True,
    )  # fmt: skip
    return folder


def make_wheelhouse(folder: Path, *names: str) -> Path:
    """Wheels of these packages and of all that they need, made from what is installed here: an index for a test, which
    has no network."""
    folder.mkdir()
    seen: set[str] = set()
    left = list(names)
    while left:
        found = metadata.distribution(left.pop())
        if found.name in seen:
            continue
        seen.add(found.name)
        _repack(found, folder)
        needed = (Requirement(one) for one in found.requires or ())
        left += [one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
    return folder


def _repack(found: metadata.Distribution, folder: Path) -> None:
    said = (found.read_text("WHEEL") or "").splitlines()
    tags = [line.removeprefix("Tag: ").split("-") for line in said if line.startswith("Tag: ")]
    tag = "-".join(".".join(dict.fromkeys(part)) for part in zip(*tags, strict=True))
    files = [one for one in found.files or () if not {"..", "__pycache__"} & set(one.parts)]
    name = found.name.replace("-", "_")
    with zipfile.ZipFile(folder / f"{name}-{found.version}-{tag}.whl", "w") as wheel:
        for one in files:
            if one.name != "RECORD":
                wheel.write(str(found.locate_file(one)), str(one))
            else:
                wheel.writestr(str(one), "".join(f"{each},,\n" for each in files))


def _link(found: metadata.Distribution, site: Path) -> None:
    tops = {one.parts[0] for one in found.files or () if one.parts[0] not in ("..", "__pycache__")}
    for top in tops:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(found.locate_file(top))))
