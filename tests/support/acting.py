"""Actions as tests call them: by a name such as `admin:eve`, in the environment of the worker context, about the run
and the bytes that are there now."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from tests.support.system_reads import get_submission
from vskill_client.wire.base import NoParameters
from vskill_client.wire.skills import SkillState
from vskill_core.identity import Identity
from vskill_platform.actions.action import check_request
from vskill_platform.actions.people.account import SIGN_OUT_EVERYWHERE
from vskill_platform.actions.people.accounts import (
    CHANGE_ROLE,
    DISABLE_ACCOUNT,
    ENABLE_ACCOUNT,
    RESET_PASSWORD,
    ChangeAccount,
    ChangeAccountRole,
    ResetPassword,
)
from vskill_platform.actions.people.owners import (
    CHECK,
    CLAIM,
    TRANSFER,
    ClaimStarted,
    OwnedRepository,
    RepositoryRequest,
    TransferRepository,
)
from vskill_platform.actions.people.tokens import (
    DAY_MS,
    DEFAULT_DAYS,
    REVOKE_OWN_TOKEN,
    RevokeOwnToken,
    issue_token,
)
from vskill_platform.actions.principal import ANYBODY, OPERATOR, Principal, resolve
from vskill_platform.actions.recall.takedowns import RESTORE, TAKE_DOWN, RestoreSkill, TakeDownSkill
from vskill_platform.actions.review.appeals import APPEAL, AppealSubmission
from vskill_platform.actions.review.review import APPROVE, REJECT, DecideSubmission
from vskill_platform.actions.skills.collections import ADD_SKILLS, ChangeCollection, CollectionView
from vskill_platform.actions.skills.versions import DELETE, UNYANK, YANK, DeleteSkill, WithdrawVersion
from vskill_platform.actions.submissions.submissions import CANCEL, RERUN, CancelSubmission, RerunSubmission
from vskill_platform.domain.people.namespace import PUBLIC_ONLY, NamespaceRole
from vskill_platform.domain.people.token import Token, TokenScope
from vskill_platform.domain.skills.skill import PublishedSkill
from vskill_platform.domain.submissions.submission import Submission
from vskill_platform.store.people.accounts import Role, User, get_user
from vskill_platform.store.people.credentials import find_token_hash
from vskill_platform.store.people.owners import role_at
from vskill_platform.store.skills.skills import get_skill
from vskill_platform.worker_context import require_env

#: Somebody who did not sign in, as a request to a public registry makes them.
VISITOR = msgspec.structs.replace(ANYBODY, audiences=PUBLIC_ONLY)


def principal_for(by: str) -> Principal:
    """`user:ann` is an author, `admin:eve` an admin, `system` whoever runs the server."""
    kind, _, name = by.partition(":")
    if kind == "system":
        return OPERATOR
    return Principal(name, Role.ADMIN if kind == "admin" else Role.AUTHOR)


async def approve(submission_id: str, *, by: str, reason: str, digest: str | None = None) -> Submission:
    record = await get_submission(submission_id)
    request = DecideSubmission(
        submission_id=submission_id, run=record.run, digest=digest or record.digest, reason=reason
    )
    await APPROVE(require_env(), principal_for(by), request)
    return await get_submission(submission_id)


async def reject(submission_id: str, *, by: str, reason: str) -> Submission:
    record = await get_submission(submission_id)
    request = DecideSubmission(
        submission_id=submission_id, run=record.run, digest=record.digest, reason=reason
    )
    await REJECT(require_env(), principal_for(by), request)
    return await get_submission(submission_id)


async def cancel(submission_id: str, *, by: str, reason: str) -> Submission:
    """Whoever it is: rights are tested elsewhere."""
    request = check_request(CancelSubmission(submission_id=submission_id, reason=reason))
    await CANCEL.run(require_env(), await resolve(principal_for(by)), request)
    return await get_submission(submission_id)


async def run_again(submission_id: str, *, by: str, reason: str) -> Submission:
    """Whoever it is: rights are tested elsewhere."""
    request = check_request(RerunSubmission(submission_id=submission_id, reason=reason))
    await RERUN.run(require_env(), await resolve(principal_for(by)), request)
    return await get_submission(submission_id)


async def appeal(submission_id: str, *, by: str, reason: str) -> Submission:
    await APPEAL(
        require_env(), principal_for(by), AppealSubmission(submission_id=submission_id, reason=reason)
    )
    return await get_submission(submission_id)


# Owners, by the names of their accounts.


async def claim(account: str, url: str) -> ClaimStarted:
    return await CLAIM(require_env(), principal_for(f"user:{account}"), RepositoryRequest(repo_url=url))


async def check(account: str, url: str) -> OwnedRepository:
    return await CHECK(require_env(), principal_for(f"user:{account}"), RepositoryRequest(repo_url=url))


async def transfer(url: str, *, account: str, to: str, reason: str) -> OwnedRepository:
    request = TransferRepository(repo_url=url, to=to, reason=reason)
    return await TRANSFER(require_env(), principal_for(f"user:{account}"), request)


async def yank(skill: str, version: str, *, account: str, reason: str) -> SkillState:
    request = WithdrawVersion(skill=skill, version=version, reason=reason)
    return await YANK(require_env(), principal_for(f"user:{account}"), request)


async def unyank(skill: str, version: str, *, account: str, reason: str) -> SkillState:
    request = WithdrawVersion(skill=skill, version=version, reason=reason)
    return await UNYANK(require_env(), principal_for(f"user:{account}"), request)


async def delete(skill: str, *, account: str, reason: str) -> SkillState:
    request = DeleteSkill(skill=skill, reason=reason)
    return await DELETE(require_env(), principal_for(f"user:{account}"), request)


async def take_down(canonical: str, number: str | None = None, *, by: str, reason: str) -> PublishedSkill:
    request = TakeDownSkill(skill=canonical, version=number, reason=reason)
    await TAKE_DOWN(require_env(), principal_for(by), request)
    return await get_skill(canonical)


async def restore(canonical: str, number: str | None = None, *, by: str, reason: str) -> PublishedSkill:
    request = RestoreSkill(skill=canonical, version=number, reason=reason)
    await RESTORE(require_env(), principal_for(by), request)
    return await get_skill(canonical)


async def add_to_collection(name: str, skills: list[str], *, by: str, reason: str) -> CollectionView:
    request = ChangeCollection(name=name, skills=tuple(skills), reason=reason)
    return await ADD_SKILLS(require_env(), principal_for(by), request)


# Accounts.


async def set_role(name: str, role: Role, *, by: str, reason: str) -> User:
    await CHANGE_ROLE(
        require_env(), principal_for(by), ChangeAccountRole(name=name, role=role, reason=reason)
    )
    return await get_user(name)


async def set_disabled(name: str, *, disabled: bool, by: str, reason: str) -> User:
    action = DISABLE_ACCOUNT if disabled else ENABLE_ACCOUNT
    await action(require_env(), principal_for(by), ChangeAccount(name=name, reason=reason))
    return await get_user(name)


async def set_password(name: str, password: str, *, by: str, reason: str) -> User:
    request = ResetPassword(name=name, password=password, reason=reason)
    await RESET_PASSWORD(require_env(), principal_for(by), request)
    return await get_user(name)


async def sign_out_everywhere(name: str) -> User:
    await SIGN_OUT_EVERYWHERE(require_env(), principal_for(f"user:{name}"), NoParameters())
    return await get_user(name)


class MadeToken(NamedTuple):
    """A token, and what nobody sees again."""

    secret: str
    token: Token


async def create_token(
    account: str,
    name: str,
    scopes: Iterable[str],
    *,
    by: str,
    days: int = DEFAULT_DAYS,
    namespace: str | None = None,
) -> MadeToken:
    """Whoever it is: rights are tested elsewhere."""
    env = require_env()
    wanted = [TokenScope(scope) for scope in scopes]
    expires_at = env.kv.now() + days * DAY_MS
    made = await issue_token(env, account, name, wanted, by=by, expires_at=expires_at, namespace=namespace)
    return MadeToken(made.token, (await find_token_hash(account, made.details.id))[1])


async def revoke_own_token(account: str, token_id: str) -> None:
    request = RevokeOwnToken(token_id=token_id)
    await REVOKE_OWN_TOKEN(require_env(), principal_for(f"user:{account}"), request)


async def controls(account: str, repo: Identity) -> bool:
    """Whether an account maintains a repository."""
    role = await role_at(account, repo)
    return role is not None and role.rank >= NamespaceRole.MAINTAINER.rank
