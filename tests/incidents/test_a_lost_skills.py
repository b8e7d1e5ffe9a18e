"""Incidents of section A: skills that were lost, hidden, overwritten or doubled. Each test provokes the failure."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from tests.incidents.conftest import Opener
from tests.incidents.steps import (
    UnfinishedScanner,
    all_keys,
    awaiting_review,
    pass_time,
    published,
    record_of,
    submit_place,
)
from tests.support.acting import approve, run_again
from tests.support.damage import lose
from tests.support.envs import (
    active_env,
    make_submission,
    put_record,
    run_until_quiet,
    skill_files,
    submit_skill,
)
from tests.support.faults import HeldScanner, HookedKV, ListedSources, TroubledScanner, state_written
from tests.support.patience import PATIENCE_S
from tests.support.system_reads import get_run, get_submission
from vskill_core.content import SkillFile, digest_of, digest_of_files, manifest_of
from vskill_core.errors import (
    InvalidInput,
    NoSkillFound,
    StoreUnavailable,
)
from vskill_core.identity import normalise, submission_id, upload_identity
from vskill_core.naming import slug_of
from vskill_platform.domain import keys
from vskill_platform.domain.canonical_names import canonical_name, clash_slug
from vskill_platform.domain.downloads import archive_digests, artifact_of
from vskill_platform.domain.packed_content import pack
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC, PUBLIC_ONLY
from vskill_platform.domain.skills import skill_changes
from vskill_platform.domain.skills.search import every_term
from vskill_platform.domain.skills.skill import (
    Certification,
    PublishedSkill,
    SkillVersion,
    StatusRole,
    VersionStatus,
)
from vskill_platform.domain.skills.skill_changes import Publication
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import EntryPoint, Submission
from vskill_platform.intake.submit import IntakeOutcome, Request, submit, submit_repository, submit_upload
from vskill_platform.ledger.kv.collections import SKILLS
from vskill_platform.ledger.kv.contract import PAGE
from vskill_platform.ledger.kv.entries import Add, Delete, Operation, Put
from vskill_platform.queue.health import MOST_VIOLATIONS, queue_health
from vskill_platform.queue.jobs import sweep
from vskill_platform.queue.recovery import recover_stuck_submissions
from vskill_platform.store.skills.skills import find_by_name, get_skill, get_version, update_skill
from vskill_platform.submission_store import (
    count_submissions,
    enumerate_published_skills,
    get_stuck_submissions,
    iter_published_skills,
)
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

DAY_MS = 24 * 3_600_000


async def check_versions(env: Env) -> int:
    """Every listed version has its record and every record is listed, with one digest; how many there are."""
    listed: set[tuple[str, str]] = set()
    async for summary in iter_published_skills(audiences=EVERYTHING):
        for ref in (await get_skill(summary.slug)).versions:
            version = await get_version(summary.slug, ref.number)
            assert version.digest == ref.digest == digest_of(version.manifest)
            listed.add((summary.slug, ref.number))
    stored = {tuple(keys.parse(key).parts) for key in await all_keys(env, keys.version.prefix)}
    assert stored == listed
    return len(stored)


async def test_A1_lists_are_the_records_themselves(env: Env) -> None:
    """There is no index whose loss or staleness empties a list: without every other key the list is the same."""
    for number in range(12):
        await submit_skill(f"skill-{number:02}")
    await run_until_quiet(env)
    before = await enumerate_published_skills()
    assert len(before) == 12

    others = [key for key in await all_keys(env) if not SKILLS.holds(key)]
    assert others
    await env.kv.commit([Delete(key) for key in others])
    assert await enumerate_published_skills() == before


async def test_A1_no_key_holds_something_of_two_skills(env: Env) -> None:
    """What two publishes both write is the same bytes each time, so none can damage what another wrote."""
    with active_env(env, kv=HookedKV(env.kv)) as watched:
        for number in range(3):
            await submit_skill(f"alone-{number}")
        await run_until_quiet(watched)
        assert isinstance(watched.kv, HookedKV)
        commits = [one for one in watched.kv.commits if state_written(one) is State.PUBLISHED]
    assert len(commits) == 3
    assert not any(isinstance(op, Delete | Add) for one in commits for op in one)
    values: dict[str, set[bytes]] = {}
    for put in (op for one in commits for op in one if isinstance(op, Put)):
        values.setdefault(put.key, set()).add(put.value)
    assert [key for key, written in values.items() if len(written) > 1] == []


async def test_A2_thirty_concurrent_publishes_all_appear(open_here: Opener) -> None:
    """Thirty workers publish in the same moment; none overwrites what another wrote."""
    async with open_here() as env:
        scanner = HeldScanner(env.scanner)
        with active_env(env, scanner=scanner) as held:
            for number in range(30):
                await submit_skill(f"busy-{number:02}")
            work = asyncio.create_task(run_until_quiet(held))
            await scanner.until_inside(30)
            scanner.open.set()
            await work
            names = {summary.name for summary in await enumerate_published_skills()}
            assert names == {f"busy-{number:02}" for number in range(30)}
            assert (await count_submissions(audiences=EVERYTHING)).by_state[State.PUBLISHED] == 30
            assert await check_versions(env) == 30


async def test_A3_renaming_never_rekeys(env: Env) -> None:
    """A skill that changes its name keeps its record, its versions and its old names."""
    files = skill_files("first-name")
    first = await submit_upload(files, namespace="tests", slug="place")
    await run_until_quiet(env)
    await submit_upload(skill_files("second-name"), namespace="tests", slug="place")
    await run_until_quiet(env)

    assert first.submission is not None
    renamed = await published(first.submission)
    assert renamed.name == "second-name"
    assert [ref.number for ref in renamed.versions] == ["1.0.0", "1.0.1"]
    assert [key for key in await all_keys(env, keys.skill.prefix) if SKILLS.holds(key)] == [
        keys.skill(renamed.canonical)
    ]
    for name in ("first-name", "second-name", "place", renamed.canonical):
        assert (await find_by_name(name, audiences=PUBLIC_ONLY)).canonical == renamed.canonical


async def test_A4_same_name_in_two_repositories(env: Env) -> None:
    """Two repositories' skills of one name are two skills. The bare name stays with the one that came first; the other
    is reached by its qualified and its canonical name."""
    sources = ListedSources(env.blobs)
    with active_env(env, sources=sources) as listed:
        one = await submit_place(sources, "https://github.com/ann/tools", "skills/fmt", "fmt", "of ann")
        await run_until_quiet(listed)
        two = await submit_place(sources, "https://github.com/bob/stuff", "skills/fmt", "fmt", "of bob")
        await run_until_quiet(listed)
        assert (await published(one)).canonical == "ann/tools/fmt"
        assert (await published(two)).canonical == "bob/stuff/fmt"
        assert (await published(one)).current_digest != (await published(two)).current_digest
        for name in ("fmt", "ann/tools/fmt"):
            assert await find_by_name(name, audiences=PUBLIC_ONLY) == await published(one)
        for name in ("fmt-bob", "bob/stuff/fmt"):
            assert await find_by_name(name, audiences=PUBLIC_ONLY) == await published(two)


async def test_A4b_another_host_never_takes_a_skill_over(env: Env) -> None:
    """The same owner and repository on three hosts, and an upload by that name, are four skills."""
    sources = ListedSources(env.blobs)
    with active_env(env, sources=sources) as listed:
        places = [
            await submit_place(sources, f"https://{host}/acme/tools", "fmt", "fmt", f"on {host}")
            for host in ("github.com", "gitlab.com", "git.example.org")
        ]
        upload = (await submit_skill("fmt", "uploaded", namespace="acme")).submission
        assert upload is not None
        await run_until_quiet(listed)
        found = {(await published(one)).canonical for one in (*places, upload)}
        assert found == {
            "acme/tools/fmt",
            "gitlab.com~acme/tools/fmt",
            "git.example.org~acme/tools/fmt",
            "upload~acme/skills/fmt",
        }


async def test_A4b_publishing_refuses_another_identity(env: Env) -> None:
    """Where both names of a place are taken by others, nothing of theirs changes and the run says why."""
    mine, theirs = upload_identity("acme", "tools"), normalise("https://github.com/other/place")
    names = (canonical_name(mine), canonical_name(mine, clash_slug(slug_of(mine), mine)))
    planted = {name: msgspec.json.encode(PublishedSkill(name, theirs, name="theirs")) for name in names}
    await env.kv.commit([Put(keys.skill(name), value) for name, value in planted.items()])

    submission = record_of(await submit_skill("tools", namespace="acme"))
    for _ in range(5):
        await run_until_quiet(env)
        pass_time(env, 300_000)
    record = await get_submission(submission.id)
    assert record.state is State.REJECTED
    assert "belongs to github.com/other/place" in record.history[-1].reason
    for name, value in planted.items():
        entry = await env.kv.get(keys.skill(name))
        assert entry is not None
        assert entry.value == value


async def test_A4c_two_folders_of_one_name_in_one_repository(open_here: Opener) -> None:
    """Published in the same moment, the second gets a slug of its own; a later version finds its own record."""
    async with open_here() as env:
        scanner, sources = HeldScanner(env.scanner), ListedSources(env.blobs)
        with active_env(env, scanner=scanner, sources=sources) as held:
            url = "https://github.com/ann/tools"
            one = await submit_place(sources, url, "a/fmt", "fmt", "in a")
            two = await submit_place(sources, url, "b/fmt", "fmt", "in b")
            work = asyncio.create_task(run_until_quiet(held))
            await scanner.until_inside(2)
            scanner.open.set()
            await work
            first, second = await published(one), await published(two)
            slugs = {first.slug, second.slug}
            assert "fmt" in slugs
            clashing = (slugs - {"fmt"}).pop()
            assert clashing in {clash_slug("fmt", one.identity), clash_slug("fmt", two.identity)}

            for place, body in ((one, "in a, changed"), (two, "in b, changed")):
                await submit_place(sources, url, place.skill_path, "fmt", body)
            await run_until_quiet(held)
            assert (await published(one)).canonical == first.canonical
            assert (await published(two)).canonical == second.canonical
            assert [len((await published(place)).versions) for place in (one, two)] == [2, 2]


async def plant_skills(env: Env, count: int) -> None:
    for start in range(0, count, 500):
        puts = [
            Put(keys.skill(f"own/repo/s{number:05}"), b'{"name": "planted skill"}')
            for number in range(start, min(start + 500, count))
        ]
        await env.kv.commit(puts)


async def plant_submissions(env: Env, count: int) -> None:
    for start in range(0, count, 500):
        numbers = range(start, min(start + 500, count))
        records = [make_submission(f"s{number:05}", at=env.kv.now()) for number in numbers]
        await env.kv.commit([Put(record.key, msgspec.json.encode(record)) for record in records])


async def test_A5_lists_reach_the_end(env: Env) -> None:
    """More than two pages of everything that lists: none stops at a page (k)."""
    count = 2 * PAGE + 100
    await plant_skills(env, count)
    await plant_submissions(env, count)
    assert len(await enumerate_published_skills()) == count
    assert len([one async for one in iter_published_skills(page=7, audiences=EVERYTHING)]) == count
    assert len(await all_keys(env, keys.sub.prefix)) == count
    pass_time(env, 300_000)
    assert len(await get_stuck_submissions()) == count


async def test_A5_recovery_reaches_the_end(env: Env) -> None:
    """Recovery looks at a bounded number at a time and goes on where it stopped, so none is ever left out (k)."""
    await plant_submissions(env, 130)
    after: str | None = None
    pages = sent = 0
    while pages == 0 or after is not None:
        recovered = await recover_stuck_submissions(after=after, limit=20)
        after, pages, sent = recovered.after, pages + 1, sent + recovered.sent
    assert (pages, sent) == (7, 130)


async def test_A6_counts_are_counts(env: Env) -> None:
    """More records than the old cap of 5,000 are counted exactly; whatever is cut says so."""
    count = 5_200
    await plant_submissions(env, count)
    assert (await count_submissions(audiences=EVERYTHING)).by_state[State.RECEIVED] == count

    await plant_skills(env, 1_050)
    cut = await env.kv.search(keys.skill.prefix, every_term("planted"), limit=5_000, audiences=EVERYTHING)
    assert (len(cut.items), cut.truncated) == (1_000, True)
    assert not (await env.kv.search(keys.skill.prefix, every_term("absent"), audiences=EVERYTHING)).truncated

    for number in range(MOST_VIOLATIONS + 3):
        broken = make_submission(f"s{number:05}", at=env.kv.now(), next_attempt_at=None)
        await put_record(env, broken)
    health = await queue_health()
    assert (len(health.violations), health.truncated, health.healthy) == (MOST_VIOLATIONS, True, False)


async def test_A7_published_only_together_with_its_skill(env: Env) -> None:
    """Every write of PUBLISHED is the commit that writes the skill with that digest; a failed one writes neither
    (h), and the work is taken up again."""
    kv = HookedKV(env.kv)
    back_at = env.kv.now() + 16_000
    refused = asyncio.Event()

    async def refuse(operations: Sequence[Operation]) -> None:
        if state_written(operations) is State.PUBLISHED and env.kv.now() < back_at:
            refused.set()
            raise StoreUnavailable("the last step fails")

    kv.before_commit = refuse
    with active_env(env, kv=kv) as broken:
        submission = record_of(await submit_skill("late"))
        work = asyncio.create_task(run_until_quiet(broken))
        await asyncio.wait_for(refused.wait(), PATIENCE_S)
        assert (await get_submission(submission.id)).state is State.TIER1_SCANNING
        assert await enumerate_published_skills() == []
        pass_time(env, 16_000)
        await work
    assert (await published(submission)).current_version == "1.0.0"
    assert_published_with_skill(kv)


async def test_A7_an_approval_by_an_admin_publishes_the_same_way(env: Env) -> None:
    """A reviewer's yes does not write PUBLISHED: the worker does, with the skill, from the stored bytes."""
    kv = HookedKV(env.kv)
    with active_env(env, kv=kv) as watched:
        submission = await awaiting_review(watched, "needs-a-look")
        approved = await approve(submission.id, by="admin:eve", reason="looks fine")
        assert approved.state is State.AUTO_APPROVED
        assert await enumerate_published_skills() == []
        await run_until_quiet(watched)
    assert (await published(submission)).certification is Certification.CERTIFIED
    assert_published_with_skill(kv)


