"""Every page, area by area; `web.app` puts the API beside them."""

from vskill_platform.web import static_files
from vskill_platform.web.pages import (
    account,
    admin,
    clients,
    docs,
    hand_ins,
    home,
    namespaces,
    notifications,
    owners,
    ownership,
    palette,
    queue,
    revocations,
    signin,
    skill,
    skill_files,
    skills,
    submissions,
    submit,
)
from vskill_platform.web.routing import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = (
    *static_files.ENDPOINTS,
    *home.ENDPOINTS,
    *skills.ENDPOINTS,
    *palette.ENDPOINTS,
    *skill.ENDPOINTS,
    *skill_files.ENDPOINTS,
    *owners.ENDPOINTS,
    *submit.ENDPOINTS,
    *queue.ENDPOINTS,
    *revocations.ENDPOINTS,
    *submissions.ENDPOINTS,
    *hand_ins.ENDPOINTS,
    *clients.ENDPOINTS,
    *docs.ENDPOINTS,
    *signin.ENDPOINTS,
    *account.ENDPOINTS,
    *notifications.ENDPOINTS,
    *ownership.ENDPOINTS,
    *namespaces.ENDPOINTS,
    *admin.ENDPOINTS,
)
