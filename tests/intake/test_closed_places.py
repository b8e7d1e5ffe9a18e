"""Places that a caller may not read: told like a repository that is not there, by answer and by work, also where a
redirect leads to one."""

import re
from functools import partial

import pytest

from tests.support.envs import active_env, open_test_env, run_until_quiet
from tests.support.git_server import skill_md
from tests.support.namespaces import manage
from tests.support.probe import Probe, counted_programs
from tests.support.system_reads import get_submission
from vskill_core.errors import NotFound, NotPermitted, PlatformError, SourceGone, SourceUnavailable
from vskill_core.identity import Identity, normalise, submission_id
from vskill_core.kind import Kind
from vskill_platform.actions.people.owners import CHECK, CLAIM, RepositoryRequest
from vskill_platform.actions.principal import Principal, resolve
from vskill_platform.domain.people.namespace import EVERYTHING, Visibility, namespace_of
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.admission import NOBODY, SubmittedBy
from vskill_platform.intake.discover import discover, submit_skills
from vskill_platform.intake.submit import submit_repository
from vskill_platform.stages.repo_check import ask_for_check
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.repo_health import Reach, read_health

pytestmark = pytest.mark.anyio

INSIDER = SubmittedBy("mia", EVERYTHING)
STRANGER = SubmittedBy("sam")
LOOKS = (discover, submit_repository, submit_skills)


@pytest.fixture
async def hiding(tmp_path, server):
    """An environment, the address of its git host, and a hidden repository there, `secret/house`."""
    host = f"127.0.0.1:{server.port}"
    server.repo("secret/house", {"s/SKILL.md": skill_md("canary")})
    async with open_test_env("sqlite", tmp_path, allowed_private_hosts=(f"http://{host}",)) as opened:
        await manage(opened, namespace_of(Identity(host, "secret", "house")), Visibility.TEAM, "user:mia")
        yield opened, f"http://{host}"


async def told(look, url: str) -> tuple[type[PlatformError], str]:
    with pytest.raises(PlatformError) as refused:
        await look(url, "s")
    return type(refused.value), refused.value.message


def asked_since(server, before: int) -> list[str]:
    """What the host was asked for, with every repository's name taken out."""
    return [re.sub(r"^/[^/]+/[^/]+/", "/", path) for path in server.requests[before:]]


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.__name__)
async def test_the_host_is_asked_as_for_a_place_that_is_not_there(hiding, server, look):
    _, base = hiding
    await told(look, f"{base}/nobody/there")
    before = len(server.requests)
    hidden = await told(look, f"{base}/secret/house")
    work = asked_since(server, before)
    before = len(server.requests)
    assert hidden == await told(look, f"{base}/nobody/house")
    assert work and work == asked_since(server, before)
    with pytest.raises(NotFound):
        await get_submission(submission_id(normalise(f"{base}/secret/house", "s")))
    # What the cache knows of it would be faster, and a fetch slower.
    assert server.asked("/secret/house.git") == server.asked("/secret/house/") == 0


@pytest.mark.parametrize("by", [NOBODY, STRANGER], ids=["nobody", "a stranger"])
@pytest.mark.parametrize("kind", [None, Kind.PLUGIN], ids=["any kind", "a plugin"])
async def test_what_it_costs_tells_nothing_either(hiding, server, kind, by):
    """Reads of the store, requests to the host and programs; the same each time, so that no number of tries tells more."""
    env, base = hiding
    probe = Probe(env.kv, env.blobs)
    for look in (partial(discover), partial(submit_repository, kind=kind), partial(submit_skills, kind=kind)):
        seen = []
        for place in ("nobody/there", *("secret/house", "nobody/house") * 3):
            before = len(server.requests)
            probe.start()
            with active_env(env, kv=probe.kv, blobs=probe.blobs), counted_programs() as programs:
                refusal = await told(partial(look, by=by), f"{base}/{place}")
            answer = refusal[0], refusal[1].replace("secret", "nobody")
            seen.append((answer, probe.cost, programs, asked_since(server, before)))
        # The first one may find caches empty.
        assert seen[1:] == seen[1:2] * 6
        answer, cost, programs, asked = seen[1]
        assert cost["get namespace"]
        is_told_before = answer[0] is NotPermitted
        assert is_told_before is (kind is not None and look.func is submit_repository)
        assert bool(programs) is bool(asked) is not is_told_before


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.__name__)
async def test_a_host_that_is_down_is_down_for_hidden_places_too(hiding, server, look):
    _, base = hiding
    server.faults["/"] = 500
    hidden, absent = await told(look, f"{base}/secret/house"), await told(look, f"{base}/nobody/house")
    assert hidden[0] is absent[0] is SourceUnavailable
    assert hidden[1].replace("secret", "nobody") == absent[1]


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.__name__)
async def test_a_redirect_to_a_hidden_place_leads_nowhere(hiding, server, look):
    _, base = hiding
    server.faults["/ann/old"] = f"{base}/secret/house"
    kind, message = await told(look, f"{base}/ann/old")
    assert (kind, message) == (SourceGone, f"{base[7:]} has no public repository at that address.")
    with pytest.raises(NotFound):
        await get_submission(submission_id(normalise(f"{base}/secret/house", "s")))


