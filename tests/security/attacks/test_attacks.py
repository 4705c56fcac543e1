"""Every attack, with its bounds. What they say depends on how fast the machine is, so exploration runs them."""

import pytest

from tests.security.attacks import __main__ as attacks
from tests.security.attacks.base import ATTACKS, damage_of

NAMES = sorted(attacks.ATTACKS)


@pytest.mark.exploration
@pytest.mark.parametrize("name", NAMES)
def test_others_hardly_notice(name: str) -> None:
    assert damage_of(ATTACKS[name]).broken == []
