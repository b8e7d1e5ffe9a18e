"""Bundles carried into a registry whose only source they are: verified and scanned again, served as verified; what is
older, foreign, changed or cut is refused, and a revocation list alone takes down."""

import asyncio
import hashlib
import io

import msgspec
import pytest

from tests.signing.test_bundle import KEY, LIST, OTHER, WHOLE, index
from tests.support.acting import approve, take_down, yank
from tests.support.envs import active_env, open_test_env, run_until_quiet, skill_files, submit_skill
from tests.support.manual_clock import ManualClock
from tests.support.people import signed_in
from tests.support.plugins import files_of, hooks, manifest
from tests.support.streams import serving
from vskill_core.content import SkillFile
from vskill_core.dsse import open_envelope, read_payload, seal
from vskill_core.errors import AttestationInvalid, Conflict, InvalidInput, LimitExceeded
from vskill_core.identity import submission_id, upstream_identity
from vskill_core.kind import Kind
from vskill_core.revocation_list import PAYLOAD_TYPE as LIST_TYPE
from vskill_core.signing_keys import SigningKey, jwk, public_from_jwk
from vskill_core.statement import AttestedOrigin, read_statement
from vskill_platform.actions.principal import OPERATOR
from vskill_platform.actions.recall.blocklist import BLOCK, BlockSomething
from vskill_platform.actions.skills.upstreams import ADD_UPSTREAM, PAUSE_UPSTREAM, AddUpstream, DecideUpstream
from vskill_platform.actions.submissions.bundles import (
    ADD_BUNDLE,
    MAKE_BUNDLE,
    AddBundle,
    BundleAdded,
    MakeBundle,
)
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import TargetKind
from vskill_platform.domain.skills.bundle import END, PAYLOAD_TYPE, OpenBundle, pack_head
from vskill_platform.domain.skills.content_names import addresses_in
from vskill_platform.domain.skills.skill import VersionStatus
from vskill_platform.domain.skills.upstream import Intake, Upstream, UpstreamKind
from vskill_platform.domain.submissions.states import State
from vskill_platform.intake.submit import submit_upload
from vskill_platform.stages.upstreams import ask_for_entry, ask_for_sync
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.recall.attestations import get_attestation
from vskill_platform.store.skills.bundles import read_bundles
from vskill_platform.store.skills.collections import add_skills, create_collection, remove_skills
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.store.skills.upstreams import (
    UPSTREAM_BRING,
    find_upstream,
    get_upstream,
    read_upstream_entries,
)
from vskill_platform.store.tasks import read_task
from vskill_platform.submission_store import read_submission
from vskill_platform.web.app import create_app

pytestmark = pytest.mark.anyio

TIDY, WASH = "upload~ann/skills/tidy", "upload~ann/skills/wash"
HERE = "upstream~hq/upload-ann-skills/tidy"
PLACE = upstream_identity("hq", "upload-ann-skills", "tidy")


@pytest.fixture
async def there(tmp_path):
    """The registry that makes bundles: a collection of two skills."""
    async with open_test_env("memory", tmp_path / "there", active=False, registry_name="hq") as env:
        with active_env(env):
            for name in ("tidy", "wash"):
                await submit_skill(name, namespace="ann", version="1.0.0")
            await run_until_quiet(env)
            await create_collection("house", title="", description="", by="system", reason="a test")
            await add_skills("house", (TIDY, WASH), by="system", reason="a test")
        yield env


@pytest.fixture
async def here(tmp_path, there):
    """The registry without a network: it has no git, and so no source but what is brought."""
    opened = open_test_env("memory", tmp_path / "here", clock=there.clock, active=False, registry_name="shop")
    async with opened as env:
        yield env


async def made(env, collection: str | None = "house") -> bytes:
    assert isinstance(env.clock, ManualClock)
    with active_env(env):
        env.clock.advance(1)
        return await MAKE_BUNDLE(env, OPERATOR, MakeBundle(collection=collection))


