"""`make mutants` changes what functions do, runs the tests of the module, and fails where too many changes survive."""

import pytest

from tools.files import ROOT
from tools.mutants import find_tests, function_lines, main, watched

MODULE = """\
from typing import NamedTuple

LIMIT = 3


class Size(NamedTuple):
    number: int
    known: bool = True


def is_large(number: int, limit: int = LIMIT) -> bool:
    return number > limit


def label(number: int) -> str:
    return "large" if number > 3 else "small"
"""
TEST = """\
from pack.scale import is_large, label


def test_large():
    assert [is_large(number) for number in (3, 4)] == [False, True]
    assert label(5) == "large"
"""


@pytest.fixture
def project(tmp_path):
    for path, text in {
        "pack/scale.py": MODULE,
        "pack/__init__.py": "",
        "tests/pack/test_scale.py": TEST,
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.mark.slow
def test_what_no_test_notices_is_told_and_fails_and_declarations_are_left_alone(project, capsys):
    assert main(["pack/scale.py"], project) == 1
    *_, first, verdict = said = capsys.readouterr().out.splitlines()
    assert verdict == f"mutants: {len(said) - 2} of 7 survived: failed"
    assert 'pack/scale.py: label: return "large" if number > 3 else "small" =>' in first
    assert not any("is_large" in line or "LIMIT" in line or "known" in line for line in said)
    assert (project / "pack" / "scale.py").read_text() == MODULE


@pytest.mark.slow
def test_where_the_tests_notice_every_change_it_is_good(project, capsys):
    (project / "pack" / "scale.py").write_text(MODULE.partition("\n\ndef label")[0])
    (project / "tests" / "pack" / "test_scale.py").write_text(
        TEST.replace(", label", "").rpartition("    assert")[0]
    )
    assert main(["pack/scale.py"], project) == 0
    assert "0 of 2 survived: good" in capsys.readouterr().out


@pytest.mark.slow
def test_tests_that_fail_without_a_change_end_it(project):
    (project / "tests" / "pack" / "test_scale.py").write_text("def test_no(): assert False\n")
    with pytest.raises(SystemExit, match="fails without a change"):
        main(["pack/scale.py"], project)


def test_only_bodies_of_functions_are_changed():
    assert function_lines(MODULE) == ["12-12", "16-16"]


def test_every_watched_module_has_tests():
    modules = [str(path.relative_to(ROOT)) for path in watched(ROOT)]
    assert len(modules) > 40
    assert all(find_tests(module, ROOT) for module in modules)
    assert find_tests("src/vskill_platform/store/claims.py", ROOT) == ["tests/store/test_claims.py"]
    with pytest.raises(SystemExit, match="--tests"):
        find_tests("nowhere/nothing.py", ROOT)
