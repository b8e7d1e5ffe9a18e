"""The table holds every action, and each is declared whole."""

import importlib
import pkgutil

import pytest

import vskill_platform.actions
from vskill_platform.actions.action import Action, Missing
from vskill_platform.actions.table import ACTIONS


def test_every_module_with_actions_is_in_the_table():
    modules = [
        importlib.import_module(f"vskill_platform.actions.{one.name}")
        for one in pkgutil.iter_modules(vskill_platform.actions.__path__)
        if one.name != "table"
    ]
    declared = [action for module in modules for action in getattr(module, "ACTIONS", ())]
    assert {action.name for action in declared} == {action.name for action in ACTIONS}
    assert len({action.name for action in ACTIONS}) == len(ACTIONS)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
def test_an_entry_point_that_is_missing_says_why(action: Action):
    for place in (action.page, action.command, action.mcp):
        assert place.reason if isinstance(place, Missing) else place
    assert action.summary[0].isupper() and not action.summary.endswith(".")
