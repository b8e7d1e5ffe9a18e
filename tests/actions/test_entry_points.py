"""One verb, four ways: a page's form, the JSON API, a command on the server's machine, and the same command on another
machine. Each leaves the same records, the same history and the same audit."""

from typing import Any

import msgspec
import pytest

from tests.support.acting import principal_for, take_down, yank
from tests.support.entry_points import EntryPoints, Prepare
from tests.support.envs import make_submission, put_record, run_until_quiet, submit_skill
from tests.support.owners import set_owners
from tests.support.people import make_account
from vskill_core.findings import Finding, FindingCategory, FindingKind, Severity, StaticReport
from vskill_core.identity import normalise
from vskill_platform.actions.people.namespace_policy import CHANGE_VISIBILITY, ChangeVisibility
from vskill_platform.actions.people.namespaces import ADD_MEMBER, AddMember
from vskill_platform.actions.review.review import REQUEST_CHANGE, DecideSubmission
from vskill_platform.actions.skills.versions import NARROW_SKILL, NarrowSkill, SkillVisibility
from vskill_platform.domain import keys
from vskill_platform.domain.blocklist import BlockEntry, BlockTarget, TargetKind
from vskill_platform.domain.people.namespace import PUBLIC_ONLY, NamespaceRole, Visibility
from vskill_platform.domain.submissions.states import State
from vskill_platform.domain.submissions.submission import RecordedDecision
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.owners import Owner
from vskill_platform.store.recall.blocklist import add_block
from vskill_platform.store.review.reports import file_report
from vskill_platform.store.verdicts.suppressions import add_suppression
from vskill_platform.worker_context import Env

pytestmark = pytest.mark.anyio

DIGEST = "a" * 64
RULE = "DR-009"
OWN = "upload~ann"
SKILL = "upload~ann/skills/tidy"
PLACE = "upload://ann/tidy"
REPO = "https://github.com/acme/tools"


def submitted(state: State) -> Prepare:
    """A submission of ann's in this state, with a finding that decided about it."""

    async def prepare(env: Env) -> dict[str, str]:
        decision = RecordedDecision("odd", (RULE,))
        record = make_submission(
            "mine", state=state, at=env.kv.now(), digest=DIGEST, submitter="ann", decision=decision
        )
        await put_record(env, record)
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
        await env.kv.put(keys.scan(DIGEST, report.ruleset), msgspec.json.encode(report))
        return {"id": record.id, "digest": DIGEST}

    return prepare


async def suppressed(env: Env) -> dict[str, str]:
    facts = await submitted(State.NEEDS_REVIEW)(env)
    await add_suppression(DIGEST, RULE, by="system", reason="first")
    return facts


async def published(env: Env) -> dict[str, str]:
    """A skill in ann's own namespace."""
    await submit_skill("tidy", namespace="ann")
    await run_until_quiet(env)
    return {}


async def yanked(env: Env) -> dict[str, str]:
    await published(env)
    await yank(SKILL, "1.0.0", account="ann", reason="first")
    return {}


async def taken_down(env: Env) -> dict[str, str]:
    await published(env)
    await take_down(SKILL, by="admin:eve", reason="first")
    return {}


async def reported(env: Env) -> dict[str, str]:
    await published(env)
    return {
        "id": (
            await file_report(SKILL, reporter="user:carl", reason="It is spam.", audiences=PUBLIC_ONLY)
        ).report.id
    }


async def asked(env: Env) -> dict[str, str]:
    facts = await submitted(State.NEEDS_REVIEW)(env)
    request = DecideSubmission(submission_id=facts["id"], run=1, digest=DIGEST, reason="why?")
    await REQUEST_CHANGE(env, principal_for("admin:eve"), request)
    return facts


async def blocked(env: Env) -> dict[str, str]:
    target = BlockTarget(TargetKind.NAME, "evil")
    await add_block(BlockEntry(target, Severity.HIGH, "malware", "system", env.kv.now()))
    return {}


async def owned(env: Env) -> dict[str, str]:
    await make_account(env, "bob", Role.AUTHOR)
    await set_owners(env, normalise(REPO), Owner("ann", env.kv.now(), "file"))
    return {}


