"""Who may do what: the expected rights of every action, written by hand. A matrix that is made from the table that it
checks could not fail.

Each action is called as each kind of person, over HTTP and through both command lines, about what belongs to somebody
else (`rights_world`). Whoever is not let in leaves no trace.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import Result

from tests.actions.rights_world import PEOPLE, REPO, RULE, RightsWorld, open_rights_world
from tests.support.people import token_of
from vskill_platform.actions.action import Action
from vskill_platform.actions.principal import Right
from vskill_platform.actions.table import ACTIONS
from vskill_platform.domain.people.refusal import AuditOutcome
from vskill_platform.domain.people.token import SCOPES, TokenScope
from vskill_platform.domain.verdicts import policy
from vskill_platform.ledger.kv.contract import iterate_pages
from vskill_platform.store.people.audit import AuditEntry
from vskill_scan.memory.memory import PACKAGED

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

WHO = ("anonymous", "author", "other", "namesake", "owner", "keeper", "reviewer", "admin", "operator")

EVERYBODY = "anonymous author other namesake owner keeper reviewer admin operator"
ACCOUNTS = "author other namesake owner keeper reviewer admin operator"
SUBMITTER = "author owner reviewer admin operator"
OWNER = "owner operator"
#: Olga owns the namespace too.
NAMESPACE_OWNER = "owner admin operator"
MEMBER = "owner reviewer admin operator"
REVIEWER = "reviewer admin operator"
ADMIN = "admin operator"


class Row(msgspec.Struct, frozen=True):
    """Who may, with which scope, and what is asked for."""

    who: str
    scope: str
    fields: dict[str, Any] = {}


WHY = {"reason": "a test of rights"}
DECISION = {"submission_id": "{waiting}", "run": 1, "digest": "{digest}", **WHY}
VERSION = {"skill": "{skill}", "version": "1.0.0", **WHY}
CARL = {"name": "carl", **WHY}
NEW_ACCOUNT = {"name": "zoe", "role": "author", **WHY}
NEW_TOKEN = {"name": "laptop", "scopes": ["read"], "days": 1}
BLOCK = {"kind": "name", "target": "evil-skill", "severity": "high", "ahead": True, **WHY}

UPSTREAM = {"name": "vendor"}
NAMESPACE = {"name": "acme"}

MATRIX = {
    # Submissions.
    "submission.list": Row(EVERYBODY, "read"),
    "submission.stats": Row(EVERYBODY, "read"),
    "submission.positions": Row(EVERYBODY, "read", {"ids": "{received}"}),
    "submission.show": Row(EVERYBODY, "read", {"submission_id": "{waiting}"}),
    "submission.runs": Row(EVERYBODY, "read", {"submission_id": "{waiting}"}),
    "submission.findings": Row(EVERYBODY, "read", {"submission_id": "{waiting}"}),
    "submission.sarif": Row(EVERYBODY, "read", {"submission_id": "{waiting}"}),
    "submission.submit": Row(EVERYBODY, "submit", {"repo_url": REPO, "skill_path": "skills/fresh"}),
    "submission.submit-many": Row(EVERYBODY, "submit", {"submissions": [{"repoUrl": REPO}]}),
    "submission.discover": Row(EVERYBODY, "submit", {"repo_url": REPO}),
    "submission.upload": Row(ACCOUNTS, "submit", {"archive": b"no archive", "name": "mine"}),
    "hand-in.show": Row(EVERYBODY, "read", {"hand_in_id": "{hand_in}"}),
    "submission.cancel": Row(SUBMITTER, "submit", {"submission_id": "{received}", **WHY}),
    "submission.rerun": Row(SUBMITTER, "submit", {"submission_id": "{failed}", **WHY}),
    "submission.appeal": Row(SUBMITTER, "submit", {"submission_id": "{failed}", **WHY}),
    "submission.report": Row(EVERYBODY, "submit", {"submission_id": "{cooling}", **WHY}),
    "submission.answer": Row(SUBMITTER, "submit", {"submission_id": "{waiting}", **WHY}),
    # Skills.
    "skill.list": Row(EVERYBODY, "read"),
    "skill.search": Row(EVERYBODY, "read", {"q": "lint"}),
    "skill.facets": Row(EVERYBODY, "read"),
    "skill.compare": Row(EVERYBODY, "read", {"a": "{skill}", "b": "{skill}"}),
    "skill.show": Row(EVERYBODY, "read", {"skill": "{skill}"}),
    "skill.versions": Row(EVERYBODY, "read", {"skill": "{skill}"}),
    "skill.files": Row(EVERYBODY, "read", {"skill": "{skill}"}),
    "skill.security": Row(EVERYBODY, "read", {"skill": "{skill}"}),
    "skill.download": Row(EVERYBODY, "read", {"skill": "{skill}", "version": "1.0.0"}),
    "skill.attestation": Row(EVERYBODY, "read", {"skill": "{skill}", "version": "1.0.0"}),
    "skill.count_install": Row(EVERYBODY, "read", {"skill": "{skill}"}),
    "keys.list": Row(EVERYBODY, "read"),
    "skill.lock": Row(EVERYBODY, "read", {"skills": "{skill}"}),
    "scan.external": Row(EVERYBODY, "read", {"digest": "{digest}"}),
    "scan.external-report": Row(EVERYBODY, "read", {"digest": "{digest}", "provider": "bandit"}),
    "skill.yank": Row(OWNER, "own", VERSION),
    "skill.unyank": Row(OWNER, "own", VERSION),
    "skill.delete": Row(OWNER, "own", {"skill": "{skill}", **WHY}),
    "skill.takedown": Row(REVIEWER, "review", {"skill": "{skill}", **WHY}),
    "skill.restore": Row(REVIEWER, "review", {"skill": "{skill}", **WHY}),
    "name.release": Row(ADMIN, "admin", {"skill": "{skill}", "name": "lint", **WHY}),
    # Owners.
    "owner.list": Row(ACCOUNTS, "read"),
    "owner.claim": Row(ACCOUNTS, "own", {"repo_url": REPO}),
    # Every account may ask; one whose proof is not found is told that it controls nothing.
    "owner.check": Row(OWNER, "own", {"repo_url": REPO}),
    "owner.transfer": Row(OWNER, "own", {"repo_url": REPO, "to": "carl", **WHY}),
    "publisher.list": Row(OWNER, "read", {"repo_url": REPO}),
    "publisher.add": Row(
        OWNER, "own", {"repo_url": REPO, "issuer": "github", "workflow": "publish.yml", **WHY}
    ),
    "publisher.remove": Row(OWNER, "own", {"repo_url": REPO, "publisher_id": "{publisher}", **WHY}),
    # Followed repositories.
    "follow.list": Row(OWNER, "read", {"namespace": "acme"}),
    "follow.show": Row(OWNER, "read", {"repo_url": REPO}),
    "follow.add": Row(OWNER, "own", {"repo_url": REPO, **WHY}),
    "follow.webhook": Row(OWNER, "read", {"repo_url": REPO}),
    "follow.make-webhook": Row(OWNER, "own", {"repo_url": REPO, **WHY}),
    "follow.remove": Row(OWNER, "own", {"repo_url": REPO, **WHY}),
    # Upstreams.
    "upstream.list": Row(ADMIN, "admin"),
    "upstream.show": Row(ADMIN, "admin", UPSTREAM),
    "upstream.add": Row(
        ADMIN, "admin", {**UPSTREAM, "kind": "repository", "address": REPO, "patterns": ["*"], **WHY}
    ),
    "upstream.change": Row(ADMIN, "admin", {**UPSTREAM, "patterns": ["*"], **WHY}),
    "upstream.pause": Row(ADMIN, "admin", {**UPSTREAM, **WHY}),
    "upstream.resume": Row(ADMIN, "admin", {**UPSTREAM, **WHY}),
    "upstream.sync": Row(ADMIN, "admin", UPSTREAM),
    "upstream.entries": Row(EVERYBODY, "read", UPSTREAM),
    "upstream.ask": Row(ACCOUNTS, "submit", {**UPSTREAM, "entry": "skills/a"}),
    "upstream.remove": Row(ADMIN, "admin", {**UPSTREAM, **WHY}),
    # Namespaces.
    "namespace.list": Row(ACCOUNTS, "read"),
    "namespace.show": Row(MEMBER, "read", NAMESPACE),
    "namespace.add-member": Row(
        NAMESPACE_OWNER, "own", {**NAMESPACE, "member": "carl", "role": "author", **WHY}
    ),
    "namespace.remove-member": Row(NAMESPACE_OWNER, "own", {**NAMESPACE, "member": "carl", **WHY}),
    "namespace.hand-over": Row(NAMESPACE_OWNER, "own", {**NAMESPACE, "to": "team:none", **WHY}),
    "namespace.leave": Row(ACCOUNTS, "own", NAMESPACE),
    "namespace.preview-visibility": Row(MEMBER, "read", {**NAMESPACE, "to": "team"}),
    "namespace.change-visibility": Row(NAMESPACE_OWNER, "own", {**NAMESPACE, "to": "public", **WHY}),
    "namespace.make-public": Row(REVIEWER, "review", {**NAMESPACE, **WHY}),
    "namespace.set-reviewers": Row(NAMESPACE_OWNER, "own", {**NAMESPACE, "to": "registry", **WHY}),
    "namespace.set-quotas": Row(ADMIN, "admin", {**NAMESPACE, "skills": 10, **WHY}),
    "credential.list": Row(MEMBER, "read", NAMESPACE),
    "credential.add-token": Row(
        NAMESPACE_OWNER, "own", {**NAMESPACE, "repo_url": REPO, "token": "secret", **WHY}
    ),
    "credential.add-key": Row(NAMESPACE_OWNER, "own", {**NAMESPACE, "repo_url": REPO, **WHY}),
    "credential.set-host-key": Row(
        NAMESPACE_OWNER,
        "own",
        {**NAMESPACE, "credential_id": "01none", "host_key": f"SHA256:{'a' * 43}", **WHY},
    ),
    "credential.remove": Row(NAMESPACE_OWNER, "own", {**NAMESPACE, "credential_id": "01none", **WHY}),
    "skill.narrow": Row(OWNER, "own", {"skill": "{skill}", "to": "team", **WHY}),
    "skill.widen": Row(REVIEWER, "review", {"skill": "{skill}", **WHY}),
    "team.list": Row(ACCOUNTS, "read"),
    "team.show": Row(ACCOUNTS, "read", {"name": "crew"}),
    "team.create": Row(ADMIN, "admin", {"name": "writers", **WHY}),
    "team.add": Row(ADMIN, "admin", {"name": "crew", "accounts": ["carl"], **WHY}),
    "team.remove": Row(ADMIN, "admin", {"name": "crew", "accounts": ["carl"], **WHY}),
    "team.delete": Row(ADMIN, "admin", {"name": "spare", **WHY}),
    "access.show": Row(ADMIN, "admin"),
    "access.preview": Row(ADMIN, "admin", {"mode": "internal"}),
    "access.change": Row(ADMIN, "admin", {"submitters": "everybody", **WHY}),
    "access.make-scim-token": Row(ADMIN, "admin", {"issuer": "home", **WHY}),
    "access.remove-scim-token": Row(ADMIN, "admin", {"issuer": "home", **WHY}),
    # Review.
    # Ann maintains `house`, too, which reviews itself.
    "review.list": Row("author keeper reviewer admin operator", "review"),
    "review.approve": Row(REVIEWER, "review", DECISION),
    "review.reject": Row(REVIEWER, "review", DECISION),
    "review.request_change": Row(REVIEWER, "review", DECISION),
    "review.withdraw_request": Row(REVIEWER, "review", {"submission_id": "{waiting}", **WHY}),
    "review.again": Row(REVIEWER, "review", {"submission_id": "{failed}", **WHY}),
    "rule.list": Row(REVIEWER, "review"),
    "review.bulk": Row(
        REVIEWER,
        "review",
        {"verb": "reject", "items": [{"id": "{waiting}", "run": 1, "digest": "{digest}"}], **WHY},
    ),
    "suppression.list": Row(REVIEWER, "review"),
    "suppression.add": Row(REVIEWER, "review", {"digest": "{digest}", "rule": RULE, **WHY}),
    "suppression.remove": Row(REVIEWER, "review", {"digest": "{digest}", "rule": "DR-001", **WHY}),
    "report.file": Row(EVERYBODY, "submit", {"skill": "{skill}", "reason": "It is spam."}),
    "report.list": Row(REVIEWER, "review"),
    "report.uphold": Row(REVIEWER, "review", {"report_id": "{report}", **WHY}),
    "report.dismiss": Row(REVIEWER, "review", {"report_id": "{report}", **WHY}),
    "block.list": Row(REVIEWER, "review"),
    "block.add": Row(REVIEWER, "review", BLOCK),
    "block.remove": Row(REVIEWER, "review", {"kind": "name", "target": "evil-skill", **WHY}),
    "blocklist.read": Row(EVERYBODY, "read"),
    "revocation.list": Row(EVERYBODY, "read"),
    "revocation.follow": Row(EVERYBODY, "read"),
    "blocklist.check": Row(EVERYBODY, "read", {"name": "evil-skill"}),
    "repository.list": Row(REVIEWER, "review"),
    "repository.health": Row(REVIEWER, "review", {"repo_url": REPO}),
    "repository.check": Row(REVIEWER, "review", {"repo_url": REPO}),
    # One's own account.
    "account.show": Row(ACCOUNTS, "read"),
    "account.password": Row(ACCOUNTS, "own", {"old": "not the old one", "password": "a new sentence"}),
    "account.sign-out-all": Row(ACCOUNTS, "submit"),
    "identity.list": Row(ACCOUNTS, "read"),
    "identity.unlink": Row(ACCOUNTS, "own", {"identity": "none"}),
    "token.list": Row(ACCOUNTS, "read"),
    "token.create": Row(ACCOUNTS, "own", NEW_TOKEN),
    "token.revoke": Row(ACCOUNTS, "own", {"token_id": "{token}"}),
    # Administration.
    "account.list": Row(ADMIN, "admin"),
    "account.create": Row(ADMIN, "admin", NEW_ACCOUNT),
    "account.role": Row(ADMIN, "admin", {"role": "reviewer", **CARL}),
    "account.disable": Row(ADMIN, "admin", CARL),
    "account.enable": Row(ADMIN, "admin", CARL),
    "account.reset-password": Row(ADMIN, "admin", CARL),
    "account.sign-out": Row(ADMIN, "admin", CARL),
    "identity.unlink-of": Row(ADMIN, "admin", {"identity": "none", **CARL}),
    "token.list-all": Row(ADMIN, "admin"),
    "token.create-for": Row(ADMIN, "admin", {"account": "carl", **NEW_TOKEN}),
    "token.revoke-of": Row(ADMIN, "admin", {"account": "carl", "token_id": "{token}", **WHY}),
    "audit.follow": Row(ADMIN, "admin"),
    "audit.list": Row(ADMIN, "admin"),
    "system.overview": Row(REVIEWER, "review"),
    "system.settings": Row(ADMIN, "admin"),
    "system.storage": Row(ADMIN, "admin"),
    "notification.list": Row(ACCOUNTS, "read"),
    "notification.read": Row(ACCOUNTS, "own"),
    "notification.settings": Row(ACCOUNTS, "read"),
    "notification.mail": Row(ACCOUNTS, "own", {"address": ""}),
    "notification.confirm": Row(ACCOUNTS, "own", {"code": "none"}),
    "watch.list": Row(ACCOUNTS, "read"),
    "watch.add": Row(ACCOUNTS, "own", {"namespace": "acme"}),
    "watch.remove": Row(ACCOUNTS, "own", {"namespace": "acme"}),
    "webhook.list": Row(ADMIN, "admin"),
    "webhook.add": Row(ADMIN, "admin", {"url": "https://hooks.example.org/y", "events": ["skill.published"]}),
    "webhook.remove": Row(ADMIN, "admin", {"webhook_id": "{webhook}"}),
    "collection.list": Row(EVERYBODY, "read"),
    "collection.create": Row(
        ADMIN, "admin", {"name": "more", "title": "More", "description": "More tools.", **WHY}
    ),
    "collection.add": Row(ADMIN, "admin", {"name": "tools", "skills": ["{skill}"], **WHY}),
    "collection.remove": Row(ADMIN, "admin", {"name": "tools", "skills": ["{skill}"], **WHY}),
    "collection.delete": Row(ADMIN, "admin", {"name": "tools", **WHY}),
    "bundle.add": Row(ADMIN, "admin", {"name": "hq", "bundle": "", **WHY}),
    "bundle.make": Row(ADMIN, "admin", {"collection": "tools"}),
    "queue.health": Row(EVERYBODY, "read"),
    "queue.stats": Row(EVERYBODY, "read"),
    "queue.status": Row(ADMIN, "admin"),
    "queue.stuck": Row(ADMIN, "admin"),
    "queue.pause": Row(ADMIN, "admin", {"duration_ms": 60_000, **WHY}),
    "queue.resume": Row(ADMIN, "admin"),
    "queue.recover": Row(ADMIN, "admin"),
    "dead-letter.list": Row(ADMIN, "admin"),
    "dead-letter.replay": Row(ADMIN, "admin", {"letter_id": 1}),
    "dead-letter.discard": Row(ADMIN, "admin", {"letter_id": 1}),
    "content.show": Row(ADMIN, "admin"),
    "content.repair": Row(ADMIN, "admin", {"digest": "a" * 64}),
    "content.collect": Row(ADMIN, "admin", {"dry_run": True}),
    "job.list": Row(ADMIN, "admin"),
    "job.run": Row(ADMIN, "admin", {"job": "recover"}),
    "judge.show": Row(ADMIN, "admin"),
    "judge.try": Row(ADMIN, "admin"),
    "policy.show": Row(EVERYBODY, "read"),
    "policy.check": Row(ADMIN, "admin", {"text": "extends: open"}),
    "policy.rescan": Row(ADMIN, "admin", {"reason": "a test"}),
    "policy.try": Row(ADMIN, "admin", {"text": "extends: open"}),
    "policy.set": Row(ADMIN, "admin", {"text": "extends: open", **WHY}),
    "memory.show": Row(EVERYBODY, "read"),
    "memory.update": Row(ADMIN, "admin", {"data": PACKAGED.read_bytes(), **WHY}),
    "rescan.show": Row(ADMIN, "admin"),
    "rescan.continue": Row(ADMIN, "admin", {"ruleset": "rules-2", **WHY}),
}
BY_NAME = {action.name: action for action in ACTIONS}
#: What a token with this scope may do as well.
INCLUDED = {"read": {"read"}, "admin": set(SCOPES)} | {
    one: {"read", one} for one in ("submit", "own", "review")
}
#: Words of the refusals that are about rights.
REFUSALS = ("may do this", "lacks the scope", "You are not signed in", "has no claim on")


def test_every_action_has_a_row_and_every_row_an_action():
    assert not BY_NAME.keys() - MATRIX.keys(), "say in MATRIX who may do these new actions"
    assert not MATRIX.keys() - BY_NAME.keys(), "remove these from MATRIX, there is no such action"


@pytest.fixture(scope="module")
async def world(tmp_path_factory):
    """One for all that is refused: it stays as it is, which each test shows."""
    async with open_rights_world(tmp_path_factory.mktemp("refused")) as opened:
        yield opened


@pytest.fixture(scope="module")
async def busy_world(tmp_path_factory):
    """One for all that is done. What is gone meanwhile is answered with that, and not with a refusal."""
    async with open_rights_world(tmp_path_factory.mktemp("done")) as opened:
        yield opened


def may(name: str) -> set[str]:
    return set(MATRIX[name].who.split())


def may_not(name: str) -> list[str]:
    return [who for who in WHO if who not in may(name)]


async def records(world: RightsWorld) -> dict[str, bytes]:
    """Every record but the tokens', which note when they were last used, the audit's, and those of jobs that end."""
    left_out = ("token:", "audit", "ci_proof:", "ci_token:")
    found: dict[str, bytes] = {}
    async for page in iterate_pages(world.shelf.env.kv, ""):
        found |= {one.key: one.value for one in page.items if not one.key.startswith(left_out)}
    return found


async def entries_of(world: RightsWorld) -> set[str]:
    pages = iterate_pages(world.shelf.env.kv, "audit:")
    return {one.key async for page in pages for one in page.items}


async def refused_to(world: RightsWorld, name: str) -> set[str]:
    """Who was refused this action, by the audit."""
    found: set[str] = set()
    async for page in iterate_pages(world.shelf.env.kv, "audit:"):
        entries = (msgspec.json.decode(one.value, type=AuditEntry) for one in page.items)
        refused = (one for one in entries if one.outcome is AuditOutcome.REFUSED and one.action == name)
        found |= {one.by.partition(":")[2] for one in refused}
    world.shelf.env.refusals.take(None)  # the next test has all lines of this minute for itself
    return found


async def is_let_in(world: RightsWorld, action: Action[Any, Any], who: str) -> bool:
    """By a real request; the operator has no other way than the server's machine."""
    fields = MATRIX[action.name].fields
    if who == "operator":
        return await world.call_here(action, fields, world.principal(who))
    return await world.call_by_http(action, fields, world.tokens.get(who))


