"""What counts for a decision beside the reports: a reviewer's approval of these bytes, the operator's trust in their
owner, and the rules that a reviewer judged false for them."""

from typing import TypedDict

from vskill_core.findings import StaticReport
from vskill_core.identity import Identity
from vskill_platform.domain.submissions.submission import Approval
from vskill_platform.store.verdicts.suppressions import suppressed_rules
from vskill_platform.worker_context import require_env


class Grounds(TypedDict):
    """The arguments that `decide` and `decide_rescan` share."""

    approved_by: str | None
    trusted_vendor: bool
    suppressed: frozenset[str]


async def grounds_for(
    identity: Identity, digest: str, approval: Approval | None, report: StaticReport
) -> Grounds:
    """For content of this digest at this place. Where nothing was found, no rule of it is looked up."""
    approved = approval is not None and approval.digest == digest
    return Grounds(
        approved_by=approval.by if approval is not None and approved else None,
        trusted_vendor=_is_trusted(identity),
        suppressed=await suppressed_rules(digest) if report.findings else frozenset(),
    )


def _is_trusted(identity: Identity) -> bool:
    """Whether the operator trusts this owner on this host."""
    listed = (place.partition("/") for place in require_env("settings").settings.trusted_owners)
    trusted = {Identity(host.lower(), owner, "_").repo_key for host, _, owner in listed}
    return Identity(identity.host, identity.owner, "_").repo_key in trusted
