"""Pooled rows: one per shot or segment."""

from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import stepline
from stepline import paths, shots
from stepline.availability import Record, read_manifest, write_availability, write_manifest
from stepline.backbones.registry import presets
from stepline.cli import main
from stepline.errors import ConfigError, MissingError, StoreError
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.pool import By, PooledSpec, check_current, ends_s, of_shots, pool
from stepline.features.store import Damaged, Part
from stepline.io import read_json, write_json, write_table
from stepline.shots import Detection
from stepline.spec import ClipSpec
from tests.features import toy

SPEC: ClipSpec = replace(toy.SPEC, name="net", dimension=6)
CONTENT = Detection(detector="content", threshold=None, min_shot_s=0.6)
GAPS = [(3.0, 7.0, "lost")]
SHOTS = {"a": [(0.0, 2.5), (2.5, 2.9), (2.9, 9.0)], "b": [(0.0, 3.0), (3.2, 5.8), (7.0, 10.0)], "c": [(0.0, 4.0)]}


def rows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(1, 1, (n, 6)).astype(np.float16)


ROWS = {"a": rows(9), "b": rows(6, 1), "c": rows(4, 2)}


def written(spec: Any = SPEC, **changed: np.ndarray) -> Bank:
    """Store a and the damaged b in one shard and c in another, a row a second, and open them."""
    made = ROWS | changed
    parts = {"a": made["a"], "b": [Part(made["b"][:3], 0, 0, 3), Part(made["b"][3:], 7, 7, inf)]}
    damaged = {"b": Damaged("k", (), GAPS)}
    write_json(paths.spec_record(spec), spec.record())
    store.write(paths.features("mine", "000", spec), spec, parts, 1.0, damaged=damaged)
    store.write(paths.features("mine", "001", spec), spec, {"c": made["c"]}, 1.0)
    return stepline.open_bank(spec.name, "mine")


@pytest.fixture
def bank() -> Bank:
    return written()


def made(bank: Bank, by: By, spans: Any) -> Bank:
    spec = PooledSpec.of(bank, by)
    pool(bank, spec, "mine", spans)
    return stepline.open_bank(spec.name, "mine")


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def test_a_video_lasts_as_long_as_its_file_where_that_is_known(bank: Bank) -> None:
    write_availability(paths.availability("mine", "000"), [Record(video="a", status="present", duration_s=9.4)])
    assert ends_s(bank, "mine") == {"a": 9.4, "b": 10, "c": 4}
    write_availability(paths.availability("mine", "000"), [Record(video="a", status="present", duration_s=2.0)])
    assert ends_s(bank, "mine")["a"] == 9, "its header is wrong: there are rows long after it"
    write_availability(paths.availability("mine", "000"), [Record(video="a", status="present", duration_s=7.5)])
    assert ends_s(bank, "mine")["a"] == 7.5, "its last row begins less than a second after its end"


def test_a_shot_without_a_row_gets_the_nearest_and_a_gap_gets_none(bank: Bank) -> None:
    found = made(bank, "shot", SHOTS)
    assert {video: list(clips) for video, clips in found.clips.items()} == SHOTS | {"b": [(0, 3), (7, 10)]}
    for (start, end), expected in zip(SHOTS["a"], [slice(0, 3), slice(3, 4), slice(3, 9)], strict=True):
        mean = unit(ROWS["a"][expected].mean(0, dtype=np.float64))
        np.testing.assert_allclose(found.clip("a", start, end), mean, rtol=1e-6)
    assert (found["a"].dtype, found.damaged.keys(), found.damaged["b"].gaps) == (np.float32, {"b"}, GAPS)
    assert (found.spec["source"], found.spec["by"], found.spec["how"]) == (f"net/{SPEC.id}", "shot", "mean")
    record = read_manifest(paths.features_manifest("mine", "000", PooledSpec.of(bank, "shot")))
    assert (record["a"]["n_rows"], record["b"]["n_rows"], record["a"]["status"]) == (3, 2, "present")
    assert (record["a"]["reason"], "lost" in record["b"]["reason"]) == ("", True)


def test_vectors_that_are_compared_by_the_dot_product_keep_their_length(bank: Bank) -> None:
    mean = ROWS["c"].mean(0, dtype=np.float64)
    for normalise, similarity, expected in ((False, "dot product", mean), (True, "cosine", unit(mean))):
        spec = replace(presets()["s3d-oepp"], name=f"net{normalise:d}", dimension=6, normalise=normalise)
        found = made(written(spec), "segment", {"c": [(0, 4)]})
        assert found.spec["similarity"] == similarity
        np.testing.assert_allclose(found["c"][0], expected, rtol=1e-6)


