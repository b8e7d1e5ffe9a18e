"""Files that a client sends one by one before it publishes them together. They wait under the account that sent them,
by size and digest; those that are never published are gone after an hour."""

import base64
import hashlib
from collections.abc import Mapping

from vskill_core.content import DEFAULT_LIMITS, SkillFile
from vskill_core.errors import InvalidInput, LimitExceeded, NotFound
from vskill_platform.actions.action import Services
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.submissions.intake import UPLOAD
from vskill_platform.domain import keys
from vskill_platform.records import read_entries

#: How long a file waits to be named by a publication.
STAGED_MS = 3_600_000
#: What one account may have waiting, in bytes.
MOST_STAGED = 100 * 1024 * 1024


def ticket_for(size: int, sha256: str) -> str:
    """What a file waits under: nothing else can be sent with it."""
    return f"{size}-{sha256}"


async def stage_file(services: Services, actor: Principal, ticket: str, data: bytes) -> None:
    """Keep a file until it is published. Whoever may upload may do this."""
    UPLOAD.admit(actor)
    if ticket != ticket_for(len(data), hashlib.sha256(data).hexdigest()):
        raise InvalidInput(
            "The uploaded bytes do not match the ticket.", field="body", fix="send the file unchanged"
        )
    await _check_room(services, actor.name, len(data))
    key = keys.upload(actor.name, ticket)
    await services.kv.put(key, base64.b64encode(data), ttl_ms=STAGED_MS)


async def _check_room(services: Services, account: str, size: int) -> None:
    page = await services.kv.list(keys.upload.under(account), limit=DEFAULT_LIMITS.files * 2)
    waiting = sum(int(keys.parse(key).parts[1].partition("-")[0]) for key in page.items)
    if page.after is not None or waiting + size > MOST_STAGED:
        raise LimitExceeded(
            "Too many uploaded files wait to be published.",
            fix="publish it, or wait an hour",
            allowed=MOST_STAGED,
        )


async def read_staged(actor: Principal, tickets: Mapping[str, str]) -> tuple[SkillFile, ...]:
    """The actor's own files that wait under these tickets, by path; NotFound names the one that does not."""
    UPLOAD.admit(actor)
    stored = {ticket: keys.upload(actor.name, ticket) for ticket in tickets.values()}
    entries = await read_entries(set(stored.values()))
    files = []
    for path, ticket in tickets.items():
        entry = entries.get(stored[ticket])
        if entry is None:
            raise NotFound(
                f"The file {path[:200]!r} was not uploaded, or its upload expired after an hour.",
                path=path[:200],
            )
        files.append(SkillFile(path, "100644", base64.b64decode(entry.value)))
    return tuple(files)
