"""The audit, for admins: who did what to what, when and why."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire
from vskill_platform.actions.action import PageSize, action
from vskill_platform.actions.principal import Right
from vskill_platform.store.people.audit import follow_audit, list_audit


class ReadAudit(ActionRequest, frozen=True, kw_only=True):
    """Which page of the audit."""

    #: only entries older than the one with this id
    before: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] | None = None
    #: how many to show on a page
    limit: PageSize = 50


class UsedToken(Wire, frozen=True):
    """The token that something was done with."""

    id: str
    name: str


class AuditView(Wire, frozen=True):
    """Something that was done."""

    id: str
    at: str
    #: `system`, `worker:<id>`, `admin:<name>` or `user:<name>`
    by: str
    #: such as `block` or `owner added`
    action: str
    #: what it was done to
    target: str
    reason: str
    details: dict[str, str]
    #: null for a session, a command and the system
    token: UsedToken | None

    @property
    def who(self) -> str:
        """The actor, and the token that was used, for people to read."""
        return self.by if self.token is None else f"{self.by} (token {self.token.name}, {self.token.id})"


class AuditAnswer(Wire, frozen=True):
    """Entries, the latest first."""

    items: tuple[AuditView, ...]
    #: asks for the next page; null on the last
    before: str | None
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
    return AuditAnswer.of(await list_audit(before=request.before, limit=request.limit))


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
    method="GET",
    right=Right.ADMIN,
    summary="List who did what, the latest first",
)
