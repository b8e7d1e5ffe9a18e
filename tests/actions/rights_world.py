"""A registry in which somebody else has everything that an action can be about, and the ways to act on it: as each kind
of person, over HTTP and through both command lines."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import click
import msgspec
from click.testing import CliRunner, Result

from tests.support.acting import create_token
from tests.support.ci_jobs import let_in_job
from tests.support.envs import active_env, make_submission, put_record, skill_files
from tests.support.identities import ISSUERS, link
from tests.support.owners import set_owners
from tests.support.people import make_account, token_of
from tests.support.shelf import Shelf, open_shelf
from tests.support.streams import serving
from vskill_client.caller import remote_caller
from vskill_core.errors import NotPermitted, NotSignedIn, PlatformError, RegistryUnavailable
from vskill_core.findings import Finding, FindingCategory, FindingKind, Severity, StaticReport
from vskill_core.identity import normalise
from vskill_platform.actions.action import Action
from vskill_platform.actions.principal import ANYBODY, OPERATOR, Principal
from vskill_platform.cli import cli
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import (
    PUBLIC_ONLY,
    Member,
    Namespace,
    NamespaceRole,
    Reviewers,
    Team,
    Visibility,
)
from vskill_platform.domain.people.token import SCOPES, SCOPES_OF, CiJob
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import EntryPoint, RecordedDecision, Submission
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.github_accounts import account_of_github
from vskill_platform.store.people.namespaces import NamespaceChange, change_namespace
from vskill_platform.store.people.owners import Owner
from vskill_platform.store.review.reports import file_report
from vskill_platform.store.skills.collections import create_collection
from vskill_platform.store.submissions.submission_lists import HandedIn, keep_hand_in
from vskill_platform.store.telling.webhooks import add_webhook
from vskill_platform.store.verdicts.suppressions import add_suppression
from vskill_platform.worker_context import Env

REPO = "https://github.com/acme/tools"
#: Accounts by the column that they stand for. `carl` has what the others act on, and belongs to no column.
PEOPLE = {
    "author": ("ann", Role.AUTHOR),
    "other": ("bob", Role.AUTHOR),
    #: Signs in with GitHub as the namespace is called, which an admin gave to olga before.
    "namesake": ("acme", Role.AUTHOR),
    "owner": ("olga", Role.AUTHOR),
    #: Maintains `house`, which reviews itself.
    "keeper": ("mona", Role.AUTHOR),
    "reviewer": ("rob", Role.REVIEWER),
    "admin": ("ada", Role.ADMIN),
}
RULE = "DR-009"

Facts = Mapping[str, str]


class RightsWorld:
    """The registry, its address, and what its objects are called."""

    def __init__(
        self,
        shelf: Shelf,
        address: str,
        *,
        facts: dict[str, str],
        tokens: dict[str, str],
        scoped: dict[str, str],
        job: CiJob,
    ) -> None:
        self.shelf = shelf
        self.address = address
        self.facts = facts
        #: A token of each person, with all that their role may hold.
        self.tokens = tokens
        #: A token of the admin's, with one scope.
        self.scoped = scoped
        #: A CI job of the repository that all of it is about.
        self.job = Principal(ci=job, token=job.acting)

    def principal(self, who: str) -> Principal:
        if who == "operator":
            return OPERATOR
        return Principal(*PEOPLE[who]) if who in PEOPLE else ANYBODY

    def request(self, action: Action[Any, Any], fields: Mapping[str, Any]) -> msgspec.Struct:
        names = dict(
            zip(action.request.__struct_fields__, action.request.__struct_encode_fields__, strict=True)
        )
        sent = {names[name]: _fill(value, self.facts) for name, value in fields.items()}
        made: msgspec.Struct = msgspec.convert(
            sent, type=action.request, strict=False, builtin_types=(bytes,)
        )
        return made

    async def call_here(
        self, action: Action[Any, Any], fields: Mapping[str, Any], principal: Principal
    ) -> bool:
        """Whether the action lets them in."""
        # Not by a caller, which finds an action by its name: a test asks one whose right is wrong.
        return await _is_let_in(action(self.shelf.env, principal, self.request(action, fields)))

    async def call_by_http(
        self, action: Action[Any, Any], fields: Mapping[str, Any], token: str | None
    ) -> bool:
        async with remote_caller(self.address, token) as caller:
            return await _is_let_in(caller.call(action, self.request(action, fields)))

    async def command_here(self, words: list[str], who: str) -> Result:
        named = [] if who == "operator" else ["--as", PEOPLE[who][0]]
        settings = self.shelf.env.settings
        variables = {"VSKILL_DATA_DIR": settings.data_dir, "VSKILL_STORE": settings.store}
        return await _run([*named, *words], variables)

    async def command_elsewhere(self, words: list[str], token: str | None) -> Result:
        given = {} if token is None else {"VSKILL_PLATFORM_TOKEN": token}
        return await _run(["--registry", self.address, *words], given)

    def words(self, action: Action[Any, Any], fields: Mapping[str, Any]) -> list[str]:
        """The command line that asks for the same: the command's own parameters say how each field is given."""
        words = action.command.split()
        command: click.Command = cli
        for word in words:
            assert isinstance(command, click.Group)
            found = command.get_command(click.Context(command), word)
            assert found is not None, action.command
            command = found
        options: list[str] = []
        arguments: list[str] = []
        for param in command.params:
            if param.name == "yes":
                options.append("--yes")
            if param.name not in fields:
                continue
            value = _fill(fields[param.name], self.facts)
            values = [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]
            if isinstance(param, click.Argument):
                arguments += values
            elif isinstance(value, bool):
                options.append(param.opts[0] if value else param.secondary_opts[0])
            else:
                options += [part for one in values for part in (param.opts[0], one)]
        return [*words, *options, "--", *arguments]


