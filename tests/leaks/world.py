"""A registry with a secret in it: a namespace that only its team may read, with a canary in every place that could give
it away, beside public skills; and an empty place of the same shape, which is not there at all."""

import base64
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from tests.support.envs import active_env, run_until_quiet, skill_files
from tests.support.identities import ISSUERS, link
from tests.support.manual_clock import ManualClock
from tests.support.people import make_account, session_of, token_of
from tests.support.plugins import files_of, hooks, manifest, servers
from tests.support.probe import Probe
from tests.support.shelf import ListedRepositories, open_shelf
from tests.support.system_reads import get_submission
from vskill_client.wire.skills import SkillRequest
from vskill_core.content import SkillFile
from vskill_core.findings import Finding, FindingCategory, FindingKind, Severity, StaticReport
from vskill_core.identity import Identity, normalise, submission_id
from vskill_platform.actions.people.namespace_policy import CHANGE_VISIBILITY, ChangeVisibility
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.recall.blocklist import BLOCK, BlockSomething
from vskill_platform.actions.review.reports import FILE, FileReport
from vskill_platform.actions.skills.collections import (
    ADD_SKILLS,
    CREATE_COLLECTION,
    ChangeCollection,
    CreateCollection,
)
from vskill_platform.actions.skills.installs import COUNT_INSTALL
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import BlockEntry, TargetKind, name_target
from vskill_platform.domain.people.namespace import (
    EVERYTHING,
    Member,
    Namespace,
    NamespaceRole,
    Team,
    Visibility,
)
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.intake.admission import SubmittedBy
from vskill_platform.intake.submit import submit_repository
from vskill_platform.sources.contract import FilesAtHead, Place, RepositoryHead, Survey, no_repository
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import NamespaceChange, change_namespace
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.store.recall.blocklist_pass import reapply_blocklist
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.web.app import ENDPOINTS, create_app
from vskill_platform.web.browser import SESSION_COOKIE, VISITOR_COOKIE, Browser
from vskill_platform.web.routing import Endpoint
from vskill_platform.worker_context import Env

#: Names of the same length, so that nothing but the name itself can differ.
HIDDEN_OWNER, ABSENT_OWNER = "canaryhouse", "nobodyhouse"
HIDDEN_REPO, ABSENT_REPO = "canaryrepo", "nobodyrepo"
HIDDEN_NAME, ABSENT_NAME = "canaryname", "nobodyname"
HIDDEN_PLUGIN, ABSENT_PLUGIN = "canaryplugin", "nobodyplugin"
HIDDEN_PART, ABSENT_PART = "canarypart", "nobodypart"
HOST, WORD, REASON = "canary-host.example", "canaryword", "canaryreason"
PUBLIC_REPO = "https://github.com/openhouse/kit"
COLLECTION = "tools"
RULE = "DR-009"

ADMIN = Principal("ada", Role.ADMIN)
INSIDER = SubmittedBy("mia", EVERYTHING)
NOTE = AuditNote("namespace changed", HIDDEN_OWNER, "admin:ada", "a test")


class HostedRepositories(ListedRepositories):
    """What is not there is told as a host tells it. Every look is counted: it takes far longer than all the rest."""

    def __init__(self, probe: Probe) -> None:
        super().__init__(probe.blobs)
        self._looks = probe.looks

    async def inspect(self, identity: Identity, commit: str | None = None) -> Place:
        self._looks[f"look at {identity.host}"] += 1
        if identity.key not in self.places:
            raise no_repository(identity.host)
        return await super().inspect(identity, commit)

    async def survey(self, identity: Identity, commit: str | None = None) -> Survey:
        self._looks[f"look at {identity.host}"] += 1
        if not any(f"{key}/".startswith(f"{identity.repo_key}/") for key in self.places):
            raise no_repository(identity.host)
        return await super().survey(identity, commit)

    async def head(self, identity: Identity) -> RepositoryHead:
        found = await self.survey(msgspec.structs.replace(identity, path=""))
        return RepositoryHead(identity, found.places[0].commit)

    async def look(self, identity: Identity, paths: Collection[str]) -> FilesAtHead:
        head = await self.head(identity)
        return FilesAtHead(identity, head.commit, {})


