from collections.abc import Mapping
from typing import Any

import pytest

from stepline.benchmark.shapes import fits, said


@pytest.mark.parametrize(
    ("hint", "right", "wrong", "text"),
    [
        (str, ["", "a"], [1, None, ["a"]], "text"),
        (int, [1], [1.5, True, "1"], "a whole number"),
        (float, [1, 1.5], [True, "1"], "a number"),
        (bool, [True], [1], "true or false"),
        (tuple[str, ...], [[], ["a"]], ["a", ["a", 1]], "a list of text"),
        (tuple[int, ...], [[1]], [[1.5], [True]], "a list of whole numbers"),
        (str | tuple[float | None, ...], ["all", [1, None]], [1, ["a"]], "text or a list of numbers or null"),
        (Mapping[str, Any], [{}, {"a": 1}], [[], "a"], "keys with values"),
    ],
)
def test_a_value_of_yaml_fits_the_type_of_a_field(hint: Any, right: list[Any], wrong: list[Any], text: str) -> None:
    assert all(fits(value, hint) for value in right)
    assert not any(fits(value, hint) for value in wrong)
    assert said(hint) == text
