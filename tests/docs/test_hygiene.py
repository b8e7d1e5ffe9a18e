"""The hygiene check: what it catches and what it lets pass. `make check` runs it over the project itself."""

import pytest

from tools import hygiene

HASH = "    --hash=sha256:" + "0" * 64


def messages(text: str) -> list[str]:
    return [str(problem) for problem in hygiene.check_text("some/file.md", text)]


@pytest.mark.parametrize("host", hygiene.REGISTRY_HOSTS)
def test_a_package_servers_name_is_reported_with_its_line_in_any_case(host):
    (message,) = messages(f"fine\nsee https://files.{host.upper()}/x")
    assert message.startswith("some/file.md:2: names the package server")


@pytest.mark.parametrize(
    "path",
    [
        "/" + "work/main/x.py",
        "'/" + "root/.cache'",
        "(/" + "tmp/bash_jobs/1)",
        "/" + "home/ann/src",
        "in /" + "Users/ann",
    ],
)
def test_a_path_of_one_machine_is_reported(path):
    (message,) = messages(f"run {path}")
    assert "path of one machine" in message


@pytest.mark.parametrize(
    "text",
    [
        "src/work/x.py",
        "https://example.org/home/x",
        "{root}/home/x",
        "/api/v1/work/x",
        "the /homework folder",
        "/tmp/x",
    ],
)
def test_a_path_that_belongs_to_no_machine_passes(text):
    assert messages(text) == []


def test_an_install_of_what_was_not_verified_is_reported():
    """Joined here, so that this file passes the check."""
    (message,) = messages("type `" + "vskill " + "install a/b/c`")
    assert "not verified" in message


@pytest.mark.parametrize(
    "command",
    [
        "npx vskill find x",
        "npx -y vskill",
        "npm install vskill",
        "npm i -g skils",
        "pnpm dlx skils add x",
        "pip install vskill-platform",
        "vskill/bin/pip install --no-deps 'vskill-platform[mcp]'",
        "pip install https://elsewhere.example.net/vskill_platform-1.0.0-py3-none-any.whl",
        "uv tool install vskill_platform",
        "uvx vskill-platform serve",
        "uvx --from vskill-platform vskill-platform serve",
        "docker run -p 8080:8080 -v data:/data vskill-platform",
        "podman pull vskill/platform",
        "brew install vskill",
    ],
)
def test_a_command_that_looks_up_a_name_that_is_nobodys_is_reported(command):
    for path in ("docs/some.md", "src/vskill_platform/web/templates/some.html", "packages/client/some.py"):
        (problem,) = hygiene.check_text(path, f"type `{command}`, then go on")
        assert "not ours" in str(problem)
    for path in ("docs/reference/rules.md", "src/vskill_platform/examples/a/b.txt", "tests/some.py"):
        assert list(hygiene.check_text(path, command)) == []


@pytest.mark.parametrize(
    "text",
    [
        "vskill-platform install NAME",
        "pip install --no-deps vskill_platform-*.whl",
        "pip install './vskill_platform-1.0.0-py3-none-any.whl[mcp]'",
        "pip install --require-hashes -r requirements.lock",
        "uv tool install https://skills.example.org/client/vskill_client-VERSION-py3-none-any.whl",
        "uvx --from ./vskill_platform-VERSION-py3-none-any.whl vskill-platform serve",
        'f"uvx --from {base}/client/{CLIENT.wheel} vskill-client"',
        '"uv tool install " ~ wheel, "vskill-client login " ~ base',
        "`pip install` takes the same address",
        "npx skills add http://vskill.example.org",
        "podman run --pull=never -p 8080:8080 vskill-platform",
        "apt-get install --yes git tini",
        "vskill find WORDS",
    ],
)
def test_what_is_ours_by_its_address_or_a_client_that_people_have_passes(text):
    assert [str(one) for one in hygiene.check_text("docs/some.md", text)] == []


def lock_messages(*lines: str) -> list[str]:
    return [problem.message for problem in hygiene.check_lock("requirements.lock", "\n".join(lines) + "\n")]


def test_a_lock_of_pins_and_hashes_passes():
    assert (
        lock_messages(
            "click==8.5.1 \\", HASH + " \\", HASH, "uvloop==0.23.0 ; sys_platform != 'win32' \\", HASH
        )
        == []
    )


@pytest.mark.parametrize(
    "line",
    [
        "--index-url https://example.org/simple",
        "click>=8",
        "click==8.5.1",
        "# via click",
        "x @ file:///x.whl",
        "-e .",
    ],
)
def test_anything_but_a_pin_with_hashes_in_a_lock_is_reported(line):
    assert lock_messages(line, HASH) == ["is neither an exact pin nor a SHA-256 hash: run 'make lock'"]


@pytest.mark.parametrize("after", [[], ["rich==15.0.0 \\", HASH]])
def test_a_pin_without_a_hash_is_reported(after):
    assert lock_messages("click==8.5.1 \\", *after) == ["has no hash: run 'make lock'"]


def test_files_about_attacks_may_name_what_attacks_look_for():
    text = "cat /" + "root/.ssh/id_rsa"
    assert list(hygiene.check_text("packages/scan/src/vskill_scan/rules/x.yaml", text)) == []
