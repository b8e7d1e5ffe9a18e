"""Passwords: the rules for them, and argon2id in a thread, one at a time, so that many attempts exhaust neither the
event loop nor memory. Only the hash is ever kept; there is no default password."""

import asyncio
import functools
import secrets

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from vskill_core.errors import InvalidInput
from vskill_platform.worker_context import HashCost, require_env

LEAST_PASSWORD = 12
MOST_PASSWORD = 200
#: Characters of a generated one: about 130 bits.
_GENERATED_BYTES = 16


def new_password() -> str:
    return secrets.token_urlsafe(_GENERATED_BYTES)


def check_password(password: str, name: str) -> str:
    if not LEAST_PASSWORD <= len(password) <= MOST_PASSWORD:
        fix = f"use {LEAST_PASSWORD} to {MOST_PASSWORD} characters"
        raise InvalidInput(f"The password has the wrong length; {fix}.", field="password", fix=fix)
    if len(set(password)) < 4 or password.casefold() == name.casefold():
        raise InvalidInput(
            "The password is too easy to guess.", field="password", fix="use a longer sentence of your own"
        )
    return password


async def hash_password(password: str) -> str:
    env = require_env("kv")
    async with env.turns.turn("argon2"):
        return await asyncio.to_thread(_hasher(env.hash_cost).hash, password)


async def fits(encoded: str | None, password: str) -> bool:
    """Whether the password is right. Without a hash this takes as long, and is false."""
    if len(password) > MOST_PASSWORD:
        password = password[:MOST_PASSWORD] + "\N{HORIZONTAL ELLIPSIS}"
    env = require_env("kv")
    async with env.turns.turn("argon2"):
        return await asyncio.to_thread(_verify, _hasher(env.hash_cost), encoded, password)


def is_outdated(encoded: str) -> bool:
    return _hasher(require_env("kv").hash_cost).check_needs_rehash(encoded)


@functools.cache
def _hasher(cost: HashCost) -> PasswordHasher:
    return PasswordHasher(time_cost=cost.passes, memory_cost=cost.memory_kib, parallelism=cost.lanes)


def _verify(hasher: PasswordHasher, encoded: str | None, password: str) -> bool:
    if encoded is None:
        hasher.hash(password)
        return False
    try:
        return hasher.verify(encoded, password)
    except (VerificationError, InvalidHashError):
        return False
