"""What was handed out keeps its meaning: whatever is published, moved, blocked, withdrawn, hidden and shown again."""

import asyncio
import contextlib
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.acting import restore, take_down
from tests.support.envs import active_env, open_test_env, run_until_quiet, skill_files
from tests.support.manual_clock import ManualClock
from tests.support.namespaces import manage
from tests.support.shelf import ListedRepositories
from tests.support.system_reads import get_submission
from vskill_core.errors import NotFound, PlatformError
from vskill_core.findings import Severity
from vskill_core.identity import Identity, normalise
from vskill_platform.actions.action import Action
from vskill_platform.actions.people.namespace_policy import ChangeVisibility, change_visibility
from vskill_platform.actions.principal import (
    ANYBODY,
    OPERATOR,
    Principal,
    Viewer,
    audiences_of,
    document_reader,
    namespace_reader,
    resolve,
)
from vskill_platform.actions.skills.scopes import ListedSkill, iterate_scope
from vskill_platform.actions.skills.skill_names import current_blocklist, find_skill
from vskill_platform.actions.skills.versions import (
    DELETE,
    UNYANK,
    YANK,
    DeleteSkill,
    NarrowSkill,
    SkillVisibility,
    WithdrawVersion,
    narrow,
)
from vskill_platform.actions.submissions.intake import outcome_view
from vskill_platform.actions.submissions.submission_views import submission_view
from vskill_platform.domain.blocklist import BlockEntry, place_target
from vskill_platform.domain.people.namespace import (
    PUBLIC_ONLY,
    Namespace,
    NamespaceRole,
    Visibility,
    may_read,
)
from vskill_platform.domain.skills.names import listed_name
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import submit_repository
from vskill_platform.sources.contract import Place
from vskill_platform.stages.rescan import request_rescan
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import NamespaceChange, change_namespace
from vskill_platform.store.recall.blocklist import add_block, remove_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.skills.catalogue import search_skills
from vskill_platform.store.skills.names import name_shown_skills, read_name
from vskill_platform.store.skills.skills import get_skill, iter_skills
from vskill_platform.worker_context import Env

REPOSITORIES = ("acme/tools", "acme/extra", "beta/tools")
#: The second is what the first becomes for a newcomer, the others are a route and no plain name.
SLUGS = ("lint", "lint-acme", "lint-beta", "search", "my_skill")
READERS = {
    "nobody": ANYBODY,
    "ann": Principal(account="ann", role=Role.AUTHOR),
    "mia of acme": Principal(account="mia", role=Role.AUTHOR),
    "ben of beta": Principal(account="ben", role=Role.AUTHOR),
    "both": Principal(account="pat", role=Role.AUTHOR),
    "a reviewer": Principal(account="rae", role=Role.REVIEWER),
}
OWNERS = {
    "acme/tools": READERS["mia of acme"],
    "acme/extra": READERS["mia of acme"],
    "beta/tools": READERS["ben of beta"],
}
SCOPES = ("", "acme/", "beta/", "acme/tools/")


class MovingRepositories(ListedRepositories):
    """Repositories that are renamed: the host leads from the old address to the new one."""

    moved: dict[str, str] = {}  # noqa: RUF012 - one table for the host

    async def inspect(self, identity: Identity, commit: str | None = None) -> Place:
        place = await super().inspect(identity, commit)
        moved = self.moved.get(identity.repo_key)
        if moved is None:
            return place
        return msgspec.structs.replace(place, identity=normalise(moved, identity.path))


