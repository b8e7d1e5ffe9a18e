"""A forge's push reaches a running `serve` with its worker: what came, changed and went is there without waiting for the
daily check. A push whose webhook is lost is found by the next one (`tests/test_follow.py`)."""

import json
import subprocess
from typing import Any

import httpx2
import pytest

from tests.cli.role_processes import COMMAND, announced, started, stop, wait_for
from tests.support.git_server import git_server, skill_md
from tests.support.patience import PATIENCE_S
from tests.web.test_pushes import headers_of

pytestmark = pytest.mark.slow

URL = "https://github.com/acme/skills"


def test_a_push_to_a_followed_monorepo_is_taken_in_at_once(tmp_path, environment):
    def run(*arguments: str) -> Any:
        done = subprocess.run(
            [*COMMAND, *arguments, "--json"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def shown() -> Any:
        return run("follow", "show", URL)

    def states(client: httpx2.Client) -> dict[str, str]:
        listed = client.get("/api/v1/submissions", params={"limit": 100}).json()
        return {one["skillPath"]: one["state"] for one in listed["submissions"]}

    files = {f"s{number:02}/SKILL.md": skill_md(f"s{number:02}", "First.") for number in range(40)}
    with git_server(tmp_path / "git") as server:
        repo = server.repo("acme/skills", files)
        environment |= {"VSKILL_SOURCE_REWRITES": server.rewrite(), "VSKILL_RATE_LIMITS": "off"}
        with started(environment, "serve", "--port", "0") as process:
            address = announced(process)["Address"]
            run("follow", "add", URL, "--reason", "ours")
            hook = run("follow", "make-webhook", URL, "--reason", "at once")
            with httpx2.Client(base_url=address, timeout=PATIENCE_S) as client:
                wait_for(lambda: list(states(client).values()) == ["PUBLISHED"] * 40)
                del files["s01/SKILL.md"]
                added = {f"new{number}/SKILL.md": skill_md(f"new{number}") for number in range(2)}
                repo.commit({**files, **added, "s00/SKILL.md": skill_md("s00", "Changed.")})
                body = json.dumps(
                    {"ref": "refs/heads/main", "repository": {"clone_url": f"{URL}.git"}}
                ).encode()
                path = hook["address"][hook["address"].index("/api/") :]
                taken = client.post(path, content=body, headers=headers_of("github", hook["secret"], body))
                assert taken.json()["outcome"] == "checked", taken.text
                wait_for(lambda: "2 new, 1 changed, 1 gone" in shown()["found"])
                wait_for(lambda: states(client).get("new1") == states(client)["s00"] == "PUBLISHED")
            assert [one["path"] for one in shown()["gone"]] == ["s01"]
            assert stop(process)[0] == 0
