from pathlib import Path
from typing import Any

import pytest

from stepline.benchmark import Kind, Metric
from stepline.benchmark.checks import check_class
from stepline.errors import ConfigError
from tests.benchmark.tiny import Tiny, tiny


@pytest.fixture
def made(tmp_path: Path) -> Tiny:
    return tiny(tmp_path)


def test_the_words_of_a_benchmark_are_known(made: Tiny) -> None:
    check_class(made)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ({"sees": ("vidoe",)}, "sees: 'vidoe' is not allowed; choose from video, train, truth"),
        ({"settings": {"look": {"yes": ("tuth",)}}}, "sees: 'tuth' is not allowed"),
        ({"settings": {"look": ({"yes": ("tuth",)}, None)}}, "sees: 'tuth' is not allowed"),
        ({"metrics": ("eror",)}, "metrics: 'eror' is not allowed; choose from error, near, n"),
        ({"splits": ("tets",)}, "splits: 'tets' is not allowed; choose from train, val, test"),
        ({"options": "haed"}, "options: 'haed' is not allowed; choose from head"),
        ({"options": "metrics"}, "options: 'metrics' is not allowed; choose from head"),
    ],
)
def test_a_kind_is_made_of_known_words(
    made: Tiny, monkeypatch: pytest.MonkeyPatch, kind: dict[str, Any], problem: str
) -> None:
    monkeypatch.setattr(Tiny, "kinds", {"new": Kind(method=Tiny.kinds["drawn"].method, **kind)})
    with pytest.raises(ConfigError) as error:
        check_class(made)
    assert str(error.value).startswith(f"OwnTiny.kinds['new'].{problem}")


@pytest.mark.parametrize(
    ("attribute", "value", "problem"),
    [
        ("metrics", {"near": Metric(title="Near", options=("whithin",))}, "metrics['near'].options: 'whithin'"),
        ("published", {"whithin": 1}, "published: 'whithin'"),
        ("paper_release", "third", "paper_release: 'third' is not allowed; choose from first, second"),
    ],
)
def test_metrics_and_what_is_published_are_of_known_options(
    made: Tiny, monkeypatch: pytest.MonkeyPatch, attribute: str, value: Any, problem: str
) -> None:
    monkeypatch.setattr(Tiny, "kinds", {})
    monkeypatch.setattr(Tiny, attribute, value)
    with pytest.raises(ConfigError) as error:
        check_class(made)
    assert str(error.value).startswith(f"OwnTiny.{problem}")