@pytest.mark.parametrize("name", sorted(MATRIX))
async def test_whoever_lacks_the_right_is_refused_and_leaves_a_trace_in_the_audit_alone(world, name):
    before = await records(world)
    assert [who for who in may_not(name) if await is_let_in(world, BY_NAME[name], who)] == []
    assert await records(world) == before
    assert await refused_to(world, name) >= {PEOPLE[who][0] for who in may_not(name) if who in PEOPLE}


@pytest.mark.parametrize("name", sorted(MATRIX))
async def test_a_token_without_the_scope_is_refused_and_leaves_a_trace_in_the_audit_alone(world, name):
    lacking = [scope for scope in SCOPES if MATRIX[name].scope not in INCLUDED[scope]]
    before = await records(world)
    action, fields = BY_NAME[name], MATRIX[name].fields
    assert [one for one in lacking if await world.call_by_http(action, fields, world.scoped[one])] == []
    assert await records(world) == before
    assert "ada" in await refused_to(world, name) or not lacking


#: Actions that change something and leave no entry, each with the reason.
NOT_AUDITED = {
    "account.password": "refused here, where the old one is wrong; the attempt is counted",
    "owner.claim": "it gives a word to put into a repository; `owner.check` changes something",
    "submission.submit-many": "each submission that begins is; the list of a hand-in is kept beside them",
    "notification.confirm": "about nothing but what the account itself is mailed",
    "notification.mail": "about nothing but what the account itself is mailed",
    "notification.read": "about nothing but what the account itself has read",
    "policy.try": "it keeps nothing but its answer, for a while",
    "skill.count_install": "a counter, which strangers raise",
    "watch.add": "about nothing but what the account itself is told",
    "watch.remove": "about nothing but what the account itself is told",
}


