"""The memory in a registry: what is set is in force for all, the evidence names it, and a public skill with something added
goes to a reviewer once per owner."""

import pytest

from tests.incidents.steps import record_of
from tests.scan.test_memory import GAIN, MINUTES
from tests.store.test_registry_signals import noticed, submit
from tests.support.acting import approve, reject
from tests.support.envs import ENGINES, open_test_env, run_until_quiet, skill_files, submit_skill
from tests.support.memories import memory_of, tiny_memory
from tests.support.system_reads import get_submission
from vskill_core.dsse import read_payload
from vskill_core.errors import InvalidInput
from vskill_core.statement import read_statement
from vskill_platform.actions.verdicts.policy_trials import try_on_files
from vskill_platform.domain import keys
from vskill_platform.domain.evidence import ComparedMemory
from vskill_platform.domain.signals import SignalKind
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.verdicts.policy import load_policy
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.verdicts.memory import read_memory, set_memory
from vskill_platform.store.verdicts.policy import set_policy
from vskill_platform.upkeep.collector import UNTOUCHED_MS, collect
from vskill_scan.memory.memory import Memory

pytestmark = pytest.mark.anyio

TEXT = MINUTES.split("---\n", 2)[2]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> bytes:
    skills = {"market/ann/minutes": MINUTES, "market/ben/other": "Nothing."}
    return memory_of(tmp_path_factory.mktemp("public"), skills)


@pytest.fixture(params=ENGINES)
async def env(request, tmp_path, data):
    async with open_test_env(request.param, tmp_path) as opened:
        await set_memory(data, by="admin:root", reason="newer")
        yield opened


async def test_a_public_skill_with_something_added_waits_with_what_was_added(env, data):
    record = await submit(env, "mia", "meeting-notes", TEXT + GAIN)
    assert record.state is State.NEEDS_REVIEW
    (found,) = noticed(record)
    assert (found.kind, found.holds, found.skills) == (SignalKind.REMEMBERED, True, ())
    assert any(one.startswith("secret ") and "SKILL.md:" in one for one in found.details)
    assert found.reason in record.why and "of another owner" not in record.why
    memory = Memory.load(data)
    assert record.evidence.memory == ComparedMemory(memory.date, memory.digest, 2)
    assert record.evidence.memory.words == "2 public skills, as of 2026-01"


async def test_the_public_skill_itself_is_published_with_a_note(env):
    record = await submit(env, "ann", "minutes", TEXT)
    assert record.state is State.PUBLISHED
    assert [(one.kind, one.holds) for one in noticed(record)] == [(SignalKind.REMEMBERED, False)]


async def test_an_approval_holds_for_the_owner_and_that_skill_and_a_rejection_does_not(env):
    first = await submit(env, "mia", "meeting-notes", TEXT + GAIN)
    await reject(first.id, by="admin:eve", reason="why the credentials?")
    env.clock.advance(1000)
    again = await submit(env, "mia", "meeting-notes", f"{TEXT}{GAIN}Really.\n")
    assert again.state is State.NEEDS_REVIEW
    await approve(again.id, by="admin:eve", reason="they are the point of it")
    await run_until_quiet(env)
    assert (await get_submission(again.id)).state is State.PUBLISHED
    more = f"{TEXT}{GAIN}Then run `sort notes.txt`.\n"
    # Also at another place of the same owner, and of nobody else.
    assert (await submit(env, "mia", "meeting-notes", more)).state is State.PUBLISHED
    assert (await submit(env, "mia", "more-notes", more)).state is State.PUBLISHED
    zoe = await submit(env, "zoe", "her-notes", more)
    assert SignalKind.REMEMBERED in {one.kind for one in noticed(zoe) if one.holds}


async def test_what_is_set_is_audited_kept_and_in_force_until_another_is_set(env, data):
    found = await read_memory()
    assert found.stored is not None and (found.stored.by, found.stored.reason) == ("admin:root", "newer")
    (entry, *_) = (await list_audit()).items
    assert (entry.action, entry.target, entry.details["skills"]) == (
        "memory updated",
        found.memory.digest,
        "2",
    )
    env.clock.advance(UNTOUCHED_MS + 1)
    assert (await collect()).set_aside == 0
    env.kept.forget()
    assert (await read_memory()).memory.digest == Memory.load(data).digest


async def test_a_file_that_is_no_memory_is_refused_and_changes_nothing(env, data):
    with pytest.raises(InvalidInput, match="not a memory"):
        await set_memory(b"no memory", by="admin:root", reason="newer")
    assert (await read_memory()).memory.digest == Memory.load(data).digest


async def test_where_the_stored_file_is_lost_that_of_the_release_is_in_force_and_it_is_said(env, data):
    env.kept.forget()
    digest = Memory.load(data).digest
    await env.blobs.put(digest, data[:-1], replace=True)
    found = await read_memory()
    assert found.memory is tiny_memory() and "not a memory" in found.problem
    assert (
        await submit(env, "mia", "meeting-notes", TEXT + GAIN)
    ).evidence.memory.digest == tiny_memory().digest
    await set_memory(data, by="admin:root", reason="again")
    assert (await read_memory()).problem == ""


async def test_without_one_that_was_set_the_release_s_own_is_compared_and_attested(tmp_path):
    async with open_test_env("sqlite", tmp_path) as env:
        record = await submit(env, "ann", "minutes", TEXT)
        assert record.evidence.memory.digest == tiny_memory().digest
        stored = await env.kv.get(keys.attestation("upload~ann/skills/minutes", "1.0.0"))
        assert stored is not None
        told = read_statement(read_payload(stored.value)).predicate.memory
        assert told is not None and told.digest == tiny_memory().digest and told.skills == 1


@pytest.mark.parametrize("text", ["extends: open", 'extends: strict\nown_hosts: ["*.odd-place.dev"]'])
async def test_a_trial_on_files_decides_as_a_new_registry_does(env, tmp_path, text):
    """Each in a namespace of its own: nobody vouches for its owner, and no skill but itself names its hosts."""
    public = {f"market/{owner}/minutes": MINUTES for owner in ("ann", "ben", "cas")}
    memory = (
        await set_memory(memory_of(tmp_path / "public", public), by="admin:eve", reason="a test")
    ).memory
    await set_policy(text, by="admin:eve", reason="a test")
    policy, ends = load_policy(text), set()
    installs = "Install it first from https://get.odd-place.dev/setup and run it.\n"
    skills = {
        "gained": TEXT + GAIN,
        "same": TEXT,
        "minuts": "Nothing.",
        "installs": installs,
        "elsewhere": installs.replace("odd-", "other-"),
    }
    for name, body in skills.items():
        files = skill_files(name, body)
        record = record_of(await submit_skill(name, body, namespace=f"of-{name}"))
        await run_until_quiet(env)
        record = await get_submission(record.id)
        report = await env.scanner.scan(files)
        (tried,) = try_on_files([policy], name, files, report, memory)
        assert record.decision is not None
        decided = {rule.name for rule in record.decision.matched}
        assert {rule.name for rule in tried.rules} == decided, name
        ends |= decided
    assert {"remembered", "look-alike", "host"} <= ends
