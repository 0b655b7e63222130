import re

import pytest

from tests.mutations import ROOT, Mistake, mistakes

LEAST = 290


@pytest.mark.parametrize("mistake", mistakes(), ids=lambda mistake: mistake.file)
def test_a_mistake_can_be_planted_and_its_tests_exist(mistake: Mistake) -> None:
    planted = mistake.planted()
    if mistake.file.endswith(".py"):
        compile(planted, mistake.file, "exec")
    assert mistake.new != mistake.old
    for test in mistake.tests:
        file, _, name = test.partition("::")
        assert re.search(rf"^ *def {name or 'test_'}", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), test


def test_there_are_enough_mistakes_and_no_two_are_the_same() -> None:
    assert len({each[:3] for each in mistakes()}) == len(mistakes()) >= LEAST
