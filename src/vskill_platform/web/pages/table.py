"""Every page, area by area; `web.app` puts the API beside them."""

from vskill_platform.web import static_files
from vskill_platform.web.pages import clients, docs, home, palette
from vskill_platform.web.pages.operation import admin
from vskill_platform.web.pages.people import account, namespaces, owners, ownership, signin
from vskill_platform.web.pages.recall import revocations
from vskill_platform.web.pages.skills import compare, skill, skill_files, skills
from vskill_platform.web.pages.submissions import hand_ins, queue, submissions, submit
from vskill_platform.web.pages.telling import notifications
from vskill_platform.web.routing import Endpoint

ENDPOINTS: tuple[Endpoint, ...] = (
    *static_files.ENDPOINTS,
    *home.ENDPOINTS,
    *skills.ENDPOINTS,
    *palette.ENDPOINTS,
    *skill.ENDPOINTS,
    *skill_files.ENDPOINTS,
    *compare.ENDPOINTS,
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
