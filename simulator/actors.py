"""The people beside the workers: they submit, resubmit, cancel, review, block, unblock, rescan and pause, hide and show
namespaces, and read as strangers do, at moments drawn from the seed and, by ambush, in the very moment in which a
submission takes a step."""

import asyncio
import math
from collections.abc import Awaitable, Callable

import msgspec

from simulator.content import HOLDING_POLICY, POLICIES, Content, Place, write_content
from simulator.faults import Process
from simulator.hub import Hub
from simulator.lists import ClonedList, clone_list
from simulator.outside import Outside
from simulator.world import World
from vskill_client.wire.submissions import SubmissionView
from vskill_core.errors import PlatformError
from vskill_core.findings import Severity
from vskill_core.identity import parse_place
from vskill_platform.actions.action import Action
from vskill_platform.actions.people.namespace_policy import CHANGE_VISIBILITY, ChangeVisibility
from vskill_platform.actions.principal import ANYBODY, Principal, resolve
from vskill_platform.actions.recall.takedowns import RESTORE, TAKE_DOWN, RestoreSkill, TakeDownSkill
from vskill_platform.actions.review.reports import FILE, REPORT_SUBMISSION, FileReport, ReportSubmission
from vskill_platform.actions.review.review import (
    ANSWER,
    APPROVE,
    REJECT,
    REQUEST_CHANGE,
    AnswerRequest,
    DecideSubmission,
)
from vskill_platform.actions.skills.catalogue import list_catalogue, search_catalogue
from vskill_platform.actions.submissions.submission_lists import LIST, ListSubmissions
from vskill_platform.actions.submissions.submissions import CANCEL, RERUN, CancelSubmission, RerunSubmission
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import (
    BlockEntry,
    BlockTarget,
    digest_target,
    name_target,
    place_target,
    repository_target,
)
from vskill_platform.domain.people.namespace import EVERYTHING, Visibility, namespace_in, namespace_of
from vskill_platform.domain.skills import skill_changes
from vskill_platform.domain.skills.skill import Certification, PublishedSkill, StatusRole
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.verdicts.decision import BlockScope
from vskill_platform.domain.verdicts.rescan_decision import RescanDecision, RescanOutcome
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import IntakeOutcome, Submitted, submit_repository, submit_upload
from vskill_platform.queue.control import pause_queue, resume_queue
from vskill_platform.queue.jobs import JOBS
from vskill_platform.queue.recovery import recover_stuck_submissions
from vskill_platform.queue.schedule import run_job
from vskill_platform.store.people import accounts
from vskill_platform.store.recall.blocklist import add_block, remove_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.skills.skills import update_skill
from vskill_platform.store.stored_content import read_content
from vskill_platform.store.verdicts.policy import set_policy
from vskill_platform.store.verdicts.rescans import apply_rescan
from vskill_platform.submission_store import get_submission
from vskill_platform.worker_context import require_env, run_with_worker_env

#: The reviewer.
ROB = Principal("rob", accounts.Role.REVIEWER)
#: Who submits, into hidden namespaces too.
SUE = SubmittedBy("sue", EVERYTHING)
#: Who may change every namespace.
ADA = Principal("ada", accounts.Role.ADMIN)
#: What people do, and how often.
WEIGHTS = {
    "submit": 34,
    "submit_same": 8,
    "cancel": 6,
    "reject": 5,
    "approve": 9,
    "run_again": 5,
    "block": 9,
    "feud": 6,
    "unblock": 10,
    "rescan": 8,
    "pause": 2,
    "resume": 2,
    "recover": 4,
    "reapply": 4,
    "yank": 2,
    "request_change": 4,
    "answer": 2,
    "replay": 1,
    "call_back": 3,
    "take_down": 3,
    "restore": 3,
    "flip": 6,
    "look": 12,
    "download": 6,
    "clone": 5,
}
#: What they do to a submission that takes a step this moment.
AMBUSHES = (
    "submit",
    "submit",
    "submit",
    "submit_same",
    "cancel",
    "feud",
    "block",
    "reject",
    "approve",
    "run_again",
    "take_down",
    "restore",
    "flip",
    "look",
)


class Filed(msgspec.Struct):
    """One act of submitting, from its beginning to its end, in the world's own count of moments."""

    place: Place
    content: Content
    #: How many commits the repository had when this began.
    pushed: int
    begun: int
    #: Infinite while it may still have an effect.
    ended: float = math.inf
    #: None: nobody knows.
    outcome: IntakeOutcome | None = None

    @property
    def accepted(self) -> bool:
        return self.outcome is not None and self.outcome is not IntakeOutcome.BLOCKED


