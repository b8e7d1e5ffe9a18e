"""The brake of rescans: when an admin must look, and what the records say."""

import msgspec
import pytest

from vskill_platform.domain.verdicts.brake import Brake, HeldTakeDown, needs_brake


@pytest.mark.parametrize(
    ("skills", "live", "stops"),
    [
        (5, 5, False),
        (6, 6, True),
        (6, 599, True),
        (6, 600, False),
        (10, 1000, False),
        (11, 1000, True),
        (30, 1000, True),
        (8, 1000, False),
        (0, 0, False),
    ],
)
def test_more_than_five_and_more_than_one_in_a_hundred_need_an_admin(skills: int, live: int, stops: bool):
    assert needs_brake(skills, live) is stops


def test_a_brake_holds_until_an_admin_continues():
    stopped = msgspec.json.decode(b'{"ruleset":"r","skills":6,"live":10,"since":1}', type=Brake)
    assert stopped.holds
    assert not msgspec.structs.replace(stopped, continued_by="admin:ada").holds


def test_a_held_take_down_is_not_done_until_it_is():
    held = HeldTakeDown("a/b/c", "d", "1.0.0", "bad", 1)
    assert not held.done
    assert msgspec.json.decode(msgspec.json.encode(held), type=HeldTakeDown) == held
