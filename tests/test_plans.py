"""Which plans and pipelines a configuration has."""

from pathlib import Path

import pytest

from stepline.config import Config, validate
from stepline.errors import ConfigError
from stepline.plans import configured, has_tables, pipeline, plan


@pytest.fixture
def config() -> Config:
    """A study, and a data set of the user's own."""
    Path("clips").mkdir()
    Path("clips/a.mp4").write_bytes(b"x")
    return validate({"datasets": {"mine": {"videos": "clips"}}, "demo": {}})


def test_benchmarks_have_plans_and_data_sets_have_pipelines(config: Config) -> None:
    assert configured(config) == ["demo", "mine"]
    assert [has_tables(config, name) for name in configured(config)] == [True, False]
    assert plan(config, "demo").targets[0] == "table2.csv"
    assert pipeline(config, "demo").targets == ()
    assert pipeline(config, "mine").targets[0] == "videos.csv"


def test_a_benchmark_has_the_pipelines_of_its_data_sets() -> None:
    config = validate({"pss": {"releases": ["tasty"]}})
    assert configured(config) == ["pss", "tasty"]
    assert list(plan(config, "pss").pipelines) == ["tasty"]
    assert pipeline(config, "tasty").name == "tasty"


def test_what_is_no_data_set_is_one_line(config: Config) -> None:
    with pytest.raises(ConfigError, match="dataset 'x' is not known"):
        pipeline(config, "x")
    with pytest.raises(ConfigError, match="^pss has no videos of its own: name youcook2 or tasty$"):
        pipeline(config, "pss")
