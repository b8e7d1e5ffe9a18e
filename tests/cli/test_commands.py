"""What an operator types: answers for people and for programs, and errors of one line."""

import asyncio
import functools
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from tests.support.patience import PATIENCE_S
from vskill_client.group import first_known
from vskill_client.output import plain
from vskill_core.content import ContentLimits
from vskill_core.errors import LimitExceeded, NotFound, StoreFull
from vskill_core.folders import read_folder
from vskill_core.release import __version__
from vskill_platform.bootstrap import env_for
from vskill_platform.cli import cli
from vskill_platform.cli.operation.doctor import Check, check
from vskill_platform.cli.output import Duration, show_duration
from vskill_platform.domain.keys import CONTROL_RELEASE
from vskill_platform.domain.messages import submission_send
from vskill_platform.settings import process_settings
from vskill_platform.store.skills.collections import create_collection
from vskill_platform.worker_context import Env, run_with_worker_env

T = TypeVar("T")


def in_env(work: Callable[[Env], Awaitable[T]]) -> T:
    """Does something in the store that the commands look at."""

    async def opened() -> T:
        async with env_for(process_settings()) as env:
            return await run_with_worker_env(env, lambda: work(env))

    return asyncio.run(opened())


# Errors.


def test_an_error_is_one_line_on_stderr_with_exit_code_1(run):
    result = run("status", "sub_none", code=1)
    assert result.stdout == ""
    assert result.stderr == "Error: There is no submission sub_none.\n"


def test_bad_settings_name_the_variable_and_the_fix(run, monkeypatch):
    monkeypatch.setenv("VSKILL_PORT", "http")
    result = run("status", code=1)
    assert result.stderr.count("\n") == 1
    assert "VSKILL_PORT is 'http'" in result.stderr
    assert "a port number from 0 to 65535" in result.stderr


def test_debug_shows_where_an_error_comes_from(run, data_dir):
    result = run("--debug", "status", "sub_none", code=1)
    assert type(result.exception).__name__ == "NotFound"


def test_field_and_fix_stand_in_the_line_even_where_the_message_lacks_them(run, skill):
    result = run("submit", skill, "--namespace", "not a name", code=1)
    assert result.stderr.startswith("Error: ")
    assert "namespace" in result.stderr


def test_a_mistake_in_the_command_line_has_exit_code_2(run, skill):
    assert "No such command" in run("serf", code=2).stderr
    assert "--name names one skill" in run("submit", skill, skill, "--name", "x", code=2).stderr
    assert "does not exist" in run("submit", skill / "none", code=2).stderr


def test_a_store_in_memory_is_refused_where_two_processes_must_share_it(run, monkeypatch):
    monkeypatch.setenv("VSKILL_STORE", "memory:")
    for command in (["status"], ["worker"], ["schedule"], ["serve", "--web-only"]):
        assert "no other process can see" in run(*command, code=1).stderr


def test_errors_of_several_roles_are_one_line_if_each_is_ours():
    ours, foreign = NotFound("a"), ZeroDivisionError()
    assert first_known(BaseExceptionGroup("roles", [ExceptionGroup("web", [ours]), NotFound("b")])) is ours
    assert first_known(BaseExceptionGroup("roles", [ours, foreign])) is None
    assert first_known(foreign) is None


def test_version(run):
    assert run("--version").stdout.startswith("vskill-platform, version ")


def test_help_does_not_load_the_engines():
    """`--help` is fast because a command imports what it needs when it runs."""
    heavy = (
        "vskill_platform.ledger.kv",
        "vskill_platform.ledger.database",
        "vskill_platform.web",
        "starlette",
        "uvicorn",
    )
    code = (
        f"import sys, vskill_platform.cli; print([name for name in sys.modules if name.startswith({heavy})])"
    )
    source = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        check=True,
    )
    assert done.stdout.strip() == b"[]"


# Submitting and looking.


