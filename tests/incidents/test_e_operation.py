"""Incidents of section E: operation and interface, as far as this part of the platform goes."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx2
import pytest

from tests.incidents.conftest import Opener
from tests.incidents.steps import UnfinishedScanner, check_history, pass_time, record_of
from tests.support.acting import cancel, reject
from tests.support.envs import (
    active_env,
    make_submission,
    open_test_env,
    put_record,
    run_until_quiet,
    skill_files,
    submit_skill,
)
from tests.support.faults import ListedSources, TroubledScanner
from tests.support.system_reads import get_submission
from vskill_core.content import SkillFile, digest_of_files
from vskill_core.errors import (
    BlobUnavailable,
    LimitExceeded,
    NoSkillFound,
    PlatformError,
    SchemaUnknown,
    SourceGone,
    SourceUnavailable,
    StoreBusy,
    StoreUnavailable,
)
from vskill_core.findings import (
    JUDGE_DOWN,
    JudgeReport,
    JudgeStatus,
    Severity,
    StaticReport,
    Verdict,
)
from vskill_core.identity import normalise
from vskill_platform.actions.principal import OPEN_RIGHTS
from vskill_platform.domain.blocklist import BlockEntry, place_target
from vskill_platform.domain.people.namespace import EVERYTHING
from vskill_platform.domain.submissions.attempts import FAILED_DELAYS_MS
from vskill_platform.domain.submissions.states import (
    ACTIVE_STATES,
    State,
    StateCategory,
    category_of,
    states_in,
)
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.intake.submit import submit_repository
from vskill_platform.ledger.blobs.contract import Blobs
from vskill_platform.ledger.clock import SystemClock
from vskill_platform.ledger.database.migrations import load_migrations
from vskill_platform.ledger.database.sqlite import SqliteDatabase
from vskill_platform.ledger.kv.sqlite import SqliteKV
from vskill_platform.settings import SECRETS, Settings
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.submissions.submission_lists import find_submissions
from vskill_platform.submission_store import count_submissions
from vskill_platform.web.app import ENDPOINTS, create_app
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

MIGRATIONS = load_migrations("sqlite")


async def test_E3_a_category_is_expanded_to_all_its_states(env: Env) -> None:
    """Filtering by "running" or by what is active finds every such state, not only RECEIVED."""
    for state in State:
        await put_record(env, make_submission(state.lower(), state=state, at=env.kv.now()))
    for category in StateCategory:
        listed = await find_submissions(states=states_in(category), audiences=EVERYTHING)
        assert {record.state for record in listed.items} == states_in(category)
        assert all(category_of(record.state) is category for record in listed.items)
    active = await find_submissions(states=ACTIVE_STATES, audiences=EVERYTHING)
    assert {record.state for record in active.items} == ACTIVE_STATES
    assert len(active.items) == (await count_submissions(audiences=EVERYTHING)).active + 1 == 5
    assert len((await find_submissions(audiences=EVERYTHING)).items) == len(State)


class Judge:
    """A judge with one answer."""

    def __init__(self, report: JudgeReport) -> None:
        self.report = report

    async def review(self, files: Sequence[SkillFile], report: StaticReport) -> JudgeReport:
        return self.report


JUDGE_NO = Judge(JudgeReport(JudgeStatus.ANSWERED, Verdict.FAIL, 10))
JUDGE_UNSURE = Judge(JudgeReport(JudgeStatus.ANSWERED, Verdict.CONCERNS, 70))

#: Each way of ending without being published: what is submitted, with what in the environment, and where it ends.
ENDS: dict[str, tuple[State, Callable[[Env], dict[str, object]]]] = {
    "scan timed out": (State.NEEDS_REVIEW, lambda env: {"scanner": UnfinishedScanner()}),
    "judge says no": (State.REJECTED, lambda env: {"judge": JUDGE_NO}),
    "judge is not sure": (State.NEEDS_REVIEW, lambda env: {"judge": JUDGE_UNSURE}),
    "attempts exhausted": (
        State.REJECTED,
        lambda env: {"scanner": TroubledScanner(env.scanner, b"#", RuntimeError("broken"))},
    ),
}


@pytest.mark.parametrize("end", ENDS)
async def test_E7_every_end_has_its_reason(env: Env, end: str) -> None:
    """The record says why, in its decision and in its last step (j)."""
    state, changes = ENDS[end]
    submission = record_of(await submit_skill("ending"))
    with active_env(env, **changes(env)) as changed:
        for delay in (*FAILED_DELAYS_MS, 0):
            await run_until_quiet(changed)
            pass_time(env, delay)
    check_end(await get_submission(submission.id), state)


async def test_E7_content_that_is_known_to_be_bad_has_its_reason(open_here: Opener) -> None:
    async with open_here(known_bad_digests=(digest_of_files(skill_files("ending")),)) as env:
        submission = record_of(await submit_skill("ending"))
        await run_until_quiet(env)
        check_end(await get_submission(submission.id), State.BLOCKED)


SOURCE_ENDS: dict[str, tuple[SkillFile, ...] | Exception] = {
    "no SKILL.md": (SkillFile("README.md", "100644", b"x"),),
    "no text": (SkillFile("SKILL.md", "100644", b"not text: \xff"),),
    "gone": SourceGone("github.com/ann/tools does not exist"),
    "too large": LimitExceeded("it has 5000 files"),
    "unsafe path": (*skill_files("fmt"), SkillFile("../escape", "100644", b"x")),
    "none at the place": NoSkillFound(),
}


@pytest.mark.parametrize("end", SOURCE_ENDS)
async def test_E7_every_rejection_of_a_place_has_its_reason(env: Env, end: str) -> None:
    sources = ListedSources(env.blobs)
    sources.places[normalise("https://github.com/ann/tools").key] = SOURCE_ENDS[end]
    with active_env(env, sources=sources) as listed:
        submission = record_of(await submit_repository("https://github.com/ann/tools"))
        await run_until_quiet(listed)
    check_end(await get_submission(submission.id), State.REJECTED)


async def test_E7_what_people_do_has_its_reason(env: Env) -> None:
    """Cancelled, rejected, blocked: by whom and why is in the history."""
    records = [record_of(await submit_skill(f"by-people-{number}")) for number in range(3)]
    await cancel(records[0].id, by="user:ann", reason="never mind")
    await reject(records[1].id, by="admin:eve", reason="spam")
    await add_block(
        BlockEntry(place_target(records[2].identity), Severity.HIGH, "stolen", "admin:eve", env.kv.now())
    )
    await reapply_blocklist()
    ended = [await get_submission(record.id) for record in records]
    assert [(one.state, one.history[-1].actor) for one in ended] == [
        (State.DEQUEUED, "user:ann"),
        (State.REJECTED, "admin:eve"),
        (State.BLOCKED, "system"),
    ]
    for record, reason in zip(ended, ("never mind", "spam", "stolen"), strict=True):
        assert reason in record.history[-1].reason
        check_history(record)


def check_end(record: Submission, state: State) -> None:
    assert record.state is state
    assert record.decision is not None
    assert len(record.decision.reason) > len("no reason")
    assert record.history[-1].reason == record.decision.reason
    check_history(record)


class DownBlobs(Blobs):
    """A blob store that cannot be reached."""

    engine = "down"

    async def put(self, address: str, data: bytes, *, replace: bool = False) -> None:
        raise BlobUnavailable("the disk is not mounted")

    async def get(self, address: str) -> bytes | None:
        raise BlobUnavailable("the disk is not mounted")

    async def has(self, address: str) -> bool:
        raise BlobUnavailable("the disk is not mounted")

    async def set_aside(self, address: str, untouched_ms: int) -> bool:
        raise BlobUnavailable("the disk is not mounted")

    async def delete_aside(self, address: str, untouched_ms: int) -> bool:
        raise BlobUnavailable("the disk is not mounted")

    async def close(self) -> None:
        """Nothing to let go of."""


UPSTREAM: dict[str, tuple[PlatformError, State, str]] = {
    "host down": (
        SourceUnavailable("502 from github.com", host="github.com"),
        State.RECEIVED,
        "502 from github.com",
    ),
    "repository gone": (SourceGone("404 from github.com"), State.REJECTED, "404 from github.com"),
    "too large": (LimitExceeded("21 MB of 20 MB"), State.REJECTED, "21 MB of 20 MB"),
    "blobs down": (BlobUnavailable("the disk is not mounted"), State.RECEIVED, "the disk is not mounted"),
}


@pytest.mark.parametrize("case", UPSTREAM)
async def test_E8_an_upstream_error_keeps_its_own_words(env: Env, case: str) -> None:
    """What failed is told apart all the way to the record; only a missing SKILL.md is called that."""
    error, state, words = UPSTREAM[case]
    sources = ListedSources(env.blobs)
    sources.places[normalise("https://github.com/ann/tools").key] = error
    with active_env(env, sources=sources) as listed:
        submission = record_of(await submit_repository("https://github.com/ann/tools"))
        await run_until_quiet(listed)
    record = await get_submission(submission.id)
    assert record.state is state
    assert words in record.history[-1].reason
    assert "SKILL.md" not in record.history[-1].reason


async def test_E8_uploading_without_a_blob_store_says_so(env: Env) -> None:
    """The door answers with the real cause, and no record is made for bytes that were not kept."""
    with active_env(env, blobs=DownBlobs()), pytest.raises(BlobUnavailable, match="not mounted"):
        await submit_skill("unkept")
    assert (await count_submissions(audiences=EVERYTHING)).total == 0


async def test_E8_a_judge_that_is_down_is_not_a_verdict(env: Env) -> None:
    """Its outage is written as an outage: the static scan decides."""
    submission = record_of(await submit_skill("unjudged"))
    with active_env(env, judge=Judge(JUDGE_DOWN)) as judged:
        await run_until_quiet(judged)
    record = await get_submission(submission.id)
    assert record.decision is not None
    assert (record.state, record.decision.certification) == (State.PUBLISHED, "SCANNED")
    assert "the judge is down" in record.decision.reason


async def test_E9_a_locked_database_fails_in_time_and_reads_go_on(tmp_path: Path) -> None:
    """Another process holds the lock: a write ends after the time limit with an error that says so, and readers do
    not wait at all."""
    path = tmp_path / "vskill.db"
    database = await SqliteDatabase.open(path, SystemClock(), busy_ms=300)
    kv = SqliteKV(database)
    await kv.put("sub:one", b"{}")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        began = time.monotonic()
        with pytest.raises(StoreBusy, match=str(path)):
            await kv.put("sub:two", b"{}")
        assert time.monotonic() - began > 0.25
        assert await kv.get("sub:one") is not None
        assert (await kv.list("sub:")).items == ("sub:one",)
    finally:
        other.execute("ROLLBACK")
        other.close()
    await kv.put("sub:two", b"{}")
    await kv.close()


@pytest.mark.machine
async def test_E9_a_hanging_write_hangs_no_other_reader(tmp_path: Path) -> None:
    """Many writers wait for the lock together and all hear of it within the one limit, not one after the other."""
    path = tmp_path / "vskill.db"
    database = await SqliteDatabase.open(path, SystemClock(), busy_ms=300)
    kv = SqliteKV(database)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        took = []
        for together in (1, 20):
            began = time.monotonic()
            writes = [kv.put(f"sub:{number}", b"{}") for number in range(together)]
            answers = await asyncio.gather(*writes, return_exceptions=True)
            assert all(isinstance(answer, StoreUnavailable) for answer in answers)
            took.append(time.monotonic() - began)
        assert took[1] < 10 * took[0]
    finally:
        other.execute("ROLLBACK")
        other.close()
        await kv.close()


def test_E10_no_setting_is_a_secret_with_a_default() -> None:
    """Nothing that protects anything has a value that we ship."""
    words = ("secret", "password", "token", "key", "salt")
    named = {name for name in Settings.__struct_fields__ if any(word in name for word in words)}
    # A mail server's address carries its password.
    assert named | {"smtp_url"} == SECRETS
    assert [name for name in SECRETS if getattr(Settings(), name)] == []


#: What a path's parameters stand for in a request that must not get through anyway.
STAND_INS = {"{digest}": "0" * 64}


async def test_E11_every_guarded_route_refuses_a_stranger(env: Env) -> None:
    """Whatever is not open to everybody answers 401 or 403, or sends to the sign-in page; a signature is a guard too."""
    signed = "/api/v1/external-scans/{digest}/{provider}"
    transport = httpx2.ASGITransport(create_app(env))
    async with httpx2.AsyncClient(transport=transport, base_url="http://platform.test") as client:
        guarded = [one for one in ENDPOINTS if one.action and one.action.right not in OPEN_RIGHTS]
        guarded += [one for one in ENDPOINTS if (one.method, one.path) == ("POST", signed)]
        assert len(guarded) > 80
        for endpoint in guarded:
            parts = [STAND_INS.get(part, "x" if "{" in part else part) for part in endpoint.path.split("/")]
            answer = await client.request(endpoint.method, "/".join(parts))
            assert answer.status_code in (303, 401, 403), endpoint.path
            if answer.status_code == 303:
                assert answer.headers["location"].startswith("/signin"), endpoint.path


async def test_E12_one_rule_set_named_in_every_report(env: Env) -> None:
    """Clean, with findings, without a skill, empty: each report says which rules were applied."""
    contents = [
        skill_files("clean"),
        (SkillFile("SKILL.md", "100644", b"not text: \xff"),),
        (*skill_files("binary"), SkillFile("tool", "100755", b"\x7fELF...")),
        (),
    ]
    reports = [await env.scanner.scan(files) for files in contents]
    assert {report.ruleset for report in reports} == {env.scanner.ruleset}


async def test_E16_a_newer_schema_is_refused_and_left_alone(tmp_path: Path) -> None:
    """Code that meets a schema of the future does not start, and changes nothing."""
    async with open_test_env("sqlite", tmp_path):
        await submit_skill("kept")
    path = tmp_path / "vskill.db"
    newest = MIGRATIONS[-1].number
    _execute(path, f"PRAGMA user_version = {newest + 1}")
    before = path.read_bytes()
    with pytest.raises(SchemaUnknown, match=f"has schema version {newest + 1}.*up to {newest}"):
        async with open_test_env("sqlite", tmp_path):
            pass
    assert path.read_bytes() == before
    _execute(path, f"PRAGMA user_version = {newest}")
    async with open_test_env("sqlite", tmp_path):
        assert (await count_submissions(audiences=EVERYTHING)).total == 1


async def test_E16_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    _execute(tmp_path / "vskill.db", "CREATE TABLE theirs (x)")
    with pytest.raises(SchemaUnknown, match="another program"):
        async with open_test_env("sqlite", tmp_path):
            pass


async def test_E16_a_schema_that_is_too_old_is_refused_with_the_way_over_and_left_alone(
    tmp_path: Path,
) -> None:
    """The code does not guess what an old file means: it names the commands that carry it over."""
    async with open_test_env("sqlite", tmp_path):
        await submit_skill("kept")
    path = tmp_path / "vskill.db"
    _execute(path, "PRAGMA user_version = 3")
    before = path.read_bytes()
    with pytest.raises(SchemaUnknown, match=r"vskill-platform backup FILE.*vskill-platform restore FILE"):
        async with open_test_env("sqlite", tmp_path):
            pass
    assert path.read_bytes() == before


def _execute(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