async def test_a_submission_that_moved_to_a_hidden_place_is_not_submitted_again(hiding, server):
    """Neither by strangers nor, under its public name, by members."""
    env, base = hiding
    server.repo("ann/old", {"s/SKILL.md": skill_md("s")})
    first = await submit_repository(f"{base}/ann/old", "s")
    await run_until_quiet(env)
    server.faults["/ann/old"] = f"{base}/secret/house"
    with pytest.raises(SourceGone):
        await submit_repository(f"{base}/ann/old", "s")
    by_member = await submit_repository(f"{base}/ann/old", "s", by=INSIDER)
    assert first.submission is not None and by_member.submission is not None
    assert by_member.submission.identity.owner == "secret"
    assert by_member.submission.audience != first.submission.audience
    assert (await get_submission(first.submission.id)).run == 1


async def test_a_run_publishes_nothing_from_a_hidden_place(hiding, server, tmp_path):
    """The repository moves between the submission and the fetch, which another process makes."""
    _, base = hiding
    server.repo("ann/old", {"s/SKILL.md": skill_md("s")})
    done = await submit_repository(f"{base}/ann/old", "s")
    assert done.submission is not None
    server.faults["/ann/old"] = f"{base}/secret/house"
    async with open_test_env("sqlite", tmp_path, allowed_private_hosts=(base,)) as other:
        with active_env(other):
            await run_until_quiet(other)
            ended = await get_submission(done.submission.id)
    assert ended.state is State.REJECTED
    assert "no public repository" in ended.history[-1].reason


async def test_a_run_out_of_the_cache_knows_where_its_commit_was_found(hiding, server):
    """It was fetched while the place was public."""
    env, base = hiding
    server.repo("ann/old", {"s/SKILL.md": skill_md("s")})
    server.repo("new/house", {"s/SKILL.md": skill_md("s", "newer")})
    done = await submit_repository(f"{base}/ann/old", "s")
    await run_until_quiet(env)
    server.faults["/ann/old"] = f"{base}/new/house"
    again = await submit_repository(f"{base}/ann/old", "s")
    assert done.submission is not None and again.submission is not None
    await manage(env, namespace_of(normalise(f"{base}/new/house")), Visibility.TEAM, "user:mia")
    await run_until_quiet(env)
    ended = await get_submission(done.submission.id)
    assert (ended.run, ended.state) == (2, State.REJECTED)


async def test_a_check_tells_nothing_of_a_hidden_place(hiding, server):
    env, base = hiding
    server.repo("ann/old", {"s/SKILL.md": skill_md("s")})
    await submit_repository(f"{base}/ann/old", "s")
    await run_until_quiet(env)
    server.faults["/ann/old"] = f"{base}/secret/house"
    await ask_for_check(normalise(f"{base}/ann/old"))
    await run_until_quiet(env)
    health, _ = await read_health(normalise(f"{base}/ann/old"))
    assert health is not None
    assert (health.status, health.facts.moved_to) == (Reach.GONE, None)


async def test_a_repository_that_moves_into_a_managed_namespace_that_everybody_reads_is_followed(
    hiding, server
):
    env, base = hiding
    server.repo("ann/old", {"s/SKILL.md": skill_md("s")})
    server.repo("new/house", {"s/SKILL.md": skill_md("s")})
    await submit_repository(f"{base}/ann/old", "s")
    await run_until_quiet(env)
    await manage(env, namespace_of(normalise(f"{base}/new/house")), Visibility.PUBLIC, "user:mia")
    server.faults["/ann/old"] = f"{base}/new/house"
    await ask_for_check(normalise(f"{base}/ann/old"))
    await run_until_quiet(env)
    health, _ = await read_health(normalise(f"{base}/ann/old"))
    assert health is not None and health.status is Reach.REACHABLE


async def test_a_proof_is_not_looked_for_in_a_hidden_place(hiding, server):
    env, base = hiding
    server.faults["/ann/old"] = f"{base}/secret/house"
    ann = await resolve(Principal("ann", Role.AUTHOR))
    for place in ("ann/old", "secret/house", "nobody/there"):
        claim = RepositoryRequest(repo_url=f"{base}/{place}")
        await CLAIM(env, ann, claim)
        with pytest.raises(SourceGone, match="has no public repository at that address"):
            await CHECK(env, ann, claim)