class World:
    """A registry, and everything that it has handed out."""

    def __init__(self, env: Env, sources: MovingRepositories, clock: ManualClock) -> None:
        self.env = env
        self.clock = clock
        self.sources = sources
        self.writes = 0
        #: by reader and address
        self.handed_out: dict[tuple[str, str], str] = {}
        #: by reader, list and skill
        self.entries: dict[tuple[str, str, str], str] = {}

    async def publish(self, repo: str, slug: str) -> None:
        self.writes += 1
        files = skill_files(slug.replace("_", "-"), f"text {self.writes}")
        self.sources.put(f"https://github.com/{repo}", f"skills/{slug}", files)
        await self.submit(repo, slug)

    async def submit(self, repo: str, slug: str) -> None:
        everybody = audiences_of(await resolve(OPERATOR))
        with contextlib.suppress(PlatformError):
            await submit_repository(
                f"https://github.com/{repo}", f"skills/{slug}", by=SubmittedBy(None, everybody)
            )
        await run_until_quiet(self.env)

    async def move(self, repo: str, slug: str) -> None:
        """The repository is renamed, and somebody submits its new address."""
        new = f"https://github.com/{repo}-moved"
        self.sources.moved = {**self.sources.moved, normalise(repo).repo_key: new}
        for one in SLUGS:
            files = self.sources.places.get(normalise(repo, f"skills/{one}").key)
            if files is not None:
                self.sources.places[normalise(new, f"skills/{one}").key] = files
        await self.submit(repo, slug)
        await self.submit(f"{repo}-moved", slug)

    async def block(self, repo: str, slug: str) -> None:
        now = self.env.kv.now()
        place = normalise(repo, f"skills/{slug}")
        await add_block(BlockEntry(place_target(place), Severity.HIGH, "bad", "admin:eve", now, now))
        await self._reapply()

    async def unblock(self, repo: str, slug: str) -> None:
        await remove_block(place_target(normalise(repo, f"skills/{slug}")))
        await self._reapply()

    async def _reapply(self) -> None:
        await reapply_blocklist(judge_again=request_rescan)
        await run_until_quiet(self.env)

    async def withdraw(self, repo: str, slug: str) -> None:
        with contextlib.suppress(PlatformError):
            await take_down(f"{repo}/{slug}", by="admin:eve", reason="doubts")

    async def bring_back(self, repo: str, slug: str) -> None:
        with contextlib.suppress(PlatformError):
            await restore(f"{repo}/{slug}", by="admin:eve", reason="fine")

    async def yank(self, repo: str, slug: str) -> None:
        await self._own(YANK, repo, slug)

    async def unyank(self, repo: str, slug: str) -> None:
        await self._own(UNYANK, repo, slug)

    async def _own(self, verb: Action, repo: str, slug: str) -> None:
        """About the version that was published last, whatever has become of it."""
        with contextlib.suppress(PlatformError):
            newest = (await get_skill(f"{repo}/{slug}")).versions[-1].number
            request = WithdrawVersion(skill=f"{repo}/{slug}", version=newest, reason="a test")
            await verb(self.env, OWNERS[repo], request)

    async def delete(self, repo: str, slug: str) -> None:
        with contextlib.suppress(PlatformError):
            await DELETE(self.env, OWNERS[repo], DeleteSkill(skill=f"{repo}/{slug}", reason="a test"))

    async def narrow(self, repo: str, slug: str, to: SkillVisibility) -> None:
        actor = await resolve(OPERATOR)
        with contextlib.suppress(PlatformError):
            await narrow(actor, NarrowSkill(skill=f"{repo}/{slug}", to=to, reason="a test"))

    async def show(self, owner: str, to: Visibility) -> None:
        actor = await resolve(OPERATOR)
        await change_visibility(self.env, actor, ChangeVisibility(name=owner, to=to, reason="a test"))

    async def check(self) -> None:
        skills = {one.canonical: one async for one in iter_skills()}
        for who, principal in READERS.items():
            reader = await resolve(principal)
            for scope in SCOPES:
                await self._check_list(who, reader, scope, skills)
            for (whose, address), canonical in self.handed_out.items():
                if whose != who:
                    continue
                if may_read(skills[canonical].audience, audiences_of(reader)):
                    found = await find_skill(reader, address)
                    assert found.canonical == canonical, (who, address)
                else:
                    with pytest.raises(NotFound):
                        await find_skill(reader, address)

    async def _check_list(
        self, who: str, reader: Principal, scope: str, skills: dict[str, PublishedSkill]
    ) -> None:
        owner = scope.partition("/")[0]
        form = await (namespace_reader(reader, owner) if owner else document_reader(reader))
        listed: dict[str, ListedSkill] = {}
        with contextlib.suppress(NotFound):
            async for some in iterate_scope(form, scope, await current_blocklist(self.env)):
                listed |= some
        assert len({one.canonical for one in listed.values()}) == len(listed)
        # An entry goes only with its own skill: withdrawn in all its versions, blocked, or hidden from this list.
        blocklist = await current_blocklist(self.env)
        for whose, where, canonical in self.entries:
            record = skills[canonical]
            readable = may_read(record.audience, audiences_of(form))
            installable = record.current_version is not None and not blocklist.hits_skill(record)
            if (whose, where) == (who, scope) and readable and installable:
                assert self.entries[whose, where, canonical] in listed, (who, scope, canonical)
        for name, skill in listed.items():
            known = self.entries.setdefault((who, scope, skill.canonical), name)
            assert known == name, (who, scope, skill.canonical)
            found = await find_skill(form, name)
            assert found.canonical == skill.canonical, (who, scope, name)
            # What a list of one namespace says is an address for whoever reads no other private one.
            if who not in ("both", "a reviewer"):
                self.handed_out.setdefault((who, name), skill.canonical)


@contextlib.asynccontextmanager
async def open_world(engine: str, folder: Path):
    clock = ManualClock()
    async with open_test_env(engine, folder, active=False, clock=clock) as opened:
        sources = MovingRepositories(opened.blobs)
        env = msgspec.structs.replace(opened, sources=sources)
        for owner, members in (("acme", ("mia", "pat")), ("beta", ("ben", "pat"))):
            await manage(env, owner, None, *(f"user:{one}" for one in members), role=NamespaceRole.MAINTAINER)
        with active_env(env):
            yield World(env, sources, clock)


