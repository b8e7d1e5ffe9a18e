"""`demo`: fill an installation with the bundled examples, so that every page has something true to show."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import click
import msgspec

from vskill_client.output import StatusLine, json_option, print_json, print_table
from vskill_platform.cli.process import run_in_env

if TYPE_CHECKING:
    from vskill_platform.installation.demo import Loaded


class ExampleView(msgspec.Struct, frozen=True):
    """One example, as `--json` shows it."""

    repo_url: str
    skill: str
    state: str | None
    reason: str
    submission_id: str | None


@click.command()
@json_option
def demo(*, as_json: bool) -> None:
    """Submit the bundled example skills, good and bad, and show the result of each.

    They go through the normal queue, which this command processes itself, alongside a running server if there is
    one. A second run submits nothing.
    """
    from vskill_platform.installation.demo import TOUR_URL

    views = [_view(one) for one in run_in_env(lambda: _load(quiet=as_json), creates=True)]
    if as_json:
        print_json(views)
        return
    rows = [
        (f"{view.repo_url.split('/')[-2]}/{view.skill}", view.state or "not submitted", view.reason)
        for view in views
    ]
    print_table(f"{len(rows)} examples", ("skill", "state", "why"), rows)
    click.echo(f"\nNow submit some yourself: vskill-platform submit {TOUR_URL} --watch")


async def _load(*, quiet: bool) -> "list[Loaded]":
    from vskill_platform.installation.demo import read_examples, submit_examples

    with StatusLine("submitting the examples", quiet=quiet):
        await _while_working(submit_examples)
    return await read_examples()


async def _while_working(work: Callable[[], Awaitable[None]]) -> None:
    """With a consumer in this process, which stops when the work is done."""
    from vskill_platform.queue.consumer import run_consumer
    from vskill_platform.worker_context import require_env

    stop = asyncio.Event()
    consumer = asyncio.create_task(run_consumer(require_env("broker"), stop))
    try:
        await work()
    finally:
        stop.set()
        await consumer


def _view(example: "Loaded") -> ExampleView:
    record = example.submission
    return ExampleView(
        example.repo_url,
        example.skill,
        record.state.value if record else None,
        record.history[-1].reason if record else "not submitted",
        record.id if record else None,
    )