def test_only_what_changed_is_computed(bank: Bank) -> None:
    spec = PooledSpec.of(bank, "shot")
    files = [paths.features("mine", shard, spec) / "features/c/0/0" for shard in ("000", "001")]
    first = pool(bank, spec, "mine", SHOTS)
    stamps = [(file.stat().st_ino, file.read_bytes()) for file in files]
    assert (first.computed, first.kept) == (3, 0)
    assert (pool(bank, spec, "mine", SHOTS).computed, [file.stat().st_ino for file in files]) == (
        0, [inode for inode, _ in stamps]
    )  # fmt: skip
    changed = written(a=rows(9, 5))
    again = pool(changed, spec, "mine", SHOTS)
    assert (again.computed, again.kept) == (1, 2)
    assert (files[0].read_bytes() != stamps[0][1], files[1].stat().st_ino) == (True, stamps[1][0])
    assert pool(written(), spec, "mine", SHOTS).computed == 1
    assert files[0].read_bytes() == stamps[0][1]
    files[0].write_bytes(b"\x01" + stamps[0][1][1:])
    assert pool(bank, spec, "mine", SHOTS).computed == 2
    assert files[0].read_bytes() == stamps[0][1], "a damaged store is written anew"
    fewer = pool(bank, spec, "mine", SHOTS | {"b": [], "c": [(0.0, 1.0)]})
    assert (fewer.computed, fewer.kept, fewer.left) == (1, 1, {"b": "no segment of it is listed"})
    lost = pool(bank, spec, "mine", SHOTS | {"b": [(4.0, 6.0)]})
    assert (lost.computed, lost.left.keys()) == (1, {"b"})
    assert "lost" in lost.left["b"]


def test_the_same_rows_at_other_times_or_beside_other_gaps_are_pooled_again(bank: Bank) -> None:
    made(bank, "shot", SHOTS)
    spec = PooledSpec.of(bank, "shot")
    store.write(paths.features("mine", "001", SPEC), SPEC, {"c": [Part(ROWS["c"], 0.5, 0, inf)]}, 1.0)
    assert pool(stepline.open_bank("net", "mine"), spec, "mine", SHOTS).computed == 1
    parts = {"a": ROWS["a"], "b": [Part(ROWS["b"][:3], 0, 0, 3), Part(ROWS["b"][3:], 7, 7, inf)]}
    damaged = {"b": Damaged("k", (), [(3.0, 6.5, "lost")])}
    store.write(paths.features("mine", "000", SPEC), SPEC, parts, 1.0, damaged=damaged)
    assert pool(stepline.open_bank("net", "mine"), spec, "mine", SHOTS).computed == 1
    assert stepline.open_bank("net.shot", "mine").damaged["b"].gaps == [(3.0, 6.5, "lost")]


def with_shots(detection: Detection) -> None:
    for shard, videos in (("000", "ab"), ("001", "c")):
        media: dict[str, dict[str, Any]] = {
            video: {"status": "present", "reason": "", "duration_s": 9.0} for video in videos
        }
        write_manifest(paths.manifest(paths.media("mine"), shard), media)
        for video in videos:
            starts, ends = zip(*SHOTS[video], strict=True)
            by = {shots.MADE_BY: shots._made_by(media[video], detection)}
            table = pa.table({"start_s": pa.array(starts), "end_s": pa.array(ends)}, metadata=by)
            write_table(paths.shots("mine") / f"{video}.parquet", table)
            (paths.shots("mine") / f"{video}.csv").touch()


def test_shots_are_those_of_the_configured_detection(bank: Bank) -> None:
    with_shots(CONTENT)
    assert of_shots(bank, "mine", CONTENT) == SHOTS
    for other in (replace(CONTENT, detector="hash"), replace(CONTENT, min_shot_s=1)):
        with pytest.raises(MissingError, match="^a of mine has no shots that were found with the configured options"):
            of_shots(bank, "mine", other)