async def test_A7_approved_bytes_that_are_gone_are_not_published(env: Env) -> None:
    """An approval whose content is lost waits for the repair, never as PUBLISHED without a skill (f)."""
    submission = await awaiting_review(env, "bytes-lost")
    assert submission.digest is not None
    await lose(env.blobs, submission.digest)
    await approve(submission.id, by="admin:eve", reason="looks fine")
    await run_until_quiet(env)
    record = await get_submission(submission.id)
    assert (record.state, record.published) == (State.AUTO_APPROVED, None)
    assert "are missing" in record.history[-1].reason
    assert await enumerate_published_skills() == []


def assert_published_with_skill(kv: HookedKV) -> None:
    publishing = [one for one in kv.commits if state_written(one) is State.PUBLISHED]
    assert publishing
    for operations in publishing:
        puts = {op.key: op.value for op in operations if isinstance(op, Put)}
        record = msgspec.json.decode(
            next(v for k, v in puts.items() if k.startswith(keys.sub.prefix)), type=Submission
        )
        assert record.published is not None
        live = msgspec.json.decode(puts[record.published], type=PublishedSkill)
        assert live.current_digest == record.digest
        assert live.current_version == record.published_version


async def test_A8_durable_records_never_expire(env: Env) -> None:
    """Years and sweeps later everything that was published, decided and replaced is still there."""
    kv = HookedKV(env.kv)
    with active_env(env, kv=kv) as watched:
        submission = record_of(await submit_skill("lasting", "one"))
        await run_until_quiet(watched)
        await submit_skill("lasting", "two")
        await run_until_quiet(watched)
    puts = [op for commit in kv.commits for op in commit if isinstance(op, Put)]
    # Facts are kept for as long as a policy is tried on them.
    expiring = {put.key for put in puts if put.ttl_ms is not None}
    assert {keys.parse(one).prefix for one in expiring} == {keys.facts.prefix}

    before = [key for key in await all_keys(env) if key not in expiring]
    pass_time(env, 2_000 * DAY_MS)
    await sweep()
    assert await all_keys(env) == before
    assert (await get_run(submission.id, 1)).published_version == "1.0.0"
    assert await check_versions(env) == 2