async def added(env, data: bytes, **given) -> BundleAdded:
    request = AddBundle(**{"name": "hq", "bundle": data, "reason": "carried in", **given})
    with active_env(env):
        done = await ADD_BUNDLE(env, OPERATOR, request)
        await run_until_quiet(env)
        return done


async def status_here(env, name: str = HERE) -> VersionStatus:
    with active_env(env):
        return (await get_skill(name)).versions[-1].status


async def test_skills_of_a_bundle_are_verified_and_scanned_again_and_published(there, here):
    done = await added(here, await made(there))
    assert (done.registry, done.first_use, done.skills) == ("hq", True, (TIDY, WASH))
    with active_env(here):
        skill = await get_skill(HERE)
        found = await read_submission(submission_id(PLACE))
        (entry,) = [one for one in (await list_audit()).items if one.action == "bundle added"]
    with active_env(there):
        assert skill.versions[-1].digest == (await get_skill(TIDY)).versions[-1].digest
    assert found is not None
    record = found[0]
    assert record.state is State.PUBLISHED
    assert record.evidence is not None and record.evidence.digest == record.digest
    assert entry.details["key"] == done.key_id


async def test_both_attestations_are_kept_and_ours_names_the_other(there, here):
    data = await made(there)
    await added(here, data)
    theirs = next(OpenBundle(io.BytesIO(data)).skills())
    with active_env(here):
        envelope = await get_attestation(await get_skill(HERE), "1.0.0")
        kept = await here.kv.get(keys.origin(HERE, "1.0.0"))
        stored = await here.blobs.get(theirs.entry.attestation)
    origin = read_statement(read_payload(envelope)).predicate.origin
    key = (await there.signing.public_keys())[0]
    assert origin == AttestedOrigin("hq", TIDY, "1.0.0", key.key_id, theirs.entry.attestation)
    assert stored == theirs.attestation
    assert kept is not None
    assert theirs.entry.attestation in addresses_in(kept.key, kept.value), "the collector leaves it"


async def test_a_plugin_of_a_bundle_is_a_plugin_here_too(there, here):
    """Byte for byte, with the file that the other registry made; what it starts holds an update here as well."""
    files = {
        "plugin.json": manifest("kit", version="1.0.0"),
        "skills/sort/SKILL.md": skill_files("sort")[0].data,
    }
    for more in ({}, {"plugin.json": manifest("kit", version="1.1.0"), "hooks/hooks.json": hooks()}):
        with active_env(there):
            done = await submit_upload(files_of({**files, **more}), namespace="ann", slug="kit")
            await run_until_quiet(there)
            assert done.submission is not None
            if more:
                await approve(done.submission.id, by="admin:eve", reason="I know this hook")
                await run_until_quiet(there)
            else:
                await add_skills("house", ("upload~ann/skills/kit",), by="system", reason="a test")
        data = await made(there)
        await added(here, data)
    with active_env(there):
        first, second = (await get_skill("upload~ann/skills/kit")).versions
    with active_env(here):
        plugin = await get_skill(HERE.replace("tidy", "kit"))
        found = await read_submission(submission_id(upstream_identity("hq", "upload-ann-skills", "kit")))
    assert (plugin.kind, [one.digest for one in plugin.versions]) == (Kind.PLUGIN, [first.digest])
    assert found is not None and found[0].state is State.NEEDS_REVIEW and found[0].digest == second.digest


async def test_this_registry_decides_by_its_own_blocklist(there, here):
    data = await made(there)
    with active_env(there):
        digest = (await get_skill(TIDY)).versions[-1].digest
    block = BlockSomething(kind=TargetKind.DIGEST, target=digest, reason="not for us", ahead=True)
    with active_env(here):
        await BLOCK(here, OPERATOR, block)
    await added(here, data)
    with active_env(here):
        assert await read_submission(submission_id(PLACE)) is None
        assert (await get_skill(HERE.replace("tidy", "wash"))).current_version == "1.0.0"


