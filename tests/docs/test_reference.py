"""Every setting, command, rule, metric, event, state and route is documented, or a test fails.

Most of it is generated; the others are held against the code here.
"""

import ast
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from http import HTTPStatus
from pathlib import Path

import msgspec
import pytest

from tools import docs, reference, routes_page, states_page, tables
from tools.files import ROOT
from tools.route_words import WORDS
from vskill_platform.domain.submissions.states import ACTIVE_STATES, TRANSITIONS, State
from vskill_platform.notifications.notices import (
    AlertData,
    AlertNotice,
    Notice,
    NoticeData,
    NoticeType,
    RecallData,
    RecalledVersion,
    RecallNotice,
    ReportData,
    ReportNotice,
)
from vskill_platform.queue.alerts import Alert, AlertCode
from vskill_platform.web.app import ENDPOINTS

SVG = "{http://www.w3.org/2000/svg}"


def page(path: str) -> str:
    return Path(ROOT, path).read_text("utf-8")


LIMITS = "<!-- generated: limits (make reference) -->\n{}\n<!-- end: limits -->"


#: In a process of its own, as whoever writes the pages runs it: other tests have used the commands in this one.
CHECK = """
from tools import reference
from tools.files import texts

contents = dict(texts())
found = [problem for path, text in contents.items() for problem in reference.check(path, text)]
print(*found, *reference.check_present(contents), sep="\\n", end="")
"""


