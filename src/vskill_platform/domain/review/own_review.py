"""Own review: in a namespace that reviews itself, maintainers decide about what others submitted there.

What they approve is a *team approval*. It publishes for the namespace's team and for nobody else: the skill stays
narrowed to the team, whatever becomes of the namespace, until a reviewer of the registry agrees. So nothing passes by
every reviewer by being approved first and shown afterwards. What is critical, known to be bad or strongly malicious is
never theirs to decide (`Decision.own_review`).
"""

from vskill_platform.domain.people.namespace import (
    Directory,
    Namespace,
    NamespaceRole,
    OwnReview,
    Reviewers,
    Visibility,
    audience_for,
    namespace_of,
    role_of,
)
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import MOST_SUBMITTERS, Submission

_HIDDEN = frozenset({Visibility.INTERNAL, Visibility.TEAM})


def reviews_itself(namespace: Namespace, directory: Directory) -> bool:
    """Whether its maintainers decide now: its owners want it, no admin forbids it, and it is not public."""
    is_allowed = directory.access.own_review is OwnReview.ALLOWED
    return is_allowed and namespace.review is Reviewers.OWN and namespace.visibility in _HIDDEN


def namespaces_reviewed_by(directory: Directory, account: str, groups: frozenset[str]) -> frozenset[str]:
    """Those that review themselves and that this account maintains as a whole, not a repository of them."""
    own = [name for name, one in directory.namespaces.items() if reviews_itself(one, directory)]
    principals = directory.principals(account, groups) if own else frozenset()
    roles = ((name, role_of(directory.namespaces[name], account, principals)) for name in own)
    return frozenset(name for name, role in roles if role and role.rank >= NamespaceRole.MAINTAINER.rank)


def team_audience(record: Submission, directory: Directory) -> str:
    """The audience of what only its own people approved."""
    name = namespace_of(record.identity)
    return audience_for(directory.namespaces.get(name), name, Visibility.TEAM)


def why_reserved(record: Submission, directory: Directory) -> str | None:
    """Why only reviewers of the registry decide about it, as a sentence; None where maintainers may."""
    namespace = directory.namespaces.get(namespace_of(record.identity))
    if namespace is None or not reviews_itself(namespace, directory):
        return "Its namespace does not review itself."
    decision = record.decision
    if record.state is not State.NEEDS_REVIEW or decision is None or not decision.own_review or record.appeal:
        return "It waits for a reason about which only reviewers of the registry decide."
    is_unknown = record.submitter_unknown or record.publisher is not None or not record.submitters
    if is_unknown or len(record.submitters) >= MOST_SUBMITTERS:
        return "Not everybody who submitted it is known, so a reviewer of the registry decides."
    is_team_only = record.audience == team_audience(record, directory)
    if record.published is not None and namespace.visibility is not Visibility.TEAM and not is_team_only:
        return "Others than its team read the skill already, so a reviewer of the registry decides."
    return None


def why_not_own(record: Submission, directory: Directory, account: str, groups: frozenset[str]) -> str | None:
    """Why this account may not decide about it as a maintainer of its namespace, as a sentence; None where it may."""
    name = namespace_of(record.identity)
    if name not in namespaces_reviewed_by(directory, account, groups):
        return f"Only reviewers, and maintainers of {name} while it reviews itself, may do this."
    if account in record.submitters:
        return "You submitted it yourself, so somebody else decides."
    principals = directory.principals(account, groups)
    place = record.identity.repo_key
    if any(one.repo == place and one.principal in principals for one in directory.namespaces[name].members):
        return "You proved that its repository is yours, so somebody else decides."
    return why_reserved(record, directory)
