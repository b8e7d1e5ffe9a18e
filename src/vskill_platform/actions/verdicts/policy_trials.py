"""Trying a policy before it is set: the decisions of the last months made again, by the policy in force and by another
text, with the facts of their day. And once it is set, what is live looked at by it."""

from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire, iso_time
from vskill_core.content import SkillFile
from vskill_core.errors import InvalidInput, TransitionError
from vskill_core.findings import NO_JUDGE, StaticReport
from vskill_core.identity import UPLOAD_HOST
from vskill_core.naming import hyphenate
from vskill_core.plural import counted
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.actions.verdicts.policy import POLICY, PolicyToCheck, load_for_here
from vskill_platform.domain.verdicts.decision import can_be_raised, decide
from vskill_platform.domain.verdicts.dry_run import PolicyOutcome, PolicyTrial, TriedPolicy
from vskill_platform.domain.verdicts.facts import CardFacts, Facts, FindingFacts, SignalFacts, SourceFacts
from vskill_platform.domain.verdicts.policy import Policy
from vskill_platform.stages.rescan import request_policy_rescans
from vskill_platform.store.people.audit import note
from vskill_platform.store.verdicts.policy import read_policy
from vskill_platform.store.verdicts.policy_facts import skill_facts
from vskill_platform.store.verdicts.policy_trials import TriedRun, try_on_stored
from vskill_platform.store.verdicts.registry_signals import signal_of
from vskill_scan.memory.install_hosts import hosts_named, install_steps
from vskill_scan.memory.known_hosts import is_known_host
from vskill_scan.memory.memory import Memory
from vskill_scan.memory.notices import notice_hosts, notice_likeness, notice_name
from vskill_scan.memory.sketch import sketch_of
from vskill_scan.reading.manifest import admit_skill

#: Differences that one answer lists.
PAGE = 100
_DAY_MS = 86_400_000
_STRICTNESS = tuple(PolicyOutcome)
_DOES = {"published": "publishes", "delayed": "delays", "held": "holds", "refused": "refuses"}


class PolicyToTry(PolicyToCheck, frozen=True, kw_only=True):
    """A text that is tried."""

    #: how far back: a number of days, such as 90d; facts are kept for 180
    since: Annotated[str, msgspec.Meta(pattern="^[1-9][0-9]{0,3}d$")] = "90d"
    #: the `after` of the answer before, where there were more runs than one answer looks at
    after: Annotated[str, msgspec.Meta(max_length=500)] | None = None
    #: which hundred of the differences are listed
    page: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1


class OutcomeChange(Wire, frozen=True):
    """How many decisions end in another way."""

    #: by the policy in force: published, held or refused
    before: str
    #: by the text
    after: str
    count: int


class TriedRunView(Wire, frozen=True):
    """A decision that the two make differently."""

    submission: str
    run: int
    skill: str
    owner: str
    decided_at: str
    before: str
    after: str
    #: the rules that make it so, of the stricter one
    rules: tuple[str, ...]
    #: what the first of them says
    reason: str


class TrialView(Wire, frozen=True):
    """Decisions made again."""

    #: in a sentence
    summary: str
    #: how many were made again, the newest first
    tried: int
    changes: tuple[OutcomeChange, ...]
    #: decided before facts were kept, or longer ago than they are
    older: int
    #: with facts that had lost the ends of long lists
    cut: int
    #: held because a rule of the text could not be evaluated
    failed: int
    #: records that could not be read
    skipped: int
    #: at most 100 of them
    differences: tuple[TriedRunView, ...]
    page: int
    pages: int
    #: where the next request goes on; null at the end
    after: str | None


