"""`make mutants` tries the changes that it says, names them for good, and fails on a survivor without a reason."""

import textwrap

import pytest

from tools.mutants.__main__ import SURVIVORS
from tools.mutants.mutations import (
    Mutant,
    describe,
    drop_text_operators,
    function_hashes,
    mutants_of,
)
from tools.mutants.runs import KILLED, SURVIVED, TIMEOUT, TYPES, UNTESTED, function_of, replace_function
from tools.mutants.verdict import FunctionResults, Result, Survivor, outdated, problems, read_survivors, table
from vskill_platform.domain.states import State, may_start_run

MODULE = '''\
"""A module."""

class Scale:
    @property
    def full(self):
        return self.weight > 3

def name(weight):
    """Strings are left alone."""
    return "heavy" if weight >= 10 else "light"
'''


@pytest.fixture
def mutants(tmp_path):
    def of(source: str) -> dict[str, list[str]]:
        path = tmp_path / "scale.py"
        path.write_text(source)
        found: dict[str, list[str]] = {}
        for mutant in mutants_of(path, "domain.scale"):
            found.setdefault(mutant.name, []).append(mutant.change)
        return found

    drop_text_operators()
    return of


def test_functions_and_properties_are_mutated_and_texts_are_not(mutants):
    found = mutants(MODULE)
    assert found["domain.scale.Scale.full"] == [
        "return self.weight > 3 => return self.weight >= 3",
        "return self.weight > 3 => return self.weight > 4",
    ]
    changes = found["domain.scale.name"]
    assert any("weight > 10" in change for change in changes)
    assert all('"heavy"' in change.split(" => ")[1] and '"light"' in change for change in changes)


def test_no_text_is_taken_away_and_everything_else_is(mutants):
    source = textwrap.dedent(
        """
        def refuse(name, size):
            reason = f"{name} is too long"
            magic = b"PK"
            raise ValueError("too long", name, size, fix="shorten it", magic=magic, reason=reason)
        """
    )
    changes = mutants(source)["domain.scale.refuse"]
    assert all('"too long"' in change and '"shorten it"' in change for change in changes if "raise" in change)
    assert 'magic = b"PK" => magic = None' in changes
    assert len(changes) == 1 + 2 * len(["name", "size", "magic", "reason"])


def test_a_mutant_keeps_its_name_when_lines_are_added_above(mutants):
    assert mutants(MODULE) == mutants(MODULE.replace("class Scale", "LIMIT = 4\n\n\nclass Scale"))


def test_equal_changes_of_one_function_have_different_names(mutants):
    twice = "def either(a):\n    if a:\n        return 1\n    return 1\n"
    assert mutants(twice)["domain.scale.either"] == ["return 1 => return 2", "return 1 => return 2 (2)"]


def test_a_change_names_only_the_lines_that_differ():
    assert describe("a\nb < c\n", "a\nb <= c\n") == "b < c => b <= c"
    assert describe("f(\n    a,\n    b,\n)", "f(\n    a,\n)") == "b, => nothing"


def test_a_function_has_the_hash_of_its_own_source(tmp_path):
    path = tmp_path / "scale.py"
    path.write_text(MODULE)
    before = function_hashes(path)
    path.write_text(MODULE.replace("> 3", "> 4"))
    after = function_hashes(path)
    assert before["name"] == after["name"]
    assert before["Scale.full"] != after["Scale.full"]


def test_a_mutant_replaces_the_function_for_everybody_who_imported_it():
    function = function_of("domain.states.may_start_run")
    kept = function.__code__, function.__defaults__, function.__kwdefaults__
    source = textwrap.dedent(
        "def may_start_run(source: State, never: bool = True) -> bool:\n    return not never\n"
    )
    try:
        replace_function(Mutant("domain.states", "may_start_run", "", 1, source))
        assert may_start_run(State.PUBLISHED) is False
    finally:
        function.__code__, function.__defaults__, function.__kwdefaults__ = kept
    assert may_start_run(State.PUBLISHED)


def test_methods_and_properties_are_found_by_name():
    assert function_of("domain.states.State.active").__name__ == "active"
    assert function_of("domain.submission.Submission.held_by").__name__ == "held_by"


def of_statuses(*statuses: str) -> dict[str, FunctionResults]:
    mutants = {f"change {number}": Result(status) for number, status in enumerate(statuses)}
    return {"domain.scale.name": FunctionResults("hash", mutants)}


@pytest.mark.parametrize("status", [SURVIVED, UNTESTED])
def test_a_survivor_without_a_reason_fails_and_one_with_a_reason_does_not(status):
    results = of_statuses(status, *[KILLED] * 99)
    (problem,) = problems(results, [])
    assert "domain.scale.name: change 0" in problem
    assert problems(results, [Survivor("domain.scale.name", "change 0", "it is equal")]) == []


def test_more_than_two_in_a_hundred_fail_even_with_reasons():
    listed = [Survivor("domain.scale.name", f"change {number}", "it is equal") for number in range(3)]
    assert problems(of_statuses(SURVIVED, SURVIVED, *[KILLED] * 98), listed) == []
    (problem,) = problems(of_statuses(SURVIVED, SURVIVED, SURVIVED, *[KILLED] * 97), listed)
    assert problem == "3 of 100 survived, which is more than 2%"


def test_mutants_that_mypy_rejects_do_not_make_the_share_of_survivors_smaller():
    listed = [Survivor("domain.scale.name", "change 0", "it is equal")]
    assert problems(of_statuses(SURVIVED, *[KILLED] * 10, *[TYPES] * 900), listed)


def test_a_mutant_that_could_not_be_run_fails():
    (problem,) = problems(of_statuses("error", KILLED), [])
    assert problem.startswith("could not be run")


def test_an_entry_that_no_longer_survives_is_reported():
    results = of_statuses(KILLED)
    gone = Survivor("domain.scale.name", "another change", "it is equal")
    killed = Survivor("domain.scale.name", "change 0", "it is equal")
    elsewhere = Survivor("domain.other.name", "change 0", "it is equal")
    reported = outdated(results, [gone, killed, elsewhere], ["domain.scale"])
    assert [line.split(":")[0] for line in reported] == [
        "listed, but there is no such mutant",
        "listed, but killed",
    ]


def test_the_table_counts_by_module():
    assert table(of_statuses(KILLED, TYPES, TIMEOUT, SURVIVED), ["domain.scale"])[2:] == [
        "| domain.scale | 4 | 1 | 1 | 1 | 1 | 0 |",
        "| all | 4 | 1 | 1 | 1 | 1 | 0 |",
    ]


def test_every_listed_survivor_has_a_reason_and_a_function_that_exists():
    for survivor in read_survivors(SURVIVORS):
        assert function_of(survivor.function).__name__ in survivor.function
