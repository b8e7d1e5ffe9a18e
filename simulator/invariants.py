"""What must hold when a history is over: nothing lost, nothing stuck, nothing live that is blocked, and a record of
every step. The watcher in `checks` has seen each commit; here the whole is looked at."""

import msgspec

from simulator.actors import Filed, People
from simulator.checks import LABELS, is_step, require
from simulator.faults import Process
from simulator.lists import check_lists
from simulator.outside import Outside
from simulator.plan import Listener
from simulator.world import ANALYSER, World
from vskill_core.identity import Identity
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import BlockEntry, targets_of
from vskill_platform.domain.operation.task import Task, TaskState, task_key
from vskill_platform.domain.people.namespace import namespace_of
from vskill_platform.domain.skills.skill import (
    PublishedSkill,
    Revocation,
    SkillVersion,
    VersionStatus,
    revoked_versions,
    steps_by_kind,
)
from vskill_platform.domain.submissions.attempts import MAX_INTERRUPTED, exhaustion
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import Event, Submission
from vskill_platform.notifications.deliveries import DELIVERY
from vskill_platform.notifications.notices import notices_of, recall_id
from vskill_platform.queue.health import queue_health
from vskill_platform.queue.recovery import recover_stuck_submissions, recover_tasks
from vskill_platform.stages.repo_check import REPO_CHECK
from vskill_platform.store.external_scans import EXTERNAL_SCAN, external_task_id
from vskill_platform.store.recall.blocklist import targets_for
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.worker_context import run_with_worker_env


async def check_end(world: World, people: People, outside: Outside) -> None:
    """Raise Broken for the first invariant that does not hold."""
    records = await world.records()
    skills = {keys.skill(one.canonical): one for one in await world.skills()}
    blocked = {entry.target for entry in await _entries(world)}
    for record in records.values():
        name = LABELS[record.id]
        world.trace.count(f"ended {record.state}")
        require(not record.state.active, "everything accepted comes to its end", f"{name} is {record.state}")
        await _check_history(world, record, name)
        hit = any(target in blocked for target in targets_for(record))
        agrees = hit == (record.state is State.BLOCKED) or (hit and _harmless(record))
        require(agrees, "BLOCKED is what the blocklist hits", f"{name} {record.state}")
        if record.state is State.PUBLISHED:
            _check_published(record, skills.get(record.published or ""), name)
            _check_deserved(people, record, name)
        elif record.history[-1].source is State.PUBLISHED:
            _check_withdrawn(record, skills.get(record.published or ""), name)
    for skill in skills.values():
        await _check_skill(world, skill)
        await _check_analysed(world, skill)
        for ref in skill.versions:
            targets = targets_of(skill.identity, (skill.name, skill.slug), ref.digest)
            live_and_hit = ref.status is VersionStatus.LIVE and any(target in blocked for target in targets)
            require(not live_and_hit, "nothing live is blocked", f"{skill.canonical} {ref.number}")
    await _check_revocations(world, list(skills.values()))
    for place in world.places:
        _check_filed(world, [one for one in people.filed if one.place == place], records.get(place.id))
    for namespace in await world.namespaces():
        require(namespace.preparing is None, "what is to be hidden gets hidden", namespace)
    await _check_told(world, records)
    for task in await world.tasks():
        await _check_task(world, outside, task)
    await check_lists(world, people.cloned)
    await _check_converged(world)


def _harmless(record: Submission) -> bool:
    """Nothing of it was ever looked at, or a person or too many failures ended it after the blocklist was applied
    and before a worker looked: it is not live, and it would be BLOCKED the next time that the blocklist changes."""
    if record.digest is None or exhaustion(record):
        return record.state is not State.PUBLISHED
    return record.history[-1].actor.startswith(("user:", "admin:")) and not record.state.success


async def _entries(world: World) -> list[BlockEntry]:
    page = await world.store.scan(keys.block.prefix)
    return [msgspec.json.decode(entry.value, type=BlockEntry) for entry in page.items]


async def _check_history(world: World, record: Submission, name: str) -> None:
    """Without a gap over all runs: kept ones and the current one."""
    events: list[tuple[int, Event]] = []
    for run in range(1, record.run):
        entry = await world.store.get(keys.subrun(record.id, str(run)))
        require(entry is not None, "every run is kept", f"{name} run {run}")
        assert entry is not None
        kept = msgspec.json.decode(entry.value, type=Submission)
        require(kept.run == run and kept.state.ends_run, "every run is kept", f"{name} run {run}")
        events += [(run, event) for event in kept.history]
    events += [(record.run, event) for event in record.history]
    world.trace.counts["runs"] += record.run
    before: Event | None = None
    last_run = 0
    for seq, (run, event) in enumerate(events, start=1):
        require(event.seq == seq, "history has no gap", f"{name}: {event}")
        require(
            event.source is (before.to if before else None), "each event begins where the last ended", name
        )
        require(before is None or event.at >= before.at, "history is in order of time", f"{name}: {event}")
        begins = run != last_run and event.to is State.RECEIVED
        require(begins or (before and is_step(before.to, event.to)), "only allowed steps", f"{name}: {event}")
        require(event.reason.strip(), "every event has a reason", f"{name}: {event}")
        before, last_run = event, run
    require(len({event.id for _, event in events}) == len(events), "every event has an id of its own", name)


