"""The commands of reports: file one, list them, uphold one, dismiss one."""

from vskill_platform.actions.review import reports
from vskill_platform.cli.action_commands import command_for, table, when

_DECISION = when(
    lambda report: report.decision and report.decision.blocked,
    "Report {id} was {status}; blocked: {decision.blocked}.",
    "Report {id} was {status}.",
)
_REPORTS = table(
    "{#reports:report}",
    "reports",
    *(("report", "id"), "skill", "version", "category", "status", "reporter", "reason"),
)

COMMANDS = (
    command_for(
        reports.FILE,
        when(
            "new",
            "Report {id} about {skill} was filed.",
            "Your report {id} about {skill} is still open.",
        ),
        arguments=("version",),
    ),
    command_for(reports.FILED, _REPORTS),
    command_for(reports.UPHOLD, _DECISION),
    command_for(reports.DISMISS, _DECISION),
)
