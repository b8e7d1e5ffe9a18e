"""What every request is checked for, whichever entry point it came from."""

import pytest

from vskill_core.errors import InvalidInput
from vskill_platform.actions.action import check_request
from vskill_platform.actions.skills.collections import ChangeCollection


def test_a_text_in_a_list_may_hold_no_control_characters_either():
    with pytest.raises(InvalidInput, match="skills has control characters") as refused:
        check_request(
            ChangeCollection(name="mine", skills=("a/b/c", "bell \x07"), reason="they belong together")
        )
    assert refused.value.field == "skills"