async def managed(env: Env) -> dict[str, str]:
    """Ann's own namespace, for its members only, with a member and a narrower skill."""
    await make_account(env, "ann", Role.AUTHOR)
    await published(env)
    change = ChangeVisibility(name=OWN, to=Visibility.TEAM, reason="first")
    await CHANGE_VISIBILITY(env, principal_for("user:ann"), change)
    await make_account(env, "bob", Role.AUTHOR)
    member = AddMember(name=OWN, member="bob", role=NamespaceRole.READER, reason="first")
    await ADD_MEMBER(env, principal_for("user:ann"), member)
    narrow = NarrowSkill(skill=SKILL, to=SkillVisibility.TEAM, reason="first")
    await NARROW_SKILL(env, principal_for("user:ann"), narrow)
    return {}


class Verb(msgspec.Struct, frozen=True):
    """How each entry point is asked for it; `fields` are what the form and the API are sent alike."""

    prepare: Prepare
    account: str
    form: str
    json: str
    command: tuple[str, ...]
    fields: dict[str, Any]
    #: What only the form, or only the API, is sent.
    form_only: dict[str, Any] = {}
    json_only: dict[str, Any] = {}


WHY = {"reason": "looked at it"}
REASON = ("--reason", "looked at it")
YES = {"confirm": "yes"}
DECISION = {"digest": DIGEST, **WHY}
SEEN = ("--run", "1", "--digest", DIGEST)