async def test_A12_search_follows_the_record_write(env: Env) -> None:
    """A new skill is found at once, an old name is not found any more, a deleted skill is not found at all."""

    async def search(text: str) -> list[str]:
        return [
            entry.key
            for entry in (
                await env.kv.search(keys.skill.prefix, every_term(text), audiences=EVERYTHING)
            ).items
        ]

    await submit_upload(skill_files("quokka"), namespace="tests", slug="place")
    await run_until_quiet(env)
    key = keys.skill("upload~tests/skills/place")
    assert await search("quokka") == [key]
    await submit_upload(skill_files("wombat"), namespace="tests", slug="place")
    await run_until_quiet(env)
    assert (await search("wombat"), await search("quokka")) == ([key], [])
    await env.kv.delete(key)
    assert await search("wombat") == []


async def test_A13_links_come_from_the_stored_key(env: Env) -> None:
    """A submission names its own skill's key, also where ten others have the same name; each is reached by the name
    that it is listed under, which is no other's."""
    sources = ListedSources(env.blobs)
    with active_env(env, sources=sources) as listed:
        places = [
            await submit_place(sources, f"https://github.com/owner{n}/tools", "fmt", "fmt", f"of {n}")
            for n in range(11)
        ]
        await run_until_quiet(listed)
        for number, place in enumerate(places):
            skill_there = await published(place)
            assert skill_there.identity.key == place.identity.key
            assert skill_there.owner == f"owner{number}"
            for name in (skill_there.canonical, skill_there.listed_as[PUBLIC]):
                assert await find_by_name(name, audiences=PUBLIC_ONLY) == skill_there
        names = [(await published(place)).listed_as[PUBLIC] for place in places]
        assert names.count("fmt") == 1
        assert len(set(names)) == len(places)


