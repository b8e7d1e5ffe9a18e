"""The audit, for admins: who did what to what, when and why."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire
from vskill_platform.actions.action import PageSize, action
from vskill_platform.actions.principal import Right
from vskill_platform.store.people.audit import list_audit


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


async def read_audit(request: ReadAudit) -> AuditAnswer:
    return AuditAnswer.of(await list_audit(before=request.before, limit=request.limit))


READ_AUDIT = action(
    read_audit,
    "audit.list",
    "/api/v1/admin/audit",
    method="GET",
    right=Right.ADMIN,
    summary="List who did what, the latest first",
)
