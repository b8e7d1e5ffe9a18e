"""Records of namespaces: what a process keeps of them is as true as the store, and whoever writes into a namespace
writes the audience that it has at that moment."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from tests.support.acting import controls
from tests.support.envs import open_test_env, run_until_quiet, submit_skill
from tests.support.faults import HookedKV
from tests.support.owners import set_owners
from tests.support.system_reads import get_submission
from vskill_core.errors import NotPermitted, NotSignedIn
from vskill_core.identity import normalise, upload_identity
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import (
    PUBLIC,
    PUBLIC_ONLY,
    Access,
    Member,
    Namespace,
    NamespaceRole,
    RegistryMode,
    Submitters,
    Team,
    Visibility,
)
from vskill_platform.intake.admission import SubmittedBy, is_closed
from vskill_platform.ledger.kv.contract import KV
from vskill_platform.ledger.kv.entries import ABSENT, Entry, EntryPage
from vskill_platform.machine.process_cache import KeptReads
from vskill_platform.store.people.audit import AuditNote, list_audit
from vskill_platform.store.people.namespaces import (
    NamespaceChange,
    change_access,
    change_namespace,
    change_team,
    read_access,
    read_directory,
    read_namespace,
)
from vskill_platform.store.people.owners import Owner, Ownership, change_ownership, list_owners, owners_of
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.worker_context import require_env, run_with_worker_env

pytestmark = pytest.mark.anyio

NOTE = AuditNote("namespace changed", "tests", "admin:eve", "a test")
REPO = normalise("https://github.com/ann/tools")
ADDRESS = "https://github.com/acme/tools"


@pytest.fixture(params=["memory", "sqlite"])
async def env(request, tmp_path):
    async with open_test_env(request.param, tmp_path) as opened:
        yield opened


class WatchedKV(HookedKV):
    """Names its reads, and lets somebody else go first before a scan."""

    def __init__(self, inner: KV) -> None:
        super().__init__(inner)
        self.reads: list[str] = []
        self.before_scan: Callable[[str], Awaitable[None]] | None = None

    async def get(self, key: str) -> Entry | None:
        self.reads.append("get")
        return await super().get(key)

    async def scan(self, prefix: str, **options: Any) -> EntryPage:
        self.reads.append("scan")
        if self.before_scan is not None:
            await self.before_scan(prefix)
        return await super().scan(prefix, **options)


async def put_namespace(namespace: Namespace) -> None:
    async def decide(_known: Namespace) -> NamespaceChange:
        return NamespaceChange(namespace)

    await change_namespace(namespace.name, decide, NOTE)


def become(team: Team | None) -> Callable[[Team | None], Awaitable[Team | None]]:
    async def decide(_known: Team | None) -> Team | None:
        return team

    return decide


def maintainer(account: str) -> Member:
    return Member(f"user:{account}", NamespaceRole.MAINTAINER, 1, "added")


async def test_without_records_the_registry_is_public(env):
    directory = await read_directory()
    assert (directory.access, dict(directory.namespaces), dict(directory.teams)) == (Access(), {}, {})
    assert await read_namespace("acme") == (Namespace("acme"), ABSENT)


async def test_every_change_raises_one_version_and_is_audited(env):
    versions = [(await read_access())[1]]
    await put_namespace(Namespace("acme", Visibility.TEAM))
    versions.append((await read_access())[1])
    await change_team("core", become(Team("core", ("mia",))), NOTE)
    versions.append((await read_access())[1])
    await change_access(lambda known: msgspec.structs.replace(known, mode=RegistryMode.INTERNAL), NOTE)
    versions.append((await read_access())[1])
    await change_team("core", become(None), NOTE)
    versions.append((await read_access())[1])
    assert versions == sorted(set(versions))
    directory = await read_directory()
    assert directory.namespaces["acme"].visibility is Visibility.TEAM
    assert directory.access.mode is RegistryMode.INTERNAL
    assert not directory.teams
    assert len((await list_audit()).items) == 4


async def test_another_process_sees_a_change_at_its_next_look(env):
    """Two environments over one store keep apart what they know."""
    other = msgspec.structs.replace(env, kept=KeptReads())
    await put_namespace(Namespace("acme", Visibility.PUBLIC))
    assert (await run_with_worker_env(other, read_directory)).namespaces[
        "acme"
    ].visibility is Visibility.PUBLIC
    await put_namespace(Namespace("acme", Visibility.TEAM))
    assert (await run_with_worker_env(other, read_directory)).namespaces["acme"].visibility is Visibility.TEAM


async def test_what_is_kept_costs_one_read(env):
    await put_namespace(Namespace("acme", Visibility.TEAM))
    await read_directory()
    watched = WatchedKV(env.kv)
    await run_with_worker_env(msgspec.structs.replace(env, kv=watched), read_directory)
    assert watched.reads == ["get"]


async def test_parts_of_two_versions_are_never_put_together(tmp_path):
    """The team is let in after mia has left it: she is never seen in a team that may read."""
    async with open_test_env("memory", tmp_path) as env:
        await change_team("core", become(Team("core", ("mia",))), NOTE)
        await put_namespace(Namespace("acme", Visibility.TEAM))
        changed = False

        async def change_meanwhile(prefix: str) -> None:
            nonlocal changed
            if changed or prefix != keys.team.prefix:
                return
            changed = True
            member = Member("team:core", NamespaceRole.READER, 1, "added")

            async def work() -> None:
                await change_team("core", become(Team("core")), NOTE)
                await put_namespace(Namespace("acme", Visibility.TEAM, members=(member,)))

            await run_with_worker_env(env, work)

        watched = WatchedKV(env.kv)
        watched.before_scan = change_meanwhile
        fresh = msgspec.structs.replace(env, kv=watched, kept=KeptReads())
        directory = await run_with_worker_env(fresh, read_directory)
        assert changed
        assert directory.namespaces["acme"].members
        assert directory.teams["core"].members == ()


# Owners of repositories.


async def test_an_owner_hands_a_repository_over_and_gets_no_other(env):
    old = await set_owners(env, REPO, Owner("ann", 5, "file", "c0ffee"))
    assert await controls("ann", REPO)
    assert await list_owners("ann") == (old,)
    bob = Owner("bob", 9, "transfer", handed_over_by="ann", reason="leaving")

    def add(known: Ownership) -> Ownership:
        return msgspec.structs.replace(known, owners=(*known.owners, bob))

    changed = await change_ownership(
        REPO, add, action="owner added", by="user:ann", reason="leaving", details={}
    )
    assert changed.owners == (*old.owners, bob)
    assert await owners_of(REPO) == changed.owners
    assert await list_owners() == (changed,)
    namespace, _ = await read_namespace("ann")
    assert not namespace.managed
    assert await controls("bob", REPO)
    assert not await controls("bob", normalise("https://github.com/ann/other"))


async def test_two_changes_of_owners_at_once_lose_nothing(env):
    await set_owners(env, REPO, Owner("ann", 5, "file"))

    async def add(account: str) -> None:
        await change_ownership(
            REPO,
            lambda known: msgspec.structs.replace(known, owners=(*known.owners, Owner(account, 6, "file"))),
            action="owner added",
            by=f"user:{account}",
            reason="proved it",
            details={},
        )

    await asyncio.gather(add("bob"), add("cat"))
    assert sorted(owner.account for owner in await owners_of(REPO)) == ["ann", "bob", "cat"]


# Writing into a namespace.


async def test_what_is_submitted_and_published_has_its_namespaces_audience(env):
    await put_namespace(Namespace("upload~tests", Visibility.TEAM, members=(maintainer("mia"),)))
    done = await submit_skill("pdf", by=SubmittedBy("mia", frozenset({PUBLIC, "ns:upload~tests"})))
    assert done.submission is not None and done.submission.audience == "ns:upload~tests"
    await run_until_quiet(env)
    record = await get_submission(done.submission.id)
    skill = await get_skill("upload~tests/skills/pdf")
    assert (record.audience, skill.audience) == ("ns:upload~tests", "ns:upload~tests")
    (alias,) = (await env.kv.list(keys.alias_key.under("pdf"))).items
    assert msgspec.json.decode((await env.kv.get(alias)).value) == {"audience": "ns:upload~tests"}


async def test_a_namespace_that_becomes_managed_while_a_place_is_submitted_is_obeyed(tmp_path):
    async with open_test_env("memory", tmp_path) as env:
        managed = False

        async def manage_first(_operations: object) -> None:
            nonlocal managed
            if not managed:
                managed = True
                space = Namespace("upload~tests", Visibility.PUBLIC, preparing=Visibility.TEAM)
                await run_with_worker_env(env, lambda: put_namespace(space))

        hooked = HookedKV(env.kv)
        hooked.before_commit = manage_first
        submitting = msgspec.structs.replace(env, kv=hooked)
        done = await run_with_worker_env(submitting, lambda: submit_skill("pdf"))
        assert managed and done.submission is not None
        assert (await get_submission(done.submission.id)).audience == "ns:upload~tests"


@pytest.mark.parametrize("submitters", Submitters)
async def test_the_registry_says_who_may_submit(env, submitters):
    await change_access(lambda known: msgspec.structs.replace(known, submitters=submitters), NOTE)
    place = upload_identity("mia", "pdf")
    refused_anonymous = submitters is not Submitters.EVERYBODY
    refused_stranger = submitters is Submitters.MEMBERS
    if refused_anonymous:
        with pytest.raises(NotSignedIn):
            await is_closed(place, SubmittedBy(None, PUBLIC_ONLY))
    else:
        assert not await is_closed(place, SubmittedBy(None, PUBLIC_ONLY))
    if refused_stranger:
        with pytest.raises(NotPermitted, match="Only authors of the namespace upload~mia"):
            await is_closed(place, SubmittedBy("zoe", PUBLIC_ONLY))
    else:
        assert not await is_closed(place, SubmittedBy("zoe", PUBLIC_ONLY))
    assert not await is_closed(place, SubmittedBy("mia", PUBLIC_ONLY))
    assert not await is_closed(place, SubmittedBy(None, PUBLIC_ONLY, operator=True))


async def test_a_token_that_is_bound_elsewhere_submits_nothing_here(env):
    with pytest.raises(NotPermitted, match="bound to the namespace acme"):
        await is_closed(upload_identity("mia", "pdf"), SubmittedBy("mia", PUBLIC_ONLY, "acme"))
    assert require_env("kv").kv is env.kv
