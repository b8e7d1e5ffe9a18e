"""A release, used by somebody who has its files and no clone: each way of `docs/how-to/get-it.md`, by its own words."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path
from urllib.request import urlopen

import pytest
from packaging.requirements import Requirement

from tests.cli.role_processes import announced
from tests.support.compiled_rules import keep_compiled_rules
from tests.support.lifetimes import running
from tests.support.patience import PATIENCE_S
from tests.support.uv import Passenger
from tests.support.wheels import make_wheelhouse
from tools.blocks import blocks
from tools.files import ROOT
from vskill_core.release import __version__

pytestmark = pytest.mark.slow

PAGE = [
    one.text.replace("VERSION", __version__)
    for one in blocks((ROOT / "docs/how-to/get-it.md").read_text("utf-8"))
]
TRY, SERVER, IMAGE = (text.partition("\n")[2] for text in PAGE)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("release") / "dist"
    build_release(folder)
    return folder


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Every package that the registry needs, as an index would give it."""
    needed = (Requirement(one) for one in metadata.requires("vskill-platform") or ())
    names = (one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""}))
    return make_wheelhouse(tmp_path_factory.mktemp("index") / "wheels", *names)


@pytest.fixture
def person(built, index, tmp_path):
    """Somebody with the files of the release in their folder; the lock holds the hashes of this index."""
    folder = tmp_path / "person"
    shutil.copytree(built, folder)
    hashes = {
        one.name.partition("-")[0].lower(): hashlib.sha256(one.read_bytes()).hexdigest()
        for one in index.glob("*.whl")
    }
    (folder / "requirements.lock").write_text(
        "".join(f"{_pin(name)} --hash=sha256:{value}\n" for name, value in hashes.items())
    )
    return Passenger(folder, index)


def _pin(name: str) -> str:
    found = metadata.distribution(name)
    return f"{found.name}=={found.version}"


def build_release(folder: Path) -> None:
    subprocess.run(
        ["sh", "tools/release.sh", "build", folder],
        cwd=ROOT,
        env={**os.environ, "PYTHON": sys.executable},
        check=True,
    )


def test_it_is_whole_and_the_same_bytes_every_time(built, tmp_path):
    build_release(tmp_path / "again")
    sums = (built / "SHA256SUMS").read_text()
    assert (tmp_path / "again" / "SHA256SUMS").read_text() == sums
    names = {line.split(maxsplit=1)[1] for line in sums.splitlines()}
    assert {one.name for one in built.iterdir()} == names | {"SHA256SUMS"}
    text = (ROOT / "docs/how-to/get-it.md").read_text("utf-8")
    told = {
        line.split("`")[1].replace("VERSION", __version__)
        for line in text.splitlines()
        if line.startswith("| `")
    }
    assert told <= names | {"SHA256SUMS"}
    assert (built / f"notes-{__version__}.md").read_text().startswith("## ")
    assert json.loads((built / f"vskill-platform-{__version__}.cdx.json").read_text())["components"]


def test_uvx_runs_a_whole_registry_from_the_wheel(person):
    keep_compiled_rules(person.folder / "data")
    command = f"{TRY.strip()} --port 0"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with running(
        ["sh", "-euc", f"exec {command}"], cwd=person.folder, env=person.variables, **pipes
    ) as process:
        address = announced(process)["Address"]
        with urlopen(f"{address}/docs", timeout=PATIENCE_S) as page:
            assert b"Get it" in page.read()


def test_pip_installs_it_with_every_hash_and_doctor_is_content(person):
    told = person.run(SERVER, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(person.index))
    assert "ok" in told and "not ok" not in told


def test_the_image_is_made_from_files_of_its_context_alone(person):
    """Nothing is built in it, so nothing is fetched that no lock holds to its hash; the steps that install run here."""
    unpack, enter, *_ = IMAGE.splitlines()
    person.run(unpack)
    context = person.folder / enter.split()[-1]
    text = (context / "Containerfile").read_text().replace("\\\n", " ")
    for line in (line for line in text.splitlines() if line.startswith("COPY ") and "--from" not in line):
        assert all(list(context.glob(word)) for word in line.split()[1:-1]), line
    installs = [line for line in text.splitlines() if "pip install" in line]
    assert installs and all("--require-hashes" in line or "--no-index" in line for line in installs)


def test_the_archive_holds_the_tests_too(built):
    with tarfile.open(built / f"vskill_platform-{__version__}.tar.gz") as opened:
        names = set(opened.getnames())
    assert f"vskill_platform-{__version__}/tests/engines/test_release.py" in names