def test_a_folder_is_submitted_and_its_status_shown(run, skill):
    result = json.loads(run("submit", skill, "--json").stdout)
    (one,) = result
    assert one["outcome"] == "created"
    submission = one["submission"]
    assert (submission["state"], submission["skillName"]) == ("RECEIVED", "tidy")
    shown = run("status", submission["id"]).stdout
    assert "RECEIVED: accepted, waiting for a worker" in shown
    assert "submitted" in shown
    assert json.loads(run("status", submission["id"], "--json").stdout)["id"] == submission["id"]


def test_D8_submitting_twice_is_one_submission(run, skill):
    assert "created" in run("submit", skill).stdout
    assert "duplicate" in run("submit", skill).stdout
    assert json.loads(run("status", "--json").stdout)["total"] == 1


def test_name_and_namespace_make_the_place(run, skill):
    names = [("ada", "one"), ("ada", "two"), ("bob", "one")]
    ids = {
        json.loads(run("submit", skill, "--namespace", n, "--name", s, "--json").stdout)[0]["submission"][
            "id"
        ]
        for n, s in names
    }
    assert len(ids) == 3


def test_several_folders_are_submitted_at_once(run, skill, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "SKILL.md").write_text((skill / "SKILL.md").read_text())
    refused = run("submit", skill, other, code=1)
    assert refused.stdout.count("created") == 1
    assert "are both called tidy; rename one of them in its SKILL.md" in refused.stderr
    (other / "SKILL.md").write_text((skill / "SKILL.md").read_text().replace("tidy", "other"))
    assert run("submit", other).stdout.count("created") == 1


def test_every_file_is_packed_with_its_mode_and_git_is_left_out(run, skill):
    (skill / "scripts").mkdir()
    script = skill / "scripts" / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    (skill / ".git").mkdir()
    (skill / ".git" / "config").write_text("x")
    files = {file.path: file.mode for file in read_folder(skill)}
    assert files == {"SKILL.md": "100644", "scripts/run.sh": "100755"}


def test_a_folder_that_is_too_much_for_a_skill_is_not_read_to_its_end(skill):
    for number in range(5):
        (skill / f"{number}.txt").write_bytes(b"x" * 100)
    with pytest.raises(LimitExceeded, match="more than 3 files"):
        read_folder(skill, ContentLimits(files=3))
    with pytest.raises(LimitExceeded, match="more than 300 bytes"):
        read_folder(skill, ContentLimits(bytes_total=300))


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_in_the_folder_is_refused_by_name(run, skill, tmp_path, what):
    target = tmp_path / "secret"
    target.write_text("x") if what == "file" else target.mkdir()
    (skill / "link").symlink_to(target)
    error = run("submit", skill, code=1).stderr
    assert "link is a link or a special file" in error
    assert "replace it by a plain file" in error


