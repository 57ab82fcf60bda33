"""Who may change whose role, what a password must be, and how a token is written."""

import re

import pytest

from tenants.rules.bearers import DIGITS, DRAWN, SCOPES, Scope, is_token, written
from tenants.rules.people import (
    ADMINS_CHANGE,
    LAST_ADMIN,
    NOT_YOURSELF,
    ROLES,
    Standing,
    why_no_password,
    why_not_change,
)


def test_each_role_is_explained_in_one_line_from_the_least_to_the_most() -> None:
    assert list(ROLES) == ["viewer", "operator", "author", "admin"]
    assert all(0 < len(says) < 100 for says in ROLES.values())
    assert set(SCOPES) == set(Scope)


@pytest.mark.parametrize(
    ("me", "my_role", "them", "role", "why"),
    [
        (1, "viewer", Standing(2, "viewer", 1), "operator", ADMINS_CHANGE),
        (1, "author", Standing(2, "viewer", 1), None, ADMINS_CHANGE),
        (1, "admin", Standing(1, "admin", 3), "viewer", NOT_YOURSELF),
        (1, "admin", Standing(1, "admin", 3), None, NOT_YOURSELF),
        (1, "admin", Standing(2, "admin", 0), "viewer", LAST_ADMIN),
        (1, "admin", Standing(2, "admin", 0), None, LAST_ADMIN),
        (1, "admin", Standing(2, "admin", 0), "admin", None),
        (1, "admin", Standing(2, "admin", 1), None, None),
        (1, "admin", Standing(2, "viewer", 0), "admin", None),
    ],
)
def test_who_may_change_whose_role(me: int, my_role: str, them: Standing, role: str | None, why: str | None) -> None:
    assert why_not_change(me, my_role, them, role) == why


def test_a_long_password_is_good_whatever_is_in_it() -> None:
    assert why_no_password("only small letters", "pat") is None
    assert why_no_password("short", "pat") is not None


def test_a_token_is_known_by_its_shape_and_its_last_six_characters() -> None:
    token = written("0" * DRAWN)
    assert re.fullmatch(r"oz0_[0-9A-Za-z]{42}", token)
    assert is_token(token)
    for at in range(4, len(token)):
        other = token[:at] + DIGITS[(DIGITS.index(token[at]) + 1) % len(DIGITS)] + token[at + 1 :]
        assert not is_token(other), at
    assert not any(map(is_token, ("", token[:-1], token + "0", token.upper(), f" {token}", token + "\n")))