def test_every_page_says_what_the_code_says():
    done = subprocess.run(
        [sys.executable, "-c", CHECK], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_generated_part_that_was_left_behind_is_reported():
    (problem,) = reference.check("docs/a.md", LIMITS.format("| installs | 1 | 1 |"))
    assert reference.COMMAND in problem.message
    assert list(reference.check("docs/a.md", LIMITS.format(tables.limits()))) == []


def test_a_part_that_nothing_writes_or_no_page_holds_is_reported():
    (problem,) = reference.check("docs/a.md", LIMITS.replace("limits", "limitz"))
    assert "limitz" in problem.message
    named = " ".join(one.message for one in reference.check_present({}))
    assert all(f"part {name}" in named for name in reference.PARTS)
    assert states_page.PICTURE in {one.path for one in reference.check_present({})}


def test_writing_changes_the_part_alone_and_only_where_it_differs(tmp_path):
    old, other = f"before\n{LIMITS.format('old')}\nafter\n", "# By hand\n"
    files = {path: generate() for path, generate in reference.FILES.items()}
    contents = {"a.md": old, "b.md": other, **files}
    assert reference.write(contents, tmp_path) == ["a.md"]
    new = (tmp_path / "a.md").read_text("utf-8")
    assert new == f"before\n{LIMITS.format(tables.limits())}\nafter\n"
    assert reference.without_parts(new) == "before\n\nafter\n"
    assert reference.write({}, tmp_path) == list(reference.FILES)


def drawn_steps() -> dict[State, set[State]]:
    """What the picture says; an arrow from the frame stands for every active state."""
    steps: dict[State, set[State]] = {state: set() for state in State}
    for arrow in ET.fromstring(states_page.picture()).iter(f"{SVG}path"):
        source, _, target = arrow.get("id", "").partition("-")
        if source == "active":
            for state in ACTIVE_STATES:
                steps[state].add(State(target))
        elif source in State.__members__:
            steps[State(source)].add(State(target))
    return steps


def test_the_diagram_shows_every_state_and_exactly_the_allowed_steps():
    boxes = {one.get("id") for one in ET.fromstring(states_page.picture()).iter(f"{SVG}g")}
    assert boxes == set(State)
    assert drawn_steps() == TRANSITIONS


def test_the_page_of_states_has_every_step_in_words():
    for state in State:
        (row,) = [
            line
            for line in states_page.steps().splitlines()
            if re.match(rf"\| {state} \|.*\| (yes|no) \|", line)
        ]
        words = row.split("|")[2]
        assert {
            State(one.strip()) for one in words.split(",") if one.strip() in State.__members__
        } == TRANSITIONS[state]


def test_every_route_is_documented_with_who_may_use_it_and_what_it_does():
    lines = routes_page.render().splitlines()
    for endpoint in ENDPOINTS:
        route = f"| `{endpoint.method} {endpoint.path}` |"
        rows = [line for line in lines if line.startswith(route)]
        assert len(rows) == 1, route
        _, _, who, what, _ = rows[0].split("|")
        assert who.strip(), route
        assert what.strip(), (
            f"{route} has no words: add them to tools/route_words.py, and run 'make reference'"
        )


def test_no_words_are_left_over_or_say_what_the_action_says():
    summaries = {f"{one.method} {one.path}": one.action.summary if one.action else "" for one in ENDPOINTS}
    gone, same = (
        WORDS.keys() - summaries.keys(),
        [name for name in WORDS if WORDS[name] == summaries.get(name)],
    )
    assert not gone, f"remove them from tools/route_words.py, there is no such address: {sorted(gone)}"
    assert not same, f"remove them from tools/route_words.py, the action says the same: {same}"
    assert len(set(WORDS.values())) > 0.9 * len(WORDS), "words that fit everything help nobody"


def test_every_error_has_a_code_of_its_own_and_every_code_that_says_come_again_has_its_advice():
    """The reference is generated; what an operator does about a 503 is not."""
    codes = tables.error_codes()
    assert {"store_full", "not_found", "invalid_rule"} <= set(codes)
    advice = page("docs/how-to/troubleshoot.md")
    for code, error in codes.items():
        assert error.status != HTTPStatus.SERVICE_UNAVAILABLE or f"| `{code}` |" in advice, code


def sent_events() -> set[str]:
    """The names of all frames that the web side makes, from its own source; a plain message has none."""
    found: set[str] = set()
    for path in Path(ROOT, "src", "vskill_platform", "web").rglob("*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text if "streams.stream import" in text else "")):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "frame":
                name = node.args[0]
                assert isinstance(name, ast.Constant), f"{path}:{node.lineno}: an event's name is written out"
                found.add(str(name.value))
    return found - {""}


def test_every_event_of_a_stream_is_documented():
    assert {"submission", "counts", "reset", "status"} <= sent_events()
    for name in sent_events():
        assert f"`{name}`" in page("docs/reference/events.md"), name


def test_every_event_of_a_webhook_is_documented_with_all_that_it_carries():
    text = page("docs/how-to/webhooks-and-mail.md")
    for kind in NoticeType:
        assert f"| `{kind}` |" in text
    about_skills = (Notice, NoticeData, RecallNotice, RecallData, RecalledVersion)
    for struct in (*about_skills, ReportNotice, ReportData, AlertNotice, AlertData):
        for field in msgspec.structs.fields(struct):
            assert f'"{field.encode_name}":' in text, field.encode_name


def test_the_example_of_a_delivery_is_one():
    text = page("docs/how-to/webhooks-and-mail.md")
    example = text.split("```json\n")[1].split("```")[0]
    assert msgspec.json.decode(example, type=Notice).type is NoticeType.SUBMISSION_DECIDED
    example = text.split("```json\n")[2].split("```")[0]
    assert msgspec.json.decode(example, type=RecallNotice).type is NoticeType.SKILL_WITHDRAWN
    example = text.split("```json\n")[3].split("```")[0]
    assert msgspec.json.decode(example, type=ReportNotice).type is NoticeType.REPORT_DECIDED
    example = text.split("```json\n")[4].split("```")[0]
    assert msgspec.json.decode(example, type=AlertNotice).type is NoticeType.ALERT_FIRED


@pytest.mark.parametrize("alert", AlertCode)
def test_every_alert_is_documented_with_what_to_do_about_it(alert):
    path, _, anchor = Alert(alert, "").remedy.removeprefix("/docs/").partition("#")
    assert anchor in docs.anchors(page(path))


@pytest.mark.parametrize("state", State)
def test_what_to_do_about_a_submission_in_that_state_is_documented(state):
    section = (
        page("docs/how-to/troubleshoot.md").partition("## A submission does not move")[2].partition("## ")[0]
    )
    assert re.search(rf"^\|[^|]*\b{state}\b", section, re.MULTILINE)


# The checks themselves.


def test_a_test_that_a_page_names_exists(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text("async def test_one(): ...\ndef helper(): ...\n")
    text = "`tests/test_x.py::test_one` and\n`tests/test_x.py::test_two`, `tests/none.py::test_one`, `tests/test_x.py::helper`"
    found = [str(one) for one in docs.check_named_tests("docs/a.md", text, tmp_path)]
    assert found == [
        "docs/a.md:2: names tests/test_x.py::test_two, which is no test",
        "docs/a.md:2: names tests/none.py::test_one, which is no test",
        "docs/a.md:2: names tests/test_x.py::helper, which is no test",
    ]


def test_every_threat_names_its_test():
    rows = [line for line in page("docs/discussions/threat-model.md").splitlines() if line.startswith("| ")]
    threats = [row for row in rows if row.count("|") == 4 and "shown by" not in row]
    assert len(threats) > 40
    assert all(re.search(r"`tests/[\w/]+\.py::test_\w+`", row) for row in threats)


def test_a_page_that_the_index_does_not_list_is_reported():
    paths = [
        "docs/README.md",
        "docs/adr/0001-x.md",
        "docs/adr/README.md",
        "docs/how-to/a.md",
        "docs/how-to/b.md",
    ]
    found = docs.check_index(paths, "[a](how-to/a.md#top) [adr](adr/README.md)")
    assert [one.path for one in found] == ["docs/how-to/b.md"]
