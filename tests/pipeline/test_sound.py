from collections.abc import Callable

import pytest

from stepline.config import Config, validate
from stepline.pipeline import media_params, shots_params, sound


@pytest.mark.parametrize(("params", "revision"), [(media_params, "REVISION"), (shots_params, "SHOTS_REVISION")])
def test_another_revision_is_another_parameter_of_the_job(
    params: Callable[[Config], str], revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = params(validate({}))
    monkeypatch.setattr(sound, revision, 99)
    assert params(validate({})) != before
