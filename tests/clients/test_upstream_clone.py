"""What only an upstream has, asked for and installed by the real git from a running server: its list has a placeholder,
a clone of that asks for it, and the same address gives the verified files later."""

import pytest

from tests.clients.clients import git, keep_for_git
from tests.clients.registry import running, skill_md
from tests.clients.test_git_marketplace import clone, plugins
from tests.support.git_server import git_server
from tests.support.patience import wait_until

pytestmark = pytest.mark.slow

URL = "https://github.com/vendor/skills"


def test_a_clone_of_a_placeholder_asks_and_clones_what_was_verified_later(tmp_path):
    home, folder = tmp_path / "home", tmp_path / "registry"
    home.mkdir()
    folder.mkdir()
    with git_server(tmp_path / "git") as server:
        repo = server.repo("vendor/skills", {"skills/lint/SKILL.md": skill_md("lint", "verified")})
        with running(folder, VSKILL_SOURCE_REWRITES=server.rewrite()) as registry:
            registry.command("upstream", "add", "vendor", "repository", URL, "--reason", "our writers use it")
            address = f"{registry.url}/upstreams/vendor.git"
            wait_until(
                lambda: "1 listed" in registry.command("upstream", "show", "vendor"), "it was never read"
            )
            wait_until(lambda: "lint-vendor" in plugins(clone(home, address)), "it is in no list")
            entry = plugins(clone(home, address))["lint-vendor"]
            assert entry["version"] == "0.0.0" and entry["description"].startswith("Not verified yet.")
            place = entry["source"]["url"]
            assert "could not read Username" in git(home, "clone", "-q", place, "none", code=128)
            assert "no" in registry.command("upstream", "entries", "vendor").splitlines()[-1].split()
            keep_for_git(home, registry.url, registry.token("mona"))
            said = git(home, "ls-remote", place, code=128)
            assert "remote: upstream~vendor/skills/lint is not verified yet; requested" in said
            # The upstream goes bad after its files were fetched.
            wait_until(
                lambda: "1.0.0" in registry.command("upstream", "entries", "vendor"), "it was never verified"
            )
            repo.commit({"skills/lint/SKILL.md": skill_md("lint", "other bytes")})
            installed = clone(home, place) / "skills" / "lint-vendor" / "SKILL.md"
            assert installed.read_bytes() == skill_md("lint", "verified")
            wait_until(
                lambda: plugins(clone(home, address))["lint-vendor"]["version"] == "1.0.0", "no new list"
            )
