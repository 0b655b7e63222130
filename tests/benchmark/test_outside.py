"""Errors in the code of a benchmark's folder: one line with the place."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from stepline.benchmark import Job
from stepline.benchmarks.segments.inputs import SegmentInputs
from stepline.cli.failure import failed
from stepline.config import validate
from stepline.errors import ConfigError
from stepline.io import write_text
from stepline.plans import benchmark, pipeline

TABLES = """\
title: Kitchen
releases: [v1]
datasets: [kitchens]
entries: {counts: {kind: statistics}}
tables: {table1: {title: Counts, metrics: [videos], lines: [{entry: counts, method: Counts}]}}
"""
CODE = """\
from functools import partial

from stepline.benchmarks.segments.recognition import Segment, StepRecognition
from stepline.datasets.schema import Video
from stepline.errors import ReleaseError


def cut(video, start_s, end_s, duration_s=10):
    return Segment(video=video, start_s=start_s, end_s=end_s, duration_s=duration_s, step="x")


class Kitchen(StepRecognition):
{}

BENCHMARK = Kitchen
"""
Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    """Writes the benchmark with the body of its class, and returns its folder."""
    folder = tmp_path / "cooking"

    def written(body: str) -> Path:
        folder.mkdir()
        (folder / "tables.yaml").write_text(TABLES)
        (folder / "__init__.py").write_text(CODE.format("".join(f"    {line}\n" for line in body.splitlines())))
        return folder

    yield written
    for name in [name for name in sys.modules if name.startswith("stepline_benchmark_kitchen")]:
        del sys.modules[name]


def listed() -> list[str]:
    """Return the ids of the videos of the benchmark."""
    config = validate({"benchmarks": {"kitchen": "cooking"}, "kitchen": {}})
    return [video.id for video in pipeline(config, "kitchens").dataset.videos()]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "yield Video(id='a', duration=3)",
            "TypeError: Video.__init__() got an unexpected keyword argument",
        ),
        ("return [Video(id={}['a'])]", "KeyError: 'a'"),
        ("assert False", "AssertionError"),
        ("from cooking import names", "no package cooking is installed: the modules of a benchmark import each other "),
        (
            "from kitchen.names import A",
            "no package kitchen is installed: the modules of a benchmark import ",
        ),
        (
            "import names",
            "no package names is installed: the modules of a benchmark import ",
        ),
        ("from .nams import A", "FOLDER has no module nams"),
        ("import numqy", "ModuleNotFoundError: No module named 'numqy'"),
    ],
)
def test_an_error_in_a_hook_is_one_line_with_its_place(write: Write, line: str, problem: str) -> None:
    folder = write(f"def videos(self):\n    {line}")
    (folder / "names.py").touch()
    with pytest.raises(ConfigError) as error:
        listed()
    expected = f"Kitchen.videos: {folder}/__init__.py, line 14: {problem.replace('FOLDER', str(folder))}"
    assert str(error.value).startswith(expected)


def test_the_place_is_the_innermost_in_the_folder(write: Write) -> None:
    folder = write("def videos(self):\n    from .names import first\n    return first()")
    (folder / "names.py").write_text("import json\n\n\ndef first():\n    return json.loads('{')\n")
    with pytest.raises(ConfigError, match=rf"^Kitchen.videos: {folder}/names.py, line 5: JSONDecodeError: Expecting "):
        listed()


def test_an_error_that_is_one_line_stays(write: Write) -> None:
    write("def videos(self):\n    raise ReleaseError('as it is')")
    with pytest.raises(Exception, match=r"^as it is$"):
        listed()


def test_a_data_set_without_the_hook_is_one_line(write: Write) -> None:
    write("pass")
    with pytest.raises(ConfigError, match=r"^Kitchen.videos: NotImplementedError: return the videos of the data set "):
        listed()


def test_videos_are_checked(write: Write) -> None:
    write("def videos(self):\n    return [Video(id='a'), Video(id='a')]")
    with pytest.raises(ConfigError, match=r"^Kitchen.videos: 'a' is listed twice"):
        listed()


def test_videos_are_listed_once_all_files_of_the_release_are_held(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write("def videos(self):\n    return [Video(id='a')]")
    (folder / "files.csv").write_text("path\na.json\nb.json\n")
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
    found = []
    for name in ("a.json", "b.json"):
        write_text(tmp_path / "mirror/kitchen" / name, "{}")
        found.append(listed())
    assert found == [[], ["a"]]


def test_a_class_that_cannot_be_made_is_one_line_with_its_place(write: Write) -> None:
    folder = write("kinds = StepRecognition.kinds | {'a': partial()}")
    place = f"config: benchmarks.kitchen: {folder} cannot be imported: {folder}/__init__.py, line 13: TypeError: "
    with pytest.raises(ConfigError) as error:
        listed()
    assert str(error.value).startswith(place)


def test_a_job_whose_module_imports_another_by_the_folder_s_name_says_how(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write("pass")
    (folder / "method.py").write_text("from cooking import Kitchen\n")
    benchmark(validate({"benchmarks": {"kitchen": "cooking"}}), "kitchen")
    with pytest.raises(ModuleNotFoundError) as error:
        import_module("stepline_benchmark_kitchen.method")
    assert failed(error.value, "predict") == 2
    said = capsys.readouterr().err
    assert said.startswith("error: no package cooking is installed: the modules of a benchmark import ")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("return [cut('a', 3, 3)]", "3 to 3 s is not a segment of 'a', which has 10 s"),
        ("return [cut('a', -1, 3)]", "-1 to 3 s is not a segment of 'a', which has 10 s"),
        ("return [cut('a', 0, 1), cut('b', 9, 12)]", "9 to 12 s is not a segment of 'b', which has 10 s"),
        ("return [cut('a', float('nan'), 12)]", "nan to 12 s is not a segment of 'a', which has 10 s"),
        (
            "return [cut('a', 0, 1), cut('b', 0, 1), cut('a', 2, 3)]",
            "'b' comes between two segments of 'a', 0 to 1 s and 2 to 3 s: keep a video's together",
        ),
        (
            "yield cut('a', 0, end=1)",
            "FOLDER/__init__.py, line 14: TypeError: cut() got an unexpected ",
        ),
    ],
)
def test_segments_that_are_impossible_are_one_line(write: Write, line: str, problem: str) -> None:
    folder = write(f"def segments(self, release, split):\n    {line}")
    config = validate({"benchmarks": {"kitchen": "cooking"}, "kitchen": {}})
    made = benchmark(config, "kitchen")(config, "kitchen")
    with pytest.raises(ConfigError) as error:
        SegmentInputs(made, Job(release="v1", entry=made.entries["counts"])).load("train")
    assert str(error.value).startswith(f"Kitchen.segments: {problem.replace('FOLDER', str(folder))}")


def test_segments_up_to_the_end_and_beyond_are_possible(write: Write) -> None:
    write("def segments(self, release, split):\n    return [cut('a', 0, 5), cut('a', 8, 12), cut('b', 0, 20)]")
    config = validate({"benchmarks": {"kitchen": "cooking"}, "kitchen": {}})
    made = benchmark(config, "kitchen")(config, "kitchen")
    job = Job(release="v1", entry=made.entries["counts"])
    assert [each.end_s for each in SegmentInputs(made, job).load("train")] == [5, 12, 20]
