"""The CI workflows that may submit a repository, at `publishers:{repository}`; and the tokens that their jobs get, at
`ci_token:{hash}`, which end after minutes."""

import fnmatch
import secrets
from collections.abc import Callable

import msgspec

from vskill_core.errors import NotPermitted
from vskill_core.identity import Identity
from vskill_core.publisher import Publisher
from vskill_platform.domain import keys
from vskill_platform.domain.people.token import CiJob
from vskill_platform.ledger.kv.entries import ABSENT, Put
from vskill_platform.records import persist, read_record
from vskill_platform.store.people.audit import AuditNote, record_audit
from vskill_platform.store.people.credentials import hash_secret
from vskill_platform.worker_context import require_env

CI_PREFIX = "vskci_"
#: A job gets its token when it is about to submit, and follows what becomes of it.
LIFE_MS = 30 * 60_000
#: How long the first job of a workflow may say which number its repository has.
PENDING_MS = 30 * 86_400_000


class TrustedWorkflow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A workflow that a maintainer let in."""

    id: str
    #: The issuer's name in the settings.
    issuer: str
    #: The file in the repository.
    workflow: str
    #: The branches or tags that it may run for, with `*` for any characters; empty: all.
    ref: str = ""
    #: The environment that it must run in; empty: any or none.
    environment: str = ""
    #: The repository's number at its forge, which no other one ever gets; where nobody gave it, that of the first job.
    number: str = ""
    by: str
    created_at: int
    last_used_at: int | None = None
    last_run: str = ""

    def is_about(self, number: str, now: int) -> bool:
        """Whether a repository of this number is the one that was meant: after a while without a job, whoever has its
        name now may be somebody else."""
        return number == self.number or (not self.number and now < self.created_at + PENDING_MS)


class TrustedWorkflows(msgspec.Struct, frozen=True):
    """The record at `publishers:{repository}`."""

    url: str
    workflows: tuple[TrustedWorkflow, ...] = ()


async def read_workflows(repository: Identity) -> TrustedWorkflows:
    found, _ = await read_record(keys.publishers(repository.repo_key), TrustedWorkflows)
    return found or TrustedWorkflows(repository.url)


async def change_workflows(
    repository: Identity, change: Callable[[TrustedWorkflows], TrustedWorkflows], note: AuditNote
) -> TrustedWorkflows:
    """One commit: the record and the audit entry. `change` is called again after a conflict."""
    key, entry_id = keys.publishers(repository.repo_key), require_env("clock").clock.new_id()

    async def write() -> TrustedWorkflows:
        known, version = await read_record(key, TrustedWorkflows)
        changed = change(known or TrustedWorkflows(repository.url))
        audit = record_audit(
            note.action, note.target, by=note.by, reason=note.reason, details=note.details, entry_id=entry_id
        )
        await require_env("kv").kv.commit([Put(key, msgspec.json.encode(changed), version), *audit])
        return changed

    return await persist(write)


class ProvedJob(msgspec.Struct, frozen=True):
    """A job that a forge vouches for."""

    publisher: Publisher
    repository: Identity
    #: The issuer's name in the settings.
    issuer: str
    #: The repository's number at its forge; empty where that has none.
    number: str
    #: Of the forge's token, and how long that could be shown again.
    proof: str
    proof_ms: int


async def let_in(wanted: ProvedJob, *, is_open: bool) -> tuple[str, CiJob]:
    """A token of ours for a job whose workflow a maintainer let in; once for each token of the forge. NotPermitted says
    which check failed, but where not everybody may read the repository (`is_open`) only to the one that was meant."""
    env, secret = require_env("kv"), CI_PREFIX + secrets.token_urlsafe(32)
    job = CiJob(env.clock.new_id(), wanted.publisher, wanted.repository, env.kv.now() + LIFE_MS)
    proof, key = keys.ci_proof(wanted.proof), keys.publishers(wanted.repository.repo_key)

    async def write() -> None:
        earlier = await env.kv.get(proof)
        if earlier is not None and earlier.value == job.id.encode():
            return  # a try with an unknown outcome was applied
        if earlier is not None:
            fix = "ask your forge for a new one"
            raise NotPermitted("The CI token is refused: it was used before.", field="token", fix=fix)
        known, version = await read_record(key, TrustedWorkflows)
        chosen = _choose(known, wanted, is_open=is_open)
        used = msgspec.structs.replace(
            chosen,
            number=chosen.number or wanted.number,
            last_used_at=env.kv.now(),
            last_run=wanted.publisher.run,
        )
        changed = replace_workflow(known or TrustedWorkflows(wanted.repository.url), chosen.id, used)
        await env.kv.commit(
            [
                Put(proof, job.id.encode(), ABSENT, ttl_ms=wanted.proof_ms),
                Put(keys.ci_token(hash_secret(secret)), msgspec.json.encode(job), ABSENT, ttl_ms=LIFE_MS),
                Put(key, msgspec.json.encode(changed), version),
                *record_audit(
                    "publisher let in",
                    wanted.repository.url,
                    by=wanted.publisher.actor,
                    reason=f"its forge vouches for {wanted.publisher.workflow}",
                    details=msgspec.structs.asdict(wanted.publisher),
                ),
            ]
        )

    await persist(write)
    return secret, job


def replace_workflow(
    known: TrustedWorkflows, workflow_id: str, *instead: TrustedWorkflow
) -> TrustedWorkflows:
    others = (one for one in known.workflows if one.id != workflow_id)
    return msgspec.structs.replace(known, workflows=(*others, *instead))


async def find_job(secret: str) -> CiJob | None:
    if not secret.startswith(CI_PREFIX) or len(secret) > 200:
        return None
    job, _ = await read_record(keys.ci_token(hash_secret(secret)), CiJob)
    return job if job is not None and require_env("kv").kv.now() < job.expires_at else None


def _choose(known: TrustedWorkflows | None, wanted: ProvedJob, *, is_open: bool) -> TrustedWorkflow:
    publisher, url, now = wanted.publisher, wanted.repository.url, require_env("kv").kv.now()
    every = known.workflows if known is not None else ()
    left = [one for one in every if one.issuer == wanted.issuer and one.is_about(wanted.number, now)]
    may_know = is_open or any(one.number for one in left)
    problem = f"this registry has no publisher for {url}" + (wanted.number and f", number {wanted.number}")
    checks: tuple[tuple[str, Callable[[TrustedWorkflow], bool]], ...] = (
        (f"the workflow {publisher.workflow}", lambda one: one.workflow == publisher.workflow),
        (publisher.ref, lambda one: fnmatch.fnmatchcase(publisher.ref, one.ref or "*")),
        (
            f"the environment {publisher.environment!r}",
            lambda one: one.environment in ("", publisher.environment),
        ),
    )
    for what, fits in checks:
        before, left = left, [one for one in left if fits(one)]
        if before and not left and may_know:
            problem = f"no publisher of {url} allows {what}"
    if not left:
        fix = "ask a maintainer of the repository to add it as a publisher here"
        raise NotPermitted(f"The CI token is refused: {problem}.", field="token", fix=fix)
    return left[0]