#: About what ann submitted in a namespace that reviews itself: who may, by hand, and the scope of a maintainer's token.
KEEPER = "keeper reviewer admin operator"
OWN_REVIEW = {
    ("review.approve", "own"): KEEPER,
    ("review.reject", "own"): KEEPER,
    ("review.approve", "grave"): REVIEWER,
    ("review.reject", "grave"): REVIEWER,
    **{(f"review.{verb}", "own"): REVIEWER for verb in ("request_change", "withdraw_request", "again")},
}


@pytest.mark.parametrize(("name", "about"), sorted(OWN_REVIEW))
async def test_where_a_namespace_reviews_itself_its_maintainers_decide_and_submitters_do_not(
    tmp_path, name, about
):
    action = BY_NAME[name]
    fields: dict[str, Any] = {"submission_id": f"{{{about}}}", **WHY}
    fields |= {"run": 1, "digest": "{digest}"} if name != "review.again" and "withdraw" not in name else {}
    allowed = OWN_REVIEW[name, about].split()
    async with open_rights_world(tmp_path) as world:
        scopes = (("read",), ("read", "submit"), ("own",))
        *weak, own = [await token_of(world.shelf.env, "mona", *some) for some in scopes]
        before = await records(world)
        refused = [who for who in WHO if who not in allowed]
        asked = [who for who in refused if await world.call_by_http(action, fields, world.tokens.get(who))]
        assert asked == [] and await records(world) == before
        if "keeper" in allowed:
            assert [one for one in weak if await world.call_by_http(action, fields, one)] == []
            assert await records(world) == before
            assert await world.call_by_http(action, fields, own)
        people = [who for who in allowed if who in PEOPLE and who != "keeper"]
        assert [
            who for who in people if not await world.call_by_http(action, fields, world.tokens[who])
        ] == []


