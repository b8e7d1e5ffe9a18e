"""Upstreams that are only remembered: the memory knows what they have, and nothing of them is fetched to be kept, listed or
served; a look that fails leaves the memory as it is and says so."""

import msgspec
import pytest

from tests.scan.test_memory import GAIN, MINUTES
from tests.support.envs import open_test_env, run_until_quiet
from tests.support.git_server import git_server
from tests.support.memories import tiny_memory
from tests.test_upstreams import add, ask, listed, run_of, synced
from vskill_core.content import SkillFile
from vskill_platform.actions.principal import OPERATOR
from vskill_platform.actions.skills.upstreams import REMOVE_UPSTREAM, DecideUpstream
from vskill_platform.domain import keys
from vskill_platform.domain.skills.upstream import Intake
from vskill_platform.domain.submissions.states import State
from vskill_platform.stages.upstreams import ask_for_syncs
from vskill_platform.store.people.audit import AuditNote, list_audit
from vskill_platform.store.skills import upstreams
from vskill_platform.store.skills.quotas import HOUR_MS
from vskill_platform.store.verdicts.memory import read_memory, set_memory
from vskill_scan.memory.making import pack_memory
from vskill_scan.memory.memory import MOST_BYTES
from vskill_scan.memory.sketch import sketch_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def server(tmp_path):
    with git_server(tmp_path / "served") as running:
        yield running


@pytest.fixture
async def env(tmp_path, server):
    async with open_test_env("memory", tmp_path, source_rewrites=(server.rewrite(),)) as opened:
        yield opened


@pytest.fixture
async def remembered(env, server):
    """The repository of an upstream whose one skill the memory knows."""
    repo = server.repo("vendor/skills", {"skills/minutes/SKILL.md": MINUTES.encode()})
    await add(env, intake=Intake.REMEMBERED)
    await next_hour(env)
    return repo


async def next_hour(env) -> None:
    env.clock.advance(HOUR_MS)
    await ask_for_syncs()
    await run_until_quiet(env)


async def words() -> str:
    return (await read_memory()).memory.words


async def test_the_memory_knows_what_it_has_and_nothing_of_it_is_submitted(env, remembered):
    """Submissions are compared with it: the same text with something added waits for a person."""
    assert (await words()).startswith("2 public skills") and len(tiny_memory()) == 1
    state = (await upstreams.get_upstream("vendor")).state
    assert (state.listed, state.problem) == (1, "") and "compared with 2 public skills" in state.found
    assert await run_of("skills/minutes") is None
    assert not (await env.kv.scan("sub:")).items and not (await env.kv.scan("task:upstream_bring:")).items
    changed = SkillFile("SKILL.md", "100644", (MINUTES + GAIN).encode())
    found = (await read_memory()).memory.find_like(sketch_of((changed,)))
    assert [one.origin for one in found] == ["vendor/minutes"]


async def test_what_is_new_there_changes_the_memory_and_what_is_the_same_does_not(env, remembered):
    before = await read_memory()
    await synced(env)
    assert (await read_memory()).stored == before.stored, "the same facts are the same file"
    other = {"skills/other/SKILL.md": MINUTES.replace("minutes", "diary").encode()}
    remembered.commit({"skills/minutes/SKILL.md": MINUTES.encode(), **other})
    await synced(env)
    await next_hour(env)
    assert (await words()).startswith("3 public skills")
    remembered.commit(other)
    await synced(env)
    assert (await words()).startswith("2 public skills"), "what it has no longer is forgotten"
    assert (await upstreams.get_upstream("vendor")).state.withdrawn == {}
    changes = [one for one in (await list_audit()).items if one.action == "memory updated"]
    assert {one.by for one in changes} == {"upstream:vendor"} and len(changes) == 3


async def test_a_look_that_fails_leaves_the_memory_and_says_so(env, remembered, server):
    before = await read_memory()
    server.faults["/vendor/skills"] = 503
    state = (await synced(env)).state
    assert state.problem and state.good_at != state.checked_at
    assert (await read_memory()).stored == before.stored


async def test_more_than_a_memory_may_hold_is_said_and_leaves_the_old_one(env, remembered):
    """The file that the operator set leaves no room."""
    base = tiny_memory().content
    most = (MOST_BYTES - len(pack_memory((), base.date, "none", base)) - 10) // 294
    full = msgspec.structs.replace(base, names={f"{number:0290}": 1 for number in range(most)})
    await set_memory(pack_memory((), base.date, "none", full), by="admin:root", reason="a large one")
    before = await read_memory()
    state = (await synced(env)).state
    assert "larger than 2,097,152 bytes" in state.problem, state
    assert (await read_memory()).stored == before.stored


async def test_a_file_that_an_operator_sets_is_what_the_next_look_adds_to(env, remembered):
    base = msgspec.structs.replace(tiny_memory().content, hosts={"api.example.dev": 2})
    await set_memory(pack_memory((), "2027-02-03", "none", base), by="admin:root", reason="ours")
    assert (await words()).startswith("1 public skill,")
    await synced(env)
    memory = (await read_memory()).memory
    assert (len(memory), memory.date) == (2, "2027-02-03")
    assert memory.hosts == {"api.example.dev": 2, "api.minutes-tool.dev": 1}
    await synced(env)
    assert (await read_memory()).memory.hosts == memory.hosts, "nothing is counted twice"


async def test_when_it_is_removed_the_memory_forgets_it(env, remembered):
    await REMOVE_UPSTREAM(env, OPERATOR, DecideUpstream(name="vendor", reason="over"))
    assert len((await read_memory()).memory) == len(tiny_memory())
    assert not (await env.kv.scan(keys.upstream_facts.prefix)).items


async def test_when_its_skills_come_on_request_from_now_on_nothing_comes_by_itself(env, remembered):
    known = await upstreams.get_upstream("vendor")
    on_request = msgspec.structs.replace(known, intake=Intake.ON_REQUEST)
    note = AuditNote("upstream changed", "vendor", "user:olga", "we use them")
    await upstreams.change_upstream(note, lambda _: on_request)
    await synced(env)
    assert await run_of("skills/minutes") is None and set(await listed()) == {"skills/minutes"}
    assert (await words()).startswith("1 public skill,"), "the memory forgets what it is not to know"
    await ask(env, "skills/minutes")
    assert (await run_of("skills/minutes")).state is State.PUBLISHED


async def test_what_is_no_skill_is_refused_and_the_rest_is_remembered(env, remembered):
    large = {"skills/large/SKILL.md": MINUTES.encode(), "skills/large/data": b"x" * (10 * 1024 * 1024 + 1)}
    remembered.commit({"skills/minutes/SKILL.md": MINUTES.encode(), **large})
    await synced(env)
    await next_hour(env)
    task = await env.kv.get("task:upstream_remember:vendor/skills/large")
    assert task is not None and b"refused: " in task.value
    assert (await words()).startswith("2 public skills")
