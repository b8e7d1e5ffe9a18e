"""What a skill is said to be without: only what was read whole, and never what it may use."""

import pytest

from tests.support.compiled_rules import bundled_engine
from vskill_core.capability import CapabilityKind, Lack
from vskill_core.content import SkillFile
from vskill_scan.results.lacks import lacks_of

FRONT = "---\nname: a\ndescription: b\n---\n"
NETWORK, SECRETS, INSTALLS, SCRIPTS, FILES = Lack


@pytest.fixture(scope="module")
def engine():
    return bundled_engine()


@pytest.fixture
def lacks(engine):
    """What a skill with this text and these files is without."""

    def find(text="", **files):
        texts = {"SKILL.md": FRONT + text, **files}
        content = [
            SkillFile(path, "100644", data if isinstance(data, bytes) else data.encode())
            for path, data in texts.items()
        ]
        return lacks_of(content, engine.scan(content).capabilities)

    return find


def test_prose_is_without_everything_also_where_it_links(lacks):
    assert lacks("Sort the list. See https://docs.example.dev/a.\n") == tuple(Lack)
    assert lacks(**{"template.html": "<p>Hello</p>", "data.csv": "a,b\n"}) == tuple(Lack)


def test_without_a_card_nothing_is_said():
    assert lacks_of([], None) is None


@pytest.mark.parametrize("name", ["tool.exe", "guide.pdf", "run.swift"])
def test_what_was_not_read_whole_is_not_said_to_be_without_anything(lacks, name):
    data = (
        b"puts 1\n"
        if name.endswith("swift")
        else b"%PDF-1.7\n\x00\xff"
        if name.endswith("pdf")
        else b"MZ\x00\x01\xff" * 50
    )
    assert lacks(**{name: data}) is None


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("```bash\ncurl https://api.example.dev/x\n```\n", {NETWORK}),
        ('```bash\ncurl "$URL"\n```\n', {NETWORK}),
        ("```bash\ngit push\n```\n", {NETWORK}),
        ("```bash\ngh pr create\n```\n", {NETWORK}),
        ("```bash\npip install rich\n```\n", {NETWORK, INSTALLS}),
        ("```bash\ncat ~/notes.txt\n```\n", {FILES}),
        ("```bash\njq . data.json\n```\n", set()),
        ('```bash\necho "$API_TOKEN" | wc -c\n```\n', {SECRETS}),
    ],
)
def test_what_an_agent_is_told_to_run_counts(lacks, text, missing):
    assert lacks(text) == tuple(lack for lack in Lack if lack not in missing)


@pytest.mark.parametrize(
    ("name", "code", "missing"),
    [
        ("run.py", "print(1)\n", {SCRIPTS}),
        ("run", "#!/bin/sh\necho 1\n", {SCRIPTS}),
        ("run.py", "import requests, sys\nrequests.get(sys.argv[1])\n", {SCRIPTS, NETWORK}),
        ("run.py", "from urllib.request import urlopen\nurlopen(place)\n", {SCRIPTS, NETWORK}),
        ("run.js", "const r = await fetch(process.argv[2])\n", {SCRIPTS, NETWORK}),
        ("run.py", "# requests.get(url) would be slower\nprint(1)\n", {SCRIPTS}),
        ("run.py", "import teslapy\n", {SCRIPTS, NETWORK}),
        ("run.py", "from http.client import HTTPSConnection\n", {SCRIPTS, NETWORK}),
        ("run.py", "import json, re\nimport numpy as np\nfrom docx import Document\n", {SCRIPTS}),
        ("run.js", "import { WebSocket } from 'ws'\n", {SCRIPTS, NETWORK}),
        ("run.js", "const fs = require('node:fs')\nimport a from './a.js'\n", {SCRIPTS}),
        ("run.py", "import subprocess, sys\nsubprocess.run(sys.argv[1:])\n", set(Lack)),
    ],
)
def test_what_a_script_may_do_counts_also_where_no_host_is_written(lacks, name, code, missing):
    assert lacks(**{name: code}) == tuple(lack for lack in Lack if lack not in missing)


def test_a_module_of_the_skill_itself_is_no_library(lacks):
    assert NETWORK in lacks(**{"scripts/run.py": "import shapes\n", "scripts/shapes.py": "print(1)\n"})


@pytest.mark.parametrize(
    "text",
    [
        "Base URL: `/open/v1` of the service.",
        "`POST /v1/publish` sends the note.",
        "Query the Idealista API for flats.",
        "Operate yboard.online to edit plans.",
        "Use web_fetch to read the page.",
        "Steps: browser navigate to the shop.",
        "Sign in by OAuth first.",
        "Summarise the user's inbox.",
    ],
)
def test_a_text_that_speaks_of_services_is_not_said_to_be_without_the_network(lacks, text):
    assert NETWORK not in lacks(text)
    assert NETWORK not in lacks(**{"references/more.md": text})


def test_a_card_names_a_call_without_a_host_once_and_only_where_no_host_is_named(engine):
    def hosts(code):
        content = [
            SkillFile("SKILL.md", "100644", FRONT.encode()),
            SkillFile("run.py", "100644", code.encode()),
        ]
        card = engine.scan(content).capabilities or ()
        return [(one.value, one.line) for one in card if one.kind is CapabilityKind.HOST and one.acts]

    assert hosts("import requests\nrequests.get(url)\nrequests.post(url)\n") == [("chosen at run time", 2)]
    named = 'import requests\nrequests.get("https://a.example.dev/x")\nrequests.get(url)\n'
    assert hosts(named) == [("a.example.dev", 2)]


def test_every_lack_has_words():
    assert all(lack.words for lack in Lack)
