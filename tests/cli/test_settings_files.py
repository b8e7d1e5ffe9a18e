"""One entry more in other programs' settings: everything else stays, byte for byte, and it can be taken out again."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vskill_client.settings_files import put_json_entry, put_section, take_out
from vskill_core.errors import InvalidInput

KEY = "extraKnownMarketplaces"
ENTRY = '"acme": {"source": {"source": "git"}}'
COMMENTED = """{
  // mine: {"extraKnownMarketplaces": 1}
  "url": "https://example.org/ // no comment", /* { */ "list": [1, {"}": "]"}, -1.5e3, null],
  "extraKnownMarketplaces": {
    "other": {"a": true}, // theirs
  },
}
"""


@pytest.mark.parametrize(
    "text", ["{}", "{ }\n", '{"extraKnownMarketplaces": {}}', '{"a": "\\"}", "b": {"c": [[]]}}', COMMENTED]
)
def test_an_entry_goes_in_and_out_and_nothing_else_changes(text: str) -> None:
    changed, put = put_json_entry(text, (KEY,), ENTRY)
    assert "acme" in put and take_out(changed, put) == text
    if "//" not in text:
        assert json.loads(changed)[KEY]["acme"] == {"source": {"source": "git"}}
    else:
        assert changed.index('"other"') > changed.index('"acme"') > changed.index('"list"')


def test_an_item_of_an_array() -> None:
    for text, urls in (
        ("", ["x"]),
        ('{"skills": {"paths": ["p"]}}', ["x"]),
        ('{"skills": {"urls": []}}', ["x"]),
        ('{"skills": {"urls": ["y"]}}', ["x", "y"]),
    ):
        changed, _ = put_json_entry(text, ("skills", "urls"), '"x"', is_item=True)
        assert json.loads(changed)["skills"]["urls"] == urls


@given(st.dictionaries(st.text(max_size=6), st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=8), max_size=5))  # fmt: skip
def test_any_document_keeps_what_it_has(document: dict[str, object]) -> None:
    text = json.dumps(document, indent=2, ensure_ascii=False)
    changed, put = put_json_entry(text, ("added-by-us",), ENTRY)
    assert json.loads(changed) == {**document, "added-by-us": {"acme": {"source": {"source": "git"}}}}
    assert take_out(changed, put) == text


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"a"', '{"a" 1}', "{a: 1}", '{"extraKnownMarketplaces": 1}', "nonsense"]
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        put_json_entry(text, (KEY,), ENTRY)


def test_a_section_goes_to_the_end() -> None:
    for text in ("", "# mine\nmodel = 1\n", "[a]\nb = 1"):
        changed, put = put_section(text, "[new]\nx = 1\n")
        assert changed.startswith(text) and changed.endswith("[new]\nx = 1\n")
        assert take_out(changed, put) == text


def test_what_was_changed_is_not_taken_out() -> None:
    assert take_out("other", "put") is None and take_out("put put", "put") is None