class Facts(msgspec.Struct, frozen=True):
    """What requests are about: a skill and everything around it, by the names that requests use."""

    owner: str
    repo: str
    slug: str
    digest: str
    content_hash: str
    submission: str
    report: str
    #: of a plugin
    part: str = "no-such-part"

    @property
    def canonical(self) -> str:
        return f"{self.owner}/{self.repo}/{self.slug}"

    @property
    def repo_url(self) -> str:
        return f"https://github.com/{self.owner}/{self.repo}"

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything in it that a request may hold and an answer repeat, the longest first."""
        own = (self.canonical, self.owner, self.repo, self.slug, self.digest, self.content_hash)
        return tuple(sorted((*own, self.submission, self.report, self.part), key=len, reverse=True))


def facts_of(owner: str, repo: str, name: str, digest: str, content_hash: str, report: str) -> Facts:
    place = normalise(f"https://github.com/{owner}/{repo}", f"skills/{name}")
    return Facts(owner, repo, name, digest, content_hash, submission_id(place), report)


class Asker(msgspec.Struct, frozen=True):
    """Somebody who asks, and how a request of theirs is made."""

    name: str
    headers: Mapping[str, str]
    cookies: Mapping[str, str]
    csrf: str


class LeakWorld:
    """The registry, the secret in it, what is not there, what is public, and the people who ask."""

    def __init__(self, env: Env, clock: ManualClock, probe: Probe, client: httpx2.AsyncClient) -> None:
        self.env = env
        self.clock = clock
        self.probe = probe
        self.client = client
        self.hidden: Facts
        self.absent: Facts
        self.visible: Facts
        #: a plugin of the same owner, and the place of none
        self.hidden_plugin: Facts
        self.absent_plugin: Facts
        self.sources: ListedRepositories
        self.askers: dict[str, Asker] = {}

    @property
    def canaries(self) -> tuple[str, ...]:
        """What must be in no byte and no header of any answer to an outsider."""
        own = (HIDDEN_OWNER, HIDDEN_REPO, HIDDEN_NAME, HIDDEN_PLUGIN, HIDDEN_PART, HOST, WORD, REASON)
        secret = (self.hidden, self.hidden_plugin)
        return (*own, *(one for it in secret for one in (it.digest, it.content_hash, it.submission)))


@asynccontextmanager
async def open_leak_world(
    folder: Path, engine: str = "memory", endpoints: tuple[Endpoint, ...] = ENDPOINTS, **parts: Any
) -> AsyncIterator[LeakWorld]:
    """`parts` are those of the environment that another registry has too."""
    # An owner whose place is blocked waits for a reviewer with everything else, and streams would tell of nothing.
    settings = {
        "rate_limits": "off",
        "issuers": ISSUERS,
        "policy_text": "rules:\n  - {name: look-alike, when: 'signals.look_alike != \"\"', then: review}\n"
        '  - {name: seen, when: "true", then: note, say: "{skill.name} in {skill.languages} of {owner.name}, '
        '{owner.live_skills} live since {owner.days} days, {analysers.map(one, one.name)}"}\n',
    }
    clock = parts.pop("clock", None) or ManualClock()
    async with open_shelf(folder, engine, clock=clock, **settings | parts) as shelf:
        probe = Probe(shelf.env.kv, shelf.env.blobs)
        sources = HostedRepositories(probe)
        env = msgspec.structs.replace(shelf.env, kv=probe.kv, blobs=probe.blobs, sources=sources)
        transport = httpx2.ASGITransport(create_app(env, endpoints), client=("192.0.2.7", 1234))
        # How far an answer can be compressed depends on the name that was asked for, which pages repeat.
        plain = {"accept-encoding": "identity"}
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://platform.test", headers=plain
        ) as client:
            world = LeakWorld(env, clock, probe, client)
            world.sources = sources
            for name, role in (("mia", Role.AUTHOR), ("zoe", Role.AUTHOR), ("ada", Role.ADMIN)):
                await make_account(env, name, role)
            with active_env(env):
                await _furnish(world)
            await _invite(world)
            yield world


async def put_namespace(visibility: Visibility) -> None:
    members = (
        Member("user:mia", NamespaceRole.OWNER, 1, "added"),
        Member("team:insiders", NamespaceRole.READER, 1, "added"),
    )

    async def decide(known: Namespace) -> NamespaceChange:
        return NamespaceChange(msgspec.structs.replace(known, visibility=visibility, members=members))

    await change_namespace(HIDDEN_OWNER, decide, NOTE)


async def publish(
    world: LeakWorld, repo: str, name: str, body: str, version: str, extra: tuple[SkillFile, ...] = ()
) -> PublishedSkill:
    return await publish_files(world, repo, name, skill_files(name, body, version, extra=extra))


async def publish_files(
    world: LeakWorld, repo: str, name: str, files: tuple[SkillFile, ...]
) -> PublishedSkill:
    world.sources.put(repo, f"skills/{name}", files)
    done = await submit_repository(repo, f"skills/{name}", by=INSIDER)
    await run_until_quiet(world.env)
    assert done.submission is not None
    record = await get_submission(done.submission.id)
    assert record.published is not None, record.history[-1]
    return await get_skill(record.published.removeprefix("skill:"))


def plugin_files() -> tuple[SkillFile, ...]:
    """A plugin with a part of every kind, each of which tells the secret."""
    remote = {"type": "streamable-http", "url": f"https://{HOST}/mcp", "headers": {f"X-{WORD}": HIDDEN_PART}}
    local = {"type": "stdio", "command": "npx", "args": [f"{WORD}@1.0.0"], "env": {"WHERE": HOST}}
    files = {
        "plugin.json": manifest(HIDDEN_PLUGIN, version="1.0.0", description=f"Plugs {WORD} in."),
        "mcp.json": servers(**{WORD: remote, HIDDEN_PART: local}),
        "hooks/hooks.json": hooks(command=f"echo {WORD}"),
        f"commands/{HIDDEN_PART}.md": f"Say {WORD} to {HOST}.".encode(),
        f"agents/{HIDDEN_PART}.md": f"You know {WORD}.".encode(),
        f"org.{HIDDEN_PART}.client/more.txt": WORD.encode(),
        f"skills/{HIDDEN_PART}/SKILL.md": skill_files(HIDDEN_PART, f"Reads {WORD}.")[0].data,
    }
    return files_of(files)


async def _furnish(world: LeakWorld) -> None:
    # Zoe is in a group of the same name, at another issuer.
    team = Team("insiders", ("oidc:home:insiders",))
    await world.env.kv.put(keys.team(team.name), msgspec.json.encode(team))
    await link(world.env, "zoe", "elsewhere", "insiders")
    await put_namespace(Visibility.PUBLIC)
    repo = f"https://github.com/{HIDDEN_OWNER}/{HIDDEN_REPO}"
    body = f"Reads {WORD} from https://{HOST}/list and says so."
    await publish(world, repo, HIDDEN_NAME, body, "1.0.0")
    secret = await publish(world, repo, HIDDEN_NAME, f"{body} Twice.", "1.1.0")
    # A short name that a public skill has too; one that was public once would keep it for ever.
    await put_namespace(Visibility.TEAM)
    await publish(world, repo, "shared", f"The secret one, {WORD}.", "1.0.0")
    plugin = await publish_files(world, repo, HIDDEN_PLUGIN, plugin_files())
    await put_namespace(Visibility.PUBLIC)
    shown = await publish(world, PUBLIC_REPO, "plain", "Sorts lists.", "1.0.0")
    await publish(world, PUBLIC_REPO, "shared", "The open one.", "1.0.0")
    digest = str(secret.current_digest)
    await _around(world, secret, repo)
    world.hidden = facts_of(
        HIDDEN_OWNER, HIDDEN_REPO, HIDDEN_NAME, digest, str(secret.content_hash), "01canaryreport00000000000x"
    )
    world.absent = facts_of(
        ABSENT_OWNER,
        ABSENT_REPO,
        ABSENT_NAME,
        "e" * 64,
        "f" * len(world.hidden.content_hash),
        "01nobodyreport00000000000x",
    )
    length, report = len(str(plugin.content_hash)), "01canaryplugin00000000000x"
    plugged = (str(plugin.current_digest), str(plugin.content_hash), report)
    world.hidden_plugin = msgspec.structs.replace(
        facts_of(HIDDEN_OWNER, HIDDEN_REPO, HIDDEN_PLUGIN, *plugged), part=HIDDEN_PART
    )
    nothing = ("e" * 64, "f" * length, report.replace("canary", "nobody"))
    world.absent_plugin = msgspec.structs.replace(
        facts_of(ABSENT_OWNER, ABSENT_REPO, ABSENT_PLUGIN, *nothing), part=ABSENT_PART
    )
    world.visible = facts_of(
        "openhouse",
        "kit",
        "plain",
        str(shown.current_digest),
        str(shown.content_hash),
        "01publicreport00000000000x",
    )


async def _around(world: LeakWorld, secret: PublishedSkill, repo: str) -> None:
    """One thing of every kind that carries the secret's names."""
    env = world.env
    finding = Finding(
        RULE,
        Severity.HIGH,
        FindingCategory.EXFILTRATION,
        FindingKind.MALICE,
        "SKILL.md",
        1,
        excerpt=WORD,
        why=REASON,
    )
    report = StaticReport("older-rules", findings=(finding,))
    await env.kv.put(keys.scan(str(secret.current_digest), report.ruleset), msgspec.json.encode(report))
    await CREATE_COLLECTION(env, ADMIN, CreateCollection(name=COLLECTION, title="Tools", reason="a test"))
    both = ("openhouse/kit/plain", secret.canonical)
    await ADD_SKILLS(env, ADMIN, ChangeCollection(name=COLLECTION, skills=both, reason="a test"))
    await FILE(env, Principal("mia", Role.AUTHOR), FileReport(skill=secret.canonical, reason=REASON))
    await COUNT_INSTALL(env, Principal("mia", Role.AUTHOR), SkillRequest(skill=secret.canonical))
    # Submissions of every fate: in the queue, failed for want of a repository, and blocked.
    world.sources.put(repo, "skills/waits", skill_files("waits", f"{WORD} waits."))
    await submit_repository(repo, "skills/waits", by=INSIDER)
    world.sources.put(repo, "skills/bad", skill_files("bad", f"{WORD} is bad."))
    await submit_repository(repo, "skills/bad", by=INSIDER)
    await run_until_quiet(env)
    blocked = BlockSomething(kind=TargetKind.PLACE, target=f"{repo}/tree/main/skills/bad", reason=REASON)
    await BLOCK(env, ADMIN, blocked)
    # What was collected, reported and blocked in public is a secret from here on, and so is what comes.
    hide = ChangeVisibility(name=HIDDEN_OWNER, to=Visibility.TEAM, reason="a test")
    await CHANGE_VISIBILITY(env, ADMIN, hide)
    # By the name that pages show, and as an entry that does not know whose it is.
    full_name = f"{HIDDEN_OWNER}/{HIDDEN_REPO}/bad"
    by_name = BlockSomething(kind=TargetKind.NAME, target=full_name, reason=REASON)
    await BLOCK(env, ADMIN, by_name)
    await add_block(BlockEntry(name_target(full_name), Severity.HIGH, REASON, "admin:ada", env.kv.now()))
    await reapply_blocklist()
    world.sources.put(repo, "skills/queued", skill_files("queued", f"{WORD} is queued."))
    await submit_repository(repo, "skills/queued", by=INSIDER)


async def _invite(world: LeakWorld) -> None:
    env = world.env
    visitor = Browser(None, "v" * 32)
    world.askers["anonymous"] = Asker("anonymous", {}, {VISITOR_COOKIE: "v" * 32}, visitor.csrf)
    for name in ("zoe", "mia"):
        token = await token_of(env, name, "read", "submit", "own")
        basic = base64.b64encode(f"x:{token}".encode()).decode()
        world.askers[f"{name} by token"] = Asker(name, {"authorization": f"Bearer {token}"}, {}, "")
        world.askers[f"{name} by basic"] = Asker(name, {"authorization": f"Basic {basic}"}, {}, "")
        session = await session_of(env, name)
        world.askers[f"{name} by session"] = Asker(
            name, {}, {SESSION_COOKIE: session}, Browser(session, None).csrf
        )
    world.askers["a foreign token"] = Asker(
        "foreign", {"authorization": "Bearer vsk_of-another-registry-altogether"}, {}, ""
    )
