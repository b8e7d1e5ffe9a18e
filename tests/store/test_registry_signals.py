"""What the registry knows sends a skill to a reviewer: a name like that of a popular one, an owner with blocks."""

import threading
from typing import ClassVar

import pytest

from tests.support.acting import approve
from tests.support.envs import ENGINES, active_env, open_test_env, run_until_quiet, skill_files
from tests.support.memories import tiny_memory
from tests.support.namespaces import manage
from tests.support.probe import ProbedKV
from tests.support.records import submission
from tests.support.system_reads import get_submission
from vskill_core.content import SkillFile
from vskill_core.findings import ScanStatus, Severity, StaticReport
from vskill_core.identity import normalise, upload_identity
from vskill_platform.actions.principal import OPERATOR, audiences_of, resolve
from vskill_platform.domain.blocklist import BlockEntry, place_target, repository_target
from vskill_platform.domain.people.namespace import Visibility
from vskill_platform.domain.signals import Signal, SignalKind
from vskill_platform.domain.skills.skill_changes import with_installs
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import submit_upload
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.store.skills.skills import ContentMarks, place_of, update_skill
from vskill_platform.store.stored_content import INLINE_BYTES
from vskill_platform.store.verdicts.registry_signals import (
    BLOCKED_WITHIN_MS,
    MOST_LOOKED_UP,
    registry_signals,
)
from vskill_scan.memory.look_alike import MIN_INSTALLS

pytestmark = pytest.mark.anyio


@pytest.fixture(params=ENGINES)
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        yield opened


async def submit(env, owner: str, name: str, text: str = ""):
    everybody = audiences_of(await resolve(OPERATOR))
    done = await submit_upload(
        skill_files(name, text), namespace=owner, slug=name, by=SubmittedBy(None, everybody)
    )
    await run_until_quiet(env)
    assert done.submission is not None
    return await get_submission(done.submission.id)


def noticed(record) -> list[Signal]:
    return list(record.evidence.noticed)


async def make_popular(env, owner: str, name: str, installs: int = MIN_INSTALLS) -> None:
    assert (await submit(env, owner, name)).state is State.PUBLISHED
    await update_skill(f"upload~{owner}/skills/{name}", lambda skill: with_installs(skill, installs))


async def block(env, owner: str, name: str, at: int) -> None:
    target = place_target(upload_identity(owner, name))
    await add_block(BlockEntry(target, Severity.HIGH, "bad", "admin:eve", at, at))


async def test_a_name_like_that_of_a_popular_skill_waits_for_a_reviewer_with_its_reason(env):
    await make_popular(env, "ann", "linter")
    record = await submit(env, "mia", "linterr")
    assert record.state is State.NEEDS_REVIEW
    said = (
        "its name linterr can be taken for linter, the name of another owner's skill, which was installed "
        f"{MIN_INSTALLS} times"
    )
    assert noticed(record) == [Signal(SignalKind.LOOK_ALIKE, said, skills=("upload~ann/skills/linter",))]
    assert said in record.history[-1].reason
    await approve(record.id, by="admin:eve", reason="a fork that says so")
    await run_until_quiet(env)
    assert (await get_submission(record.id)).state is State.PUBLISHED
    # What is published keeps its name, so an update is not asked again.
    assert (await submit(env, "mia", "linterr", "more")).state is State.PUBLISHED


async def test_what_is_no_imitation_is_published(env):
    await make_popular(env, "ann", "linter")
    await make_popular(env, "ann", "reader", MIN_INSTALLS - 1)
    for owner, name in (("ann", "lintter"), ("mia", "linter"), ("mia", "readerr"), ("mia", "flinters")):
        assert (await submit(env, owner, name)).state is State.PUBLISHED, (owner, name)


async def test_nobody_learns_of_a_private_name(env):
    await manage(env, "upload~ann", Visibility.TEAM)
    await make_popular(env, "ann", "linter")
    assert (await submit(env, "mia", "linterr")).state is State.PUBLISHED


async def test_the_most_popular_of_several_is_named_and_all_are_listed(env):
    await make_popular(env, "ann", "linters", 30)
    await make_popular(env, "ben", "lintr", 40)
    record = await submit(env, "mia", "linter")
    (found,) = noticed(record)
    assert "lintr, the name of another owner's skill, which was installed 40 times" in found.reason
    assert found.skills == ("upload~ann/skills/linters", "upload~ben/skills/lintr")