async def test_what_is_larger_than_a_bundle_may_be_is_refused_with_what_to_do(there):
    big = SkillFile("data.bin", "100644", bytes(range(256)) * 4 * 1024 * 9)
    with active_env(there):
        for name in ("big-one", "big-two", "big-three", "big-four"):
            await submit_skill(name, namespace="ann", version="1.0.0", extra=(big,))
        await run_until_quiet(there)
    names = ",".join(f"upload~ann/skills/big-{number}" for number in ("one", "two", "three", "four"))
    wanted = MakeBundle(skills=names)
    with active_env(there), pytest.raises(LimitExceeded, match="larger than 33554432 bytes") as refused:
        await MAKE_BUNDLE(there, OPERATOR, wanted)
    assert "several bundles of fewer skills" in refused.value.in_words


async def test_the_same_bundle_twice_changes_nothing(there, here):
    data = await made(there)
    await added(here, data)
    with active_env(here):
        before = await read_submission(submission_id(PLACE))
    assert not (await added(here, data)).first_use
    with active_env(here):
        assert await read_submission(submission_id(PLACE)) == before


async def test_a_newer_bundle_brings_the_next_version(there, here):
    await added(here, await made(there))
    with active_env(there):
        await submit_skill("tidy", "More.", namespace="ann", version="1.1.0")
        await run_until_quiet(there)
    await added(here, await made(there))
    with active_env(here):
        assert [ref.number for ref in (await get_skill(HERE)).versions] == ["1.0.0", "1.1.0"]


async def test_an_older_bundle_is_refused(there, here):
    old = await made(there)
    with active_env(there):
        there.clock.advance(1000)
        await remove_skills("house", (WASH,), by="system", reason="a test")
    await added(here, await made(there))
    with pytest.raises(
        InvalidInput, match=r"older than one of the same scope \(collection house\)"
    ) as refused:
        await added(here, old)
    assert "make a new one there" in refused.value.in_words


async def test_another_key_and_another_registry_are_refused(there, here, tmp_path):
    data = await made(there)
    with pytest.raises(AttestationInvalid, match="None of the trusted keys has signed it"):
        await added(here, data, key=SigningKey.generate().public.pem)
    await added(here, data, key=(await there.signing.public_keys())[0].pem)
    async with open_test_env("memory", tmp_path / "third", active=False, registry_name="hq") as third:
        with active_env(third):
            await submit_skill("tidy", "Evil.", namespace="ann", version="9.0.0")
            await run_until_quiet(third)
            await create_collection("house", title="", description="", by="system", reason="a test")
            await add_skills("house", (TIDY,), by="system", reason="a test")
        with pytest.raises(AttestationInvalid, match="None of the trusted keys has signed it"):
            await added(here, await made(third))
        renamed = msgspec.structs.replace(there.settings, registry_name="other")
        with pytest.raises(InvalidInput, match="is of the registry 'other', and hq takes those of 'hq'"):
            await added(here, await made(msgspec.structs.replace(there, settings=renamed)))


async def test_a_rotated_key_is_taken_when_it_is_given(there, here):
    await added(here, await made(there))
    fresh = (await there.signing.rotate()).public
    data = await made(there)
    with pytest.raises(AttestationInvalid) as refused:
        await added(here, data)
    assert "compare that with the keys that the registry shows" in refused.value.in_words
    await added(here, data, key=fresh.pem)
    await added(here, data)