def test_the_verb(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    with_shots(CONTENT)
    Path("config.yaml").write_text("datasets: {mine: {videos: clips}}")
    Path("times.csv").write_text("video,start_s,end_s,label\na,1,3,cut\na,1,3,again\na,4,5,\n")
    for arguments in (["--by", "shot"], ["--segments", "times.csv"], ["--by", "shot"]):
        assert main(["bank", "pool", "net", "mine", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    shot, segment = (PooledSpec.of(bank, by).name for by in ("shot", "segment"))
    assert [line for line in lines if line.startswith("features/")] == [
        f"features/net.shot/{read_json(paths.current_specs(shot))['mine']}: 3 videos, 3 of them computed now",
        f"features/net.segment/{read_json(paths.current_specs(segment))['mine']}: 1 videos, 1 of them computed now",
        f"features/net.shot/{read_json(paths.current_specs(shot))['mine']}: 3 videos, 0 of them computed now",
    ]
    assert "c has no row: no segment of it is listed" in lines
    assert stepline.open_bank("net.shot", "mine").spec["spans"] == asdict(CONTENT)
    assert list(stepline.open_bank("net.segment", "mine").clips["a"]) == [(1, 3), (4, 5)]
    assert main(["bank", "compare", "net.shot", "net.shot"]) == 0
    assert main(["bank", "export", "net.shot", "mine", "out", "--form", "npy"]) == 0
    assert np.load("out/times.npz")["a"].tolist() == [[*shot] for shot in SHOTS["a"]]
    assert main(["verify"]) == 0


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["net.segment", "mine", "--by", "shot"], "error: net.segment has pooled rows: pool those of net/"),
        (["net", "mine", "--segments", "none.csv"], "error: --segments: none.csv is not a file: name a CSV file"),
        (["net", "mine", "--by", "shot"], "error: a of mine has no shots"),
        (["net", "yours", "--by", "shot"], "error: features/net/"),
    ],
)
def test_what_cannot_be_pooled_is_one_line(
    bank: Bank, arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made(bank, "segment", SHOTS)
    Path("config.yaml").write_text("datasets: {mine: {videos: clips}}")
    assert main(["bank", "pool", *arguments]) == 2
    error = capsys.readouterr().err
    assert (error.startswith(line), error.count("\n")) == (True, 1), error


def test_a_bank_without_videos_and_listed_clips_are_not_pooled(bank: Bank) -> None:
    spec = replace(SPEC, name="empty")
    store.write(paths.features("mine", "000", spec), spec, {}, 1.0)
    with pytest.raises(MissingError, match="^empty has no features of a video: run `snakemake`$"):
        PooledSpec.of(Bank.open([paths.features("mine", "000", spec)], spec), "shot")
    spec = replace(SPEC, name="clips", placement="middles")
    write_json(paths.spec_record(spec), spec.record())
    store.write(paths.features("mine", "000", spec), spec, {"a": ROWS["a"][:2]}, 1.0, clips={"a": [(1, 2), (5, 8)]})
    listed = stepline.open_bank("clips", "mine")
    with pytest.raises(ConfigError, match="^clips has rows of listed clips: only rows of seconds can be pooled$"):
        PooledSpec.of(listed, "shot")


def test_rows_of_whole_videos_of_earlier_versions_are_read(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    spec: Any = replace(PooledSpec.of(bank, "shot"), name="net.video", by="video", how="max", label="max")
    pool(bank, spec, "mine", {"a": [(0.0, 9.0)], "c": [(0.0, 4.0)]})
    old = stepline.open_bank("net.video", "mine")
    check_current(old, bank, "mine")
    for arguments in (["specs", "list"], ["verify"], ["bank", "compare", "net.video", "net.video"]):
        assert main(arguments) == 0
    with pytest.raises(
        StoreError, match="changed after they were pooled: run `stepline bank pool net mine --by shot`$"
    ):
        check_current(old, written(a=rows(9, 5)), "mine")


def test_what_changed_after_pooling_is_pooled_again_by_the_same_spans(bank: Bank) -> None:
    pooled = made(bank, "segment", {"c": [(0.0, 4.0)]})
    check_current(pooled, bank, "mine")
    with pytest.raises(StoreError, match="^the features of c changed .*`stepline bank pool net mine --segments FILE`$"):
        check_current(pooled, written(c=rows(4, 9)), "mine")
    with pytest.raises(StoreError, match="^the features of c changed"):
        check_current(pooled, bank.without({"c"}), "mine")


def test_a_segment_after_the_end_has_no_row_of_other_seconds(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    write_availability(paths.availability("mine", "000"), [Record(video="a", status="present", duration_s=9.4)])
    Path("frames.csv").write_text("video,start_s,end_s\na,1,3\na,25,100\na,8,60\nc,200,300\nb,12,14\n")
    assert main(["bank", "pool", "net", "mine", "--segments", "frames.csv"]) == 0
    line = (
        "frames.csv: 4 of 5 segments lie after the end of their video (3 left out, 1 cut to its end), the first in "
        "line 3: a ends at 9.4 s; times are in seconds"
    )
    assert capsys.readouterr().out.splitlines()[:3] == [
        line,
        "b has no row: no segment of it is listed",
        "c has no row: no segment of it is listed",
    ]
    found = stepline.open_bank("net.segment", "mine")
    assert {video: list(clips) for video, clips in found.clips.items()} == {"a": [(1, 3), (8, 9.4)]}
    np.testing.assert_allclose(found.clip("a", 8, 9.4), unit(ROWS["a"][8].astype(float)), rtol=1e-6)
