"""Following repositories: every skill of one is submitted as it comes, and again as it changes. A maintainer of the
repository decides; the checks are those of `stages.repo_check`."""

from typing import Annotated

import msgspec

from vskill_client.wire.base import ActionRequest, Wire, iso_time
from vskill_core.errors import InvalidInput, NotFound
from vskill_platform.actions.action import Actions, Allowance, NamespaceName, Reason
from vskill_platform.actions.people.namespaces import written
from vskill_platform.actions.people.owners import RepositoryRequest, object_of, repository_of
from vskill_platform.actions.principal import ActionObject, Principal, Right
from vskill_platform.stages.repo_check import ask_for_check
from vskill_platform.store.skills.follows import (
    Follow,
    get_follow,
    list_follows,
    put_follow,
    remove_follow,
)

FOLLOWS = "/api/v1/follows"

BranchName = Annotated[
    str, msgspec.Meta(max_length=255, pattern=r"^([\w+@-][\w.+@-]*(/[\w+@-][\w.+@-]*)*)?$")
]
FolderPattern = Annotated[str, msgspec.Meta(max_length=300, pattern=r"^[^\x00-\x1f\[\]?]*$")]


class ListFollows(ActionRequest, frozen=True, kw_only=True):
    """Whose followed repositories."""

    #: the first part of its skills' full names, such as `acme`
    namespace: NamespaceName


class ShowFollow(RepositoryRequest, frozen=True, kw_only=True):
    """A followed repository."""


class FollowRepository(RepositoryRequest, frozen=True, kw_only=True):
    """A repository to follow, and what of it."""

    #: the branch; the repository's default branch if left out
    branch: BranchName = ""
    #: the folders that are taken in, such as `skills/*`, with `*` for any characters; all if left out
    folders: FolderPattern = ""
    #: why; kept in the audit
    reason: Reason


class Unfollow(RepositoryRequest, frozen=True, kw_only=True):
    """A repository that is followed no longer."""

    #: why; kept in the audit
    reason: Reason


class UntakenFolder(Wire, frozen=True):
    """A folder that was not taken in, and why."""

    #: empty: the whole repository
    path: str
    reason: str


class GoneFolder(Wire, frozen=True):
    """A folder that was taken in, and that the repository does not have any more."""

    path: str
    gone_since: str


class FollowView(Wire, frozen=True):
    """A followed repository, and what its last check found."""

    repo_url: str
    #: empty: the repository's default branch
    branch: str
    #: empty: all
    folders: str
    #: who followed it
    by: str
    created_at: str
    #: null: not checked yet
    checked_at: str | None
    #: what the last look at its folders found; empty before the first one
    found: str
    #: why the last check could not look; empty where it could
    problem: str
    #: how many folders are taken in
    skills: int
    #: the next check tries them again
    untaken: tuple[UntakenFolder, ...]
    #: their skills stay until somebody withdraws them
    gone: tuple[GoneFolder, ...]


class FollowList(Wire, frozen=True):
    """The repositories that a namespace follows, by address."""

    namespace: str
    follows: tuple[FollowView, ...]


async def object_of_list(request: ListFollows) -> ActionObject:
    return ActionObject(namespace=written(request.namespace))


async def list_all(request: ListFollows) -> FollowList:
    name = written(request.namespace)
    return FollowList(name, tuple(map(view_follow, await list_follows(name))))


async def show(request: ShowFollow) -> FollowView:
    return view_follow(await get_follow(repository_of(request.repo_url)))


async def add(actor: Principal, request: FollowRepository) -> FollowView:
    identity = msgspec.structs.replace(repository_of(request.repo_url), path="")
    if ".." in request.branch or request.branch.endswith((".", ".lock")):
        fix = "give its name, such as main"
        raise InvalidInput(f"{request.branch!r} cannot be a branch.", field="branch", fix=fix)
    folders = request.folders.strip("/")
    wanted = Follow(identity=identity, branch=request.branch, folders=folders, by=actor.actor)
    made = await put_follow(wanted, request.reason)
    await ask_for_check(identity)
    return view_follow(made)


async def remove(actor: Principal, request: Unfollow) -> None:
    await remove_follow(repository_of(request.repo_url), by=actor.actor, reason=request.reason)


def view_follow(follow: Follow) -> FollowView:
    state = follow.state
    gone = (GoneFolder(path, iso_time(since)) for path, since in state.gone.items())
    return FollowView.of(
        follow,
        state,
        repo_url=follow.identity.url,
        skills=len(state.taken),
        gone=tuple(gone),
    )


_OF_REPOSITORY = Actions(
    "follow", FOLLOWS, {"right": Right.MAINTAINER, "acts_on": object_of, "errors": (NotFound,)}
)
LIST_FOLLOWS = _OF_REPOSITORY(
    list_all,
    "list",
    "List the repositories that a namespace follows",
    path=FOLLOWS,
    method="GET",
    acts_on=object_of_list,
    errors=(),
)
SHOW_FOLLOW = _OF_REPOSITORY(
    show, "show", "Show a followed repository, and what its last check found", method="GET"
)
FOLLOW = _OF_REPOSITORY(
    add,
    "add",
    "Follow a repository, or change what is followed of it",
    path=FOLLOWS,
    errors=(),
    status=201,
    allowance=Allowance.SUBMISSIONS,
    about="It is checked at once, and every day. Each check submits new folders with a SKILL.md, and changed ones "
    "again, as the namespace. Folders that are "
    "deleted are marked; their skills stay. With a branch, everybody sees the repository as it is on that branch.",
)
UNFOLLOW = _OF_REPOSITORY(
    remove,
    "remove",
    "Follow a repository no longer",
    status=204,
    about="Its skills stay, and are checked as any others.",
)