async def test_of_two_first_bundles_at_the_same_time_one_pins_its_key(here):
    """Both come when no key is known yet."""
    revoked = seal(open_envelope(LIST, (KEY.public,), LIST_TYPE)[0], OTHER, LIST_TYPE)
    names = index(keys=(jwk(OTHER.public),), revocations=hashlib.sha256(revoked).hexdigest(), skills=())
    foreign = pack_head(seal(msgspec.json.encode(names), OTHER, PAYLOAD_TYPE), revoked) + END
    done = await asyncio.gather(added(here, WHOLE), added(here, foreign), return_exceptions=True)
    (first,) = [one for one in done if isinstance(one, BundleAdded)]
    (other,) = [one for one in done if isinstance(one, Conflict)]
    assert "add this one again" in other.message
    with active_env(here):
        kept = await read_bundles("hq")
    assert kept is not None and [public_from_jwk(one).key_id for one in kept.keys] == [first.key_id]


@pytest.mark.parametrize("is_given", [False, True])
async def test_what_is_withdrawn_there_is_blocked_elsewhere_only_if_somebody_gave_the_key(
    there, here, is_given
):
    key = {"key": (await there.signing.public_keys())[0].pem} if is_given else {}
    with active_env(here):
        await submit_skill("tidy", namespace="bob", version="1.0.0")
    await added(here, await made(there), **key)
    with active_env(there):
        await take_down(TIDY, "1.0.0", by="admin:eve", reason="steals keys")
    assert len((await added(here, await made(there, None))).withdrawn) == 1
    assert await status_here(here) is VersionStatus.TAKEN_DOWN
    others = VersionStatus.TAKEN_DOWN if is_given else VersionStatus.LIVE
    assert await status_here(here, "upload~bob/skills/tidy") is others


async def test_a_key_that_nobody_gave_does_not_stand_beside_one_that_somebody_gives(there, here):
    await added(here, await made(there))
    assert there.signing is not None
    with pytest.raises(AttestationInvalid, match="None of the trusted keys has signed it"):
        await added(here, await made(there), key=SigningKey.generate().public.pem)


async def test_a_changed_or_cut_file_writes_nothing(there, here):
    data = await made(there)
    for wrong in (data[:-700], data[:5000] + b"!" + data[5001:]):
        with pytest.raises((InvalidInput, AttestationInvalid), match="bundle"):
            await added(here, wrong)
    with active_env(here):
        assert (await read_bundles("hq"), await find_upstream("hq")) == (None, None)


async def test_a_revocation_list_alone_takes_down(there, here):
    await added(here, await made(there))
    with active_env(there):
        await take_down(TIDY, "1.0.0", by="admin:eve", reason="steals keys")
    done = await added(here, await made(there, None))
    assert (len(done.withdrawn), done.skills) == (1, ())
    assert await status_here(here) is VersionStatus.TAKEN_DOWN
    assert await status_here(here, HERE.replace("tidy", "wash")) is VersionStatus.LIVE
    with active_env(here):
        assert "withdrawn by hq: " in (await get_skill(HERE)).versions[-1].reason


async def test_what_the_newest_list_withdraws_does_not_come_from_another_bundle(there, here):
    """Of two bundles in one pocket, the list of the later one counts for both."""
    data = await made(there)
    with active_env(there):
        await take_down(TIDY, "1.0.0", by="admin:eve", reason="steals keys")
    await added(here, await made(there, None))
    await added(here, data)
    with active_env(here):
        assert await read_submission(submission_id(PLACE)) is None
        upstream = await find_upstream("hq")
    assert upstream is not None
    assert [one.name for one in upstream.state.left_out] == [TIDY]


async def test_what_an_owner_yanked_there_stays_here(there, here):
    await added(here, await made(there))
    with active_env(there):
        await yank(TIDY, "1.0.0", account="ann", reason="a bug")
    assert (await added(here, await made(there, None))).withdrawn == ()
    assert await status_here(here) is VersionStatus.LIVE


async def test_a_paused_upstream_and_one_of_another_kind_take_none(there, here):
    data = await made(there)
    await added(here, data)
    with active_env(here):
        await PAUSE_UPSTREAM(here, OPERATOR, DecideUpstream(name="hq", reason="a test"))
    with pytest.raises(Conflict, match="paused; resume it first"):
        await added(here, data)