VERBS = {
    "approve": Verb(
        submitted(State.NEEDS_REVIEW), "rob", "/admin/review/{id}/approve", "/api/v1/review/{id}/approve",
        ("review", "approve", "{id}", *SEEN, *REASON), DECISION, {"run": "1"}, {"run": 1},
    ),
    "reject": Verb(
        submitted(State.NEEDS_REVIEW), "rob", "/admin/review/{id}/reject", "/api/v1/review/{id}/reject",
        ("review", "reject", "{id}", *SEEN, *REASON), DECISION, {"run": "1"}, {"run": 1},
    ),
    "request a change": Verb(
        submitted(State.NEEDS_REVIEW), "rob", "/admin/review/{id}/request-change", "/api/v1/review/{id}/request-change",
        ("review", "request-change", "{id}", *SEEN, *REASON), DECISION, {"run": "1"}, {"run": 1},
    ),
    "withdraw a request": Verb(
        asked, "rob", "/admin/review/{id}/withdraw-request", "/api/v1/review/{id}/withdraw-request",
        ("review", "withdraw-request", "{id}", *REASON), WHY,
    ),
    "answer": Verb(
        asked, "ann", "/submissions/{id}/answer", "/api/v1/submissions/{id}/answer",
        ("submission", "answer", "{id}", *REASON), WHY,
    ),
    "look again": Verb(
        submitted(State.TIER1_FAILED), "rob", "/admin/review/{id}/again", "/api/v1/review/{id}/again",
        ("review", "again", "{id}", *REASON), WHY,
    ),
    "suppress": Verb(
        submitted(State.NEEDS_REVIEW), "rob", "/admin/suppressions/add", f"/api/v1/suppressions/{DIGEST}/{RULE}",
        ("review", "suppress", DIGEST, RULE, *REASON), WHY, {"digest": DIGEST, "rule": RULE},
    ),
    "unsuppress": Verb(
        suppressed, "rob", "/admin/suppressions/remove", f"/api/v1/suppressions/{DIGEST}/{RULE}/remove",
        ("review", "unsuppress", "{id}", RULE, *REASON), WHY, {"digest": DIGEST, "rule": RULE},
    ),
    "uphold": Verb(
        reported, "rob", "/admin/reports/{id}/uphold", "/api/v1/reports/{id}/uphold",
        ("report", "uphold", "{id}", "--block", "version", *REASON), {"block": "version", **WHY}, YES,
    ),
    "dismiss": Verb(
        reported, "rob", "/admin/reports/{id}/dismiss", "/api/v1/reports/{id}/dismiss",
        ("report", "dismiss", "{id}", *REASON), WHY,
    ),
    "block": Verb(
        published, "rob", "/admin/blocklist/add", "/api/v1/blocklist/entries",
        ("block", "add", "place", PLACE, *REASON), {"kind": "place", "target": PLACE, **WHY}, YES,
    ),
    "lift a block": Verb(
        blocked, "rob", "/admin/blocklist/lift", "/api/v1/blocklist/entries/lift",
        ("block", "remove", "name", "evil", *REASON), {"kind": "name", "target": "evil", **WHY}, YES,
    ),
    "take down": Verb(
        published, "rob", f"/skills/{SKILL}/take-down", f"/api/v1/skills/{SKILL}/take-down",
        ("skill", "takedown", SKILL, "--block", "place", *REASON), {"block": "place", **WHY}, YES,
    ),
    "restore": Verb(
        taken_down, "rob", f"/skills/{SKILL}/restore", f"/api/v1/skills/{SKILL}/restore",
        ("skill", "restore", SKILL, *REASON), WHY,
    ),
    "release a name": Verb(
        published, "root", f"/skills/{SKILL}/release-name", f"/api/v1/skills/{SKILL}/release-name",
        ("skill", "release-name", SKILL, "tidy", *REASON), {"name": "tidy", **WHY}, YES,
    ),
    "yank": Verb(
        published, "ann", f"/skills/{SKILL}/yank", f"/api/v1/skills/{SKILL}/versions/1.0.0/yank",
        ("skill", "yank", SKILL, "1.0.0", *REASON), WHY, {"version": "1.0.0", **YES},
    ),
    "unyank": Verb(
        yanked, "ann", f"/skills/{SKILL}/unyank", f"/api/v1/skills/{SKILL}/versions/1.0.0/unyank",
        ("skill", "unyank", SKILL, "1.0.0", *REASON), WHY, {"version": "1.0.0", **YES},
    ),
    "delete": Verb(
        published, "ann", f"/skills/{SKILL}/delete", f"/api/v1/skills/{SKILL}/delete",
        ("skill", "delete", SKILL, "--yes", *REASON), WHY, YES,
    ),
    "transfer": Verb(
        owned, "ann", "/account/transfer", "/api/v1/owners/transfer",
        ("owner", "transfer", REPO, "bob", *REASON), {"to": "bob", **WHY},
        {"repo_url": REPO, **YES}, {"repoUrl": REPO},
    ),
    "manage a namespace": Verb(
        published, "ann", f"/namespaces/{OWN}/visibility", f"/api/v1/namespaces/{OWN}/visibility",
        ("namespace", "visibility", OWN, "team", "--yes", *REASON), {"to": "team", **WHY}, YES,
    ),
    "make a namespace public": Verb(
        managed, "rob", f"/namespaces/{OWN}/make-public", f"/api/v1/namespaces/{OWN}/make-public",
        ("namespace", "make-public", OWN, "--yes", *REASON), WHY, YES,
    ),
    "add a member": Verb(
        managed, "ann", f"/namespaces/{OWN}/members", f"/api/v1/namespaces/{OWN}/members",
        ("namespace", "add", OWN, "bob", "owner", *REASON), {"member": "bob", "role": "owner", **WHY},
    ),
    "remove a member": Verb(
        managed, "ann", f"/namespaces/{OWN}/members/remove", f"/api/v1/namespaces/{OWN}/members/remove",
        ("namespace", "remove", OWN, "bob", *REASON), {"member": "bob", **WHY},
    ),
    "hand a namespace over": Verb(
        managed, "ann", f"/namespaces/{OWN}/hand-over", f"/api/v1/namespaces/{OWN}/hand-over",
        ("namespace", "hand-over", OWN, "bob", "--yes", *REASON), {"to": "bob", **WHY}, YES,
    ),
    "narrow": Verb(
        managed, "ann", f"/skills/{SKILL}/narrow", f"/api/v1/skills/{SKILL}/narrow",
        ("skill", "narrow", SKILL, "internal", *REASON), {"to": "internal", **WHY},
    ),
    "widen": Verb(
        managed, "rob", f"/skills/{SKILL}/widen", f"/api/v1/skills/{SKILL}/widen",
        ("skill", "widen", SKILL, *REASON), WHY,
    ),
    "cancel": Verb(
        submitted(State.RECEIVED), "ann", "/submissions/{id}/cancel", "/api/v1/submissions/{id}/cancel",
        ("submission", "cancel", "{id}", *REASON), WHY, YES,
    ),
    "appeal": Verb(
        submitted(State.TIER1_FAILED), "ann", "/submissions/{id}/review", "/api/v1/submissions/{id}/appeal",
        ("submission", "appeal", "{id}", *REASON), WHY,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(VERBS))
async def test_every_way_leaves_the_same_records_history_and_audit(tmp_path, monkeypatch, name):
    verb = VERBS[name]
    role = {"ann": Role.AUTHOR, "root": Role.ADMIN}.get(verb.account, Role.REVIEWER)
    points = EntryPoints(tmp_path, monkeypatch, verb.prepare, role, account=verb.account)
    by_form = await points.by_form(verb.form, **verb.fields, **verb.form_only)
    assert [one for one in by_form if '"audit:"' in one and "looked at it" in one], by_form
    assert by_form == await points.by_json(verb.json, **verb.fields, **verb.json_only)
    assert by_form == await points.by_command(*verb.command)
    assert by_form == await points.by_remote_command(*verb.command)
