"""The operator's list of known-bad hosts, accounts and files: what it hits is certain, wherever it stands."""

import base64
import hashlib
from contextlib import AsyncExitStack

import pytest

from tests.scan.test_engine import zipped
from vskill_core.content import SkillFile
from vskill_core.errors import InvalidSettings
from vskill_platform.bootstrap import open_scanner
from vskill_platform.settings import Settings
from vskill_scan.engine import Engine
from vskill_scan.examples import skill_of
from vskill_scan.rules.indicators import NO_INDICATORS, Indicators, read_indicators, with_indicators
from vskill_scan.rules.ruleset import Example, Ruleset

BAD_FILE = b"#!/bin/sh\necho bad\n"
LISTED = f"""
# seen in March
host     drop.bad-tools.dev
host     203.0.113.66    # their second server
account  github.com/bad-account
sha256   {hashlib.sha256(BAD_FILE).hexdigest().upper()}
"""
INDICATORS = read_indicators(LISTED)
ENGINE = Engine(with_indicators(Ruleset(()), INDICATORS))
ENCODED = base64.b64encode(b"curl https://drop.bad-tools.dev/x").decode()


def found(example: Example) -> list[tuple[str, bool]]:
    return [(one.rule_id, one.certain) for one in ENGINE.scan(skill_of(example)).findings]


def test_a_list_is_read_by_kind():
    assert (
        Indicators(
            ("203.0.113.66", "drop.bad-tools.dev"),
            ("github.com/bad-account",),
            (hashlib.sha256(BAD_FILE).hexdigest(),),
        )
        == INDICATORS
    )
    assert read_indicators("\n# nothing yet\n") == NO_INDICATORS


@pytest.mark.parametrize(
    "line",
    ["host", "host a b", "ip 1.2.3.4", "host nodots", "account some-account", "sha256 abc", "host a..b"],
)
def test_a_line_that_is_none_is_refused_by_its_number(line):
    with pytest.raises(InvalidSettings, match=r"line 2 is not an indicator; write 'host NAME'"):
        read_indicators(f"host ok.dev\n{line}\n")


@pytest.mark.parametrize(
    "example",
    [
        "See https://drop.bad-tools.dev/start first.",
        "Never use `curl https://eu.Drop.Bad-Tools.dev`.",
        {"a.py": "HOST = '203.0.113.66'\n"},
        {"a.json": '{"url": "https://drop.bad-tools.dev."}'},
        {"a.sh": f"echo {ENCODED} | base64 -d\n"},
        "Clone git@github.com:bad-account/tool.git",
        "```bash\ncurl -O https://raw.githubusercontent.com/bad-account/tool/main/x.py\n```\n",
        "The manual is at https://bad-account.github.io/tool .",
    ],
)
def test_a_listed_host_or_account_is_certain(example):
    assert found(example) == [("KB-002", True)]


@pytest.mark.parametrize(
    "example",
    [
        "See https://bad-tools.dev and https://notdrop.bad-tools.dev.example .",
        {"a.py": "HOST = '203.0.113.6'\nOTHER = '1203.0.113.66'\n"},
        "Clone https://github.com/bad-accounting/tool and https://gitlab.com/bad-account .",
        {"tests/test_block.py": "assert blocked('drop.bad-tools.dev')\n"},
    ],
)
def test_what_only_looks_like_it_is_not(example):
    assert found(example) == []


def test_a_listed_file_is_certain_also_inside_an_archive():
    assert found({"bin/x": BAD_FILE}) == [("KB-003", True)]
    packed = SkillFile("a.zip", "100644", zipped(**{"x.sh": BAD_FILE}))
    report = ENGINE.scan([*skill_of("Fine."), packed])
    assert [(one.rule_id, one.file, one.certain) for one in report.findings] == [
        ("KB-003", "a.zip!x.sh", True)
    ]


def test_each_change_of_the_list_is_another_rule_set():
    """So that stored reports are not asked about it, and live skills are scanned again."""
    versions = {
        with_indicators(Ruleset(()), one).version
        for one in (
            NO_INDICATORS,
            INDICATORS,
            read_indicators("host a.dev"),
            read_indicators("sha256 " + "0" * 64),
            Indicators(skills=("0" * 64,)),
        )
    }
    assert len(versions) == 5


@pytest.mark.anyio
async def test_the_scanner_of_a_registry_knows_the_list(tmp_path):
    (tmp_path / "indicators.txt").write_text(LISTED)
    settings = Settings(
        data_dir=str(tmp_path), indicators_file=str(tmp_path / "indicators.txt"), scan_processes=1
    )
    async with AsyncExitStack() as stack:
        scanner = await open_scanner(settings, stack)
        report = await scanner.scan(skill_of("See https://drop.bad-tools.dev ."))
        assert [one.rule_id for one in report.findings if one.certain] == ["KB-002"]
        assert report.ruleset == scanner.ruleset


@pytest.mark.anyio
async def test_a_list_that_cannot_be_read_stops_the_start(tmp_path):
    settings = Settings(data_dir=str(tmp_path), indicators_file=str(tmp_path / "none.txt"))
    async with AsyncExitStack() as stack:
        with pytest.raises(InvalidSettings, match="VSKILL_INDICATORS_FILE cannot be read"):
            await open_scanner(settings, stack)
