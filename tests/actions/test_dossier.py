"""The dossier of a version: what was found out about it, under whichever rules, and never a guess."""

import msgspec
import pytest

from tests.support.acting import VISITOR
from tests.support.envs import active_env, open_test_env, run_until_quiet, submit_skill
from tests.support.faults import TroubledScanner
from tests.support.system_reads import get_submission
from vskill_core.errors import NotFound
from vskill_platform.actions.principal import ANYBODY, resolve
from vskill_platform.actions.verdicts.dossier import read_dossier
from vskill_platform.domain import keys
from vskill_platform.domain.people.namespace import Member, Namespace, NamespaceRole
from vskill_platform.store.people.audit import AuditNote
from vskill_platform.store.people.namespaces import NamespaceChange, change_namespace
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.worker_context import require_env

pytestmark = pytest.mark.anyio

DEMO = "upload~tests/skills/demo"


class NewerRules(TroubledScanner):
    """The same scanner after its rules changed."""

    @property
    def ruleset(self) -> str:
        return "newer"


@pytest.fixture
async def env(tmp_path):
    async with open_test_env("memory", tmp_path) as opened:
        record = (await submit_skill("demo")).submission
        assert record is not None
        await run_until_quiet(opened)
        yield opened


async def test_after_the_rules_changed_the_scan_that_it_was_published_with_is_shown(env):
    dossier = await read_dossier(require_env(), VISITOR, "demo")
    before = dossier.scan
    assert before is not None
    with active_env(env, scanner=NewerRules(env.scanner, b"", RuntimeError("not asked"))):
        assert (await read_dossier(require_env(), VISITOR, "demo")).scan == before
        newer = msgspec.structs.replace(before, ruleset="newer")
        await env.kv.put(keys.scan(dossier.ref.digest, "newer"), msgspec.json.encode(newer))
        assert (await read_dossier(require_env(), VISITOR, "demo")).scan == newer


async def test_an_earlier_scan_that_is_not_kept_is_none_rather_than_a_clean_one(env):
    dossier = await read_dossier(require_env(), VISITOR, "demo")
    await env.kv.delete(keys.scan(dossier.ref.digest, env.scanner.ruleset))
    with active_env(env, scanner=NewerRules(env.scanner, b"", RuntimeError("not asked"))):
        assert (await read_dossier(require_env(), VISITOR, "demo")).scan is None


async def test_evidence_about_other_content_says_nothing_about_this_version(env):
    dossier = await read_dossier(require_env(), VISITOR, "demo")
    assert dossier.submission is not None
    record = await get_submission(dossier.submission.id)
    assert record.evidence is not None
    other = msgspec.structs.replace(record.evidence, digest="e" * 64)
    await env.kv.put(record.key, msgspec.json.encode(msgspec.structs.replace(record, evidence=other)))
    with active_env(env, scanner=NewerRules(env.scanner, b"", RuntimeError("not asked"))):
        assert (await read_dossier(require_env(), VISITOR, "demo")).scan is None


async def test_a_version_whose_record_is_lost_is_not_found_by_its_number(env):
    await env.kv.delete(keys.version(DEMO, "1.0.0"))
    with pytest.raises(NotFound, match=r"has no version 1\.0\.0"):
        await read_dossier(require_env(), VISITOR, DEMO)


async def test_who_proved_the_repository_is_shown(env):
    skill = await get_skill(DEMO)
    member = Member("user:ann", NamespaceRole.MAINTAINER, 0, "file", repo=skill.identity.repo_key)

    async def decide(namespace: Namespace) -> NamespaceChange:
        return NamespaceChange(msgspec.structs.replace(namespace, members=(member,)))

    await change_namespace("upload~tests", decide, AuditNote("proved", "upload~tests", "system", "a test"))
    shown = (await read_dossier(require_env(), await resolve(ANYBODY), "demo")).ownership
    assert shown is not None and [owner.account for owner in shown.owners] == ["ann"]
