"""scim2-tester, which checks servers against RFC 7643 and 7644, over our endpoint."""

import asyncio
import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.support import lifetimes
from tests.support.envs import active_env, open_test_env
from tests.support.streams import serving
from tools.files import ROOT
from vskill_platform.actions.people.access import MAKE_SCIM_TOKEN, ScimIssuer
from vskill_platform.actions.principal import OPERATOR
from vskill_platform.setting_issuers import Issuer

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PYTHON = ROOT / ".venv" / "tools" / "bin" / "python"
CHECKS = Path(__file__).with_name("scim_checks.py")
#: Optional in RFC 7644, 3.4.3; we answer that we do not have it.
SKIPPED = [["SKIPPED", kind, "search_with_attributes"] for kind in ("User", "Group")]


def check(address: str, token: str) -> list[list[str]]:
    command: list[str | Path] = [PYTHON, CHECKS, address, token]
    with lifetimes.running(command, stdout=subprocess.PIPE) as process:
        told, _ = process.communicate()
    assert process.returncode == 0
    found: list[list[str]] = json.loads(told)
    return found


async def test_every_check_is_green_but_for_searching_by_post(tmp_path):
    assert PYTHON.exists(), "scim2-tester is not there: run 'make test-slow' once"
    acme = Issuer(name="acme", issuer="https://acme.example", client_id="x")
    async with open_test_env("memory", tmp_path, active=False, issuers=(acme,), rate_limits="off") as env:
        with active_env(env):
            token = (await MAKE_SCIM_TOKEN(env, OPERATOR, ScimIssuer(issuer="acme", reason="a test"))).token
        async with serving(env) as address:
            found = await asyncio.to_thread(check, f"{address}/scim/v2/acme", token)
    assert [one[:3] for one in found if one[0] == "SKIPPED"] == SKIPPED
    assert [one for one in found if one[0] not in ("SUCCESS", "SKIPPED")] == []
    # A checker that finds nothing to check would be green too.
    kinds = Counter(kind for _, kind, _, _ in found)
    assert kinds[""] >= 27 and kinds["User"] >= 10 and kinds["Group"] >= 10, kinds