def _check_published(record: Submission, skill: PublishedSkill | None, name: str) -> None:
    require(skill is not None, "every PUBLISHED has its skill", name)
    assert skill is not None
    latest = next((ref for ref in reversed(skill.versions) if ref.digest == record.digest), None)
    require(latest is not None, "every PUBLISHED has its skill with that digest", f"{name} {record.digest}")
    assert latest is not None
    require(
        latest.status is not VersionStatus.TAKEN_DOWN,
        "what is PUBLISHED was not taken down",
        f"{name} {latest}",
    )
    if latest.status is VersionStatus.LIVE:
        require(
            skill.current_digest == record.digest, "what is PUBLISHED is current", f"{name} {skill.versions}"
        )


def _check_withdrawn(record: Submission, skill: PublishedSkill | None, name: str) -> None:
    """A rescan or a block that ended a success has taken its version down."""
    live = skill is not None and any(
        ref.digest == record.digest and ref.status is VersionStatus.LIVE for ref in skill.versions
    )
    require(not live, "what is PUBLISHED no more is not live", name)


def _check_deserved(people: People, record: Submission, name: str) -> None:
    """What the scanner fails, or does not finish, is live only where a reviewer approved these very bytes."""
    content = people.written[record.digest or ""]
    approved = record.approval is not None and record.approval.digest == record.digest
    # Without an answer of the judge a clean scan is enough, and a judge may always be down.
    passed = content.scan in ("pass", "gone") or (
        content.scan in ("concerns", "critical") and content.judge != "fail"
    )
    require(approved or passed, "what is published has passed, or was approved", f"{name} {content}")


async def _check_skill(world: World, skill: PublishedSkill) -> None:
    world.trace.counts["versions"] += len(skill.versions)
    for ref in skill.versions:
        entry = await world.store.get(keys.version(skill.canonical, ref.number))
        require(entry is not None, "every version has its record", f"{skill.canonical} {ref.number}")
        assert entry is not None
        version = msgspec.json.decode(entry.value, type=SkillVersion)
        require(
            version.digest == ref.digest,
            "a version is what its record says",
            f"{skill.canonical} {ref.number}",
        )
        await _check_content(world, skill, ref.digest)


async def _check_content(world: World, skill: PublishedSkill, digest: str) -> None:
    """Every version has its bytes. Only an upload that nobody submitted again may lack them, and is listed then."""
    listed = await world.listed_damage()
    if world.is_whole(digest):
        require(digest not in listed, "what is whole is not listed as damaged", f"{skill.canonical} {digest}")
        return
    require(skill.identity.is_upload, "damage is mended from its source", f"{skill.canonical} {digest}")
    require(digest in listed, "damage is found and listed", f"{skill.canonical} {digest}")
    world.trace.count("content lost for good")


async def _check_revocations(world: World, skills: list[PublishedSkill]) -> None:
    """Whoever follows the events knows the same revoked versions as whoever reads the records."""
    page = await world.store.scan(keys.revocation.prefix)
    events = [msgspec.json.decode(entry.value, type=Revocation) for entry in page.items]
    serials = [event.serial for event in events]
    require(serials == list(range(1, len(serials) + 1)), "no serial is left out", serials)
    followed = {(event.skill, step.version): step.status for event in events for step in event.steps}
    told = {key: status for key, status in followed.items() if status is not None}
    derived = {(one.skill, one.version): one.status for skill in skills for one in revoked_versions(skill)}
    world.trace.counts["revocations"] += len(events)
    require(told == derived, "the events say what the records say", f"{told}, not {derived}")


async def _check_analysed(world: World, skill: PublishedSkill) -> None:
    for ref in skill.versions if world.plan.analyser else ():
        entry = await world.store.get(task_key(EXTERNAL_SCAN, external_task_id(ref.digest, ANALYSER)))
        report = await world.store.get(keys.extscan(ref.digest, ANALYSER))
        asked = entry is not None or report is not None or ref.status is not VersionStatus.LIVE
        require(asked, "the analyser is asked about everything live", f"{skill.canonical} {ref.number}")


