from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from stepline.benchmark import Kind, Metric
from stepline.benchmark.checks import check_class, check_videos
from stepline.datasets.schema import Video
from stepline.errors import ConfigError
from tests.benchmark.tiny import Drawn, Tiny, tiny


@pytest.fixture
def made(tmp_path: Path) -> Tiny:
    return tiny(tmp_path)


def test_the_words_of_a_benchmark_are_known(made: Tiny) -> None:
    check_class(made)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ({"sees": ("vidoe",)}, "sees: 'vidoe' is not allowed; choose from video, speech, train, val, truth"),
        ({"settings": {"look": {"yes": ("tuth",)}}}, "sees: 'tuth' is not allowed"),
        ({"settings": {"look": ({"yes": ("tuth",)}, None)}}, "sees: 'tuth' is not allowed"),
        ({"metrics": ("eror",)}, "metrics: 'eror' is not allowed; choose from error, near, n"),
        ({"splits": ("tets",)}, "splits: 'tets' is not allowed; choose from train, val, test"),
        ({"options": "haed"}, "options: 'haed' is not allowed; choose from head"),
        ({"options": "metrics"}, "options: 'metrics' is not allowed; choose from head"),
        ({"method": "Drawn"}, "method: 'Drawn' is not allowed; write MODULE:CLASS, such as methods.linear:Linear"),
        (
            {"method": "tests.benchmark.tiny.Drawn"},
            "method: 'tests.benchmark.tiny.Drawn' is not allowed; write MODULE:",
        ),
        ({"method": "..tiny:Drawn"}, "method: '..tiny:Drawn' is not allowed; write MODULE:CLASS"),
        ({"method": Drawn}, "method: <class 'tests.benchmark.tiny.Drawn'> is not allowed; write MODULE:CLASS"),
        (
            {"method": "tinny:Drawn"},
            "method: 'tinny:Drawn' is not allowed; the benchmark's package has no module tinny",
        ),
        ({"method": "tiny:Drwan"}, "method: 'tiny:Drwan' is not allowed; choose from tiny:Number, tiny:Guess, tiny:"),
        ({"method": "tiny:tiny"}, "method: 'tiny:tiny' is not allowed; choose from tiny:Number, "),
        ({"method": ":Drawn"}, "method: ':Drawn' is not allowed; there is none"),
    ],
)
def test_a_kind_is_made_of_known_words(
    made: Tiny, monkeypatch: pytest.MonkeyPatch, kind: dict[str, Any], problem: str
) -> None:
    monkeypatch.setattr(Tiny, "kinds", {"fitted": Kind(**{"method": "tiny:Drawn"} | kind)})
    with pytest.raises(ConfigError) as error:
        check_class(made)
    assert str(error.value).startswith(f"OwnTiny.kinds['fitted'].{problem}")


def test_an_entry_that_the_configuration_adds_needs_the_options_of_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tiny, "kinds", Tiny.kinds | {"asking": Kind(method="tiny:Asking", options="haed")})
    check_class(tiny(tmp_path))
    own = {"kind": "asking", "table": "table1", "method": "Own"}
    with pytest.raises(ConfigError, match=r"^OwnTiny.kinds\['asking'\].options: 'haed' is not allowed"):
        check_class(tiny(tmp_path, entries={"own": own}))


def test_the_module_of_a_method_is_read_and_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "apart").mkdir()
    (tmp_path / "apart/__init__.py").write_text("class Here:\n    pass\n")
    (tmp_path / "apart/heavy.py").write_text("raise RuntimeError\nclass Linear:\n    class Part:\n        pass\n")
    (tmp_path / "apart/odd.py").write_text("class Linear:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    here: Any = import_module("apart")
    made = tiny(tmp_path / "folder")
    monkeypatch.setattr(type(made), "__module__", "apart")

    def check(method: str) -> None:
        monkeypatch.setattr(Tiny, "kinds", {"fitted": Kind(method=method)})
        check_class(made)

    check("heavy:Linear")
    check(":Here")
    assert made.method(Kind(method=":Here")) is here.Here
    with pytest.raises(ConfigError, match=r"'heavy:Part' is not allowed; choose from heavy:Linear$"):
        check("heavy:Part")
    with pytest.raises(
        ConfigError, match=r"^OwnTiny.kinds\['fitted'\].method: .*/odd.py cannot be imported: .*line 1\)$"
    ):
        check("odd:Linear")


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


def test_the_release_has_the_name_of_the_benchmark(made: Tiny) -> None:
    with pytest.raises(ConfigError) as error:
        check_class(type(made)(made.config | {"teeny": made.options}, "teeny"))
    assert str(error.value) == (
        "OwnTiny.released: its name is 'tiny', and the configuration names the benchmark 'teeny': use one name"
    )


@pytest.mark.parametrize(
    ("name", "dataset", "problem"),
    [
        ("third", {}, "datasets: 'third' is not allowed; choose from first, second"),
        ("first", {"name": "second"}, "datasets['first'].name: 'second' is not allowed; choose from first"),
        ("first", {"listed_by": ""}, "datasets['first'].listed_by: '' is not allowed; choose from tiny/first, tiny/s"),
    ],
)
def test_a_data_set_is_declared_and_listed_by_a_release(
    made: Tiny, monkeypatch: pytest.MonkeyPatch, name: str, dataset: dict[str, str], problem: str
) -> None:
    monkeypatch.setattr(Tiny, "datasets", {name: replace(Tiny.datasets["first"], **dataset)})
    with pytest.raises(ConfigError) as error:
        check_class(made)
    assert str(error.value).startswith(f"OwnTiny.{problem}")


def test_a_declared_data_set_that_the_class_does_not_have_is_one_line(
    made: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tiny, "datasets", {"first": Tiny.datasets["first"]})
    with pytest.raises(ConfigError) as error:
        check_class(made)
    assert str(error.value) == (
        f"{made.folder}/tables.yaml: datasets: OwnTiny.datasets has no 'second', only first: remove it, or override "
        "`datasets`"
    )


@pytest.mark.parametrize(
    ("videos", "problem"),
    [
        ([Video(id="a"), Video(id="b"), Video(id="a")], "'a' is listed twice: list each video once"),
        ([Video(id="a/b")], "video id 'a/b' is not allowed: use at most 128 bytes of letters, digits, "),
        ([Video(id="a", split="dev")], "'a' has the split 'dev'; choose from train, val, test"),
        ([Video(id="a", duration_s="60")], "'a' has the duration '60'; give a number of seconds"),
        (["a"], "'a' is not a Video whose id is text"),
        ([Video(id=1)], "Video(id=1, "),
    ],
)
def test_a_video_that_is_not_valid_is_one_line(videos: Any, problem: str) -> None:
    check_videos("Toy.videos", [Video(id="a", split="val", duration_s=60), Video(id="b")])
    with pytest.raises(ConfigError) as error:
        check_videos("Toy.videos", videos)
    assert str(error.value).startswith(f"Toy.videos: {problem}")