async def _is_let_in(asking: Awaitable[object]) -> bool:
    try:
        await asking
    except (NotSignedIn, NotPermitted):
        return False
    except RegistryUnavailable:
        # It failed, which says nothing about rights.
        raise
    except PlatformError:
        # Let in, and told that it cannot be done now: rights are asked about first.
        return True
    return True


async def _run(words: list[str], variables: Mapping[str, str]) -> Result:
    with _only_variables(variables):
        # In a thread, because a command starts an event loop of its own.
        return await asyncio.to_thread(lambda: CliRunner().invoke(cli, words, prog_name="vskill-platform"))


@contextmanager
def _only_variables(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("VSKILL_")}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)
        os.environ.update(before)


def _fill(value: Any, facts: Facts) -> Any:
    if isinstance(value, str):
        return value.format_map(facts)
    if isinstance(value, dict):
        return {name: _fill(one, facts) for name, one in value.items()}
    if isinstance(value, list):
        return [_fill(one, facts) for one in value]
    return value


@asynccontextmanager
async def open_rights_world(folder: Path) -> AsyncIterator[RightsWorld]:
    """A registry on a file and a socket, because commands are processes of their own elsewhere."""
    async with (
        open_shelf(folder, "sqlite", rate_limits="off", issuers=ISSUERS) as shelf,
        serving(shelf.env) as address,
    ):
        for name, role in (*PEOPLE.values(), ("carl", Role.AUTHOR), ("eve", Role.ADMIN)):
            if name != "acme":
                await make_account(shelf.env, name, role)
        with active_env(shelf.env):
            facts = await _furnish(shelf)
        tokens = {
            who: await token_of(shelf.env, name, *SCOPES_OF[role]) for who, (name, role) in PEOPLE.items()
        }
        scoped = {scope: await token_of(shelf.env, "ada", scope) for scope in SCOPES}
        with active_env(shelf.env):
            tokens["job"], job, facts["publisher"] = await let_in_job(REPO)
            tokens["job of another"], *_ = await let_in_job("https://github.com/acme/another")
        yield RightsWorld(shelf, address, facts=facts, tokens=tokens, scoped=scoped, job=job)


