"""The states of a submission. Every set of states is derived from the flags here, and every rule about moving
from one to another is the one table here."""

import enum

from vskill_core.state_words import MEANING


class Flag(enum.Flag):
    """What a state means for the queue."""

    #: Work is owed, now or later: a claim or a next attempt time must be there.
    ACTIVE = enum.auto()
    #: Reported by `get_stuck_submissions` when it lasts too long.
    STUCKABLE = enum.auto()
    #: A person decides what comes next.
    WAITING = enum.auto()
    TERMINAL = enum.auto()
    SUCCESS = enum.auto()
    FAILURE = enum.auto()


class State(enum.StrEnum):
    """Where a run of a submission stands."""

    RECEIVED = "RECEIVED"
    TIER1_SCANNING = "TIER1_SCANNING"
    TIER2_SCANNING = "TIER2_SCANNING"
    AUTO_APPROVED = "AUTO_APPROVED"
    COOLDOWN = "COOLDOWN"
    NEEDS_REVIEW = "NEEDS_REVIEW"
    PUBLISHED = "PUBLISHED"
    TIER1_FAILED = "TIER1_FAILED"
    REJECTED = "REJECTED"
    BLOCKED = "BLOCKED"
    DEQUEUED = "DEQUEUED"

    @property
    def label(self) -> str:
        """What people call it; only programs see the name itself."""
        return LABEL[self]

    @property
    def meaning(self) -> str:
        return MEANING[self]

    @property
    def active(self) -> bool:
        return Flag.ACTIVE in FLAGS[self]

    @property
    def moving(self) -> bool:
        """A worker has it, or takes it up as soon as it can: it does not wait by a rule of the policy."""
        return self.active and self is not State.COOLDOWN

    @property
    def reviewable(self) -> bool:
        """A reviewer may approve it: it waits for one, or by a rule of the policy."""
        return self in (State.NEEDS_REVIEW, State.COOLDOWN)

    @property
    def terminal(self) -> bool:
        return Flag.TERMINAL in FLAGS[self]

    @property
    def success(self) -> bool:
        return Flag.SUCCESS in FLAGS[self]

    @property
    def failure(self) -> bool:
        return Flag.FAILURE in FLAGS[self]

    @property
    def ends_run(self) -> bool:
        """No worker owes it anything: terminal, or waiting for a person."""
        return not self.active


_ACTIVE = Flag.ACTIVE | Flag.STUCKABLE
_FAILED = Flag.TERMINAL | Flag.FAILURE

FLAGS: dict[State, Flag] = {
    State.RECEIVED: _ACTIVE,
    State.TIER1_SCANNING: _ACTIVE,
    State.TIER2_SCANNING: _ACTIVE,
    State.AUTO_APPROVED: _ACTIVE,
    State.COOLDOWN: Flag.ACTIVE,
    State.NEEDS_REVIEW: Flag.WAITING,
    State.PUBLISHED: Flag.TERMINAL | Flag.SUCCESS,
    State.TIER1_FAILED: _FAILED,
    State.REJECTED: _FAILED,
    State.BLOCKED: _FAILED,
    State.DEQUEUED: Flag.TERMINAL,
}

LABEL: dict[State, str] = {
    State.RECEIVED: "Waiting",
    State.TIER1_SCANNING: "Scanning",
    State.TIER2_SCANNING: "Judging",
    State.AUTO_APPROVED: "Publishing",
    State.COOLDOWN: "Cooling down",
    State.NEEDS_REVIEW: "Needs review",
    State.PUBLISHED: "Published",
    State.TIER1_FAILED: "Failed the scan",
    State.REJECTED: "Rejected",
    State.BLOCKED: "Blocked",
    State.DEQUEUED: "Cancelled",
}


def states_with(flag: Flag) -> frozenset[State]:
    return frozenset(state for state in State if flag in FLAGS[state])


ACTIVE_STATES = states_with(Flag.ACTIVE)
STUCK_STATES = states_with(Flag.STUCKABLE)
TERMINAL_STATES = states_with(Flag.TERMINAL)
#: What stands in the line for a worker once it is due.
LINE_STATES = frozenset({State.RECEIVED, State.COOLDOWN})


class StateCategory(enum.StrEnum):
    """How people filter the queue; every state is in exactly one."""

    WAITING = "waiting"
    RUNNING = "running"
    COOLDOWN = "cooldown"
    REVIEW = "review"
    PUBLISHED = "published"
    FAILED = "failed"
    CANCELLED = "cancelled"


def category_of(state: State) -> StateCategory:
    if state is State.RECEIVED:
        return StateCategory.WAITING
    if state.active:
        return StateCategory.RUNNING if state.moving else StateCategory.COOLDOWN
    if state is State.NEEDS_REVIEW:
        return StateCategory.REVIEW
    if state.success:
        return StateCategory.PUBLISHED
    return StateCategory.FAILED if state.failure else StateCategory.CANCELLED


def states_in(category: StateCategory) -> frozenset[State]:
    return frozenset(state for state in State if category_of(state) is category)


def _row(*states: State) -> frozenset[State]:
    return frozenset(states)


#: Within one run. From every state that ends a run, RECEIVED is allowed too, only as the start of a new run.
TRANSITIONS: dict[State, frozenset[State]] = {
    State.RECEIVED: _row(
        State.TIER1_SCANNING, State.NEEDS_REVIEW, State.REJECTED, State.BLOCKED, State.DEQUEUED
    ),
    State.TIER1_SCANNING: _row(
        State.RECEIVED,
        State.TIER2_SCANNING,
        State.AUTO_APPROVED,
        State.COOLDOWN,
        State.TIER1_FAILED,
        State.NEEDS_REVIEW,
        State.REJECTED,
        State.BLOCKED,
        State.DEQUEUED,
    ),
    State.TIER2_SCANNING: _row(
        State.RECEIVED,
        State.AUTO_APPROVED,
        State.COOLDOWN,
        State.NEEDS_REVIEW,
        State.REJECTED,
        State.BLOCKED,
        State.DEQUEUED,
    ),
    State.AUTO_APPROVED: _row(
        State.PUBLISHED,
        State.RECEIVED,
        State.NEEDS_REVIEW,
        State.BLOCKED,
        State.REJECTED,
        State.DEQUEUED,
    ),
    State.COOLDOWN: _row(
        State.TIER1_SCANNING,
        State.AUTO_APPROVED,
        State.NEEDS_REVIEW,
        State.REJECTED,
        State.BLOCKED,
        State.DEQUEUED,
    ),
    State.NEEDS_REVIEW: _row(
        State.AUTO_APPROVED, State.REJECTED, State.BLOCKED, State.RECEIVED, State.DEQUEUED
    ),
    State.PUBLISHED: _row(State.BLOCKED, State.NEEDS_REVIEW, State.DEQUEUED),
    State.TIER1_FAILED: _row(State.BLOCKED),
    State.REJECTED: _row(State.BLOCKED),
    State.BLOCKED: _row(),
    State.DEQUEUED: _row(State.BLOCKED),
}


def may_move(source: State, target: State) -> bool:
    return target in TRANSITIONS[source]


def may_start_run(source: State) -> bool:
    """Whether a new run may begin in this state: only where the last one is over."""
    return source.ends_run