#: What a CI job may do about its own repository, and nothing else.
FOR_CI = {"submission.submit", "submission.show", "submission.runs", "submission.findings"}


@pytest.mark.parametrize("name", sorted(MATRIX))
async def test_a_ci_job_only_submits_its_own_repository(world, name):
    """A job of the repository that the world is about, and one of another."""
    before = await records(world)
    action, fields = BY_NAME[name], MATRIX[name].fields
    assert not await world.call_by_http(action, fields, world.tokens["job of another"])
    if name in FOR_CI:
        assert name == "submission.submit" or await world.call_by_http(action, fields, world.tokens["job"])
    else:
        assert not await world.call_by_http(action, fields, world.tokens["job"])
        assert not await world.call_here(action, fields, world.job)
    assert await records(world) == before


#: Actions after which whoever acted may do it no more.
LAST = {"account.sign-out-all", "owner.transfer"}


@pytest.mark.parametrize("name", sorted(set(MATRIX) - LAST))
async def test_whoever_has_the_right_is_let_in(busy_world, name):
    """The weakest first, so that what only a stronger one could do is seen. What changes anything is audited."""
    action = BY_NAME[name]
    before, audited = await records(busy_world), await entries_of(busy_world)
    assert [who for who in WHO if who in may(name) and not await is_let_in(busy_world, action, who)] == []
    # A token that lacks the scope `review` has an author's rights at most, whoever holds it.
    if MATRIX[name].who not in {SUBMITTER, OWNER, NAMESPACE_OWNER, MEMBER}:
        token = busy_world.scoped[MATRIX[name].scope]
        assert await busy_world.call_by_http(action, MATRIX[name].fields, token)
    if action.method != "GET" and name not in NOT_AUDITED and await records(busy_world) != before:
        assert await entries_of(busy_world) - audited, (
            "it has changed something, and the audit does not say so"
        )


