"""The short reference says what the code does."""

from pathlib import Path

from vskill_platform.web.door.limits import QUOTAS
from vskill_platform.web.openapi import TAGS
from vskill_platform.web.routing import MOST_BODY

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "api.md").read_text("utf-8")


def test_the_limits_are_those_of_the_code():
    rows = {
        line.split("|")[1].split("(")[0].strip(): line for line in TEXT.splitlines() if line.startswith("| ")
    }
    for allowance, quota in QUOTAS.items():
        row = rows[allowance.value]
        assert row.rstrip(" |").endswith(f"{quota.account}"), allowance


def test_the_largest_body_is_that_of_the_code():
    assert f"{MOST_BODY:,} bytes" in TEXT


def test_every_area_is_named():
    assert [tag for tag in TAGS if tag != "operations" and tag.split()[0] not in TEXT] == []
