"""The commands about stored content."""

from vskill_platform.actions.operation import content
from vskill_platform.cli.action_commands import command_for, details, known, table, when

_DAMAGED = table(
    "{total} pieces of content are missing or damaged",
    "damaged",
    ("content", "digest"),
    ("is", "kind"),
    ("since (UTC)", "since"),
    ("repair", known("repair")),
    ("named by", lambda damage: " ".join(damage.named_by)),
)
_VERIFIED = (
    "All content was last verified at {verified_at}: {verified_pieces} pieces, {verified_bytes} bytes."
)

COMMANDS = (
    command_for(
        content.SHOW_CONTENT,
        _DAMAGED,
        when("verified_at", _VERIFIED, "The content has not been verified as a whole yet."),
        when("pass_ms", "A check of everything takes about {pass_ms}."),
        when("pieces", "Since then {pieces} pieces, {bytes} bytes."),
        when("unread", "{unread} pieces could not be read; the log says why."),
        about="Exit code 1 where something is damaged.",
        fails=lambda found: found.total > 0,
    ),
    command_for(
        content.REPAIR_CONTENT,
        "Asked for the repair of {digest}; 'content show' tells how it ended.",
    ),
    command_for(
        content.COLLECT_CONTENT,
        details(
            "Content that no record names",
            ("pieces of content", "pieces"),
            ("set aside: no record names them", "set_aside"),
            ("brought back: a record names them", "brought_back"),
            ("deleted: set aside a day ago", "deleted"),
        ),
    ),
)
