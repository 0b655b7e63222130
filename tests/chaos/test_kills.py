import pytest

from tests.chaos import disks, flips, kills

pytestmark = pytest.mark.slow


def test_kills() -> None:
    assert sum(kills.campaign(0, 3).values()) == 3


def test_disks_that_refuse() -> None:
    assert sum(disks.campaign(0, 3).values()) == 3


def test_flips() -> None:
    assert sum(flips.campaign(0, 300).values()) == 300
