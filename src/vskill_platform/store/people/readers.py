"""What an account may read now, for messages that it gets without a request: webhooks and mail."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from vskill_core.errors import NotFound
from vskill_platform.domain.people.namespace import Audiences, Reader, audiences
from vskill_platform.store.people.accounts import read_user
from vskill_platform.store.people.namespaces import read_directory
from vskill_platform.store.people.sign_in_rule import standing_of

T = TypeVar("T")

#: How history and audit name somebody who runs commands on the server's machine.
OPERATOR = "admin:command line"


async def audiences_of_actor(actor: str) -> Audiences:
    """The audiences of an actor of history or audit. A missing or refused account reads what anybody may."""
    if actor == OPERATOR:
        return audiences(Reader(reads_all=True), await read_directory())
    user, _ = await read_user(actor.partition(":")[2])
    standing = None if user is None else await standing_of(user, by_token=True)
    if standing is None:
        return audiences(Reader(), await read_directory())
    reader = Reader(standing.name, standing.reads_all, groups=standing.groups)
    return audiences(reader, await read_directory())


async def read_as(actor: str, read: Callable[[Audiences], Awaitable[T]]) -> T:
    """Read with an actor's audiences; NotFound if that finds nothing. If the audiences changed meanwhile, read again: a
    record that got another audience in between would not be found, and somebody who is told only once would never hear
    of it."""
    known = await audiences_of_actor(actor)
    while True:
        found, missing = await _try(read, known)
        now = await audiences_of_actor(actor)
        if now == known:
            if missing is not None:
                raise missing
            return found[0]
        known = now


async def _try(
    read: Callable[[Audiences], Awaitable[T]], audiences: Audiences
) -> tuple[tuple[T, ...], NotFound | None]:
    try:
        return (await read(audiences),), None
    except NotFound as missing:
        return (), missing
