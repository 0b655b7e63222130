import pytest

from tests.chaos.faults import campaign


@pytest.mark.slow
def test_faults_of_servers_leave_nothing_that_is_wrong() -> None:
    counts = campaign(seed=20, n=15)
    assert counts["record present"]
    assert counts["requests"] > 15
