"""One suite for both ways to call an action: on this machine's store, and over the JSON API of a registry. The answers
and the errors are the same, so a command does not know which one it has."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx2
import pytest

from tests.support.envs import make_submission, open_test_env, put_record, run_until_quiet, submit_skill
from tests.support.people import make_account, token_of
from tests.support.streams import serving
from vskill_client.caller import error_of, remote_caller
from vskill_client.destination import Caller
from vskill_client.wire.base import NoParameters
from vskill_client.wire.skills import AccountView, SearchSkills, SkillRequest
from vskill_client.wire.submissions import SubmissionRequest
from vskill_core.errors import (
    InvalidInput,
    NotFound,
    NotPermitted,
    NotSignedIn,
    RegistryUnavailable,
    TransitionError,
)
from vskill_platform.actions.action import Action
from vskill_platform.actions.people.account import WHO_AM_I
from vskill_platform.actions.principal import Principal
from vskill_platform.actions.recall.blocklist_reads import (
    CHECK_BLOCKLIST,
    READ_BLOCKLIST,
    CheckBlocklist,
    ReadBlocklist,
)
from vskill_platform.actions.review.review import APPROVE, REJECT, DecideSubmission
from vskill_platform.actions.skills.catalogue import (
    COUNT_SKILLS,
    LIST_SKILLS,
    SEARCH_SKILLS,
    CountSkills,
    ListSkills,
)
from vskill_platform.actions.skills.skill_names import LIST_FILES, LIST_VERSIONS, ReadVersion
from vskill_platform.actions.submissions.submissions import SHOW
from vskill_platform.actions.verdicts.skill_security import SECURITY
from vskill_platform.cli.local_caller import LocalCaller
from vskill_platform.domain.skills.catalogue import Sort
from vskill_platform.domain.submissions.states import State
from vskill_platform.store.people.accounts import Role
from vskill_platform.store.people.audit import list_audit
from vskill_platform.worker_context import run_with_worker_env

pytestmark = pytest.mark.anyio

ROLES = {"ann": Role.AUTHOR, "rob": Role.REVIEWER}
DIGEST = "d" * 64

#: Opens a caller that acts as this account; None is nobody.
Calling = Callable[[str | None], AbstractAsyncContextManager[Caller]]


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path, rate_limits="off") as opened:
        for name, role in ROLES.items():
            await make_account(opened, name, role)
        yield opened


@pytest.fixture(params=["local", "remote"])
async def calling(request, env) -> AsyncIterator[Calling]:
    if request.param == "local":

        @asynccontextmanager
        async def local(account: str | None) -> AsyncIterator[Caller]:
            yield LocalCaller(env, Principal(account, ROLES[account]) if account else Principal())

        yield local
        return
    async with serving(env) as address:

        @asynccontextmanager
        async def remote(account: str | None) -> AsyncIterator[Caller]:
            token = (
                await token_of(env, account, "read", "review" if account == "rob" else "submit")
                if account
                else None
            )
            async with remote_caller(address, token) as caller:
                yield caller

        yield remote


async def waiting(env, name: str = "doubtful"):
    record = make_submission(name, state=State.NEEDS_REVIEW, at=env.kv.now(), digest=DIGEST)
    await put_record(env, record)
    return record


def decision(record, **changes) -> DecideSubmission:
    given = {"submission_id": record.id, "run": record.run, "digest": record.digest, "reason": "read it all"}
    return DecideSubmission(**{**given, **changes})


async def test_an_answer_is_the_struct_that_the_action_declares(env, calling):
    record = await waiting(env)
    async with calling("rob") as caller:
        seen = await caller.call(SHOW, SubmissionRequest(submission_id=record.id))
        assert (seen.id, seen.state, seen.run, seen.digest) == (record.id, "NEEDS_REVIEW", 1, DIGEST)
        mine = await caller.call(WHO_AM_I, NoParameters())
        assert isinstance(mine, AccountView)
        assert (mine.account, mine.role) == ("rob", "reviewer")


async def test_reads_of_skills_are_the_same_here_and_elsewhere(env, calling):
    await submit_skill("csv-cleaner")
    await run_until_quiet(env)
    name = "upload~tests/skills/csv-cleaner"
    reads: list[tuple[Action[Any, Any], Any]] = [
        (LIST_SKILLS, ListSkills(owner="tests", sort=Sort.NEWEST)),
        (SEARCH_SKILLS, SearchSkills(q="csv", certification="SCANNED")),
        (COUNT_SKILLS, CountSkills()),
        (LIST_FILES, ReadVersion(skill=name, version="1.0.0")),
        (LIST_VERSIONS, SkillRequest(skill="csv-cleaner")),
        (SECURITY, ReadVersion(skill=name)),
        (READ_BLOCKLIST, ReadBlocklist()),
        (CHECK_BLOCKLIST, CheckBlocklist(name=name)),
    ]
    async with calling(None) as caller:
        for action, request in reads:
            expected = await action(env, Principal(), request)
            assert await caller.call(action, request) == expected, action.name
        with pytest.raises(NotFound, match="There is no skill nothing"):
            await caller.call(LIST_VERSIONS, SkillRequest(skill="nothing"))


async def test_a_decision_leaves_the_same_record_history_and_audit(env, calling):
    record = await waiting(env)
    async with calling("rob") as caller:
        done = await caller.call(REJECT, decision(record, reason="  not\r\nwanted "))
    assert done.state == "REJECTED"
    last = done.history[-1]
    assert (last.actor, last.reason) == ("admin:rob", "not\nwanted")
    entries = (await run_with_worker_env(env, list_audit)).items
    (rejected,) = [one for one in entries if one.action == "reject"]
    assert (rejected.by, rejected.target, rejected.reason) == ("admin:rob", record.id, "not\nwanted")
    assert rejected.details["digest"] == DIGEST


async def test_errors_come_back_as_the_same_types_with_their_facts(env, calling):
    record = await waiting(env)
    async with calling("rob") as caller:
        with pytest.raises(NotFound, match="There is no submission sub_none"):
            await caller.call(SHOW, SubmissionRequest(submission_id="sub_none"))
        with pytest.raises(TransitionError, match="has changed since you opened it") as changed:
            await caller.call(APPROVE, decision(record, run=7))
        assert changed.value.details["submission"] == record.id
        with pytest.raises(InvalidInput) as invalid:
            await caller.call(APPROVE, decision(record, reason=" "))
        assert invalid.value.field == "reason"
        with pytest.raises(InvalidInput, match="control characters"):
            await caller.call(APPROVE, decision(record, reason="bell \x07"))
        assert (await caller.call(SHOW, SubmissionRequest(submission_id=record.id))).state == "NEEDS_REVIEW"


async def test_rights_are_checked_before_anything_is_looked_at(env, calling):
    record = await waiting(env)
    async with calling("ann") as caller:
        with pytest.raises(NotPermitted):
            await caller.call(APPROVE, decision(record))
    async with calling(None) as caller:
        with pytest.raises(NotSignedIn):
            await caller.call(REJECT, decision(record, submission_id="sub_none"))
        assert (await caller.call(SHOW, SubmissionRequest(submission_id=record.id))).id == record.id


async def test_a_registry_that_does_not_answer_is_said():
    async with remote_caller("http://127.0.0.1:9", None) as caller:
        with pytest.raises(RegistryUnavailable, match="cannot be reached"):
            await caller.call(WHO_AM_I, NoParameters())


@pytest.mark.parametrize("body", [b"<html>proxy</html>", b'{"code": "of another release"}'])
def test_an_error_that_is_none_of_ours_is_the_registrys(body):
    answer = httpx2.Response(502, content=body, request=httpx2.Request("GET", "https://skills.example.org/x"))
    error = error_of(answer)
    assert type(error) is RegistryUnavailable
    assert "502" in error.message
