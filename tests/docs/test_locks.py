"""The lock files agree with pyproject.toml and with each other, and name no server."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.files import ROOT

LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-bench.lock")


def pins(lock: str) -> dict[str, str]:
    lines = Path(ROOT, lock).read_text("utf-8").splitlines()
    requirements = [
        Requirement(line.removesuffix("\\")) for line in lines if "==" in line and not line.startswith(" ")
    ]
    return {canonicalize_name(each.name): str(each.specifier).removeprefix("==") for each in requirements}


def direct_requirements(*groups: str) -> list[Requirement]:
    project = tomllib.loads(Path(ROOT, "pyproject.toml").read_text("utf-8"))
    texts = project["project"]["dependencies"] + [
        text for group in groups for text in project["dependency-groups"][group]
    ]
    return [Requirement(text) for text in texts]


@pytest.mark.parametrize(
    "lock",
    [
        *LOCKS,
        "requirements-analysers.lock",
        "requirements-tools.lock",
        "requirements-canaille.lock",
        "requirements-judge.lock",
    ],
)
def test_a_lock_file_holds_no_address_no_path_and_no_comment(lock):
    text = Path(ROOT, lock).read_text("utf-8")
    assert "://" not in text
    assert "#" not in text
    assert "/" not in text


@pytest.mark.parametrize(("lock", "groups"), [(LOCKS[0], ()), (LOCKS[1], ("dev",)), (LOCKS[2], ("bench",))])
def test_everything_that_the_project_asks_for_is_locked_in_a_version_that_it_accepts(lock, groups):
    locked = pins(lock)
    for requirement in direct_requirements(*groups):
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), requirement


@pytest.mark.parametrize("lock", LOCKS[1:])
def test_the_other_locks_hold_the_very_versions_that_run_in_production(lock):
    assert pins(LOCKS[0]).items() <= pins(lock).items()
