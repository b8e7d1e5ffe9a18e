"""A setting that nothing reads, a field that nothing reads, and a field that always has the same value are reported."""

import typing
from textwrap import dedent

import msgspec
import pytest

from tools.usage import EXEMPT, check_usage
from vskill_client.wire.base import Wire
from vskill_client.wire.login import CodeAnswer, DeviceToken
from vskill_core.publisher import Publisher
from vskill_platform.web.app import ENDPOINTS

PLACES = {
    "settings": "src/vskill_platform/settings.py",
    "domain": "src/vskill_platform/domain/things.py",
    "wire": "packages/client/src/vskill_client/wire/base.py",
    "view": "src/vskill_platform/web/view.py",
    "template": "src/vskill_platform/web/templates/a.html",
}
WIRE = "import msgspec\nclass Wire(msgspec.Struct): ..."
IMPORTS = "import msgspec\nfrom vskill_client.wire.base import Wire\nfrom vskill_platform.domain.things import Thing\n"


def reported(**modules: str) -> list[str]:
    contents = {PLACES["wire"]: WIRE, **{PLACES[name]: dedent(text) for name, text in modules.items()}}
    return [one.message.partition(":")[0] for one in check_usage(contents, {})]


SETTINGS = (
    "import msgspec\nclass Settings(msgspec.Struct):\n    port: int = 1\n\ndef check(settings): settings.port"
)


def test_a_setting_that_only_its_own_module_reads_is_reported():
    assert reported(settings=SETTINGS, view="def f(other): other.port") == ["Settings.port"]


@pytest.mark.parametrize("read", ["env.settings.port", "settings.port", "self._settings.port"])
def test_a_setting_that_is_read_is_not(read):
    assert reported(settings=SETTINGS, view=f"def f(env, settings, self): {read}") == []


THING = """
    import msgspec
    class Thing(msgspec.Struct):
        count: int = 0
"""


@pytest.mark.parametrize(
    "used", ["print(Thing(n).count)", "t.count; replace(t, count=n)", "Thing(1).count; Thing(2)"]
)
def test_a_record_whose_field_is_filled_and_read_is_fine(used):
    view = f"{IMPORTS}from msgspec.structs import replace\ndef f(t, n): {used}"
    assert reported(domain=THING, view=view) == []


@pytest.mark.parametrize(
    "used", ["Thing(n)", "t.count", "Thing().count", "Thing(0).count", "Thing(count=NONE).count"]
)
def test_a_record_whose_field_nobody_reads_or_fills_is_reported(used):
    assert reported(domain=THING, view=f"{IMPORTS}def f(t, n): {used}") == ["Thing.count"]


def test_a_template_reads_too():
    assert reported(domain=THING, view=f"{IMPORTS}def f(n): Thing(n)", template="{{ thing.count }}") == []


ANSWER = (
    IMPORTS + "class Card(Wire):\n    name: str\n    stars: int = 0\nclass Detail(Card):\n    more: str\n"
)


@pytest.mark.parametrize(
    ("calls", "faults"),
    [
        ("Card(n, stars=n)", ["Detail.more"]),
        ("Card(n)", ["Card.stars", "Detail.more"]),
        ("Card(n, 0); Card(n, 0)", ["Card.stars", "Detail.more"]),
        ("Card(n, 0); Card(n, 1)", ["Detail.more"]),
        ("Card(n, State.NONE.value)", ["Card.stars", "Detail.more"]),
        ("Card(*n)", ["Detail.more"]),
        ("Detail(more=n, **d); Card(n)", ["Card.stars"]),
        ("Detail(name=n, stars=n, more=n)", []),
        ("Detail(n, n, n)", []),
    ],
)
def test_a_field_that_every_answer_leaves_the_same_is_reported(calls, faults):
    assert reported(view=f"{ANSWER}def f(n, d): {calls}") == faults


DERIVED = (
    IMPORTS
    + "class Inner(Wire):\n    count: int\nclass Outer(Wire):\n    name: str\n    inner: Inner | None\n"
)


@pytest.mark.parametrize(
    ("call", "faults"),
    [
        ("Outer.of(n)", []),
        ("Outer.of(n, name=n)", []),
        ("Outer.of(n, inner=n)", ["Thing.count", "Inner.count"]),
    ],
)
def test_what_an_answer_is_derived_from_is_read_and_fills_it(call, faults):
    view = f"{DERIVED}def f(n): Thing(n); {call}"
    assert reported(domain=THING, view=view) == faults


def test_an_exemption_that_is_not_needed_any_more_is_reported():
    contents = {PLACES["view"]: f"{ANSWER}def f(n): Detail(n, n, n)"}
    (problem,) = check_usage(contents, {"Card.stars": "for this test"})
    assert "Card.stars" in problem.message
    assert all(len(reason) > 10 for reason in EXEMPT.values())


def add_structs(kind: object, found: set[type]) -> None:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in found:
        found.add(kind)
        for hint in typing.get_type_hints(kind, include_extras=True).values():
            add_structs(hint, found)
    for part in typing.get_args(kind):
        add_structs(part, found)


def test_every_answer_that_an_endpoint_declares_is_one_that_the_check_knows():
    """But for those of RFC 8628, whose names and constants are the RFC's, and who published, as attestations say it."""
    found: set[type] = set()
    for one in ENDPOINTS:
        for kind in (one.answer, *one.others.values()):
            add_structs(kind, found)
    assert len(found) > 50
    assert {one for one in found if not issubclass(one, Wire)} == {CodeAnswer, DeviceToken, Publisher}
