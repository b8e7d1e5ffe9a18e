"""The commands of the policy: show, check, try and set it, and look at live versions by it."""

import click

from vskill_platform.actions.verdicts import policy, policy_trials
from vskill_platform.cli.action_commands import command_for, each, table, when
from vskill_platform.cli.verdicts.policy_trial import try_policy

_FILE = click.Argument(
    ["text"],
    metavar="FILE",
    type=click.File(encoding="utf-8"),
    callback=lambda _context, _parameter, file: file.read(),
)
_RULES = table("{#rules:rule}", "rules", "name", "then", "when")

COMMANDS = (
    command_for(
        policy.SHOW_POLICY,
        when("problem", "It cannot be used, so everything goes to a reviewer: {problem}"),
        each(lambda shown: shown.text.splitlines(), "{}"),
        _RULES,
        when("set_by", "Set by {set_by}, {set_at}: {reason}", "VSKILL_POLICY names it; none was set since."),
        "Digest {digest}",
    ),
    try_policy,
    command_for(policy.CHECK_POLICY, "It is valid.", _RULES, options={"text": _FILE}),
    command_for(policy_trials.RESCAN_BY_POLICY, "{summary}"),
    command_for(
        policy.SET_POLICY,
        "The policy is set: {#rules:rule}, digest {digest}.",
        "Live versions stay as they are; `policy rescan` has a reviewer look at those that it would not publish.",
        options={"text": _FILE},
    ),
)