class People:
    """Everyone outside of the workers, using the web side's process."""

    def __init__(self, world: World, outside: Outside, hub: Hub) -> None:
        self._world = world
        self._outside = outside
        self.hub = hub
        self._rng = world.rng
        self._nonce = 0
        self._generation = 0
        self.filed: list[Filed] = []
        self.last: dict[str, Content] = {}
        #: Every content by its digest.
        self.written: dict[str, Content] = {}
        #: The lists of skills that strangers cloned.
        self.cloned: list[ClonedList] = []
        self.process = self._new_process()

    # The web side's process.

    def _new_process(self) -> Process:
        self._generation += 1
        return self._world.new_process(f"web{self._generation}", self._crashed)

    def _crashed(self) -> None:
        self.process = self._new_process()

    # Acting.

    async def act(self, what: str, place: Place, process: Process) -> None:
        """Do one thing through this process; what the platform refuses or cannot do now is no bug."""
        self._world.trace.count(f"act {what}")
        self._world.trace.add(process.name, "ACT", f"{what} {place.label}")
        deed: Callable[[Place], Awaitable[object]] = getattr(self, f"_{what}")
        try:
            result = await run_with_worker_env(self._world.env_for(process), lambda: deed(place))
        except PlatformError as error:
            result = repr(error)
        shown = result.outcome if isinstance(result, Submitted) else result
        if isinstance(shown, str | bool | int):
            self._world.trace.add(process.name, "DONE", f"{what} {place.label}: {shown}")

    async def choose(self, what: str) -> Place:
        """Somewhere; more often where it can have an effect."""
        places = self._world.places
        wanted = {
            "approve": (State.NEEDS_REVIEW, State.COOLDOWN),
            "submit": (State.TIER1_SCANNING,),
            "rescan": (State.PUBLISHED,),
            "take_down": (State.PUBLISHED,),
            "restore": (State.NEEDS_REVIEW,),
            "report": (State.COOLDOWN,),
        }.get(what)
        if wanted is not None and self._rng.random() < 0.6:
            records = await self._world.records()
            places = [
                place for place in places if place.id in records and records[place.id].state in wanted
            ] or places
        return self._rng.choice(places)

    def _new_content(self, place: Place, scan: str | None = None) -> Content:
        self._nonce += 1
        content = write_content(self._rng, place, self._nonce, scan=scan)
        self.written[content.digest] = content
        return content

    # What they do. Names are the keys of WEIGHTS.

    async def _submit(self, place: Place) -> Submitted | str:
        if place.is_upstream:
            return await self._change_upstream(place)
        poison = self._world.poison_left and "poison"
        self._world.poison_left = False
        content = self._new_content(place, poison or None)
        if not place.identity.is_upload:
            self._world.repositories.push(place, content)
        return await self._file(place, content)

    async def _submit_same(self, place: Place) -> Submitted | None:
        content = self.last.get(place.id)
        return None if content is None else await self._file(place, content)

    async def _file(self, place: Place, content: Content) -> Submitted:
        world = self._world
        self.last[place.id] = content
        filed = Filed(place, content, world.repositories.count(place), world.moment())
        self.filed.append(filed)
        identity = place.identity
        if identity.is_upload:
            done = await submit_upload(content.files, namespace=identity.owner, slug=identity.path, by=SUE)
        else:
            done = await submit_repository(identity.url, identity.path, by=SUE)
        filed.outcome, filed.ended = done.outcome, world.moment()
        world.trace.count(f"submitted: {done.outcome}")
        return done

    async def _change_upstream(self, place: Place) -> str:
        """The other registry changes what it has; it is read now or later, and somebody asks for it by name."""
        done = self.hub.change(place, self._new_content(place))
        if self._rng.random() < 0.7:
            await self.hub.synchronise()
        if self._rng.random() < 0.7:
            await asyncio.sleep(self._rng.random() * 10)
            await self.hub.ask(place)
        return done

    async def _cancel(self, place: Place) -> SubmissionView:
        wanted = CancelSubmission(submission_id=place.id, reason="changed my mind")
        return await CANCEL(require_env(), ROB, wanted)

    async def _reject(self, place: Place) -> SubmissionView:
        return await self._decide(REJECT, place, "not wanted")

    async def _approve(self, place: Place) -> SubmissionView:
        return await self._decide(APPROVE, place, "looks fine")

    async def _request_change(self, place: Place) -> SubmissionView:
        return await self._decide(REQUEST_CHANGE, place, "why?")

    async def _answer(self, place: Place) -> SubmissionView:
        return await ANSWER(require_env(), ROB, AnswerRequest(submission_id=place.id, reason="because"))

    async def _decide(
        self, action: Action[DecideSubmission, SubmissionView], place: Place, reason: str
    ) -> SubmissionView:
        """About the run and the bytes that a reviewer has just looked at; others may change them meanwhile."""
        seen = await get_submission(place.id, audiences=EVERYTHING)
        decision = DecideSubmission(submission_id=place.id, run=seen.run, digest=seen.digest, reason=reason)
        return await action(require_env(), ROB, decision)

    async def _report(self, place: Place) -> SubmissionView | bool:
        """What waits by a rule, or the published skill, whose update then waits no longer."""
        published, before = await self._skill_of(place), (await self._world.records()).get(place.id)
        if published is None or before is None:
            return await REPORT_SUBMISSION(
                require_env(), ROB, ReportSubmission(submission_id=place.id, reason="odd")
            )
        reporter = Principal(f"reader{self._world.clock.now()}", accounts.Role.REVIEWER)
        filed = await FILE(require_env(), reporter, FileReport(skill=published.canonical, reason="odd"))
        now = (await self._world.records())[place.id]
        if filed.new and before.state is State.COOLDOWN:
            self._world.trace.count("a report stopped an update")
            if now.history[-1] == before.history[-1]:
                self._world.broken("a report stops an update that waits", now.id)
        return filed.new

    async def _set_policy(self, _: Place) -> str:
        text = self._rng.choice((*POLICIES, HOLDING_POLICY))
        return (await set_policy(text, by="admin:ada", reason="a change")).policy.digest

    async def _run_again(self, place: Place) -> SubmissionView:
        return await RERUN(require_env(), ROB, RerunSubmission(submission_id=place.id, reason="once more"))

    async def _block(self, place: Place) -> str:
        target = self._target(place)
        now = self._world.clock.now()
        await add_block(BlockEntry(target, Severity.HIGH, "reported", "admin:rob", now, now))
        return str(target)

    def _target(self, place: Place) -> BlockTarget:
        content = self.last.get(place.id)
        kinds = ["place", "repository", "name", *(("digest", "digest") if content else ())]
        match self._rng.choice(kinds):
            case "repository":
                return repository_target(place.identity)
            case "name":
                return name_target(content.name if content else place.slug)
            case "digest" if content is not None:
                return digest_target(content.digest)
            case _:
                return place_target(place.identity)

    async def _feud(self, place: Place) -> str:
        """Blocked by one, unblocked by another a moment later."""
        target = self._target(place)
        now = self._world.clock.now()
        await add_block(BlockEntry(target, Severity.HIGH, "reported", "admin:rob", now, now))
        await asyncio.sleep(self._rng.random() ** 2 * 12)
        await remove_block(target)
        return str(target)

    async def _unblock(self, place: Place) -> str | None:
        page = await self._world.store.scan(keys.block.prefix)
        if not page.items:
            return None
        entry = msgspec.json.decode(self._rng.choice(page.items).value, type=BlockEntry)
        await remove_block(entry.target)
        return str(entry.target)

    async def _rescan(self, place: Place) -> str | None:
        skills = await self._world.skills()
        mine = [one for one in skills if one.submission == place.id] or skills
        if not mine:
            return None
        chosen = self._rng.choice(mine)
        digest = self._rng.choice(chosen.versions).digest
        decision = self._decision()
        await apply_rescan(chosen.canonical, digest, decision)
        return f"{chosen.canonical} {digest[:8]} {decision.outcome} {decision.next_state} {decision.block}"

    def _decision(self) -> RescanDecision:
        down = RescanOutcome.TAKE_DOWN
        return self._rng.choice(
            (
                RescanDecision(
                    RescanOutcome.KEEP, "still fine", certification=Certification.VERIFIED, score=90
                ),
                RescanDecision(RescanOutcome.UNDECIDED, "the judge is down"),
                RescanDecision(RescanOutcome.REVIEW, "doubtful"),
                RescanDecision(RescanOutcome.REVIEW, "doubtful"),
                RescanDecision(down, "worse", next_state=State.NEEDS_REVIEW),
                RescanDecision(down, "malicious", next_state=State.BLOCKED, block=BlockScope.DIGEST),
                RescanDecision(down, "malicious", next_state=State.BLOCKED, block=BlockScope.PLACE),
                RescanDecision(down, "an entry hit it", next_state=State.BLOCKED),
            )
        )

    async def _yank(self, place: Place) -> None:
        found = await self._skill_of(place)
        if found is not None:
            change = skill_changes.StatusChange(
                StatusRole.OWNER, "user:sue", self._world.clock.now(), "withdrawn"
            )
            await update_skill(found.canonical, lambda current: skill_changes.yank(current, change))

    async def _take_down(self, place: Place) -> str | None:
        found = await self._skill_of(place)
        if found is None:
            return None
        number = self._rng.choice((None, self._rng.choice(found.versions).number))
        wanted = TakeDownSkill(skill=found.canonical, version=number, reason="complaints")
        await TAKE_DOWN(require_env(), ROB, wanted)
        return f"{found.canonical} {number}"

    async def _restore(self, place: Place) -> str | None:
        found = await self._skill_of(place)
        if found is None:
            return None
        await RESTORE(require_env(), ROB, RestoreSkill(skill=found.canonical, reason="a mistake"))
        return found.canonical

    async def _skill_of(self, place: Place) -> PublishedSkill | None:
        found = [one for one in await self._world.skills() if one.submission == place.id]
        return found[0] if found else None

    async def _flip(self, place: Place) -> str:
        """Hide a namespace, or show it again."""
        name, to = namespace_of(place.identity), self._rng.choice(tuple(Visibility))
        await CHANGE_VISIBILITY(require_env(), ADA, ChangeVisibility(name=name, to=to, reason="a whim"))
        return f"{name} {to}"

    async def _look(self, place: Place) -> int:
        """Read as somebody who did not sign in. What is seen was for everybody at some moment since the look began."""
        env, begun = require_env(), self._world.moment()
        reader = await resolve(ANYBODY)
        listed = (await list_catalogue(reader)).items
        found = (await search_catalogue(reader, place.slug)).items
        queued = (await LIST(env, reader, ListSubmissions())).submissions
        seen = {namespace_in(one.canonical) for one in (*listed, *found)}
        seen |= {namespace_of(parse_place(one.repo_url)) for one in queued}
        for name in seen:
            self._world.watcher.check_shown(name, begun)
        return len(seen)

    async def _clone(self, _: Place) -> int | None:
        """Clone the list of everything, as somebody who did not sign in."""
        found = await clone_list(self._world, require_env())
        if found is None:
            return None
        self.cloned.append(found)
        for name in {namespace_in(one.canonical) for one in found.skills.values() if one.canonical}:
            self._world.watcher.check_shown(name, found.begun)
        return len(found.skills)

    async def _download(self, place: Place) -> int | None:
        """Get the files of a version. What is handed out is what was written, byte for byte, or nothing is."""
        found = await self._skill_of(place)
        if found is None:
            return None
        digest = self._rng.choice(found.versions).digest
        files = await read_content(digest)
        if files != self.written[digest].files:
            self._world.broken("a wrong byte is never handed out", f"{found.canonical} {digest}")
        return len(files)

    async def read_upstream(self) -> None:
        """Once more, when nothing is wrong any more."""
        while not await self._try("synchronise", self._world.places[-1]):
            pass

    async def _synchronise(self, _: Place) -> None:
        await self.hub.synchronise()

    async def mend_uploads(self) -> None:
        """Whoever uploaded something last submits it again where it was damaged: nobody else has it."""
        for place in self._world.places:
            content = self.last.get(place.id)
            lost = content is not None and not self._world.is_whole(content.digest)
            if lost and place.identity.is_upload:
                while not await self._try("submit_same", place):
                    pass

    async def _try(self, what: str, place: Place) -> bool:
        """Whether the process that was asked lived to answer: an earlier call of its can end it even now."""
        process = self.process
        acting = asyncio.create_task(self.act(what, place, process))
        while not process.dead:
            done, _ = await asyncio.wait([acting], timeout=0.1)
            if done:
                await acting
                return True
        return False

    async def _pause(self, _: Place) -> None:
        await pause_queue(
            int(self._rng.uniform(1_000, 120_000)), reason="a look at the machine", by="admin:rob"
        )

    async def _resume(self, _: Place) -> bool:
        return await resume_queue(by="admin:rob")

    async def _recover(self, _: Place) -> int:
        return (await recover_stuck_submissions()).found

    async def _reapply(self, _: Place) -> object:
        if self._rng.random() < 0.5:
            return await reapply_blocklist()
        return await run_job(next(job for job in JOBS if job.name == "blocklist"), forced=True)

    async def _call_back(self, _: Place) -> bool | None:
        """The analyser elsewhere reports, whether or not anybody has asked it yet."""
        digests = sorted({ref.digest for one in await self._world.skills() for ref in one.versions})
        return await self._outside.call_back(self._rng.choice(digests)) if digests else None

    async def _replay(self, _: Place) -> bool:
        broker = require_env("broker").broker
        letters = (await broker.dead_letters()).items
        return bool(letters) and await broker.replay(self._rng.choice(letters).id)
