"""The policy: what is in force for everybody to read, a text checked before it is set, and setting it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, Wire, iso_time
from vskill_core.errors import InvalidInput, TransitionError
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.principal import Principal, Right, audiences_of
from vskill_platform.domain.verdicts.policy import LONGEST_TEXT, Policy, load_policy
from vskill_platform.settings import describe_unmet
from vskill_platform.store.verdicts.policy import PolicyInForce, read_policy, set_policy
from vskill_platform.store.verdicts.policy_figures import PolicyFigures, read_policy_figures

POLICY = "/api/v1/policy"
_NONE: Mapping[str, PolicyFigures] = MappingProxyType({})
#: Its length is refused with a line and a column, as everything else that is wrong with it.
PolicyBody = Annotated[str, msgspec.Meta(max_length=10 * LONGEST_TEXT)]


class PolicyToCheck(ActionRequest, frozen=True, kw_only=True):
    """A text."""

    #: the policy, in YAML
    text: PolicyBody


class PolicyToSet(ActionRequest, frozen=True, kw_only=True):
    """A text that is to be in force."""

    #: the policy, in YAML
    text: PolicyBody
    #: why; it stands in the audit
    reason: Reason
    #: the digest of the policy that it replaces; where another one is in force, nothing is set
    replaces: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{64})?$")] = ""


class RuleView(Wire, frozen=True):
    """A rule of the policy."""

    name: str
    #: an expression over the facts
    when: str
    #: refuse, review or note, or how long it waits, such as `wait 3d`
    then: str
    #: what it says to author and reviewer
    say: str
    #: within 30 days: submissions that you may read and that it matched
    matched: int = 0
    #: of those that a reviewer then decided about: rejected, and approved
    agreed: int = 0
    disagreed: int = 0


class PolicyView(Wire, frozen=True):
    """A policy, with all that it extends."""

    text: str
    #: names the keys and rules, those that it extends included
    digest: str
    rules: tuple[RuleView, ...]
    #: owners whose skills count as a trusted vendor's
    trusted: tuple[str, ...]
    #: hosts that never count as unknown
    own_hosts: tuple[str, ...]
    #: judges that must have answered, and analysers that must pass a skill
    judges: int
    analysers: tuple[str, ...]
    #: why it cannot be used, so that everything goes to a reviewer
    problem: str = ""
    #: who set it, when and why; None where the setting VSKILL_POLICY says it
    set_by: str | None = None
    set_at: str | None = None
    reason: str | None = None


async def show(reader: Principal, _request: NoParameters) -> PolicyView:
    return await _view_in_force(reader, await read_policy())


async def check(services: Services, request: PolicyToCheck) -> PolicyView:
    return _view(load_for_here(services, request.text))


async def set_text(services: Services, actor: Principal, request: PolicyToSet) -> PolicyView:
    load_for_here(services, request.text)
    replaced = request.replaces
    done = await set_policy(request.text, replaced, by=actor.actor, reason=request.reason)
    return await _view_in_force(actor, done)


def load_for_here(services: Services, text: str) -> Policy:
    """A text that is valid, and whose needs this registry can meet."""
    policy = load_policy(text)
    needs = policy.keys.needs
    if unmet := describe_unmet(services.settings, needs.judges, needs.analysers):
        raise InvalidInput(f"The policy cannot be met here: {unmet}.", field="text", fix="configure it first")
    return policy


def _view(policy: Policy, figures: Mapping[str, PolicyFigures] = _NONE, **more: Any) -> PolicyView:
    keys = policy.keys
    counted = {name: msgspec.structs.asdict(figures.get(name, PolicyFigures())) for name in policy.rules}
    return PolicyView(
        text=policy.text,
        digest=policy.digest,
        rules=tuple(
            RuleView.of(rule.text, then=rule.text.effect, **counted[name])
            for name, rule in policy.rules.items()
        ),
        trusted=keys.trusted,
        own_hosts=keys.own_hosts,
        judges=keys.needs.judges,
        analysers=keys.needs.analysers,
        **more,
    )


async def _view_in_force(reader: Principal, found: PolicyInForce) -> PolicyView:
    figures = await read_policy_figures(audiences_of(reader))
    view, stored = _view(found.policy, figures, problem=found.problem), found.stored
    if stored is None:
        return view
    # A text that cannot be used has no policy of its own.
    at = iso_time(stored.at)
    return msgspec.structs.replace(view, text=stored.text, set_by=stored.by, set_at=at, reason=stored.reason)


SHOW_POLICY = action(
    show,
    "policy.show",
    POLICY,
    method="GET",
    right=Right.ANYONE,
    summary="Show the policy that is in force",
    about="It says what is not published without a reviewer, and what is refused.",
)
CHECK_POLICY = action(
    check,
    "policy.check",
    f"{POLICY}/check",
    right=Right.ADMIN,
    errors=(InvalidInput,),
    summary="Check a policy without setting it",
    about="What is wrong with it is told with its line and column.",
)
SET_POLICY = action(
    set_text,
    "policy.set",
    POLICY,
    right=Right.ADMIN,
    errors=(InvalidInput, TransitionError),
    summary="Set the policy for all processes",
    about="It counts for every decision from now on. What is live or waits for a reviewer stays as it is.",
)
