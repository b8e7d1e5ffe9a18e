"""The push webhook of a followed repository: a forge tells of a push, and the repository is checked at once."""

from vskill_client.wire.base import Wire, iso_time
from vskill_core.errors import NotFound
from vskill_platform.actions.action import Reason, Services, action
from vskill_platform.actions.people.owners import RepositoryRequest, object_of, repository_of
from vskill_platform.actions.principal import Principal, Right
from vskill_platform.actions.skills.follows import FOLLOWS
from vskill_platform.notifications.signature import new_secret
from vskill_platform.store.skills.follows import get_follow
from vskill_platform.store.skills.push_hooks import make_hook, read_hook

WEBHOOK = f"{FOLLOWS}/webhook"
#: Where forges send what was pushed.
PUSHES = f"{FOLLOWS}/pushes"


class ShowPushHook(RepositoryRequest, frozen=True, kw_only=True):
    """A followed repository whose webhook is shown."""


class MakePushHook(RepositoryRequest, frozen=True, kw_only=True):
    """A followed repository that is to get a webhook."""

    #: why; kept in the audit
    reason: Reason


class DeliveryView(Wire, frozen=True):
    """What a forge sent, and what became of it."""

    #: of the forge; empty where the signature was wrong
    id: str
    received_at: str
    #: `github`, `gitlab`, `gitea`, `bitbucket` or `unknown`
    forge: str
    #: `checked`, `ignored` or `refused`
    outcome: str
    #: why; empty where a check was asked for
    reason: str


class PushHookView(Wire, frozen=True):
    """The webhook of a followed repository. The secret is shown once, when it is made."""

    #: where the forge sends pushes; empty where the repository has no webhook
    address: str
    #: the latest first
    deliveries: tuple[DeliveryView, ...]


class NewPushHook(Wire, frozen=True):
    """What the forge's settings ask for; the secret is not shown again."""

    repo_url: str
    address: str
    secret: str


async def show(services: Services, request: ShowPushHook) -> PushHookView:
    follow = await get_follow(repository_of(request.repo_url))
    hook = await read_hook(follow.hook)
    deliveries = () if hook is None else hook.deliveries
    shown = (DeliveryView.of(one, received_at=iso_time(one.at)) for one in deliveries)
    return PushHookView("" if hook is None else _address(services, hook.id), tuple(shown))


async def make(services: Services, actor: Principal, request: MakePushHook) -> NewPushHook:
    identity, secret = repository_of(request.repo_url), new_secret()
    hook = await make_hook(identity, secret, by=actor.actor, reason=request.reason)
    return NewPushHook(identity.url, _address(services, hook.id), secret)


def _address(services: Services, hook_id: str) -> str:
    return f"{services.settings.public_url.rstrip('/')}{PUSHES}/{hook_id}"


SHOW_PUSH_HOOK = action(
    show,
    "follow.webhook",
    WEBHOOK,
    method="GET",
    right=Right.MAINTAINER,
    acts_on=object_of,
    errors=(NotFound,),
    summary="Show the push webhook of a followed repository, and its last deliveries",
)
MAKE_PUSH_HOOK = action(
    make,
    "follow.make-webhook",
    WEBHOOK,
    right=Right.MAINTAINER,
    acts_on=object_of,
    errors=(NotFound,),
    status=201,
    summary="Make a push webhook for a followed repository",
    about="Takes the place of the one that it has. A push that the forge tells of is a hint to check the repository "
    "now; it is checked every day anyway.",
)
