"""What an account may read as it is now, for what is told to it while it does not ask: webhooks and mail."""

from vskill_platform.domain.audience import Audiences
from vskill_platform.domain.namespace import Reader, audiences
from vskill_platform.store.accounts import read_user
from vskill_platform.store.namespaces import read_directory

#: How history and audit name whoever runs commands on the server's machine.
OPERATOR = "admin:command line"


async def audiences_of_actor(actor: str) -> Audiences:
    """By the actor that history and audit name. An account that is gone or disabled reads what anybody may read."""
    if actor == OPERATOR:
        return audiences(Reader(reads_all=True), await read_directory())
    user, _ = await read_user(actor.partition(":")[2])
    if user is None or user.disabled:
        return audiences(Reader(), await read_directory())
    return audiences(Reader(user.name, user.reads_all), await read_directory())
