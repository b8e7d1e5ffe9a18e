"""Who may act on a submission: a reviewer on any; an account on what it submitted itself, and on whatever lies in a
repository that it has proved to control or in its own namespace. Having been the first to submit gives nothing."""

from vskill_platform.actions.principal import Principal
from vskill_platform.actions.rights import CLAIM_FIX, ActionObject, Right, may
from vskill_platform.domain.errors import NotPermitted, NotSignedIn
from vskill_platform.domain.submission import Submission


async def may_act(principal: Principal, record: Submission) -> bool:
    submitters = (record.submitter,) if record.submitter else ()
    return await may(principal, Right.SUBMITTER, ActionObject(record.identity, submitters))


async def require_rights(principal: Principal, record: Submission) -> None:
    """NotSignedIn or NotPermitted, with what would give the right."""
    if principal.account is None:
        raise NotSignedIn(
            "Sign in first: only whoever submitted it, or controls the repository, may do that."
        )
    if not await may_act(principal, record):
        message = "Only whoever submitted it, controls its repository, or reviews may do that."
        raise NotPermitted(message, submission=record.id, fix=CLAIM_FIX)