@pytest.mark.parametrize("name", sorted(LAST))
async def test_some_actions_take_the_right_away(tmp_path, name):
    """In a world of their own, because nobody in it can act afterwards."""
    async with open_rights_world(tmp_path) as world:
        people = [who for who in PEOPLE if who in may(name)]
        assert [who for who in people if not await is_let_in(world, BY_NAME[name], who)] == []
        assert [who for who in people if await is_let_in(world, BY_NAME[name], who)] == []


#: How a person writes what the command line takes in other words.
A_POLICY = {"text": str(Path(policy.__file__).parent / "policies" / "open.yaml")}
IN_WORDS = {
    "queue.pause": {"duration_ms": "1m"},
    **dict.fromkeys(("policy.check", "policy.try", "policy.set"), A_POLICY),
    "memory.update": {"data": str(PACKAGED)},
    # A bundle without skills, as `bundle make` writes it.
    "bundle.add": {"bundle": str(Path(__file__).with_name("withdrawn.tar"))},
}
#: Without it the command asks for a password.
FLAGS = dict.fromkeys(("account.create", "account.reset-password"), ("--generate",))
#: `submit` packs a folder, which tests/cli/test_submit.py shows; the others anybody may use.
WITH_COMMAND = sorted(
    name
    for name, row in MATRIX.items()
    if row.who != EVERYBODY and name != "submission.upload" and BY_NAME[name].command
)


