"""Reports: what people say is wrong with a published skill. Reviewers decide about them in the admin pages."""

from typing import Annotated

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from vskill_platform.actions.action import Allowance
from vskill_platform.actions.wire import Sent, Wire, iso_time
from vskill_platform.store.reports import MOST_REASON, Category, file_report
from vskill_platform.web.api.names import ANY_NAME, CANONICAL, asked_skill
from vskill_platform.web.principal import Guard, principal_of
from vskill_platform.web.responses import json_response
from vskill_platform.web.routing import body_of, post


class ReportBody(Sent, frozen=True):
    """What is wrong."""

    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_REASON)]
    category: Category = Category.OTHER
    #: one version; the skill as such where it is left out
    version: Annotated[str, msgspec.Meta(min_length=1, max_length=80)] | None = None


class ReportAnswer(Wire, frozen=True):
    """The report, as it is kept."""

    id: str
    skill: str
    category: str
    status: str
    version: str | None
    at: str
    #: false: there is an open one of yours already, which stays as it is
    new: bool


async def report_view(request: Request) -> Response:
    body = await body_of(request, ReportBody)
    skill = await asked_skill(request)
    filed = await file_report(
        skill.canonical,
        reporter=principal_of(request).actor,
        reason=body.reason,
        category=body.category,
        version=body.version,
    )
    report = filed.report
    answer = ReportAnswer(
        report.id, report.skill, report.category.value, report.status.value, report.version,
        iso_time(report.at), filed.new,
    )  # fmt: skip
    return json_response(answer, 201 if filed.new else 200)


_DECLARED = {
    "guard": Guard.AUTHOR,
    "scope": "submit",
    "body": ReportBody,
    "answer": ReportAnswer,
    "status": 201,
    "others": {200: ReportAnswer},
    "problems": (404,),
    "allowance": Allowance.REPORTS,
    "tag": "reports",
    "summary": "Report a skill",
}

ENDPOINTS = (
    post(f"{CANONICAL}/reports", report_view, **_DECLARED),
    post(f"{ANY_NAME}/reports", report_view, **_DECLARED),
)