async def test_an_admin_adds_one_on_the_page_and_installs_of_it(there, here):
    data = await made(there)
    async with signed_in(create_app(here), here, "root", Role.ADMIN) as root:
        await root.do(
            "/admin/upstreams/add", name="hq", kind="bundle", address="by post", intake="all", reason="x"
        )
        sent = await root.client.post(
            "/admin/upstream/hq/bundle",
            data={"csrf": root.csrf, "reason": "carried in"},
            files={"bundle": ("house.tar", data, "application/x-tar")},
            headers={"accept": "text/html"},
        )
        assert sent.status_code == 303, sent.text[:500]
        page = (await root.get(sent.headers["location"])).text
        assert "2 skills of hq came, signed by the key" in page
        with active_env(here):
            await run_until_quiet(here)
        archive = await root.client.get(f"/api/v1/skills/{HERE}/archive?version=1.0.0&format=tar.gz")
    assert archive.content in data


# Another installation that is asked over a network.


@pytest.fixture
async def near(tmp_path, there):
    opened = open_test_env(
        "memory",
        tmp_path / "near",
        clock=there.clock,
        active=False,
        registry_name="shop",
        allowed_private_hosts=("127.0.0.1",),
    )
    async with opened as env:
        yield env


async def synced(env) -> Upstream:
    with active_env(env):
        env.clock.advance(60_000)
        await ask_for_sync(await get_upstream("hq"))
        await run_until_quiet(env)
        return await get_upstream("hq")


async def test_another_installation_is_read_with_its_attestations(there, near):
    async with serving(there) as address:
        wanted = AddUpstream(
            name="hq", kind=UpstreamKind.REGISTRY, address=address, intake=Intake.ALL, reason="ours too"
        )
        with active_env(near):
            await ADD_UPSTREAM(near, OPERATOR, wanted)
        found = await synced(near)
        assert (found.state.problem, found.state.listed) == ("", 2)
        assert await status_here(near) is VersionStatus.LIVE
        with active_env(near):
            ours = read_statement(read_payload(await get_attestation(await get_skill(HERE), "1.0.0")))
        with active_env(there):
            theirs = await get_attestation(await get_skill(TIDY), "1.0.0")
        origin = ours.predicate.origin
        assert origin is not None and (origin.registry, origin.skill) == ("hq", TIDY)
        assert origin.attestation == hashlib.sha256(theirs).hexdigest()
        assert await near.blobs.get(origin.attestation) == theirs
        with active_env(there):
            await take_down(TIDY, "1.0.0", by="admin:eve", reason="steals keys")
        assert list((await synced(near)).state.withdrawn) == [HERE.partition("/")[2]]
        assert await status_here(near) is VersionStatus.LIVE
    assert (await synced(near)).state.problem and await status_here(near) is VersionStatus.LIVE


async def test_what_another_installation_signs_with_another_key_does_not_come(there, near):
    """Keys count that it had at the first look; whoever has its address since has no others."""
    async with serving(there) as address:
        wanted = AddUpstream(name="hq", kind=UpstreamKind.REGISTRY, address=address, reason="ours too")
        with active_env(near):
            await ADD_UPSTREAM(near, OPERATOR, wanted)
        upstream = await synced(near)
        await there.signing.rotate()
        with active_env(there):
            await submit_skill("tidy", "New.", namespace="ann", version="2.0.0")
            await run_until_quiet(there)
        await synced(near)
        with active_env(near):
            entry = (await read_upstream_entries("hq")).find(HERE.partition("/")[2])
            assert entry is not None and entry.version == "2.0.0"
            await ask_for_entry(upstream, entry)
            await run_until_quiet(near)
            task, _ = await read_task(UPSTREAM_BRING, f"hq/{entry.name}")
            assert await read_submission(submission_id(PLACE)) is None
    assert task is not None and "None of the trusted keys has signed it" in task.outcome
