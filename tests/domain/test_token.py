"""Tokens: what a scope brings with it, and what a role lets a token do."""

import pytest

from vskill_platform.domain.people.token import SCOPES, ActingToken, Token, with_included


def token(*scopes: str) -> Token:
    return Token("t1", "ann", "laptop", scopes, created_at=5, expires_at=10)


def test_a_token_is_good_until_it_expires():
    assert token("read").is_good(9)
    assert not token("read").is_good(10)


def test_a_token_is_named_without_its_secret():
    assert token("read").acting == ActingToken("t1", "laptop")


def test_admin_brings_every_scope_and_no_other_scope_brings_any():
    assert with_included(["admin"]) == set(SCOPES)
    for scope in set(SCOPES) - {"admin"}:
        assert with_included([scope]) == {"read", scope}
    assert with_included(["read", "submit"]) == {"read", "submit"}


@pytest.mark.parametrize(
    ("role", "may"),
    [
        ("author", {"read", "submit", "own"}),
        ("reviewer", {"read", "submit", "own", "review"}),
        ("admin", set(SCOPES)),
    ],
)
def test_a_token_may_do_what_its_scopes_and_its_accounts_role_allow(role, may):
    assert token(*SCOPES).scopes_as(role) == may
    assert token("read", "review").scopes_as(role) == {"read", "review"} & may
    assert token("admin").scopes_as(role) == may
