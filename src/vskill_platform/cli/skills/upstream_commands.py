"""The commands of `upstream`."""

from vskill_platform.actions.skills import upstream_entries, upstreams
from vskill_platform.cli.action_commands import command_for, details, each, known, show_rest, table

_GOOD = ("last read well (UTC)", known("good_at", "never"))


def _state(one: upstreams.UpstreamView) -> str:
    return "paused" if one.paused else one.problem or one.found or "being read"


COMMANDS = (
    command_for(
        upstreams.LIST_UPSTREAMS,
        table(
            "{#upstreams:upstream}",
            "upstreams",
            *("name", "kind", "address", ("comes", "intake"), "listed"),
            _GOOD,
            ("state", _state),
        ),
    ),
    command_for(
        upstreams.SHOW_UPSTREAM,
        details(
            "{name}",
            *(("kind", "kind"), ("address", "address"), ("comes", "intake")),
            ("patterns", known("patterns", "everything")),
            ("skills are named", "{namespace}/REPO/SLUG"),
            ("added", "{created_at} by {by}"),
            ("last read (UTC)", known("checked_at", "not yet")),
            _GOOD,
            ("state", _state),
            ("found", "found"),
        ),
        each("left_out", "left out: {name}: {reason}"),
        each("withdrawn", "withdrawn there: {name}: {reason}"),
    ),
    command_for(
        upstreams.ADD_UPSTREAM,
        "{name} is being read; 'upstream show {name}' says what is found.",
        arguments=("name", "kind", "address"),
    ),
    command_for(upstreams.CHANGE_UPSTREAM, "{name} was changed; it is being read again."),
    command_for(upstreams.PAUSE_UPSTREAM, "{name} is paused; what came from it is served as before."),
    command_for(upstreams.RESUME_UPSTREAM, "{name} is being read again."),
    command_for(upstreams.SYNC_UPSTREAM, "{name} is being read; 'upstream show {name}' says what is found."),
    command_for(
        upstream_entries.LIST_ENTRIES,
        table(
            "{listed} listed by {name}",
            "entries",
            ("skill", "name"),
            ("verified", lambda one: one.verified or ("asked for" if one.asked else "no")),
            "description",
        ),
        show_rest,
    ),
    command_for(upstream_entries.ASK_FOR_ENTRY, "{full_name}: {state}", arguments=("name", "entry")),
    command_for(upstreams.REMOVE_UPSTREAM, "It was removed; its skills stay."),
)
