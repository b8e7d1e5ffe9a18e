"""The analysers are installed apart from the product, by exact pins with hashes."""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tests.docs.test_locks import pins
from tests.docs.test_make import make
from tools.files import ROOT

LOCK = "requirements-analysers.lock"


def test_the_lock_holds_what_is_asked_for_and_names_no_server():
    project = tomllib.loads(Path(ROOT, "pyproject.toml").read_text("utf-8"))
    locked = pins(LOCK)
    for text in project["dependency-groups"]["analysers"]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(locked[requirement.name])
    text = Path(ROOT, LOCK).read_text("utf-8")
    assert "/" not in text and "#" not in text


def test_the_product_itself_does_not_see_them():
    assert not {"bandit", "semgrep"} & set(pins("requirements-dev.lock"))


def test_tests_install_them_by_themselves_into_an_environment_of_their_own():
    for target in ("test-slow", "coverage", "analysers"):
        plan = make("--dry-run", f"--what-if={LOCK}", target)
        assert f"tools/install.sh .venv/analysers/bin/python {LOCK}" in plan
    assert LOCK not in make("--dry-run", f"--what-if={LOCK}", "test")
