"""What the client asks is what the registry answers: each call that it knows is one of the registry's actions."""

import pytest

from vskill_client.wire import skills, submissions
from vskill_client.wire.base import RegistryCall
from vskill_platform.actions.table import ACTIONS

CALLS = [
    value
    for module in (skills, submissions)
    for value in vars(module).values()
    if isinstance(value, RegistryCall)
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_a_call_of_the_client_is_an_action_of_the_registry(call):
    action = next(one for one in ACTIONS if one.name == call.name)
    for field in call.__struct_fields__:
        assert getattr(action, field) == getattr(call, field), field
