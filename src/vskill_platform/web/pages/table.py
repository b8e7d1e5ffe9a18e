"""Every page, area by area; `web.app` puts the API beside them."""

from vskill_platform.web import static_files
from vskill_platform.web.pages import docs, home, palette
from vskill_platform.web.pages.operation import admin, admin_queue
from vskill_platform.web.pages.people import (
    account,
    admin_access,
    admin_accounts,
    device,
    namespaces,
    owners,
    publishers,
    signin,
)
from vskill_platform.web.pages.recall import admin_blocklist, revocations
from vskill_platform.web.pages.review import admin_review, policy
from vskill_platform.web.pages.skills import (
    admin_skills,
    follows,
    skill,
    skill_files,
    skills,
    upstreams,
)
from vskill_platform.web.pages.submissions import queue, submissions, submit
from vskill_platform.web.pages.telling import notifications
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
    *docs.ENDPOINTS,
    *signin.ENDPOINTS,
    *device.ENDPOINTS,
    *account.ENDPOINTS,
    *publishers.ENDPOINTS,
    *notifications.ENDPOINTS,
    *namespaces.ENDPOINTS,
    *follows.ENDPOINTS,
    *admin.ENDPOINTS,
    *admin_review.ENDPOINTS,
    *policy.ENDPOINTS,
    *admin_blocklist.ENDPOINTS,
    *admin_skills.ENDPOINTS,
    *upstreams.ENDPOINTS,
    *admin_queue.ENDPOINTS,
    *admin_accounts.ENDPOINTS,
    *admin_access.ENDPOINTS,
)
