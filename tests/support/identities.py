"""Accounts that sign in at an issuer, made without one."""

import msgspec

from vskill_platform.domain import keys
from vskill_platform.setting_issuers import Issuer
from vskill_platform.store.people.accounts import LinkedIdentity, get_user, with_identity
from vskill_platform.worker_context import Env

#: Two issuers that call a group alike.
ISSUERS = tuple(
    Issuer(name=name, issuer=f"https://{name}.example", client_id="x") for name in ("home", "elsewhere")
)


async def link(env: Env, account: str, issuer: str, *groups: str, ago_ms: int = 0) -> None:
    """As a sign-in at the issuer of this name links an account."""
    address = next(one.issuer for one in ISSUERS if one.name == issuer)
    at = env.kv.now() - ago_ms
    identity = LinkedIdentity(f"sub-{account}", account, at, address, groups=groups)
    changed = with_identity(await get_user(account), identity)
    await env.kv.put(keys.user(account), msgspec.json.encode(changed))