async def try_text(services: Services, actor: Principal, request: PolicyToTry) -> TrialView:
    text = load_for_here(services, request.text)
    in_force = await read_policy()
    since = services.kv.now() - int(request.since[:-1]) * _DAY_MS
    found = await try_on_stored(
        in_force.policy, text, since=since, audiences=audiences_of(actor), after=request.after
    )
    changes = tuple(
        OutcomeChange(before.value, after.value, count)
        for (before, after), count in sorted(found.changes.items())
    )
    first = (request.page - 1) * PAGE
    return TrialView(
        summary=summarise(found.tried, changes, found.older),
        tried=found.tried,
        changes=changes,
        older=found.older,
        cut=found.cut,
        failed=found.failed,
        skipped=found.skipped,
        differences=tuple(map(_view, found.different[first : first + PAGE])),
        page=request.page,
        pages=max(-(-len(found.different) // PAGE), 1),
        after=found.after,
    )


def summarise(tried: int, changes: Iterable[OutcomeChange], older: int) -> str:
    """As in "Of 412 decisions, 9 would be held that the policy in force publishes; 24 are older than the facts."."""
    told = ", ".join(
        f"{one.count} would be {one.after} that the policy in force {_DOES.get(one.before, one.before)}"
        for one in changes
    )
    said = f"Of {counted(tried, 'decision')}, {told or 'none would differ'}"
    return f"{said}; {older} {'is' if older == 1 else 'are'} older than the facts." if older else f"{said}."


def _view(run: TriedRun) -> TriedRunView:
    stricter = max(run.before, run.after, key=lambda one: _STRICTNESS.index(one.outcome))
    rules = stricter.rules
    return TriedRunView(
        submission=run.submission,
        run=run.run,
        skill=run.skill_name,
        owner=run.owner,
        decided_at=iso_time(run.decided_at),
        before=run.before.outcome.value,
        after=run.after.outcome.value,
        rules=tuple(one.name for one in rules),
        reason=rules[0].reason if rules else "",
    )


def try_on_files(
    policies: Sequence[Policy],
    folder: str,
    files: tuple[SkillFile, ...],
    report: StaticReport,
    memory: Memory,
) -> tuple[TriedPolicy, ...]:
    """What each policy does with files of a stranger that no judge has read, in a registry where nothing is published
    yet; nothing where the table stops them. Raises what the registry refuses files with that are no skill."""
    floor, manifest = decide(report, NO_JUDGE), admit_skill(files, folder)
    if not can_be_raised(floor):
        return ()
    card = report.capabilities or ()
    hosts = frozenset(one.value for one in card if is_known_host(one.value) or one.value in memory.hosts)
    facts = Facts(
        skill=skill_facts(manifest, files, first=True, private=False),
        source=SourceFacts(kind="upload", host=UPLOAD_HOST),
        card=CardFacts.of(card, hosts),
        findings=FindingFacts.all_of(report.findings),
    )
    noticed = [notice_likeness(memory, sketch_of(files), report), notice_name(memory, hyphenate(folder))]
    steps = install_steps(hosts_named(card), files)

    def try_one(policy: Policy) -> TriedPolicy:
        foreign = {host: places for host, places in steps.items() if not policy.owns(host)}
        notices = (*noticed, notice_hosts(memory, foreign))
        signals = SignalFacts.of(signal_of(one) for one in notices if one is not None)
        seen = msgspec.structs.replace(facts, signals=signals)
        return PolicyTrial(policy).outcomes(floor.next_state, seen)[0]

    return tuple(map(try_one, policies))


# Live versions.


class RescanByPolicy(ActionRequest, frozen=True, kw_only=True):
    """A look at live versions by the policy in force."""

    #: why; it stands in the audit
    reason: Reason
    #: the `after` of the answer before, where that was not the end
    after: Annotated[str, msgspec.Meta(max_length=500)] | None = None


class PolicyRescanView(Wire, frozen=True):
    """What was asked for."""

    #: in a sentence
    summary: str
    #: live versions that are judged again now
    asked: int
    #: live versions that nobody approved and that are older than the facts, so that no rule can be asked
    older: int
    #: where the next request goes on, once these are done; null at the end
    after: str | None


async def rescan_live(actor: Principal, request: RescanByPolicy) -> PolicyRescanView:
    found = await request_policy_rescans(audiences=audiences_of(actor), after=request.after)
    policy = (await read_policy()).policy.digest
    details = {"asked": str(found.asked), "older": str(found.older)}
    await note("policy rescan", policy, by=actor.actor, reason=request.reason, details=details)
    told = f"{counted(found.asked, 'live version')} that the policy would not publish will be judged again"
    older = f"; {counted(found.older, 'is', 'are')} older than the facts" if found.older else ""
    more = " There may be more: go on once these are done." if found.after else ""
    return PolicyRescanView(f"{told}{older}.{more}", found.asked, found.older, found.after)


TRY_POLICY = action(
    try_text,
    "policy.try",
    f"{POLICY}/try",
    right=Right.ADMIN,
    errors=(InvalidInput,),
    summary="Try a policy on what was decided before",
    about="The last run of each submission is decided again, by the policy in force and by the text, with the facts of "
    "its day. Nothing changes. One request looks at 10,000 of them.",
)
RESCAN_BY_POLICY = action(
    rescan_live,
    "policy.rescan",
    f"{POLICY}/rescan",
    right=Right.ADMIN,
    errors=(InvalidInput, TransitionError),
    summary="Have live versions looked at that the policy would not publish",
    about="Each is judged again with the facts of its publication, some 50 at a time. It stays live, and a reviewer "
    "decides. What the scanner's rules would take down meanwhile waits for all others, as after an upgrade.",
)
