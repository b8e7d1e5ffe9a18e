"""A record that cannot be read is not one that is not there (C7): whoever asks for a whole list, or decides by it, hears
of the failure instead of getting a shorter answer. The other lists say how many they left out."""

from collections.abc import Awaitable, Callable

import pytest

from tests.support.acting import VISITOR, create_token, revoke_own_token
from tests.support.envs import (
    active_env,
    make_submission,
    open_test_env,
    put_record,
    run_until_quiet,
    submit_skill,
)
from tests.support.faults import UnreadableKV
from vskill_core.errors import StoreUnavailable
from vskill_core.identity import normalise
from vskill_platform.actions.verdicts.dossier import read_dossier
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import EVERYTHING, PUBLIC_ONLY
from vskill_platform.domain.submissions.states import State
from vskill_platform.store.external_scans import list_external_scans
from vskill_platform.store.operation.jobs import read_jobs, take_tick
from vskill_platform.store.people.accounts import Role, create_user, find_admins, list_users
from vskill_platform.store.people.attempts import count_attempt
from vskill_platform.store.people.audit import list_audit
from vskill_platform.store.people.credentials import list_all_tokens, list_tokens
from vskill_platform.store.recall.attestations import public_keys
from vskill_platform.store.repo_health import list_health
from vskill_platform.store.review.reports import ReportStatus, file_report, list_reports
from vskill_platform.store.submissions.statistics import (
    latest_ends,
    position_of,
    recent_activity,
    waiting_line,
)
from vskill_platform.store.verdicts.suppressions import add_suppression, list_suppressions, suppressed_rules
from vskill_platform.worker_context import Env, require_env

pytestmark = pytest.mark.anyio

DEMO = "upload~tests/skills/demo"
DIGEST = "d" * 64
REPO = normalise("https://github.com/ann/tools")

#: The key of a record that was stored, and the question whose answer needs it.
Case = Callable[[Env], Awaitable[tuple[str, Callable[[], Awaitable[object]]]]]


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        yield opened


async def only_key(env: Env, prefix: str) -> str:
    (key,) = (await env.kv.list(prefix)).items
    return key


async def published(env: Env) -> None:
    await submit_skill("demo")
    await run_until_quiet(env)


async def account(role: Role = Role.AUTHOR) -> str:
    return (await create_user("ann", role, by="system", reason="for a test")).name


async def an_account(env: Env):
    return keys.user(await account()), list_users


async def an_admin(env: Env):
    return keys.user(await account(Role.ADMIN)), find_admins


async def an_audit_entry(env: Env):
    await account()
    return await only_key(env, keys.audit.prefix), list_audit


async def a_count_of_attempts(env: Env):
    await count_attempt("ann", "192.0.2.1")
    key = (await env.kv.list(keys.attempts.prefix)).items[0]
    return key, lambda: count_attempt("ann", "192.0.2.1")


async def a_token(env: Env):
    await create_token(await account(), "laptop", ["read"], by="user:ann")
    return await only_key(env, keys.token.prefix), lambda: list_tokens("ann")


async def a_token_of_anybody(env: Env):
    key, _ = await a_token(env)
    return key, list_all_tokens


async def a_token_beside_the_one_to_revoke(env: Env):
    """Which of the two has the id is not known while one cannot be read."""
    key, _ = await a_token(env)
    gone = await create_token("ann", "phone", ["read"], by="user:ann")
    return key, lambda: revoke_own_token("ann", gone.token.id)


async def a_signer(env: Env):
    await published(env)
    return await only_key(env, keys.signer.prefix), public_keys


async def a_version(env: Env):
    await published(env)
    return keys.version(DEMO, "1.0.0"), lambda: read_dossier(require_env(), VISITOR, DEMO)


async def an_external_scan(env: Env):
    key = keys.extscan(DIGEST, "other")
    await env.kv.put(key, b"{}")
    return key, lambda: list_external_scans(DIGEST)


async def a_job(env: Env):
    await take_tick("demo", every_ms=1_000)
    return keys.job("demo"), lambda: read_jobs(["demo"])


async def a_check_of_a_repository(env: Env):
    await env.kv.put(keys.repohealth(REPO.repo_key), b"{}")
    return keys.repohealth(REPO.repo_key), list_health


async def an_open_report(env: Env):
    await published(env)
    await file_report(DEMO, reporter="user:ann", reason="it reads my keys", audiences=PUBLIC_ONLY)
    return await only_key(env, keys.open_report.prefix), list_reports


async def a_report(env: Env):
    await an_open_report(env)
    return await only_key(env, keys.report.prefix), lambda: list_reports(ReportStatus.UPHELD)


async def a_suppression(env: Env):
    await add_suppression(DIGEST, "X-1", by="admin:eve", reason="false")
    return keys.suppress(DIGEST, "X-1"), lambda: list_suppressions(DIGEST)


async def a_suppression_to_decide_by(env: Env):
    key, _ = await a_suppression(env)
    return key, lambda: suppressed_rules(DIGEST)


async def one_in_the_line(env: Env):
    record = make_submission(at=env.kv.now())
    await put_record(env, record)
    return record.key, lambda: waiting_line(audiences=EVERYTHING)


async def one_before_it_in_the_line(env: Env):
    key, _ = await one_in_the_line(env)
    later = make_submission("later", at=env.kv.now())
    await put_record(env, later)
    return key, lambda: position_of(later, audiences=EVERYTHING)


async def one_that_ended(env: Env):
    record = make_submission(state=State.REJECTED, at=env.kv.now())
    await put_record(env, record)
    return record.key, lambda: recent_activity(audiences=EVERYTHING)


async def one_that_the_judge_saw(env: Env):
    key, _ = await one_that_ended(env)
    return key, lambda: latest_ends(audiences=EVERYTHING)


CASES: tuple[Case, ...] = (
    an_account,
    an_admin,
    an_audit_entry,
    a_count_of_attempts,
    a_token,
    a_token_of_anybody,
    a_token_beside_the_one_to_revoke,
    a_signer,
    a_version,
    an_external_scan,
    a_job,
    a_check_of_a_repository,
    an_open_report,
    a_report,
    a_suppression,
    a_suppression_to_decide_by,
    one_in_the_line,
    one_before_it_in_the_line,
    one_that_ended,
    one_that_the_judge_saw,
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_C7_what_cannot_be_read_is_an_error_and_not_a_shorter_answer(env, case):
    key, ask = await case(env)
    await ask()
    unreadable = UnreadableKV(env.kv, key)
    with active_env(env, kv=unreadable), pytest.raises(StoreUnavailable) as caught:
        await ask()
    assert caught.value is unreadable.errors[key]