async def test_A14_every_current_version_has_its_record(env: Env) -> None:
    """First, later, returned and taken-down versions: skill and version records are written together."""
    for body in ("one", "two", "one", "three"):
        await submit_skill("versions", body)
        await run_until_quiet(env)
    canonical = "upload~tests/skills/versions"
    before = await get_skill(canonical)
    assert [ref.number for ref in before.versions] == ["1.0.0", "1.0.1", "1.0.2", "1.0.3"]
    assert before.versions[0].digest == before.versions[2].digest
    change = skill_changes.StatusChange(StatusRole.REVIEWER, "admin:eve", env.kv.now(), "a test")
    down = await update_skill(canonical, lambda one: skill_changes.take_down(one, change, number="1.0.3"))
    assert down.current_version == "1.0.2"
    assert await check_versions(env) == 4


@pytest.mark.parametrize("every", [1, 2, 3])
async def test_A14_an_unknown_outcome_makes_no_second_version(env: Env, every: int) -> None:
    """Commits are applied and their answers are lost: the worker recognises each of its own writes, so the work is
    done once, in one attempt (i)."""
    kv = HookedKV(env.kv)
    answers = lost = 0

    async def lose(operations: Sequence[Operation]) -> None:
        nonlocal answers, lost
        answers += 1
        if answers % (every + 1) != 0:
            lost += 1
            raise StoreUnavailable("applied, but the connection died")

    submission = record_of(await submit_skill("once"))
    kv.after_commit = lose
    with active_env(env, kv=kv) as unlucky:
        await run_until_quiet(unlucky)
    assert lost >= 2
    record = await get_submission(submission.id)
    path = [State.RECEIVED, State.TIER1_SCANNING, State.AUTO_APPROVED, State.PUBLISHED]
    assert [event.to for event in record.history] == path
    assert (record.attempts.started, record.attempts.failed, record.attempts.interrupted) == (1, 0, 0)
    assert [ref.number for ref in (await published(submission)).versions] == ["1.0.0"]
    assert await check_versions(env) == 1