def test_A17_a_folder_without_a_skill_is_refused_at_the_door(run, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    said = run("submit", empty, code=1).stderr
    assert f"There is no SKILL.md in {empty} or below it; name the folder of a skill" in said
    (empty / "SKILL.md").write_text("\n")
    assert "SKILL.md line 1: SKILL.md is empty" in run("submit", empty, code=1).stderr
    assert json.loads(run("status", "--json").stdout)["total"] == 0


def test_status_counts_by_state(run, skill):
    run("submit", skill)
    counts = run("status").stdout
    assert counts.startswith("1 submission")
    assert "waiting for a worker" in counts


# The queue.


def test_queue_status_says_how_many_messages_wait(run, skill):
    run("submit", skill)
    assert "not paused" in run("queue", "status").stdout
    assert json.loads(run("queue", "status", "--json").stdout)["depth"]["ready"] == 1


def test_B3_a_pause_has_an_end_and_a_reason_and_can_be_ended(run):
    assert "Missing option '--for'" in run("queue", "pause", "--reason", "x", code=2).stderr
    assert "Missing option '--reason'" in run("queue", "pause", "--for", "1m", code=2).stderr
    paused = run("queue", "pause", "--for", "10m", "--reason", "upgrade").stdout
    assert "until" in paused
    assert json.loads(run("queue", "status", "--json").stdout)["pause"]["reason"] == "upgrade"
    assert "paused" in run("queue", "recover").stdout
    assert "is running again" in run("queue", "resume").stdout
    assert "was not paused" in run("queue", "resume").stdout


@pytest.mark.parametrize("duration", ["10", "m", "-1m", "1.5h", "1w", ""])
def test_a_duration_that_cannot_be_read_is_a_usage_error_with_an_example(run, duration):
    assert "write for example 30s" in run("queue", "pause", "--for", duration, "--reason", "x", code=2).stderr


def test_B12_recover_sends_what_is_owed_and_says_so(run, skill, data_dir):
    run("submit", skill)
    with sqlite3.connect(data_dir / "vskill.db") as connection:
        connection.execute("DELETE FROM messages")
    connection.close()
    assert json.loads(run("queue", "recover", "--json").stdout)["sent"] == 1
    assert "Pending submissions and tasks: 1. Missing messages sent: 0." in run("queue", "recover").stdout
    assert json.loads(run("queue", "status", "--json").stdout)["depth"]["ready"] == 1


def test_nothing_is_stuck_that_was_submitted_now(run, skill):
    run("submit", skill)
    assert run("queue", "stuck").stdout.startswith("0 stuck")
    assert json.loads(run("queue", "stuck", "--json").stdout)["submissions"] == []


def test_queue_health_is_0_without_violations_and_1_with_one(run, skill):
    run("submit", skill)
    assert run("queue", "health").stdout.startswith("0 violations")
    in_env(lambda env: env.kv.put("sub:sub_bad", b"{not json"))
    assert "sub:sub_bad" in run("queue", "health", code=1).stdout
    assert json.loads(run("queue", "health", "--json", code=1).stdout)["healthy"] is False


def test_a_job_that_fails_is_exit_code_1_with_its_error(run):
    assert "sweep has run." in run("queue", "jobs", "run", "sweep").stdout
    broken = b'{"name": "alerts", "state": {"firing": "{"}}'
    in_env(lambda env: env.kv.put("job:alerts", broken))
    failed = run("queue", "jobs", "run", "alerts", code=1)
    assert "The job alerts failed: " in failed.stderr and "has run" not in failed.stdout


# Dead letters.


@pytest.fixture
def letter(run, skill):
    """The dead letter of a submission that is waiting; gives the letter's id and the submission's."""
    submission = json.loads(run("submit", skill, "--json").stdout)[0]["submission"]["id"]

    async def kill(env):
        (batch,) = await env.broker.receive(max_wait_ms=1_000)
        await batch.messages[0].dead_letter("it broke four times")

    in_env(kill)
    (one,) = json.loads(run("queue", "dead-letters", "list", "--json").stdout)["letters"]
    return one["id"], submission


def test_dead_letters_are_listed_with_their_reason(run, letter):
    shown = run("queue", "dead-letters", "list").stdout
    assert shown.startswith("1 dead letters")
    assert "it broke four times" in shown


def test_a_dead_letter_is_replayed_through_the_record(run, letter):
    letter_id, submission = letter
    assert submission in run("queue", "dead-letters", "replay", letter_id).stdout
    depth = json.loads(run("queue", "status", "--json").stdout)["depth"]
    assert (depth["dead"], depth["ready"]) == (0, 1)


def test_a_dead_letter_is_discarded(run, letter):
    run("queue", "dead-letters", "discard", letter[0])
    assert run("queue", "dead-letters", "list").stdout.startswith("0 dead letters")
    assert "There is no dead letter" in run("queue", "dead-letters", "discard", letter[0], code=1).stderr
    assert "There is no dead letter" in run("queue", "dead-letters", "replay", letter[0], code=1).stderr


def test_a_dead_letter_that_is_no_message_of_ours_cannot_be_replayed(run, letter):
    async def foreign(env):
        await env.broker.send(b"\xff\xfe")
        (batch,) = await env.broker.receive(max_wait_ms=1_000)
        await batch.messages[0].dead_letter("not ours")

    in_env(foreign)
    last = json.loads(run("queue", "dead-letters", "list", "--json").stdout)["letters"][-1]
    assert "discard it" in run("queue", "dead-letters", "replay", last["id"], code=1).stderr


# Doctor.


def test_doctor_is_content_with_the_defaults(run):
    checks = json.loads(run("doctor", "--json").stdout)
    assert all(one["ok"] and not one["warning"] for one in checks)
    assert {"temporary files and child processes", "scanner", "workers"} <= {one["name"] for one in checks}
    text = run("doctor").stdout
    assert "schema version" in text
    assert "degraded mode" in text


def test_doctor_says_what_is_new_since_the_release_that_used_the_store_before(run):
    def look(record: bytes) -> tuple[bool, str]:
        in_env(lambda env: env.kv.put(CONTROL_RELEASE, record))
        check = {one["name"]: one for one in json.loads(run("doctor", "--json").stdout)}["release"]
        return check["warning"], check["detail"]

    this = __version__.encode()
    assert look(b'{"release":"%s","since":1}' % this) == (False, f"{__version__}, and no other before it")
    upgraded, detail = look(b'{"release":"%s","since":1,"before":"0.2.9"}' % this)
    assert not upgraded and detail.startswith(f"{__version__}, after 0.2.9. New since then: 0.3.0 ")
    assert "To do: 0.3.0: There is no release before it." in detail
    # Before its first start, the release that is installed now has not used the store.
    assert look(b'{"release":"0.2.9","since":1}') == (True, detail)


def test_doctor_warns_of_a_marketplace_that_is_called_as_every_other(run, monkeypatch):
    """Clients refuse a second one of the same name. A registry without a public address may keep it."""

    def look() -> dict[str, object]:
        checks = {one["name"]: one for one in json.loads(run("doctor", "--json").stdout)}
        return dict(checks["marketplace name"])

    assert not look()["warning"]
    monkeypatch.setenv("VSKILL_PUBLIC_URL", "https://skills.example.org")
    assert look()["warning"] and "VSKILL_REGISTRY_NAME" in str(look()["detail"])
    monkeypatch.setenv("VSKILL_REGISTRY_NAME", "acme-skills")
    assert not look()["warning"] and look()["detail"] == "acme-skills"


def test_doctor_and_access_say_who_may_sign_in_with_github(run, monkeypatch):
    def said() -> tuple[bool, str]:
        check = {one["name"]: one for one in json.loads(run("doctor", "--json").stdout)}["GitHub sign-in"]
        return check["warning"], check["detail"]

    assert said() == (False, "not set up")
    for name, value in (("CLIENT_ID", "x"), ("CLIENT_SECRET", "x")):
        monkeypatch.setenv(f"VSKILL_GITHUB_{name}", value)
    monkeypatch.setenv("VSKILL_PUBLIC_URL", "https://skills.example.org")
    assert said() == (False, "Everybody with an account at GitHub may sign in.")
    foretold = run("access", "preview", "internal").stdout
    run("access", "change", "--mode", "internal", "--yes", "--reason", "it is for us")
    warning, detail = said()
    assert (
        warning and "VSKILL_GITHUB_ALLOWED_ORGANISATIONS" in detail and detail in " ".join(foretold.split())
    )
    monkeypatch.setenv("VSKILL_GITHUB_ALLOWED_ORGANISATIONS", "Acme acme/platform")
    named = "These may sign in with GitHub: organisation acme, team acme/platform."
    assert said() == (False, named) and named in run("access", "show").stdout


def test_a_warning_of_doctor_is_seen_and_is_no_problem():
    seen = [
        Check("x", ok=ok, detail="", warning=warning).result
        for ok, warning in ((True, True), (True, False), (False, True))
    ]
    assert seen == ["warning", "ok", "PROBLEM"]


def test_doctor_names_a_bad_setting(run, monkeypatch):
    monkeypatch.setenv("VSKILL_JUDGE_URL", "http://127.0.0.1:1/v1")
    (one,) = json.loads(run("doctor", "--json", code=1).stdout)
    assert (one["name"], one["ok"]) == ("settings", False)
    assert "VSKILL_JUDGE_MODEL" in one["detail"]


@pytest.mark.parametrize("character", "@/?#[")
@pytest.mark.parametrize("setting", ["VSKILL_STORE", "VSKILL_BROKER"])
def test_doctor_prints_no_part_of_a_password_and_says_how_to_write_it(run, monkeypatch, character, setting):
    monkeypatch.setenv(setting, f"postgresql://me:hush{character}whisper@127.0.0.1:1/db")
    outcome = run("doctor", code=1)
    assert not {"hush", "whisper"} & set(re.findall("[a-z]+", outcome.output))
    assert setting in outcome.stdout and "%40 for @" in outcome.stdout


def test_doctor_names_a_store_that_cannot_be_opened(run, data_dir):
    data_dir.mkdir()
    (data_dir / "vskill.db").write_bytes(b"this is a text, not a database" * 100)
    text = run("doctor", code=1).stdout
    assert "PROBLEM" in text
    assert "vskill.db" in text


async def fails(error: Exception | None = None) -> None:
    if error is not None:
        raise error
    await asyncio.sleep(3600)


@pytest.mark.anyio
async def test_doctor_turns_a_failed_check_into_a_line():
    full = await check("store", fails(StoreFull()))
    assert full == Check("store", ok=False, detail="The record store's disk is full.")
    assert "no answer within" in (await check("store", fails(), within_s=0.01)).detail


# Output and reference.


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(None, "\N{EN DASH}"), (0, "0 ms"), (999, "999 ms"), (61_000, "1 min 1 s"), (90_061_000, "1 d 1 h")],
)
def test_durations_are_shown_in_their_two_largest_units(ms, shown):
    assert show_duration(ms) == shown