def words_for(world: RightsWorld, name: str) -> list[str]:
    words = world.words(BY_NAME[name], MATRIX[name].fields | IN_WORDS.get(name, {}))
    return [*words[: words.index("--")], *FLAGS.get(name, ()), *words[words.index("--") :]]


@pytest.mark.parametrize("name", WITH_COMMAND)
async def test_both_command_lines_refuse_whoever_lacks_the_right(world, name):
    words, before = words_for(world, name), await records(world)
    done = {"nobody, elsewhere": await world.command_elsewhere(words, None)}
    for who in (one for one in PEOPLE if one not in may(name)):
        done[f"{who}, here"] = await world.command_here(words, who)
        done[f"{who}, elsewhere"] = await world.command_elsewhere(words, world.tokens[who])
    assert {who: _told(one) for who, one in done.items() if not is_refusal(one)} == {}
    assert await records(world) == before


@pytest.mark.parametrize("name", sorted(set(WITH_COMMAND) - LAST))
async def test_both_command_lines_let_in_whoever_has_the_right(busy_world, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # `bundle make` writes a file there
    words = words_for(busy_world, name)
    done = {"operator, here": await busy_world.command_here(words, "operator")}
    for who in (one for one in PEOPLE if one in may(name)):
        done[f"{who}, here"] = await busy_world.command_here(words, who)
        done[f"{who}, elsewhere"] = await busy_world.command_elsewhere(words, busy_world.tokens[who])
    assert {who: _told(one) for who, one in done.items() if is_broken(one) or is_refusal(one)} == {}


def _told(done: Result) -> str:
    return f"exit code {done.exit_code}, {done.exception!r}: {done.output}"


def is_broken(done: Result) -> bool:
    """The command line was not understood, or the command ended by an error that nobody foresaw."""
    is_unforeseen = done.exception is not None and not isinstance(done.exception, SystemExit)
    return is_unforeseen or done.exit_code not in {0, 1}


def is_refusal(done: Result) -> bool:
    return done.exit_code == 1 and any(words in done.output for words in REFUSALS)


PLANTED: dict[str, tuple[str, dict[str, Any]]] = {
    "every account suppresses a rule": ("suppression.add", {"right": Right.SIGNED_IN}),
    "whoever submitted a skill deletes it": ("skill.delete", {"right": Right.SUBMITTER}),
    "a token that submits pauses the queue": ("queue.pause", {"scope": TokenScope.SUBMIT}),
}


@pytest.mark.parametrize("plant", sorted(PLANTED))
async def test_a_wrong_right_is_found(tmp_path, plant):
    """The same questions as above, asked of an action with a wrong right."""
    name, change = PLANTED[plant]
    wrong, row = msgspec.structs.replace(BY_NAME[name], **change), MATRIX[name]
    async with open_rights_world(tmp_path) as world:
        asked = [world.principal(who) for who in may_not(name)]
        ada = world.principal("admin")
        asked += [
            msgspec.structs.replace(ada, scopes=frozenset(INCLUDED[scope]))
            for scope in SCOPES
            if row.scope not in INCLUDED[scope]
        ]
        assert [one for one in asked if await world.call_here(BY_NAME[name], row.fields, one)] == []
        assert [one for one in asked if await world.call_here(wrong, row.fields, one)] != []