async def test_A15_no_phantom_versions(env: Env) -> None:
    """The same bytes verified again five times stay one version, and no placeholder passes as a digest."""
    submission = record_of(await submit_skill("steady"))
    await run_until_quiet(env)
    assert (await submit_skill("steady")).outcome is IntakeOutcome.ALREADY_VERIFIED
    for _ in range(5):
        await run_again(submission.id, by="admin:eve", reason="once more")
        await run_until_quiet(env)
    live = await published(submission)
    assert (await get_submission(submission.id)).run == 6
    assert [ref.number for ref in live.versions] == ["1.0.0"]

    files = skill_files("steady", "other")
    for placeholder in ("", "0" * 64, "pending"):
        with pytest.raises(InvalidInput, match="digest"):
            skill_changes.publish_version(live, publication(live, files, placeholder, env.kv.now()))


def publication(live: PublishedSkill, files: tuple[SkillFile, ...], digest: str, at: int) -> Publication:
    version = SkillVersion(
        canonical=live.canonical,
        number="",
        name=live.name,
        digest=digest,
        content_hash="",
        tree_hash="",
        manifest=manifest_of(files),
        score=100,
        published_at=at,
    )
    return Publication(version, live.identity, "worker:test", artifact_of(files, archive_digests(files)))


NO_SKILL = (SkillFile("README.md", "100644", b"# nothing here\n"),)


