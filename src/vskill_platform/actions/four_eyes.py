"""Four eyes: whether somebody decides about their own submission. It is marked wherever it happens, and the setting
VSKILL_FOUR_EYES forbids it."""

from vskill_core.errors import NotPermitted
from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import Principal
from vskill_platform.domain.submissions.submission import Submission

#: What the public history says beside the reason.
OWN_MARK = "(decided by its submitter)"


def is_own(actor: Principal, record: Submission) -> bool:
    return actor.account is not None and actor.account == record.submitter


def require_other_eyes(services: Services, actor: Principal, record: Submission) -> None:
    """NotPermitted where the actor submitted it, and the registry asks for a second person."""
    if is_own(actor, record) and services.settings.four_eyes == "on":
        raise NotPermitted(
            "You submitted this yourself, and this registry asks for a second person (VSKILL_FOUR_EYES).",
            submission=record.id,
            fix="ask another reviewer",
        )


def mark_own(actor: Principal, record: Submission, reason: str) -> str:
    """The reason as the history shows it."""
    return f"{reason} {OWN_MARK}" if is_own(actor, record) else reason
