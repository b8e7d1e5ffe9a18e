"""Those who hear from the platform and answer it: receivers of webhooks, and an analyser elsewhere that calls back.
What each of them answers is decided by its name and, in the bad time, by the weather."""

from collections import defaultdict
from collections.abc import Collection
from typing import cast

import msgspec

from simulator.clocks import EPOCH_MS
from simulator.content import SimulatedSources
from simulator.plan import Dependency, Fault, Listener
from simulator.world import ANALYSER, SECRET, World
from vskill_platform.domain import keys
from vskill_platform.notifications.notices import NoticeType
from vskill_platform.store.external_scans import ExternalReport, ExternalStatus, take_remote_report
from vskill_platform.store.operation.jobs import JobRecord
from vskill_platform.store.telling.webhooks import Webhook
from vskill_platform.worker_context import require_env

#: Before any event, however far the clock is set back.
SUBSCRIBED_AT = EPOCH_MS - 86_400_000


def hook_of(listener: Listener) -> Webhook:
    """A subscription to everything."""
    events = tuple(kind.value for kind in NoticeType)
    return Webhook(listener.value, f"https://{listener.value}.example/", SECRET, events, SUBSCRIBED_AT)


class Outside:
    """The receivers of one history, and what they have heard."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._calls = 0
        #: By receiver, the ids of the notices that it took.
        self.heard: defaultdict[str, set[str]] = defaultdict(set)

    async def subscribe(self) -> None:
        """Before anything happens, so that every event is news to them."""
        store = self._world.store
        for listener in self._world.plan.listeners:
            await store.put(keys.webhook(listener.value), msgspec.json.encode(hook_of(listener)))
        job = JobRecord("notices", state={"cursor": await store.change_cursor(), "serial": 0})
        await store.put(keys.job(job.name), msgspec.json.encode(job))

    async def post(
        self, url: str, body: bytes, headers: dict[str, str], private_hosts: Collection[str] = ()
    ) -> int:
        """Stands in the place of the product's way to the network."""
        listener = Listener(url.removeprefix("https://").partition(".")[0])
        sources = cast("SimulatedSources", require_env("sources").sources)

        async def answer() -> int:
            return self._answer(listener, headers["webhook-id"])

        weather = self._world.weather
        return await weather.around(
            sources.process, Dependency.LISTENER, f"post {listener}", answer, writes=True
        )

    def _answer(self, listener: Listener, notice: str) -> int:
        weather = self._world.weather
        if weather.draws(weather.plan.listener_error):
            weather.happened(Fault.LISTENER_ERROR, listener)
            return 503
        if listener is Listener.BROKEN:
            return 500
        self.heard[listener].add(notice)
        return 410 if listener is Listener.GONE else 200

    async def call_back(self, digest: str) -> bool:
        """The analyser elsewhere has looked at a content, asked or not; whether that was news."""
        self._calls += 1
        now = self._world.clock.now()
        report = ExternalReport(
            ANALYSER,
            ExternalStatus.COMPLETE,
            now,
            now,
            signed_s=now // 1000,
            body_sha256=f"{self._calls % 3}",
        )
        return await take_remote_report(digest, report)
