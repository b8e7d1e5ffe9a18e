"""The repositories of published skills: what their last check found, and a check on demand. A check is work for a
worker; what it finds is read here afterwards."""

from vskill_client.wire.base import ActionRequest, Wire
from vskill_core.errors import NotFound
from vskill_core.identity import normalise
from vskill_platform.actions.action import Cursor, PageSize, action
from vskill_platform.actions.people.owners import RepositoryRequest
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.stages.repo_check import ask_for_check
from vskill_platform.store.people.audit import note
from vskill_platform.store.repo_health import Reach, get_health, list_health

REPOSITORIES = "/api/v1/repositories"


class ListRepositories(ActionRequest, frozen=True, kw_only=True):
    """Which repositories, and which page of them."""

    #: only those that the last check found so
    status: Reach | None = None
    #: the `after` of the page before
    after: Cursor | None = None
    #: how many to show on a page
    limit: PageSize = 100


class ShowRepository(RepositoryRequest, frozen=True, kw_only=True):
    """A repository whose last check is shown."""


class CheckRepository(RepositoryRequest, frozen=True, kw_only=True):
    """A repository that is to be checked."""


class RepositoryFacts(Wire, frozen=True):
    """What a repository said about itself when it was last reached."""

    #: null where it has no commit
    commit: str | None
    branch: str | None
    #: when its last commit says that it was made
    committed_at: str | None
    #: an SPDX identifier, `NONE` or `NOASSERTION`; null where it is not known
    licence: str | None
    licence_file: str | None
    #: the address that the host redirects to
    moved_to: str | None
    #: null where it is not known: plain git does not tell
    archived: bool | None


class RepositoryHealth(Wire, frozen=True):
    """What the last check of a repository found."""

    repo: str
    url: str
    #: reachable, gone or unavailable
    status: str
    #: since when every check has found this status
    status_since: str
    checked_at: str
    #: why; empty where all is well
    detail: str
    #: as of `reachedAt`
    facts: RepositoryFacts
    #: null where it was never reached
    reached_at: str | None
    #: since when the host says that it is gone
    gone_since: str | None


class RepositoryList(Wire, frozen=True):
    """A page of repositories; with a status it may hold fewer than were asked for."""

    repositories: tuple[RepositoryHealth, ...]
    #: asks for the next page; null on the last
    after: str | None
    #: records that could not be read; the log names them
    skipped: int


class CheckRequested(Wire, frozen=True):
    """A check that a worker will do."""

    repo: str
    #: which check of this repository it is
    run: int


async def list_repositories(request: ListRepositories) -> RepositoryList:
    """Few are gone: pages that hold none of the wanted status are passed over."""
    page = await list_health(request.status, after=request.after, limit=request.limit)
    while not page.items and page.after is not None:
        page = await list_health(request.status, after=page.after, limit=request.limit)
    return RepositoryList(tuple(RepositoryHealth.of(one) for one in page.items), page.after, page.skipped)


async def show_repository(request: ShowRepository) -> RepositoryHealth:
    return RepositoryHealth.of(await get_health(normalise(request.repo_url)))


async def check_repository(actor: Principal, request: CheckRepository) -> CheckRequested:
    """Harmless at any time: a check that waits already is the one that is asked for."""
    identity = normalise(request.repo_url)
    task = await ask_for_check(identity)
    await note("repository check", identity.url, by=actor.actor, reason="asked for it")
    return CheckRequested(task.id, task.run)


LIST_REPOSITORIES = action(
    list_repositories,
    "repository.list",
    REPOSITORIES,
    right=Right.REVIEWER,
    summary="List repositories as their last check found them",
    command="repo list",
)
SHOW_REPOSITORY = action(
    show_repository,
    "repository.health",
    f"{REPOSITORIES}/health",
    method="GET",
    right=Right.REVIEWER,
    errors=(NotFound,),
    summary="Show what the last check of a repository found",
    command="repo health",
)
CHECK_REPOSITORY = action(
    check_repository,
    "repository.check",
    f"{REPOSITORIES}/check",
    right=Right.REVIEWER,
    summary="Check a repository as soon as a worker is free",
    about="A new commit starts new runs of its skills.",
    command="repo check",
)
