"""The form of an upstream's page that takes a bundle."""

from starlette.requests import Request
from starlette.responses import Response

from vskill_core.plural import counted
from vskill_platform.actions.submissions.bundles import ADD_BUNDLE
from vskill_platform.web.auth import see_other
from vskill_platform.web.pages.acting import act_by_form, form
from vskill_platform.web.pages.skills.upstreams import ONE
from vskill_platform.web.pages.submissions.submit import archive_of

#: Of the other fields of a form with a file.
MOST_FIELDS = 100_000


async def add_bundle(request: Request) -> Response:
    done = await act_by_form(request, ADD_BUNDLE, bundle=await archive_of(request))
    first = ", which is trusted from now on: compare it with the registry's" if done.first_use else ""
    said = f"{counted(len(done.skills), 'skill')} of {done.registry} came, signed by the key {done.key_id}{first}."
    blocked = f" Blocked because withdrawn there: {len(done.withdrawn)}." if done.withdrawn else ""
    return see_other(request, ONE.format(name=done.upstream), said + blocked)


ENDPOINTS = (
    form(f"{ONE}/bundle", ADD_BUNDLE, at=ONE, view=add_bundle, most_body=ADD_BUNDLE.most_body + MOST_FIELDS),
)