async def test_an_owner_whose_other_skill_was_blocked_lately_waits_for_a_reviewer(env):
    now = env.kv.now()
    await block(env, "ann", "thief", now - BLOCKED_WITHIN_MS)
    record = await submit(env, "ann", "notes")
    assert record.state is State.NEEDS_REVIEW
    (found,) = noticed(record)
    assert found.reason == "another skill of its owner was blocked within 90 days"
    assert (await submit(env, "anna", "notes")).state is State.PUBLISHED


async def test_an_old_block_speaks_against_nobody_and_several_are_counted(env):
    now = env.kv.now()
    await block(env, "ann", "thief", now - BLOCKED_WITHIN_MS - 60_000)
    assert (await submit(env, "ann", "notes")).state is State.PUBLISHED
    for name in ("second", "third"):
        await block(env, "ann", name, now)
    record = await submit(env, "ann", "later")
    (found,) = noticed(record)
    assert found.reason == "2 other skills of its owner were blocked within 90 days"


async def test_a_blocked_repository_speaks_against_its_owner_on_that_host(env):
    target = repository_target(normalise("https://github.com/acme/bad"))
    await add_block(BlockEntry(target, Severity.HIGH, "bad", "admin:eve", env.kv.now()))
    for address, expected in (
        ("https://github.com/acme/tools", 1),
        ("https://github.com/acme2/tools", 0),
        ("https://gitlab.com/acme/tools", 0),
    ):
        record = submission(identity=normalise(address, "skills/notes"))
        place = await place_of(record.identity)
        found = await registry_signals(record, place, (), ContentMarks((), ()), NO_REPORT, tiny_memory())
        assert len(found) == expected


@pytest.mark.parametrize("kind", ["look-alike", "publisher"])
async def test_a_signal_holds_what_a_rule_of_the_policy_asks_about_in_its_own_words(tmp_path, kind):
    fact = kind.replace("-", "_")
    text = f'rules: [{{name: mine, when: \'signals.{fact} != ""\', then: review, say: "ask Mia"}}]'
    async with open_test_env("memory", tmp_path, policy_text=text) as env:
        await make_popular(env, "ann", "linter")
        await block(env, "mia", "thief", env.kv.now())
        record = await submit(env, "mia", "linterr")
        assert record.state is State.NEEDS_REVIEW
        assert {one.kind.value: one.holds for one in noticed(record)} == {
            one: one == kind for one in ("look-alike", "publisher")
        }


NO_REPORT = StaticReport("none", ScanStatus.COMPLETE)
HOSTS = tuple(f"get.tool-{number}.dev" for number in range(30))


async def look_up_hosts(env, text: str | bytes) -> tuple[int, list[Signal]]:
    """How many keys of hosts are read for a content, and what is noticed."""
    data = text if isinstance(text, bytes) else text.encode()
    files = (SkillFile("SKILL.md", "100644", data),)
    kv = ProbedKV(env.kv)
    with active_env(env, kv=kv):
        record = submission("demo")
        place = await place_of(record.identity)
        found = await registry_signals(
            record, place, files, ContentMarks((), HOSTS), NO_REPORT, tiny_memory()
        )
    return kv.reads["get_many host"], [*found]


async def test_keys_of_hosts_are_read_for_install_steps_and_for_a_few_hosts(env):
    text = "\n".join(f"download https://{host}/a" for host in HOSTS)
    assert await look_up_hosts(env, text.replace("download", "see")) == (0, [])
    for number in range(5):
        await manage(env, f"team-{number}", Visibility.PUBLIC)
    read, (found,) = await look_up_hosts(env, text)
    assert read == len(HOSTS) + 5 * MOST_LOOKED_UP
    assert found.details == tuple(
        f"{host} at SKILL.md:{line}" for line, host in enumerate(HOSTS[:MOST_LOOKED_UP], 1)
    )


class WatchedBytes(bytes):
    """Bytes that know which threads have looked for something in them."""

    threads: ClassVar[set[int]] = set()

    def __getitem__(self, key):
        self.threads.add(threading.get_ident())
        return super().__getitem__(key)


async def test_the_steps_of_a_large_content_are_found_beside_the_event_loop(tmp_path):
    async with open_test_env("memory", tmp_path) as env:
        await look_up_hosts(env, WatchedBytes(b"x" * (INLINE_BYTES + 1)))
        assert WatchedBytes.threads and threading.get_ident() not in WatchedBytes.threads
