"""Whether sessions and tokens are still valid, for connections that outlive a request."""

from collections.abc import Collection

import msgspec

from vskill_platform.domain import keys
from vskill_platform.domain.people.token import Token
from vskill_platform.ledger.kv.entries import Entry
from vskill_platform.records import decode, read_entries
from vskill_platform.store.people.accounts import Role, User
from vskill_platform.store.people.sessions import Session
from vskill_platform.store.people.sign_in_rule import SignInRule, read_rule
from vskill_platform.worker_context import require_env


class Credential(msgspec.Struct, frozen=True):
    """A session or a token, and the account that showed it."""

    #: Of its record.
    key: str
    account: str


async def read_roles(credentials: Collection[Credential]) -> dict[Credential, Role | None]:
    """The current role of each credential's account; None if the account, session or token is no longer valid. This
    does not count as use. A failed read raises."""
    if not credentials:
        return {}
    stored = await read_entries({key for one in credentials for key in (one.key, keys.user(one.account))})
    now, rule = require_env("kv").kv.now(), await read_rule()
    return {
        one: _role(one, stored.get(one.key), stored.get(keys.user(one.account)), now, rule)
        for one in credentials
    }


def _role(
    credential: Credential, shown: Entry | None, account: Entry | None, now: int, rule: SignInRule
) -> Role | None:
    if shown is None or account is None:
        return None
    user = decode(account, User)
    if credential.key.startswith(keys.token.prefix):
        listed = credential.key.removeprefix(keys.token.prefix) in user.tokens
        is_good = listed and decode(shown, Token).is_good(now)
    else:
        session = decode(shown, Session)
        is_good = session.expires_at > now and session.created_at > user.signed_out_at
    return user.role if is_good and not user.disabled and rule.admits(user) else None
