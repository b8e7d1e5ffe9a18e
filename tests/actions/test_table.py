"""The table holds every action, and each is declared whole."""

import importlib
import pkgutil

import pytest

import vskill_platform.actions
from vskill_platform.actions.action import Action, Missing
from vskill_platform.actions.table import ACTIONS
from vskill_platform.web.app import ENDPOINTS


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


def test_a_route_that_is_declared_by_hand_is_there():
    there = {(one.method, shape_of(one.path)) for one in ENDPOINTS}
    by_hand = [action for action in ACTIONS if action.route_by_hand]
    asked = {(one.method, shape_of(one.path.replace("{skill}", "{owner}/{repo}/{slug}"))) for one in by_hand}
    assert by_hand and asked <= there


def shape_of(path: str) -> str:
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))
