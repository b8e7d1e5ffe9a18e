"""`queue dead-letters`: messages that were set aside for a person, and what that person can do with them."""

from typing import TYPE_CHECKING

import click
import msgspec

from vskill_platform.cli.errors import PlatformGroup
from vskill_platform.cli.output import json_option, print_json, print_table, show_time
from vskill_platform.cli.process import OPERATOR, run_in_env

if TYPE_CHECKING:
    from vskill_platform.broker.contract import DeadLetter


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
    from vskill_platform.queue.dead_letters import list_dead_letters

    found = run_in_env(list_dead_letters)
    if as_json:
        print_json([_view(letter) for letter in found])
        return
    rows = [(one.id, one.key, show_time(one.died_at), one.deliveries, one.reason) for one in found]
    print_table(f"{len(found)} dead letters", ("id", "key", "died (UTC)", "deliveries", "reason"), rows)


@dead_letters.command("replay")
@click.argument("letter_id", type=int)
def replay(*, letter_id: int) -> None:
    """Start a new run of the submission that a dead letter is about."""
    from vskill_platform.actions import principal
    from vskill_platform.actions.dead_letters import replay_dead_letter
    from vskill_platform.worker_context import require_env

    click.echo(run_in_env(lambda: replay_dead_letter(require_env(), principal.OPERATOR, letter_id)))


@dead_letters.command("discard")
@click.argument("letter_id", type=int)
def discard(*, letter_id: int) -> None:
    """Remove a dead letter; the submission's record stays as it is."""
    from vskill_platform.queue.dead_letters import discard_dead_letter

    run_in_env(lambda: discard_dead_letter(letter_id, by=OPERATOR))
    click.echo(f"Dead letter {letter_id} was removed.")


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
