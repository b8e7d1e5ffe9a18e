"""The audit, for admins: who did what to what, when and why."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire
from vskill_core.errors import InvalidInput
from vskill_platform.actions.action import PageSize, action
from vskill_platform.actions.principal import Right
from vskill_platform.domain.people.refusal import ANONYMOUS, AuditOutcome
from vskill_platform.ledger.clock import sortable_id
from vskill_platform.store.people.audit import AuditFilter, follow_audit, list_audit

EntryId = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Wanted = Annotated[str, msgspec.Meta(max_length=200)]


class ReadAudit(ActionRequest, frozen=True, kw_only=True):
    """Which page of the audit."""

    #: only entries older than the one with this id
    before: EntryId | None = None
    #: only entries newer than the one with this id, those next to it
    after: EntryId | None = None
    #: an account's name, or an actor such as `system`
    who: Wanted = ""
    #: a part of what was done, such as `block` or `sign-in`
    what: Wanted = ""
    #: a part of the target, the reason, a detail, the request's id or the token's id
    about: Wanted = ""
    #: only what was done, or only what was refused
    outcome: AuditOutcome | None = None
    #: only what was written up to this time, such as 2026-11-18T03:20Z; without a zone it is UTC
    until: Wanted = ""
    #: how many to show on a page
    limit: PageSize = 50


class UsedToken(Wire, frozen=True):
    """The token that something was done with."""

    id: str
    name: str


class AuditView(Wire, frozen=True):
    """Something that was done, or refused."""

    #: the same however often the entry comes; sorts by time
    id: str
    #: when it was written, in UTC
    at: str
    #: `system`, `worker:<id>`, `admin:<name>`, `user:<name>` or `user:anonymous`
    by: str
    #: such as `block` or `owner added`; of what was refused `sign-in`, `token`, or the action that was asked for
    action: str
    #: what it was done to; of a sign-in or a token the account, where there is one of that name
    target: str
    #: why, in the words of whoever did it; why it was refused
    reason: str
    #: more about it, by name
    details: dict[str, str]
    #: the token that was shown, by `id` and `name`; null for a session, a command and the system
    token: UsedToken | None
    #: how the session was opened: `password`, `setup` or a provider's name; empty where there was none
    session: str
    #: `done` or `refused`
    outcome: AuditOutcome
    #: how many refusals of one kind it stands for
    count: int
    #: when the first of these was; null for what was done
    since: str | None
    #: of the request, as the log names it; empty for a command and the system
    request_id: str
    #: where the request came from; null where it came from nowhere, and once 30 days are over
    address: str | None

    @property
    def who(self) -> str:
        """The actor, and the token that was used, for people to read."""
        if self.token is None:
            return f"{self.by} ({self.session})" if self.session else self.by
        if self.outcome is AuditOutcome.REFUSED and self.by == ANONYMOUS:
            return self.by
        return f"{self.by} (token {self.token.name}, {self.token.id})"


class AuditAnswer(Wire, frozen=True):
    """Entries, the latest first. With a filter a page may be short, or empty, while there is more."""

    items: tuple[AuditView, ...]
    #: asks for older ones; null on the last page
    before: str | None
    #: asks for newer ones; null where these are the latest
    after: str | None
    #: records that could not be read; the log names them
    skipped: int


class FollowAudit(ActionRequest, frozen=True, kw_only=True):
    """Where to go on."""

    #: the `after` of the last answer; from the first entry if left out
    after: Annotated[str, msgspec.Meta(max_length=400)] = ""
    #: how many at most
    limit: PageSize = 200


class AuditTailView(Wire, frozen=True):
    """Entries in the order of their commits, the oldest first. One can come again, with the same id."""

    items: tuple[AuditView, ...]
    #: asks for those that follow, now or later
    after: str
    #: records that could not be read; the log names them
    skipped: int


async def follow(request: FollowAudit) -> AuditTailView:
    return AuditTailView.of(await follow_audit(request.after, limit=request.limit))


async def read_audit(request: ReadAudit) -> AuditAnswer:
    if request.before and request.after:
        raise InvalidInput(
            "An entry cannot be asked for from both sides.", field="after", fix="leave one out"
        )
    wanted = AuditFilter(request.who, request.what, request.about, request.outcome)
    before = request.before
    if request.until and not (before or request.after):
        before = sortable_id(_parse_time(request.until) + 1, 0)
    page = await list_audit(before=before, after=request.after, limit=request.limit, wanted=wanted)
    return AuditAnswer.of(page)


def _parse_time(text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
        return max(int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000), 0)
    except (ValueError, OverflowError):
        fix = "write it as in 2026-11-18T03:20Z"
        raise InvalidInput(f"{text[:80]!r} is no time.", field="until", fix=fix) from None


FOLLOW_AUDIT = action(
    follow,
    "audit.follow",
    "/api/v1/admin/audit/after",
    method="GET",
    right=Right.ADMIN,
    summary="Read the audit forward, to keep it elsewhere",
    about="Each entry at least once: drop what has an id that you know. Ask again with `after` for what is new.",
    command="",
)
READ_AUDIT = action(
    read_audit,
    "audit.list",
    "/api/v1/admin/audit",
    right=Right.ADMIN,
    summary="List who did what, the latest first",
)
