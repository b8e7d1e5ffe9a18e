"""`make measures` and the check for functions without a caller count what they say, and nothing else."""

import pytest

from tools import callers, measures

KEYS = "src/vskill_platform/domain/keys.py"
STORE = "src/vskill_platform/store/skills/skills.py"


def unused(**modules: str) -> list[str]:
    """What has no caller in modules of these texts, without the product's own exemptions."""
    contents = {f"src/vskill_platform/{name}.py": text for name, text in modules.items()}
    return [one.key.removeprefix("vskill_platform.") for one in callers.find_unused(contents)]


def figure(title: str, contents: dict[str, str]) -> str:
    return next(one.figure for one in measures.measure(contents) if one.title == title)


@pytest.mark.parametrize(
    ("module", "user"),
    [
        ("def sub(): ...", "from vskill_platform.keys import sub\nsub()"),
        ("def sub(): ...", "from vskill_platform.keys import sub as key\nkey()"),
        ("def sub(): ...", "from vskill_platform import keys\nTABLE = [keys.sub]"),
        ("def sub(): ...", "import vskill_platform.keys\nvskill_platform.keys.sub()"),
        ("class Sub: ...", "from vskill_platform.keys import Sub\nx: list[Sub] = []"),
        ("class Sub:\n    def read(self): ...\nSub()", "def f(x): x.read()\nf"),
        ("class Sub:\n    @property\n    def size(self): ...\nSub()", "print(thing().size)"),
        ("import click\n@click.command()\ndef sub(): ...", ""),
        ("class Sub:\n    def __len__(self): ...\nSub()", ""),
        ("import uvicorn\nclass Sub(uvicorn.Server):\n    def startup(self): ...\nSub()", ""),
    ],
)
def test_a_definition_with_a_user_is_not_reported(module: str, user: str):
    assert "keys.sub" not in {name.lower()[:8] for name in unused(keys=module, user=user)}


@pytest.mark.parametrize(
    ("module", "user"),
    [
        ("import other\nclass Of(other.Server):\n    def sub(self): ...\nOf()", ""),
        # An import alone uses nothing, and recursion is no caller.
        ("def sub(): ...", "from vskill_platform.keys import sub"),
        ("def sub(): sub()", ""),
        # A function of another module, a parameter and a local name are other things of the same name.
        ("def sub(): ...", "from vskill_platform import other\nother.sub()"),
        ("def sub(): ...", "import re\nre.sub('a', 'b', 'c')"),
        ("def sub(): ...\ndef main(sub): return sub\nmain(1)", ""),
        ("def sub(): ...\ndef main():\n    sub = 1\n    return sub\nmain()", ""),
        ("class Sub:\n    def sub(self): ...\nSub()", "def sub(): ...\nsub()"),
    ],
)
def test_a_definition_without_a_user_is_reported(module: str, user: str):
    assert [name.rpartition(".")[2].lower() for name in unused(keys=module, user=user)] == ["sub"]


def test_what_only_unused_code_calls_is_unused_too():
    chain = "def first(): second()\ndef second(): third()\ndef third(): ...\ndef other(): third()\n"
    assert unused(chain=chain) == ["chain.first", "chain.second", "chain.third", "chain.other"]
    assert unused(chain=f"{chain}other()") == ["chain.first", "chain.second"]


def test_two_functions_may_import_different_things_under_one_name():
    store = "def yank(): ...\ndef delete(): ...\n"
    command = (
        "def one():\n    from vskill_platform.store import yank as act\n    act()\n"
        "def two():\n    from vskill_platform.store import delete as act\n    act()\none(), two()\n"
    )
    assert unused(store=store, command=command) == []


def test_a_name_in_a_template_uses_a_property_but_no_function():
    contents = {
        KEYS: "class Row:\n    @property\n    def shown(self): ...\ndef hidden(): ...\nRow()",
        "src/vskill_platform/web/templates/row.html": "{{ row.shown }} {{ hidden }}",
    }
    assert [one.name for one in callers.find_unused(contents)] == ["hidden"]


def test_tests_benchmarks_and_tools_are_no_users():
    use = "from vskill_platform.domain.keys import sub\nsub()"
    contents = {KEYS: "def sub(): ...", "tests/test_a.py": use, "bench/reads.py": use, "tools/docs.py": use}
    assert [one.name for one in callers.find_unused(contents)] == ["sub"]