def _check_filed(world: World, filed: list[Filed], record: Submission | None) -> None:
    """The last content that was accepted is the one that was looked at last."""
    accepted = [one for one in filed if one.accepted]
    if not accepted:
        return
    name = accepted[0].place.label
    require(record is not None, "nothing accepted is lost", name)
    assert record is not None
    last = max(accepted, key=lambda one: one.begun)
    if world.watcher.cleared.get(record.id, -1) > last.begun:
        return
    if last.place.identity.is_upload:
        # Of those that overlapped, any may have been the last; one whose end nobody saw may be, too.
        latest = [one.content.digest for one in filed if one.ended > last.begun]
        require(
            record.upload in latest,
            "the last content that was submitted is judged",
            f"{name} {record.upload}",
        )
        if record.state in (State.PUBLISHED, State.TIER1_FAILED):
            require(record.digest == record.upload, "what was judged is what was uploaded", name)
    elif record.commit is not None:
        fetched = int(record.commit.removeprefix("commit-"))
        detail = f"{name}: {record.commit}, and {last.pushed} were pushed"
        require(fetched >= last.pushed, "the last content that was submitted is judged", detail)


async def _check_told(world: World, records: dict[str, Submission]) -> None:
    """Every decision of every run was to be told to everyone who subscribed."""
    if not world.plan.listeners:
        return
    runs = [*records.values(), *await _kept_runs(world)]
    notices = [notice for record in runs for notice in notices_of(record)]
    for listener in world.plan.listeners:
        for notice in notices:
            entry = await world.store.get(task_key(DELIVERY, f"{listener}:{notice.id}"))
            require(entry is not None, "every decision is told to whoever subscribed", (listener, notice))
        page = await world.store.scan(keys.revocation.prefix)
        for event in (msgspec.json.decode(entry.value, type=Revocation) for entry in page.items):
            for kind in steps_by_kind(event):
                told = await world.store.get(task_key(DELIVERY, f"{listener}:{recall_id(event, kind)}"))
                require(told is not None, "every recall is told to whoever subscribed", (listener, event))
    world.trace.counts["notices"] += len(notices) * len(world.plan.listeners)


async def _kept_runs(world: World) -> list[Submission]:
    page = await world.store.scan(keys.subrun.prefix)
    return [msgspec.json.decode(entry.value, type=Submission) for entry in page.items]


async def _check_task(world: World, outside: Outside, task: Task) -> None:
    """It has ended, and in the way that its own kind has to."""
    require(not task.state.active, "every task comes to its end", task)
    world.trace.count(f"ended task {task.kind}: {task.state}")
    gave_up = task.attempts.interrupted >= MAX_INTERRUPTED
    if task.kind == DELIVERY:
        hook, notice = task.subject["webhook"], task.subject["notice"]
        failed = task.state is TaskState.FAILED
        given_up = failed == (hook == Listener.BROKEN) or gave_up or task.outcome.startswith("not delivered")
        require(given_up, "a delivery arrives, or is given up", task)
        withheld = task.outcome.startswith("not delivered") and (
            # Of alerts only reviewers hear, and of recalls whoever may read the skill.
            "submission" not in task.subject or _was_hidden(world, task.subject["submission"])
        )
        require(withheld or failed or notice in outside.heard[hook], "what is delivered has arrived", task)
    elif task.kind == EXTERNAL_SCAN:
        report = await world.store.get(keys.extscan(task.subject["digest"], task.subject["provider"]))
        require(report is not None or gave_up, "an external scan ends with a report", task)
    elif task.kind == REPO_CHECK and task.state is TaskState.DONE:
        subject = task.subject
        place = Identity(subject["host"], subject["owner"], subject["repo"])
        health = await world.store.get(keys.repohealth(place.repo_key))
        require(health is not None, "a check of a repository leaves what it found", task)


def _was_hidden(world: World, submission: str) -> bool:
    """Whether its namespace was hidden at some time: what one may not read is not delivered."""
    place = next(one for one in world.places if one.id == submission)
    return any(not shown for _, shown in world.watcher.shown.get(namespace_of(place.identity), []))


async def _check_converged(world: World) -> None:
    """Health is good, and neither a whole pass of the blocklist nor recovery finds anything to do."""
    env = world.env_for(Process("checker", lambda: None))
    harmless = {record.key for record in (await world.records()).values() if _harmless(record)}

    async def look() -> None:
        health = await queue_health()
        others = [one for one in health.violations if not one.key.startswith(keys.damage.prefix)]
        require(not health.stalled and not others, "queue health is empty", others)
        require(health.damaged == len(await world.listed_damage()), "health counts damage", health.damaged)
        require(health.counts.active == 0, "queue health is empty", health.counts)
        before = {entry.key: entry.version for entry in (await world.store.scan("s")).items}
        await reapply_blocklist()
        recovered = await recover_stuck_submissions()
        owed = await recover_tasks()
        after = {entry.key: entry.version for entry in (await world.store.scan("s")).items}
        changed = [
            key for key, version in after.items() if version != before.get(key) and key not in harmless
        ]
        require(not changed, "the blocklist has been applied", changed)
        require(recovered.found == owed.found == 0, "recovery finds nothing", (recovered, owed))

    await run_with_worker_env(env, look)
