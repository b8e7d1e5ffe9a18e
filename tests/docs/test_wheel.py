"""The wheel: it holds everything that the product reads, is the same bytes every time, and runs with nothing but
what the production lock names."""

import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.support.wheels import make_environment, make_wheel
from tools.files import ROOT

PACKAGES = ("src/vskill_platform", "packages/core/src", "packages/scan/src", "packages/client/src")
#: Installed beside what runs in production only to develop it.
FOR_DEVELOPMENT = (
    "pytest",
    "hypothesis",
    "hatchling",
    "mypy",
    "playwright",
    "schemathesis",
    "tools",
    "tests",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return make_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    return make_environment(tmp_path_factory.mktemp("fresh"), wheel)


def run(installed: Path, data: Path, *arguments: str, program: str = "vskill-platform") -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("VSKILL_", "PYTHON"))}
    done = subprocess.run(
        [installed / "bin" / program, *arguments],
        cwd=data,
        env={**kept, "VSKILL_DATA_DIR": str(data / "data")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_holds_every_file_of_the_package(wheel):
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard", *PACKAGES],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    wanted = {path.rpartition("src/")[2] for path in listing.split("\0") if path and (ROOT / path).is_file()}
    with zipfile.ZipFile(wheel) as opened:
        held = set(opened.namelist())
    assert wanted <= held, sorted(wanted - held)
    parts = ("web/templates/", "web/static/", "examples/")
    for part in (*(f"vskill_platform/{one}" for one in parts), "vskill_scan/rules/exfiltration.yaml"):
        assert any(name.startswith(part) for name in held), part
    assert any(name.endswith(".sql") for name in held)
    assert {"vskill_platform/py.typed"} <= held


def test_it_is_the_same_bytes_every_time(wheel, tmp_path):
    assert make_wheel(tmp_path).read_bytes() == wheel.read_bytes()


@pytest.mark.parametrize("part", ["client", "scan"])
def test_a_part_is_taken_alone_with_the_core_in_it_and_needs_no_name_of_ours(part, tmp_path):
    with zipfile.ZipFile(make_wheel(tmp_path, f"packages/{part}")) as opened:
        held = opened.namelist()
        (said,) = [opened.read(name).decode() for name in held if name.endswith(".dist-info/METADATA")]
    tops = {name.split("/")[0] for name in held if ".dist-info" not in name}
    assert tops == {f"vskill_{part}", "vskill_core"}
    needed = [line for line in said.splitlines() if line.startswith("Requires-Dist: ")]
    assert needed and not [line for line in needed if "vskill" in line]


@pytest.mark.slow
def test_it_runs_without_development_packages(installed, tmp_path):
    assert "verifies agent skills" in run(installed, tmp_path, "--help")
    checks = json.loads(run(installed, tmp_path, "doctor", "--json"))
    assert checks and all(one["ok"] for one in checks)
    for name in FOR_DEVELOPMENT:
        code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is not None)"
        run(installed, tmp_path, "-I", "-c", code, program="python")


@pytest.mark.slow
def test_it_scans_and_submits_from_where_it_is_installed(installed, tmp_path):
    (tmp_path / "tidy").mkdir()
    (tmp_path / "tidy" / "SKILL.md").write_text("---\nname: tidy\ndescription: Sorts files.\n---\n# Tidy\n")
    assert "PUBLISH tidy" in run(installed, tmp_path, "scan", "tidy", "--processes", "1")
    assert json.loads(run(installed, tmp_path, "submit", "tidy", "--no-watch", "--json"))
    code = (
        "import vskill_platform, sys; from vskill_platform.web.app import ENDPOINTS; "
        "from vskill_platform.web.documents import DOCUMENTS; assert 'docs/quickstart.md' in DOCUMENTS; "
        "assert vskill_platform.__file__.startswith(sys.prefix), vskill_platform.__file__"
    )
    run(installed, tmp_path, "-I", "-c", code, program="python")