@pytest.mark.parametrize(
    ("text", "ms"), [("30s", 30_000), ("10m", 600_000), ("2h", 7_200_000), ("1d", 86_400_000)]
)
def test_durations_are_read_with_their_unit(text, ms):
    assert Duration().convert(text, None, None) == ms


def test_foreign_text_cannot_steer_the_terminal_or_mark_up_a_table():
    assert plain("\x1b[31m[bold]x\r\n") == "�[31m[bold]x��"


def test_a_table_in_a_pipe_has_every_cell_whole_and_no_spaces_behind_it(data_dir):
    """Through a real pipe: what a person sees is found by `grep`, however long it is."""
    reasons = ("because " + "of this " * 55, "短い")
    for number, reason in enumerate(reasons):
        making = functools.partial(create_collection, f"ours-{number}", by="admin:eve", reason=reason)
        in_env(lambda _env, making=making: making())  # type: ignore[misc]
    command = [sys.executable, "-m", "vskill_platform", "audit", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    title, header, *rows = done.stdout.splitlines()
    place = header.index("reason")
    assert (title, header[place:].split()) == ("2 entries", ["reason", "address"])
    assert [row[place:] for row in rows] == [reason.strip() for reason in reversed(reasons)]
    assert done.stdout == "".join(f"{line.rstrip()}\n" for line in (title, header, *rows))


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_reading_command_speaks_json(name):
    command = cli.commands[name]
    reading = {
        "status",
        "doctor",
        "submit",
        "search",
        "install",
        "verify",
        "backup",
        "restore",
        "migrate",
        "publish",
        "whoami",
    }
    options = {option for parameter in command.params for option in parameter.opts}
    assert ("--json" in options) == (name in reading)


def test_a_message_of_a_run_is_one_per_key(run, skill):
    """The command line sends what the queue knows: sending again adds nothing."""
    submission = json.loads(run("submit", skill, "--json").stdout)[0]["submission"]["id"]
    assert in_env(lambda env: env.broker.send_batch([submission_send(submission, 1)])) == 0