def test_lines_folders_settings_sql_classes_imports_and_wide_calls_are_counted():
    contents = {
        KEYS: "class Row: ...\n\nQUERY = f'SELECT {1} FROM entries'\n",
        STORE: '"""SELECT nothing: a docstring is prose."""\nfrom vskill_platform.domain import keys\n'
        "from vskill_platform.domain.keys import Row as Other\nclass Row: ...\nrequire_env('kv')\n"
        "keys.f(a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=8)\nkeys.f(a=1, **{})\n",
        "src/vskill_platform/ledger/kv/sqlite.py": "PUT = 'INSERT INTO entries VALUES (1)'\nBEGIN = 'BEGIN IMMEDIATE'\n",
        "src/vskill_platform/tiers/rubric.py": "TEXT = 'BEGIN of what was sent'\nSET = 'DELETE what you read'\n",
        "bench/reads.py": "a\nb\n",
    }
    counted = {one.title: one.figure for one in measures.measure(contents)}
    assert counted.pop("exempt of them") == str(len(callers.EXEMPT))
    assert counted == {
        "lines of all packages": "14",
        "lines of src": "14",
        "lines of packages/core": "0",
        "lines of packages/scan": "0",
        "lines of packages/client": "0",
        "lines of bench": "2",
        "lines of tools": "0",
        "modules": "4",
        "most modules in a folder": "1",
        "settings": "0",
        "functions, methods, classes without a caller": "2",
        "SQL statements outside the engines": "1",
        "class names in more than one module": "1",
        "own modules imported per module, mean": "0.25",
        "circles between modules": "0",
        "files over 400 lines": "0",
        "functions over 40 lines": "0",
        "calls of require_env": "1",
        "calls with 8 or more keywords": "1",
    }


def test_circles_long_files_long_functions_and_settings_are_counted():
    function = "def long():\n" + "    1\n" * 40
    contents = {
        KEYS: f"def f():\n    from vskill_platform.store.skills import skills\n    skills\n{function}",
        STORE: "from vskill_platform.domain import keys\n" + "\n" * 400,
        "src/vskill_platform/settings.py": "class Settings:\n    port: int = 1\n    host: str = ''\n    x = 1\n",
    }
    assert figure("circles between modules", contents) == "1"
    assert figure("files over 400 lines", contents) == "1"
    assert figure("functions over 40 lines", contents) == "1"
    assert figure("settings", contents) == "2"


def test_a_figure_may_fall_and_rises_only_with_its_limit():
    contents = {KEYS: "x = 1\n"}
    limits = [f'"{one.title}" = {one.limit}' for one in measures.measure(contents)]
    contents[measures.RATCHET] = "# a line that stays\n" + "\n".join(limits) + "\n"
    assert list(measures.check({**contents, KEYS: "x = 1\n" * 100})) == []
    first, problem = measures.check({**contents, KEYS: "x = 1\n" * 101})
    assert first.message.startswith("lines of all packages: 101, more than 100: take something away")
    assert problem.message.startswith("lines of src: 101, more than 100: take something away")
    (unlimited,) = measures.check({**contents, measures.RATCHET: "\n".join(limits[1:])})
    assert unlimited.message == "'lines of all packages' has no limit: write \"lines of all packages\" = 100"
    raised = contents[measures.RATCHET].replace('src" = 100', 'src" = 1_200 # a reason')
    assert measures.lower({**contents, measures.RATCHET: raised}) == contents[measures.RATCHET]


def test_an_unused_function_and_a_needless_exemption_are_problems():
    exempt = {"vskill_platform.domain.keys.job": "called by name"}
    contents = {KEYS: "def sub(): ...\ndef job(): helper()\ndef helper(): ..."}
    assert [problem.message for problem in callers.check(contents, exempt)] == [
        "sub has no caller in src: delete it, or call it where users expect it"
    ]
    used = {KEYS: "def job(): ...\njob()"}
    (problem,) = callers.check(used, exempt)
    assert problem.message == "vskill_platform.domain.keys.job has a caller or is gone: remove its exemption"


def test_a_class_name_that_stands_for_two_things_is_a_problem_that_names_both_modules():
    contents = {KEYS: "class Sub: ...\nclass Sub: ...", STORE: "x = 1\nclass Sub: ...\nclass Other: ..."}
    limits = [f'"{one.title}" = {one.limit}' for one in measures.measure({})]
    contents[measures.RATCHET] = "\n".join(limits) + "\n"
    found = [one.message for one in measures.check(contents) if one.message.startswith("class names")]
    assert [message.rpartition("beside it: ")[2] for message in found] == [
        "Sub: domain/keys.py, store/skills/skills.py"
    ]
