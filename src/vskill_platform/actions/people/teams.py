"""Teams: accounts that a namespace names as one member. Admins create them and set their members; a team's members and
reviewers may see it. Membership is read on every request, so a change takes effect at once."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, NoParameters, Wire
from vskill_core.errors import Conflict, InvalidInput, NotFound
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.domain.people.namespace import MOST_TEAM, Team
from vskill_platform.setting_issuers import GROUP_PREFIX
from vskill_platform.store.people.accounts import check_name, find_enabled, read_user
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import change_team, read_directory

TEAMS = "/api/v1/teams"
_ONE = f"{TEAMS}/{{name}}"

TeamName = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
TeamMember = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
Accounts = Annotated[tuple[TeamMember, ...], msgspec.Meta(min_length=1, max_length=200)]


class TeamRequest(ActionRequest, frozen=True, kw_only=True):
    """One team."""

    name: TeamName


class ExplainedTeam(TeamRequest, frozen=True, kw_only=True):
    """One team, and why."""

    #: why; kept in the audit
    reason: Reason


class ChangeTeam(ExplainedTeam, frozen=True, kw_only=True):
    """Accounts to add to a team, or to remove from it."""

    #: names of accounts, with spaces or commas between them; `oidc:ISSUER:GROUP` is everybody in a group
    accounts: Accounts


class TeamView(Wire, frozen=True):
    """A team."""

    name: str
    #: accounts by name, and groups at an issuer
    members: tuple[str, ...]
    #: namespaces that name the team as a member
    namespaces: tuple[str, ...]
    created_at: str


class TeamList(Wire, frozen=True):
    """Teams by name."""

    teams: tuple[TeamView, ...]


# Reading.


async def list_teams(actor: Principal, _request: NoParameters) -> TeamList:
    teams = (await read_directory()).teams
    return TeamList(tuple([await _view(teams[name]) for name in sorted(teams) if _sees(actor, teams[name])]))


async def show(actor: Principal, request: TeamRequest) -> TeamView:
    team = await find_team(actor, request.name)
    return await _view(_require(team, request.name))


async def find_team(actor: Principal, name: str) -> Team | None:
    team = (await read_directory()).teams.get(name)
    return team if team is not None and _sees(actor, team) else None


def _sees(actor: Principal, team: Team) -> bool:
    return actor.is_reviewer or not {actor.account, *actor.groups}.isdisjoint(team.members)


# Changing.


async def create(services: Services, actor: Principal, request: ExplainedTeam) -> TeamView:
    check_name(request.name)

    async def make(known: Team | None) -> Team:
        if known is not None:
            raise _TeamExists(f"The team {request.name!r} already exists.", team=request.name)
        if (await read_user(request.name))[0] is not None:
            message = (
                f"The account {request.name!r} already exists, and teams and accounts share their names."
            )
            raise _TeamExists(message, field="name", fix="choose another name")
        return Team(request.name, created_at=services.kv.now())

    return await _changed(await change_team(request.name, make, _note("team created", actor, request)))


class _TeamExists(InvalidInput):
    """The name is taken."""

    status = 409


async def add(services: Services, actor: Principal, request: ChangeTeam) -> TeamView:
    accounts = split_names(*request.accounts)
    issuers = tuple(one.name_of("") for one in services.settings.issuers)
    for account in accounts:
        if account.startswith(GROUP_PREFIX):
            if not account.startswith(issuers) or account in issuers:
                fix = f"write {' or '.join(f'{one}GROUP' for one in issuers) or 'accounts: no issuer is set up'}"
                raise InvalidInput(f"{account!r} is no group of an issuer.", field="accounts", fix=fix)
        elif await find_enabled(account) is None:
            message = f"There is no account {account!r}."
            raise InvalidInput(message, field="accounts", fix="name accounts of this registry")

    async def grow(known: Team | None) -> Team:
        team = _require(known, request.name)
        members = tuple(sorted({*team.members, *accounts}))
        if len(members) > MOST_TEAM:
            message = f"A team has at most {MOST_TEAM:,} members."
            raise InvalidInput(message, field="accounts", fix="make another team")
        return msgspec.structs.replace(team, members=members)

    note = _note("team: members added", actor, request, ", ".join(accounts))
    return await _changed(await change_team(request.name, grow, note))


async def remove(actor: Principal, request: ChangeTeam) -> TeamView:
    accounts = split_names(*request.accounts)

    async def shrink(known: Team | None) -> Team:
        team = _require(known, request.name)
        for account in accounts:
            if account not in team.members:
                raise NotFound(f"{account} is no member of the team {team.name}.", team=team.name)
        left = tuple(one for one in team.members if one not in accounts)
        return msgspec.structs.replace(team, members=left)

    note = _note("team: members removed", actor, request, ", ".join(accounts))
    return await _changed(await change_team(request.name, shrink, note))


async def delete(actor: Principal, request: ExplainedTeam) -> None:
    """Refuse while a namespace names the team: a later team of that name would get its rights."""

    async def end(known: Team | None) -> None:
        _require(known, request.name)
        named_in = await _namespaces_of(request.name)
        if named_in:
            message = f"The team {request.name} is a member of {', '.join(named_in)}."
            raise _InUse(message, team=request.name, field="name", fix="remove it there first")

    await change_team(request.name, end, _note("team deleted", actor, request))


class _InUse(InvalidInput):
    """A namespace names the team."""

    status = 409


def split_names(*texts: str) -> list[str]:
    """Split account names that people separate by spaces, commas or lines."""
    return [name for text in texts for name in text.replace(",", " ").split()]


def _require(team: Team | None, name: str) -> Team:
    if team is None:
        raise NotFound(f"There is no team {name!r}.", team=name)
    return team


def _note(verb: str, actor: Principal, request: ExplainedTeam, accounts: str = "") -> AuditNote:
    details = {"accounts": accounts} if accounts else {}
    return AuditNote(verb, request.name, actor.actor, request.reason, details)


async def _changed(team: Team | None) -> TeamView:
    if team is None:
        raise NotFound("The team was deleted meanwhile.")
    return await _view(team)


async def _view(team: Team) -> TeamView:
    return TeamView.of(team, namespaces=await _namespaces_of(team.name))


async def _namespaces_of(team: str) -> tuple[str, ...]:
    named = f"team:{team}"
    namespaces = (await read_directory()).namespaces
    return tuple(
        sorted(
            name
            for name, one in namespaces.items()
            if any(member.principal == named for member in one.members)
        )
    )


LIST_TEAMS = action(
    list_teams,
    "team.list",
    TEAMS,
    right=Right.SIGNED_IN,
    summary="List the teams that you belong to",
    about="Reviewers and admins see all of them.",
)
SHOW_TEAM = action(
    show,
    "team.show",
    _ONE,
    right=Right.SIGNED_IN,
    errors=(NotFound,),
    summary="Show a team",
    about="One that you do not belong to is not found, unless you review.",
)
CREATE_TEAM = action(
    create,
    "team.create",
    _ONE,
    right=Right.ADMIN,
    errors=(Conflict,),
    status=201,
    summary="Make an empty team",
)
ADD_TO_TEAM = action(
    add,
    "team.add",
    f"{_ONE}/add",
    right=Right.ADMIN,
    errors=(NotFound,),
    summary="Add accounts to a team",
    about="They belong to every namespace that names the team, from their next request on.",
)
REMOVE_FROM_TEAM = action(
    remove,
    "team.remove",
    f"{_ONE}/remove",
    right=Right.ADMIN,
    errors=(NotFound,),
    summary="Remove accounts from a team",
    about="What they could read by the team they cannot read from then on.",
)
DELETE_TEAM = action(
    delete,
    "team.delete",
    f"{_ONE}/delete",
    right=Right.ADMIN,
    errors=(NotFound, Conflict),
    status=204,
    summary="Delete a team",
    about="Not while a namespace names it; the error says which.",
)
