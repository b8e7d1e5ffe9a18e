"""The table holds every action, and each is reached by the API, a page and a command."""

import importlib
import pkgutil
from typing import Any, cast

import click
import msgspec
import pytest

import vskill_platform.actions
from tools.tables import page_of
from vskill_client.wire.base import NoParameters
from vskill_platform.actions.action import Action, Services, action
from vskill_platform.actions.principal import ANYBODY, Principal, Right
from vskill_platform.actions.table import ACTIONS
from vskill_platform.cli import cli
from vskill_platform.domain.people.token import TokenScope
from vskill_platform.web.app import ENDPOINTS

#: Actions that no page offers, each with the reason.
NO_PAGE = {
    "audit.follow": "for programs; the page has the latest first",
    "content.collect": "the job does it; a look beforehand is an operator's command",
    "keys.list": "keys are for programs",
    "memory.update": "a file that a tool made, sent by the command",
    "repository.check": "the schedule checks every repository daily",
    "repository.health": "a skill's page shows what is known of its repository",
    "repository.list": "a skill's page shows what is known of its repository",
    "skill.count_install": "clients count what they install",
    "token.create-for": "people make their own on their account's page; this one is for accounts of programs",
}
#: Actions without a command, each with the reason.
NO_COMMAND = {
    "audit.follow": "`audit tail` follows it",
    "blocklist.check": "`verify` and `skill security` tell it",
    "blocklist.read": "`block list` shows the entries with who made them",
    "review.bulk": "a shell loop over the commands for one submission does it",
    "revocation.follow": "`verify` tells what concerns an installed skill",
    "scan.external": "`skill security` tells what other analysers say",
    "scan.external-report": "`skill security` tells what other analysers say",
    "skill.facets": "the counts help to narrow a list on a page",
    "skill.versions": "`skill show` lists the versions",
    "submission.discover": "`submit` finds the skills of a repository by itself",
    "submission.positions": "`status` shows where a submission stands",
    "submission.submit-many": "`submit` takes many targets",
    "system.overview": "`review list`, `report list` and `queue health` say it",
    "system.settings": "a command has settings of its own; `doctor` checks those",
    "judge.show": "`doctor` says which judges this machine has",
    "judge.try": "`judge evaluate` asks them about as many skills as one likes",
    "system.storage": "`doctor` looks at the same, and at more",
}


def test_every_module_with_actions_is_in_the_table():
    modules = [
        importlib.import_module(one.name)
        for one in pkgutil.walk_packages(vskill_platform.actions.__path__, "vskill_platform.actions.")
        if not one.name.endswith(".table")
    ]
    declared = [one for module in modules for one in vars(module).values() if isinstance(one, Action)]
    assert set(map(id, declared)) == set(map(id, ACTIONS)), "put its module into actions/table.py"
    assert len({action.name for action in ACTIONS}) == len(ACTIONS)


def test_every_action_has_a_page_or_says_why_not():
    without = {action.name for action in ACTIONS if not page_of(action)}
    forgotten, needless = without - NO_PAGE.keys(), NO_PAGE.keys() - without
    assert not forgotten, f"name them in a page or form of web/pages, or here in NO_PAGE: {sorted(forgotten)}"
    assert not needless, f"remove them from NO_PAGE: {sorted(needless)}"


def test_a_page_shows_only_what_there_is():
    shown = {name for endpoint in ENDPOINTS for name in endpoint.shows}
    assert shown <= {action.name for action in ACTIONS}, "names of actions are misspelt in `shows` of a page"


def test_every_action_has_a_command_or_says_why_not():
    without = {action.name for action in ACTIONS if not action.command}
    assert without == NO_COMMAND.keys(), "give the action a command, or say in NO_COMMAND why it has none"
    lost = [one.name for one in ACTIONS if not _has_command(one)]
    assert not lost, f"put them into COMMANDS of a file `cli/*_commands.py`: {lost}"


def test_an_action_gets_its_types_and_words_from_its_function_and_its_name():
    class Wanted(msgspec.Struct):
        pass

    async def run(request: Wanted) -> str:
        return type(request).__name__

    made = action(run, "dead-letter.put_back", "/x", right=Right.ANYONE, summary="Do it")
    assert (made.request, made.answer) == (Wanted, str)
    assert (made.command, made.tag, made.method) == ("dead-letter put-back", "queue", "POST")


def test_the_scope_follows_from_the_right_unless_it_is_declared():
    async def run(_request: NoParameters) -> None:
        pass

    def scopes(right: Right) -> tuple[str, ...]:
        made = (
            action(run, "x.y", "/x", right=right, method=method, summary="Do it")
            for method in ("GET", "POST")
        )
        return tuple(one.scope.value for one in made)

    assert {right: scopes(right) for right in Right} == {
        Right.ANYONE: ("read", "submit"),
        Right.READER: ("read", "read"),
        Right.SIGNED_IN: ("read", "own"),
        Right.SUBMITTER: ("read", "submit"),
        Right.MEMBER: ("read", "own"),
        Right.MAINTAINER: ("read", "own"),
        Right.OWNER: ("read", "own"),
        Right.REVIEWER: ("review", "review"),
        Right.OWN_REVIEWER: ("review", "review"),
        Right.ADMIN: ("admin", "admin"),
    }
    declared = action(run, "x.y", "/x", right=Right.ADMIN, scope=TokenScope.READ, summary="Do it")
    assert declared.scope is TokenScope.READ


@pytest.mark.anyio
async def test_a_function_is_called_with_what_it_takes():
    class Wanted(msgspec.Struct):
        pass

    async def all_three(services: Services, actor: Principal, request: Wanted) -> tuple[object, ...]:
        return services, actor, request

    async def no_services(actor: Principal, request: Wanted) -> tuple[object, ...]:
        return actor, request

    async def no_principal(services: Services, request: Wanted) -> tuple[object, ...]:
        return services, request

    async def alone(request: Wanted) -> tuple[object, ...]:
        return (request,)

    services, request = cast("Services", object()), Wanted()
    declared: dict[str, Any] = {"right": Right.ANYONE, "summary": "Do it"}
    given = [
        await action(run, "x.y", "/x", **declared).run(services, ANYBODY, request)
        for run in (all_three, no_services, no_principal, alone)
    ]
    assert given == [(services, ANYBODY, request), (ANYBODY, request), (services, request), (request,)]


def test_a_summary_is_a_sentence_without_its_full_stop():
    assert all(one.summary[0].isupper() and not one.summary.endswith(".") for one in ACTIONS)


def _has_command(declared: Action[Any, Any]) -> bool:
    command: click.Command | None = cli
    for word in declared.command.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    return command is not None


def test_a_route_that_is_declared_by_hand_is_there():
    there = {(one.method, shape_of(one.path)) for one in ENDPOINTS}
    by_hand = [action for action in ACTIONS if action.route_by_hand]
    asked = {(one.method, shape_of(one.path.replace("{skill}", "{owner}/{repo}/{slug}"))) for one in by_hand}
    assert by_hand and asked <= there


def shape_of(path: str) -> str:
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))
