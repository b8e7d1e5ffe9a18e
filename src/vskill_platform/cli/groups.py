"""The groups of commands that are made from actions, in one table: wing, name and help of each. The commands of `GROUP`
are in the wing's module `GROUP_commands`."""

from importlib import import_module

import click

from vskill_client.group import PlatformGroup


class ActionGroup(PlatformGroup):
    """A group whose module is loaded when a command of it is asked for, so that `--help` of the executable is fast."""

    def __init__(self, wing: str, name: str, text: str) -> None:
        super().__init__(name, help=text)
        self._module = f"{__package__}.{wing}.{name}_commands"

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._load()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._load()
        return super().get_command(ctx, cmd_name)

    def _load(self) -> None:
        for command in import_module(self._module).COMMANDS:
            self.add_command(command)


_WINGS = {
    "people": {
        "access": "Say whom the registry lets in, and who may submit.",
        "account": "Manage your own account: its password, tokens and sessions.",
        "admin": "Manage accounts: authors, reviewers, admins.",
        "credential": "Let the registry fetch a namespace's private repositories.",
        "namespace": "Manage namespaces: their members, who may read them, and their quotas.\n\n"
        "A namespace is the first part of a skill's full name, such as `acme` or `upload~mia`.\n\n"
        "On this machine, `--as ACCOUNT` before `namespace` says who acts.",
        "owner": "Claim repositories, and hand them over.\n\n"
        "An owner may also withdraw versions and delete skills, with `skill`.\n\n"
        "On this machine, `--as ACCOUNT` before `owner` says who acts.",
        "publisher": "Say which CI workflows may submit a repository without a stored secret.",
        "team": "Manage teams; a namespace names one as `team:NAME`.",
        "token": "Manage the API tokens of accounts; `account` has your own.",
    },
    "skills": {
        "collection": "Curate collections of verified skills; each has an address for Claude Code.",
        "follow": "Follow repositories, so that their skills are submitted as they come and change.",
        "repo": "See whether the repositories of published skills are still there.",
        "upstream": "Have skills of other marketplaces and registries verified here.",
        "skill": "Look at published skills, withdraw versions and bring them back.",
    },
    "recall": {"block": "Keep skills from being published, and take down those that are."},
    "submissions": {
        "bundle": "Carry verified skills, signed, into a registry without a network.",
        "submission": "List submissions; cancel, rerun or appeal one, read what was found in it, "
        "and what was submitted together.",
    },
    "verdicts": {
        "memory": "See what submissions are compared with, and set another file.",
        "policy": "Say what is not published without a reviewer, and what is refused.",
    },
    "review": {
        "report": "Report a skill; decide about the reports of users.",
        "review": "Decide about submissions that wait for a reviewer.",
    },
    "telling": {
        "notification": "Read what you were told, and have it mailed to you once a day.",
        "watch": "Choose the skills and namespaces that you are told of.",
        "webhook": "Tell other systems what is decided, by signed requests.",
    },
    "operation": {
        "audit": "See who did what, when and why.",
        "content": "See which stored content is damaged, repair it, and collect what is not needed.",
        "queue": "Look at the queue, recover, pause and resume it.",
    },
}
GROUPS = {
    name: ActionGroup(wing, name, text) for wing, groups in _WINGS.items() for name, text in groups.items()
}