_places = (st.sampled_from(REPOSITORIES), st.sampled_from(SLUGS))
STEPS = st.one_of(
    st.tuples(st.just("publish"), *_places),
    st.tuples(st.just("publish"), *_places),
    st.tuples(st.just("publish"), *_places),
    st.tuples(st.sampled_from(("move", "block", "unblock", "withdraw", "bring_back")), *_places),
    st.tuples(st.sampled_from(("yank", "unyank", "delete")), *_places),
    st.tuples(st.just("narrow"), *_places, st.sampled_from(SkillVisibility)),
    st.tuples(st.just("show"), st.sampled_from(("acme", "beta")), st.sampled_from(Visibility)),
)


def listed(skill: PublishedSkill) -> str | None:
    return listed_name(skill.listed_as, PUBLIC_ONLY)


@pytest.mark.anyio
@pytest.mark.parametrize("engine", ["memory", "sqlite", "postgresql"])
async def test_of_two_publications_at_once_one_holds_the_name(engine, tmp_path):
    async with open_world(engine, tmp_path) as world:
        for repo in ("acme/tools", "beta/tools"):
            world.sources.put(f"https://github.com/{repo}", "skills/lint", skill_files("lint", repo))
            await submit_repository(f"https://github.com/{repo}", "skills/lint")
        await run_until_quiet(world.env)
        names = {one.canonical: listed(one) async for one in iter_skills()}
        held = (await read_name("lint")).holders["public"].canonical
        other = next(one for one in names if one != held)
        assert names == {held: "lint", other: f"lint-{other.partition('/')[0]}"}


@pytest.mark.anyio
async def test_a_declared_name_leads_to_its_skill_only_while_nobody_holds_it(tmp_path):
    async with open_world("memory", tmp_path) as world:
        reader = await resolve(ANYBODY)
        world.sources.put("https://github.com/acme/tools", "skills/p0", skill_files("night"))
        done = await submit_repository("https://github.com/acme/tools", "skills/p0")
        note = "It is published as p0, the name of its folder; SKILL.md calls it night."
        assert outcome_view(done).name_note == note
        await run_until_quiet(world.env)
        assert done.submission is not None
        record = await get_submission(done.submission.id)
        assert submission_view(record, Viewer(reviewer=True)).name_note == note
        assert (await find_skill(reader, "night")).canonical == "acme/tools/p0"
        assert (await read_name("night")).holders == {}
        await world.publish("beta/tools", "night")
        assert (await find_skill(reader, "night")).canonical == "beta/tools/night"


@pytest.mark.anyio
@pytest.mark.parametrize("engine", ["memory", "sqlite", "postgresql"])
async def test_a_search_prefers_the_established_skill_to_those_that_copy_its_name(engine, tmp_path):
    async with open_world(engine, tmp_path) as world:
        for repo in ("beta/tools", "acme/tools", "acme/extra"):
            await world.publish(repo, "lint")
            world.clock.advance(1_000)
        found = await search_skills("lint", audiences=PUBLIC_ONLY)
        assert [one.canonical for one in found.items] == [
            "beta/tools/lint",
            "acme/tools/lint",
            "acme/extra/lint",
        ]
        first = await search_skills("lint", limit=1, audiences=PUBLIC_ONLY)
        assert [one.canonical for one in first.items] == ["beta/tools/lint"] and first.truncated


async def play(engine: str, steps: list[tuple]) -> None:
    with TemporaryDirectory() as folder:
        async with open_world(engine, Path(folder)) as world:
            for name, *given_to in steps:
                await getattr(world, name)(*given_to)
                await world.check()


@pytest.mark.slow
@given(st.lists(STEPS, min_size=3, max_size=12))
@example(
    [
        ("show", "acme", Visibility.INTERNAL),
        ("publish", "acme/tools", "lint"),
        ("publish", "beta/tools", "lint"),
        ("show", "beta", Visibility.PUBLIC),
    ]
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_was_handed_out_keeps_its_meaning_in_memory(steps):
    asyncio.run(play("memory", steps))


@pytest.mark.slow
@given(st.lists(STEPS, min_size=3, max_size=8))
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_was_handed_out_keeps_its_meaning_on_sqlite(steps):
    asyncio.run(play("sqlite", steps))


@pytest.mark.anyio
async def test_a_skill_that_was_shown_by_a_process_that_ended_over_it_is_named_later(tmp_path):
    """Opening a namespace is one commit, and naming its skills for the new readers comes after it."""
    async with open_world("memory", tmp_path) as world:
        await manage(world.env, "acme", Visibility.TEAM)
        await world.publish("acme/tools", "lint")
        assert listed(await get_skill("acme/tools/lint")) is None

        async def open_to_all(namespace: Namespace) -> NamespaceChange:
            return NamespaceChange(msgspec.structs.replace(namespace, visibility=Visibility.PUBLIC))

        await change_namespace(
            "acme", open_to_all, AuditNote("namespace visibility", "acme", "system", "a test")
        )
        assert await name_shown_skills() == 1
        assert listed(await get_skill("acme/tools/lint")) == "lint"
        assert await name_shown_skills() == 0