async def _furnish(shelf: Shelf) -> dict[str, str]:
    """What ann submitted, from a repository that olga controls, and one thing of every other kind."""
    env = shelf.env
    skill = await shelf.publish("lint", version="1.0.0", submitter="ann")
    await shelf.publish("lint", "More.", version="1.1.0", submitter="ann")
    repo = normalise(REPO)
    await set_owners(env, repo, Owner("olga", env.kv.now(), "file"))
    await _manage(env)
    assert (await account_of_github("4711", "acme")).name == "acme"
    digest = skill.versions[0].digest
    finding = Finding(
        RULE,
        Severity.HIGH,
        FindingCategory.EXFILTRATION,
        FindingKind.MALICE,
        "SKILL.md",
        1,
        excerpt="x",
        why="y",
    )
    report = StaticReport("older-rules", findings=(finding,))
    await env.kv.put(keys.scan(digest, report.ruleset), msgspec.json.encode(report))
    await add_suppression(digest, "DR-001", by="system", reason="a test")
    filed = await file_report(
        skill.canonical, reason="It is spam.", reporter="user:carl", audiences=PUBLIC_ONLY
    )
    await create_collection("tools", title="Tools", description="All tools.", by="system", reason="a test")
    hook = await add_webhook("https://hooks.example.org/x", "s" * 32, ("skill.published",), by="system")
    token = (await create_token("carl", "old", ["read"], by="system")).token
    shelf.sources.put(REPO, "skills/fresh", skill_files("fresh"))
    waiting = await _put(shelf, "waiting", State.NEEDS_REVIEW, digest)
    cooling = await _put(shelf, "cooling", State.COOLDOWN, digest)
    received = await _put(shelf, "received", State.RECEIVED, digest)
    failed = await _put(shelf, "failed", State.TIER1_FAILED, digest)
    await _let_house_review_itself(env)
    own = await _put_in_house(shelf, "own", digest, own_review=True)
    grave = await _put_in_house(shelf, "grave", digest, own_review=False)
    refused = HandedIn("refused", repo_url=REPO, reason="There is no SKILL.md.")
    handed = (HandedIn("created", waiting.id, REPO, waiting.skill_path), refused)
    hand_in = await keep_hand_in(handed, source=EntryPoint.API, submitter="ann", anonymous=False)
    return {
        "skill": skill.canonical,
        "digest": digest,
        "report": filed.report.id,
        "webhook": hook.id,
        "token": token.id,
        "waiting": waiting.id,
        "cooling": cooling.id,
        "received": received.id,
        "failed": failed.id,
        "own": own.id,
        "grave": grave.id,
        "hand_in": hand_in.id,
    }


async def _manage(env: Env) -> None:
    """Olga owns the namespace, and belongs to two teams. So does whoever is in a group at home; bob is in one of the same
    name elsewhere."""
    for name in ("crew", "spare"):
        members = ("carl", "oidc:home:crew", "olga")
        await env.kv.put(keys.team(name), msgspec.json.encode(Team(name, members)))
    await link(env, "bob", "elsewhere", "crew")
    crew = Member("team:crew", NamespaceRole.OWNER, env.kv.now(), "added")
    olga = Member("user:olga", NamespaceRole.OWNER, env.kv.now(), "added")
    carl = Member("user:carl", NamespaceRole.READER, env.kv.now(), "added")

    async def decide(namespace: Namespace) -> NamespaceChange:
        return NamespaceChange(
            msgspec.structs.replace(namespace, members=(*namespace.members, olga, carl, crew))
        )

    await change_namespace("acme", decide, AuditNote("namespace changed", "acme", "system", "a test"))


async def _let_house_review_itself(env: Env) -> None:
    """Every account reads it. Mona maintains it, and so does ann, who submits there."""
    maintainers = tuple(
        Member(f"user:{name}", NamespaceRole.MAINTAINER, env.kv.now(), "added") for name in ("mona", "ann")
    )

    async def decide(namespace: Namespace) -> NamespaceChange:
        return NamespaceChange(
            msgspec.structs.replace(
                namespace, visibility=Visibility.INTERNAL, members=maintainers, review=Reviewers.OWN
            )
        )

    await change_namespace("house", decide, AuditNote("namespace changed", "house", "system", "a test"))


async def _put_in_house(shelf: Shelf, name: str, digest: str, *, own_review: bool) -> Submission:
    record = make_submission(
        name,
        state=State.NEEDS_REVIEW,
        at=shelf.env.kv.now(),
        identity=normalise("https://github.com/house/tools", f"skills/{name}"),
        submitter="ann",
        digest=digest,
        audience="ns:house",
        decision=RecordedDecision("the rules say so", (RULE,), own_review=own_review),
    )
    await put_record(shelf.env, record)
    return record


async def _put(shelf: Shelf, name: str, state: State, digest: str) -> Submission:
    record = make_submission(
        name,
        state=state,
        at=shelf.env.kv.now(),
        identity=normalise(REPO, f"skills/{name}"),
        submitter="ann",
        digest=digest,
        decision=RecordedDecision("the rules say so", (RULE,)),
    )
    await put_record(shelf.env, record)
    return record