async def test_A17_without_skill_md_at_every_door(env: Env) -> None:
    """Upload, repository, bulk submission and an admin's approval: none publishes what has no SKILL.md."""
    with pytest.raises(NoSkillFound):
        await submit_upload(NO_SKILL, namespace="tests", slug="door")
    digest = digest_of_files(NO_SKILL)
    await env.blobs.put(digest, pack(NO_SKILL))
    sources = ListedSources(env.blobs)
    repository = normalise("https://github.com/ann/empty")
    sources.places[repository.key] = NO_SKILL
    bulk = upload_identity("tests", "bulk")
    with active_env(env, sources=sources) as listed:
        await submit_repository("https://github.com/ann/empty")
        await submit(Request(bulk, EntryPoint.CRAWLER, upload=digest))
        reviewed = make_submission("reviewed", state=State.NEEDS_REVIEW, at=env.kv.now(), digest=digest)
        await put_record(env, reviewed)
        await approve(reviewed.id, by="admin:eve", reason="looks fine")
        await run_until_quiet(listed)
    for number in (submission_id(repository), submission_id(bulk), reviewed.id):
        record = await get_submission(number)
        assert record.state is State.REJECTED
        assert record.history[-1].reason == "There is no SKILL.md at this address."
    assert await enumerate_published_skills() == []


@pytest.mark.parametrize(
    "changed",
    [
        SkillFile("run.sh", "100644", b"echo changed\n"),
        SkillFile("run.sh", "100755", b"echo hello\n"),
        SkillFile("go.sh", "100644", b"echo hello\n"),
    ],
    ids=["bytes", "mode", "path"],
)
async def test_A19_a_changed_script_is_scanned_again(env: Env, changed: SkillFile) -> None:
    """SKILL.md is the same; one byte, the mode or the path of another file makes it content to be looked at."""
    scanner = TroubledScanner(env.scanner, b"echo changed", RuntimeError("never raised"))
    scanner.word = b"\0never\0"
    with active_env(env, scanner=scanner) as counted:
        script = SkillFile("run.sh", "100644", b"echo hello\n")
        submission = record_of(await submit_skill("scripted", extra=(script,)))
        await run_until_quiet(counted)
        assert (await submit_skill("scripted", extra=(script,))).outcome is IntakeOutcome.ALREADY_VERIFIED
        assert (await submit_skill("scripted", extra=(changed,))).outcome is IntakeOutcome.REQUEUED
        await run_until_quiet(counted)
    assert scanner.scans == 2
    live = await published(submission)
    assert len({ref.digest for ref in live.versions}) == 2
    assert live.current_digest == digest_of_files(skill_files("scripted", extra=(changed,)))


async def test_A20_the_old_version_stays_live(open_here: Opener) -> None:
    """While new content is verified, and after it failed, the version before it is in the list."""
    async with open_here() as env:
        scanner = HeldScanner(env.scanner)
        scanner.open.set()
        with active_env(env, scanner=scanner) as held:
            submission = record_of(await submit_skill("lively", "good"))
            await run_until_quiet(held)
            before = await enumerate_published_skills()
            assert len(before) == 1

            scanner.open.clear()
            scanner.began.clear()
            files = (*skill_files("lively", "bad"), SkillFile("x", "100644", b"\0"))
            await submit_upload(files, namespace="tests", slug="lively")
            assert await enumerate_published_skills() == before
            work = asyncio.create_task(run_until_quiet(held))
            await scanner.began.wait()
            assert (await get_submission(submission.id)).state is State.TIER1_SCANNING
            assert await enumerate_published_skills() == before
            assert (await get_skill(before[0].slug)).versions[0].status is VersionStatus.LIVE
            scanner.inner = UnfinishedScanner()
            scanner.open.set()
            await work
        assert (await get_submission(submission.id)).state is State.NEEDS_REVIEW
        assert await enumerate_published_skills() == before
