"""Admin pages for the blocklist: what must not be published."""

from vskill_client.wire.base import Asked
from vskill_core.findings import Severity
from vskill_core.plural import counted
from vskill_platform.actions.recall.blocklist import BLOCK, BLOCKS, LIFT, BlockAdded, BlockLifted
from vskill_platform.domain.blocklist import TargetKind
from vskill_platform.web.pages.acting import answer_page, form

LIST = "/admin/blocklist"


class BlocklistQuery(Asked, frozen=True):
    """A form that another page has filled in."""

    kind: TargetKind = TargetKind.PLACE
    target: str = ""


def told_block(done: BlockAdded, _: object) -> str:
    hits = "It hits nothing yet."
    if done.submissions or done.versions:
        submissions = counted(len(done.submissions), "submission")
        hits = f"It hits {submissions} and {counted(done.versions, 'published version')}."
    return f"Blocked: {done.entry.kind} {done.entry.target}. {hits}"


def told_lift(done: BlockLifted, _: object) -> str:
    told = f"No longer blocked: {done.kind} {done.target}. Submissions that no other entry blocks run again."
    if done.versions:
        told += f" {counted(done.versions, 'version')} came back: {', '.join(done.skills[:5])}."
    return told


ENDPOINTS = (
    answer_page(
        LIST,
        "blocklist.html",
        query=BlocklistQuery,
        found=BLOCKS,
        severities=[(severity.value, severity.value) for severity in Severity],
    ),
    form(f"{LIST}/add", BLOCK, told_block, at=LIST, confirm=True),
    form(f"{LIST}/lift", LIFT, told_lift, at=LIST, confirm=True),
)
