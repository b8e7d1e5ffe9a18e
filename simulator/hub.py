"""Another registry, whose skills come here on request or all of them: an upstream of the kind `clawhub`, with the
product's own way to it. What it has is changed, renumbered, served with other bytes and withdrawn by people, and asking
it passes through the weather."""

from collections.abc import Collection
from typing import cast
from urllib.parse import parse_qsl, urlsplit

import msgspec

from simulator.content import UPSTREAM, UPSTREAM_PLACES, Content, Place, SimulatedSources
from simulator.plan import Dependency
from simulator.world import World
from vskill_platform.actions.principal import Principal, resolve
from vskill_platform.actions.skills.skill_names import find_skill
from vskill_platform.actions.skills.upstreams import SYNC_UPSTREAM, NamedUpstream
from vskill_platform.domain import keys
from vskill_platform.domain.downloads import zip_archive
from vskill_platform.domain.operation.task import Task, TaskState, task_key
from vskill_platform.domain.skills.upstream import Intake, Upstream, UpstreamEntries, UpstreamKind
from vskill_platform.domain.submissions.states import State
from vskill_platform.store.people import accounts
from vskill_platform.store.skills.upstreams import UPSTREAM_BRING
from vskill_platform.worker_context import require_env

SUE = Principal("sue", accounts.Role.AUTHOR)
ADA = Principal("ada", accounts.Role.ADMIN)


class Hub:
    """What the other registry has, by slug: every content of each version number, the newest last."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._numbers = 0
        #: By slug; withdrawn ones stay known.
        self.versions: dict[str, list[tuple[str, Content]]] = {}
        self.offered: set[str] = set()

    def change(self, place: Place, content: Content) -> str:
        """A new version, other bytes under the same number, or none any more."""
        rng, had = self._world.rng, self.versions.setdefault(place.slug, [])
        what = rng.choice(("version", "version", "bytes", "gone")) if had else "version"
        if what == "gone":
            self.offered.discard(place.slug)
            return what
        self._numbers += what == "version"
        had.append((f"1.{self._numbers}.0" if what == "version" else had[-1][0], content))
        self.offered.add(place.slug)
        return what

    async def add(self) -> None:
        """It is an upstream before anything happens."""
        intake = self._world.rng.choice((Intake.ON_REQUEST, Intake.ALL))
        kind, address = UpstreamKind.CLAWHUB, "https://hub.example"
        made = Upstream(name=UPSTREAM, kind=kind, address=address, intake=intake, by="admin:ada")
        await self._world.store.put(made.key, msgspec.json.encode(made))

    async def synchronise(self) -> None:
        await SYNC_UPSTREAM(require_env(), ADA, NamedUpstream(name=UPSTREAM))

    async def ask(self, place: Place) -> str:
        """Somebody installs it by name."""
        return (await find_skill(await resolve(SUE), place.canonical)).canonical

    async def request(
        self,
        _method: str,
        url: str,
        _headers: dict[str, str],
        _body: bytes | None,
        *,
        private_hosts: Collection[str],
        most_bytes: int = 0,
    ) -> tuple[int, bytes]:
        """Stands in the place of the product's way to the network."""
        assert not private_hosts
        sources = cast("SimulatedSources", require_env("sources").sources)

        async def answer() -> tuple[int, bytes]:
            return self._answer(url)

        status, data = await self._world.weather.around(sources.process, Dependency.SOURCE, "hub", answer)
        return status, data[: most_bytes + 1]

    def _answer(self, url: str) -> tuple[int, bytes]:
        parts = urlsplit(url)
        asked = dict(parse_qsl(parts.query))
        if parts.path.endswith("/download"):
            had = self.versions[asked["slug"]] if asked["slug"] in self.offered else []
            found = [content for number, content in had if number == asked["version"]]
            return (200, zip_archive(found[-1].files)) if found else (404, b"gone")
        items = [
            {"slug": slug, "latestVersion": {"version": self.versions[slug][-1][0]}}
            for slug in sorted(self.offered)
        ]
        return 200, msgspec.json.encode({"items": items})

    async def check(self) -> None:
        """At the end, after a look that succeeded: what was asked for is here as the upstream has it, once."""
        store, world = self._world.store, self._world
        entry = await store.get(keys.upstream_entries(UPSTREAM))
        listed = msgspec.json.decode(entry.value, type=UpstreamEntries).entries if entry else ()
        if {one.slug for one in listed} != self.offered:
            world.broken("an upstream's list is what it offers", f"{listed}, not {self.offered}")
        records = await world.records()
        for one in listed:
            found = await store.get(task_key(UPSTREAM_BRING, f"{UPSTREAM}/{one.name}"))
            if found is None:
                continue
            task = msgspec.json.decode(found.value, type=Task)
            world.trace.count("asked of the upstream")
            place = next(place for place in UPSTREAM_PLACES if place.slug == one.slug)
            record = records.get(place.id)
            is_kept_back = task.state is TaskState.FAILED or not task.outcome.startswith("submitted: ")
            if is_kept_back:
                world.trace.count(f"not from the upstream: {task.outcome[:20]}")
                continue
            bytes_of = {
                content.digest for number, content in self.versions[one.slug] if number == one.version
            }
            brought = task.outcome.removeprefix("submitted: ")
            # Whoever asked with an older list in hand left its mark; what was fetched is by the newest list.
            if brought not in bytes_of:
                world.broken("what was asked for is brought as it is offered", f"{task}, not {one}")
            elif record is None:
                world.broken("nothing that an upstream brought is lost", one.name)
            elif brought not in (record.upload, record.digest) and record.state is not State.DEQUEUED:
                # Whoever cancels a run cancels what was to run after it.
                world.broken("what an upstream brought last is looked at", f"{one.name}: {record}")
