"""`queue dead-letters`: messages that were set aside for a person, and what that person can do with them."""

from typing import TYPE_CHECKING

import click
import msgspec

from vskill_platform.cli.errors import PlatformGroup
from vskill_platform.cli.output import json_option, print_json, print_table, show_time
from vskill_platform.cli.process import run_in_env

if TYPE_CHECKING:
    from vskill_platform.broker.contract import DeadLetter

#: Who did it, in records that a command changes.
OPERATOR = "admin:command line"


class LetterView(msgspec.Struct, frozen=True):
    """A dead letter, for programs."""

    id: int
    key: str | None
    reason: str
    deliveries: int
    sent_at: int
    died_at: int
    #: As text; bytes that are none are replaced.
    body: str


@click.group("dead-letters", cls=PlatformGroup)
def dead_letters() -> None:
    """Look at messages that were set aside for a person."""


@dead_letters.command("list")
@json_option
def list_letters(*, as_json: bool) -> None:
    """List them, oldest first, with the reason of each."""
    found = run_in_env(_all_letters)
    if as_json:
        print_json([_view(letter) for letter in found])
        return
    rows = [(one.id, one.key, show_time(one.died_at), one.deliveries, one.reason) for one in found]
    print_table(f"{len(found)} dead letters", ("id", "key", "died (UTC)", "deliveries", "reason"), rows)


@dead_letters.command("replay")
@click.argument("letter_id", type=int)
def replay(*, letter_id: int) -> None:
    """Start a new run of the submission that a dead letter is about."""
    click.echo(run_in_env(lambda: _replay(letter_id)))


@dead_letters.command("discard")
@click.argument("letter_id", type=int)
def discard(*, letter_id: int) -> None:
    """Remove a dead letter; the submission's record stays as it is."""
    run_in_env(lambda: _discard(letter_id))
    click.echo(f"Dead letter {letter_id} was removed.")


async def _all_letters() -> "list[DeadLetter]":
    from vskill_platform.worker_context import require_env

    broker = require_env("broker").broker
    found: list[DeadLetter] = []
    after: int | None = None
    while True:
        page = await broker.dead_letters(after=after)
        found.extend(page.items)
        after = page.after
        if after is None:
            return found


async def _replay(letter_id: int) -> str:
    """The record first, then the letter: one that is left over after a crash can be replayed again."""
    from vskill_platform.domain.errors import InvalidInput
    from vskill_platform.domain.messages import decode_body
    from vskill_platform.store.actions import run_again

    letter = next((one for one in await _all_letters() if one.id == letter_id), None)
    if letter is None:
        raise _no_such(letter_id)
    try:
        body = decode_body(letter.body)
    except msgspec.DecodeError as error:
        message = f"Dead letter {letter_id} is not a message of ours, so there is nothing to run."
        raise InvalidInput(message, field="LETTER_ID", fix="discard it") from error
    record = await run_again(body.submission_id, by=OPERATOR, reason="its dead letter was replayed")
    await _discard(letter_id)
    return f"{record.id}: run {record.run}, {record.state}"


async def _discard(letter_id: int) -> None:
    from vskill_platform.worker_context import require_env

    if not await require_env("broker").broker.discard(letter_id):
        raise _no_such(letter_id)


def _no_such(letter_id: int) -> Exception:
    from vskill_platform.domain.errors import NotFound

    return NotFound(f"There is no dead letter {letter_id}; 'queue dead-letters list' shows what there is.")


def _view(letter: "DeadLetter") -> LetterView:
    return LetterView(
        letter.id,
        letter.key,
        letter.reason,
        letter.deliveries,
        letter.sent_at,
        letter.died_at,
        letter.body.decode("utf-8", "replace"),
    )
