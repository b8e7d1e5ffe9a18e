"""The groups of commands that are made from actions, in one table: name, module of the commands, help."""

from importlib import import_module
from typing import Any

import click

from vskill_client.group import PlatformGroup


class ActionGroup(PlatformGroup):
    """A group whose commands are those of a module, which is loaded when one is asked for, so that `--help` of the
    executable stays fast."""

    def __init__(self, name: str, *, commands_in: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._commands_in = commands_in

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._load()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._load()
        return super().get_command(ctx, cmd_name)

    def _load(self) -> None:
        for command in import_module(self._commands_in).COMMANDS:
            self.add_command(command)


GROUPS = {
    str(group.name): group
    for group in (
        ActionGroup(
            "access",
            commands_in="vskill_platform.cli.people.access_commands",
            help="Say whom the registry lets in, and who may submit.",
        ),
        ActionGroup(
            "account",
            commands_in="vskill_platform.cli.people.account_commands",
            help="Manage your own account: its password, tokens and sessions.",
        ),
        ActionGroup(
            "admin",
            commands_in="vskill_platform.cli.people.admin_commands",
            help="Manage accounts: authors, reviewers, admins.",
        ),
        ActionGroup(
            "audit",
            commands_in="vskill_platform.cli.operation.audit_commands",
            help="See who did what, when and why.",
        ),
        ActionGroup(
            "block",
            commands_in="vskill_platform.cli.recall.block_commands",
            help="Keep skills from being published, and take down those that are.",
        ),
        ActionGroup(
            "collection",
            commands_in="vskill_platform.cli.skills.collection_commands",
            help="Curate collections of verified skills; each has an address for Claude Code.",
        ),
        ActionGroup(
            "content",
            commands_in="vskill_platform.cli.operation.content_commands",
            help="See which stored content is damaged, repair it, and collect what is not needed.",
        ),
        ActionGroup(
            "namespace",
            commands_in="vskill_platform.cli.people.namespace_commands",
            help="Manage namespaces: their members, who may read them, and their quotas.\n\n"
            "A namespace is the first part of a skill's full name, such as `acme` or `upload~mia`.\n\n"
            "On this machine, `--as ACCOUNT` before `namespace` says who acts.",
        ),
        ActionGroup(
            "notification",
            commands_in="vskill_platform.cli.telling.notification_commands",
            help="Read what you were told, and have it mailed to you once a day.",
        ),
        ActionGroup(
            "owner",
            commands_in="vskill_platform.cli.people.owner_commands",
            help="Claim repositories, and hand them over.\n\n"
            "An owner may also withdraw versions and delete skills, with `skill`.\n\n"
            "On this machine, `--as ACCOUNT` before `owner` says who acts.",
        ),
        ActionGroup(
            "queue",
            commands_in="vskill_platform.cli.operation.queue_commands",
            help="Look at the queue, recover, pause and resume it.",
        ),
        ActionGroup(
            "repo",
            commands_in="vskill_platform.cli.skills.repo_commands",
            help="See whether the repositories of published skills are still there.",
        ),
        ActionGroup(
            "report",
            commands_in="vskill_platform.cli.review.report_commands",
            help="Report a skill; decide about the reports of users.",
        ),
        ActionGroup(
            "review",
            commands_in="vskill_platform.cli.review.review_commands",
            help="Decide about submissions that wait for a reviewer.",
        ),
        ActionGroup(
            "skill",
            commands_in="vskill_platform.cli.skills.skill_commands",
            help="Look at published skills, withdraw versions and bring them back.",
        ),
        ActionGroup(
            "submission",
            commands_in="vskill_platform.cli.submissions.submission_commands",
            help="List submissions; cancel, rerun or appeal one, read what was found in it, "
            "and what was submitted together.",
        ),
        ActionGroup(
            "team",
            commands_in="vskill_platform.cli.people.team_commands",
            help="Manage teams; a namespace names one as `team:NAME`.",
        ),
        ActionGroup(
            "token",
            commands_in="vskill_platform.cli.people.token_commands",
            help="Manage the API tokens of accounts; `account` has your own.",
        ),
        ActionGroup(
            "watch",
            commands_in="vskill_platform.cli.telling.watch_commands",
            help="Choose the skills and namespaces that you are told of.",
        ),
        ActionGroup(
            "webhook",
            commands_in="vskill_platform.cli.telling.webhook_commands",
            help="Tell other systems what is decided, by signed requests.",
        ),
    )
}
