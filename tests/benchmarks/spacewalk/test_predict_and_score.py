"""Fit, predict and score on a made-up study: the three are apart, and scores come from predictions alone."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stepline import paths
from stepline.backbones.histogram import HistogramSpec
from stepline.benchmarks.spacewalk.features import Features
from stepline.benchmarks.spacewalk.methods.last_layer import matching
from stepline.benchmarks.spacewalk.plan import Plan
from stepline.benchmarks.spacewalk.predict import fit, lacking, predict
from stepline.benchmarks.spacewalk.predictions import Prediction, read_predictions, write_predictions
from stepline.benchmarks.spacewalk.score import score
from stepline.config import validate
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION
from stepline.features import store
from stepline.io import read_json, write_json, write_text
from stepline.metrics.accuracy import accuracy
from stepline.metrics.average_precision import average_precision
from stepline.metrics.bootstrap import bootstrap_interval
from stepline.metrics.threshold import best_threshold
from tests.benchmarks.spacewalk.conftest import MadeUp, TinyMaterial

TFIDF = {
    "kind": "tfidf",
    "encoder": "tfidf",
    "settings": {"fit": "video"},
    "inputs": ["window", "recording"],
}
EQUAL_SEGMENTS = {
    "table": "2b",
    "kind": "equal-segments",
    "contexts": "unlimited",
    "inputs": ["recording"],
    "settings": {"parts": 6},
}
ABOUT = {"needs": [], "selection": "", "thresholded": False}
LAST_LAYER = {
    "kind": "last-layer",
    "setting": "last-layer",
    "encoder": "minilm",
    "inputs": ["window", "train"],
}


def test_predictions_come_back(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((3, 4), np.float32)
    scores[:, 0] = np.nan
    written = [
        Prediction(seed=0, split="val", video="a", ids=[0, 1, 2], chosen=np.array([2, -1, 0]), scores=scores),
        Prediction(seed=1, split="test", video="b", ids=[5, 9], chosen=np.array([-1, -1]), scores=None),
        Prediction(
            seed=1, split="test", video="c", ids=[4], chosen=np.array([7]), scores=rng.random((1, 9), np.float32)
        ),
    ]
    write_predictions(tmp_path / "p.parquet", written, about={"needs": [], "selection": ""})
    read, about = read_predictions(tmp_path / "p.parquet")
    assert about == {"needs": [], "selection": ""}
    for one, other in zip(written, read, strict=True):
        assert (one.seed, one.split, one.video, one.ids) == (other.seed, other.split, other.video, other.ids)
        np.testing.assert_array_equal(one.chosen, other.chosen)
        if one.scores is None:
            assert other.scores is None
        else:
            np.testing.assert_array_equal(one.scores, other.scores)


def test_a_guess_is_null_in_the_file(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    guess = Prediction(seed=0, split="test", video="a", ids=[0, 1], chosen=np.array([-1, 3]), scores=None)
    write_predictions(tmp_path / "p.parquet", [guess], about={})
    table = parquet.read_table(tmp_path / "p.parquet")
    assert table.column_names == ["seed", "split", "video", "sample", "prediction", "scores"]
    assert table["prediction"].to_pylist() == [None, 3]
    assert table["scores"].to_pylist() == [None, None]


def test_no_predictions_are_a_file_too(tmp_path: Path) -> None:
    write_predictions(tmp_path / "p.parquet", [], about={"needs": ["videos:demo"]})
    assert read_predictions(tmp_path / "p.parquet") == ([], {"needs": ["videos:demo"]})


def scored(material: TinyMaterial, predictions: Path) -> dict:
    score(material, predictions, Path("score.json"))
    content: dict = read_json(Path("score.json"))
    return content


def test_scores_are_means_over_videos_of_the_plain_metrics(made_up: MadeUp) -> None:
    material = made_up.material(TFIDF)
    predict(material, 6.0, [], Path("p.parquet"))
    found = scored(material, Path("p.parquet"))
    right, precise = {}, {}
    for p in read_predictions(Path("p.parquet"))[0]:
        labels = np.array([item.label for item in material.items("test")[p.video]])
        steps = range(1, material.release.recordings[p.video].n_steps + 1)
        assert p.scores is not None
        right[p.video] = 100 * np.mean(labels == p.chosen)
        precise[p.video] = 100 * np.mean([average_precision(p.scores[:, k], labels == k) for k in steps])
    for metric, values in (("accuracy", right), ("map", precise)):
        assert found["metrics"][metric]["per_video"] == pytest.approx(values)
        assert found["metrics"][metric]["value"] == pytest.approx(np.mean(list(values.values())))
        low, high = found["metrics"][metric]["ci"]
        assert min(values.values()) <= low <= high <= max(values.values())
        assert found["metrics"][metric]["sd"] is None
    assert (found["n_videos"], found["n_listed"], found["n_samples"], found["n_queries"]) == (2, 2, 80, None)


def test_retrieval_scores_count_queries_and_pool(made_up: MadeUp) -> None:
    material = made_up.material({"table": "2b", "kind": "random"})
    predict(material, None, [], Path("p.parquet"))
    found = scored(material, Path("p.parquet"))
    assert found["metrics"].keys() == {"accuracy"}
    assert found["metrics"]["accuracy"]["value"] == 50
    n = sum(len(items) for items in material.items("test").values())
    assert (found["n_samples"], found["n_queries"], found["pool_used"], found["pool_listed"]) == (None, n, 2 * n, 2 * n)


def test_uninterpolated_average_precision_is_an_option_of_scoring(made_up: MadeUp) -> None:
    material = made_up.material(TFIDF)
    predict(material, 6.0, [], Path("p.parquet"))
    interpolated = scored(material, Path("p.parquet"))["metrics"]
    material.study_config["metrics"]["average_precision"] = "uninterpolated"
    plain = scored(material, Path("p.parquet"))["metrics"]
    assert plain["map"]["value"] < interpolated["map"]["value"]
    assert plain["accuracy"] == interpolated["accuracy"]


def test_what_is_listed_is_the_releases_split_also_in_a_subset(made_up: MadeUp) -> None:
    material = made_up.material(EQUAL_SEGMENTS)
    material.study_config["subset"] = {"videos": ["d"]}
    predict(material, None, [], Path("p.parquet"))
    found = scored(material, Path("p.parquet"))
    n = {video: len(items) for video, items in material.items("test").items()}
    assert (found["n_videos"], found["n_listed"], found["n_samples"]) == (1, 2, None)
    counts = (found["n_queries"], found["pool_used"], found["pool_listed"])
    assert counts == (n["d"], 2 * n["d"], 2 * (n["d"] + n["e"]))


def test_samples_are_counted_of_the_recordings_that_were_predicted(made_up: MadeUp) -> None:
    material = made_up.material(TFIDF)
    material.study_config["subset"] = {"videos": ["e"]}
    predict(material, 6.0, [], Path("p.parquet"))
    found = scored(material, Path("p.parquet"))
    assert (found["n_videos"], found["n_listed"], found["n_samples"]) == (1, 2, 40)
    assert (found["pool_used"], found["pool_listed"]) == (None, None)
    assert found["metrics"]["accuracy"]["ci"] is None


def test_seeds_make_a_difference_to_the_map_of_random_alone(made_up: MadeUp) -> None:
    material = made_up.material({"kind": "random", "contexts": "unlimited", "inputs": [], "seeds": [3, 4, 5]})
    predict(material, None, [], Path("p.parquet"))
    metrics = scored(material, Path("p.parquet"))["metrics"]
    assert (metrics["accuracy"]["seeds"], metrics["accuracy"]["sd"]) == ([3], None)
    assert metrics["map"]["seeds"] == [3, 4, 5]
    assert len(set(metrics["map"]["per_seed"])) == 3
    assert metrics["map"]["sd"] == pytest.approx(np.std(metrics["map"]["per_seed"], ddof=1))


def test_the_interval_is_of_the_mean_over_seeds(made_up: MadeUp) -> None:
    material = made_up.material({"kind": "random", "contexts": "unlimited", "inputs": [], "seeds": [0, 1]})
    labels = {video: np.array([i.label for i in items]) for video, items in material.items("test").items()}
    made = [
        Prediction(
            seed=seed,
            split="test",
            video=video,
            ids=list(range(40)),
            chosen=np.where(np.arange(40) < right, labels[video], (labels[video] + 1) % 3),
            scores=None,
        )
        for (seed, video), right in {(0, "d"): 4, (0, "e"): 40, (1, "d"): 8, (1, "e"): 20}.items()
    ]
    write_predictions(Path("p.parquet"), made, about=ABOUT)
    found = scored(material, Path("p.parquet"))["metrics"]["accuracy"]
    assert found["per_video"] == {"d": 15.0, "e": 75.0}
    assert found["per_seed"] == [55.0, 35.0]
    drawn = material.study_config["metrics"]
    assert found["ci"] == list(
        bootstrap_interval([15.0, 75.0], samples=drawn["bootstrap_samples"], seed=drawn["bootstrap_seed"])
    )


def test_a_step_without_samples_counts_in_no_mean_of_average_precisions(made_up: MadeUp) -> None:
    material = made_up.material(TFIDF)
    path = paths.samples("demo", "demo", STEP_RECOGNITION, "test")
    samples = read_json(path)
    samples["d"] = [item for item in samples["d"] if item["label"] != 1]
    write_json(path, samples)
    predict(material, 6.0, [], Path("p.parquet"))
    found = scored(material, Path("p.parquet"))["metrics"]["map"]
    (d,) = [p for p in read_predictions(Path("p.parquet"))[0] if p.video == "d"]
    labels = np.array([item["label"] for item in samples["d"]])
    assert d.scores is not None
    steps = range(2, material.release.recordings["d"].n_steps + 1)
    expected = 100 * np.mean([average_precision(d.scores[:, k], labels == k) for k in steps])
    assert found["per_video"]["d"] == pytest.approx(expected)


def test_a_score_at_the_threshold_is_a_step(made_up: MadeUp) -> None:
    """On validation the best threshold is 0.5: all steps have it and all Irrelevant samples are below it."""
    material = made_up.material(LAST_LAYER, last_layer={"seeds": [0], "epochs": 1, "batch_size": 8})
    made = []
    for split, video in (("val", "c"), ("test", "d"), ("test", "e")):
        labels = np.array([item.label for item in material.items(split)[video]])  # type: ignore[arg-type]
        scores = np.zeros((40, material.release.recordings[video].n_steps + 1), np.float32)
        scores[labels > 0, labels[labels > 0]] = 0.5
        chosen = scores[:, 1:].argmax(axis=1) + 1
        made.append(Prediction(seed=0, split=split, video=video, ids=list(range(40)), chosen=chosen, scores=scores))
    write_predictions(Path("p.parquet"), made, about=ABOUT | {"thresholded": True})
    found = scored(material, Path("p.parquet"))
    assert "on val: 0.5000" in found["selection"]
    assert found["metrics"]["accuracy"]["value"] == 100


class TestLastLayer:
    torch = pytest.importorskip("torch")

    @pytest.fixture
    def material(self, made_up: MadeUp) -> TinyMaterial:
        return made_up.material(LAST_LAYER, last_layer={"seeds": [0, 1], "epochs": 3, "batch_size": 32})

    @pytest.fixture
    def fits(self, material: TinyMaterial) -> list[Path]:
        made = [Path(f"{seed}.safetensors") for seed in material.entry.seeds]
        for seed, path in zip(material.entry.seeds, made, strict=True):
            fit(material, 6.0, seed, path)
        return made

    def test_irrelevant_samples_are_dropped_in_training(self, material: TinyMaterial) -> None:
        data = matching(Features(material), 6.0, "train")
        labels = [item.label for items in material.items("train").values() for item in items]
        assert 0 in labels
        assert data.label.tolist() == [label for label in labels if label > 0]
        assert [len(steps) for steps in data.steps] == [material.release.recordings[v].n_steps for v in ("a", "b")]
        assert data.features.shape == (len(data.label), 12)

    def test_the_threshold_is_applied_in_scoring_alone(self, material: TinyMaterial, fits: list[Path]) -> None:
        predict(material, 6.0, fits, Path("p.parquet"))
        made, about = read_predictions(Path("p.parquet"))
        assert about["thresholded"]
        assert {p.split for p in made} == {"val", "test"}
        assert all((p.chosen > 0).all() for p in made)
        before = {path: path.read_bytes() for path in [*fits, Path("p.parquet")]}
        values = {}
        for f1 in ("binary", "macro"):
            material.study_config["metrics"]["threshold_f1"] = f1
            found = scored(material, Path("p.parquet"))
            assert f"threshold of the best {f1} F1 on val" in found["selection"]
            expected = [self.by_hand(material, made, seed, f1) for seed in (0, 1)]
            assert found["metrics"]["accuracy"]["per_seed"] == pytest.approx(expected)
            assert found["metrics"]["accuracy"]["sd"] == pytest.approx(np.std(expected, ddof=1))
            values[f1] = found["metrics"]
        assert values["binary"]["map"] == values["macro"]["map"]
        assert {path: path.read_bytes() for path in before} == before

    @staticmethod
    def by_hand(material: TinyMaterial, made: list[Prediction], seed: int, f1: str) -> float:
        def labels(p: Prediction) -> np.ndarray:
            return np.array([item.label for item in material.items(p.split)[p.video]])  # type: ignore[arg-type]

        (val,) = [p for p in made if p.split == "val" and p.seed == seed]
        assert val.scores is not None
        best = val.scores[:, 1:].max(axis=1)
        groups = np.zeros(len(best), np.int64)
        threshold, _ = best_threshold(labels(val), val.chosen, best, f1=f1, groups=groups)  # type: ignore[arg-type]
        values = []
        for p in made:
            if p.split == "test" and p.seed == seed:
                assert p.scores is not None
                chosen = np.where(p.scores[:, 1:].max(axis=1) < threshold, 0, p.chosen)
                values.append(100 * accuracy(labels(p), chosen, n_classes=p.scores.shape[1]))
        return float(np.mean(values))

    def test_a_fit_reads_no_samples_of_test(self, material: TinyMaterial, fits: list[Path]) -> None:
        before = fits[0].read_bytes()
        paths.samples("demo", "demo", STEP_RECOGNITION, "test").unlink()
        fit(material, 6.0, 0, fits[0])
        assert fits[0].read_bytes() == before != b""

    def test_a_subset_that_leaves_a_split_empty_is_said(self, material: TinyMaterial) -> None:
        material.study_config["subset"] = {"videos": ["a", "d"]}
        assert lacking(material) == ["split:val"]
        fit(material, 6.0, 0, Path("0.safetensors"))
        predict(material, 6.0, [Path("0.safetensors")], Path("p.parquet"))
        assert read_predictions(Path("p.parquet"))[1]["needs"] == ["split:val"]


def spoil(task: str, split: str, video: str, keep: Callable[[dict], bool]) -> None:
    """Leave in a split's samples of a recording those alone that are to be kept."""
    path = paths.samples("demo", "demo", task, split)
    samples = read_json(path)
    samples[video] = [sample for sample in samples[video] if keep(sample)]
    write_json(path, samples)


def test_what_keeps_videos_from_an_entry_without_speech_is_said_without_transcripts(made_up: MadeUp) -> None:
    material = made_up.material({"kind": "zero-shot", "encoder": "histogram", "modality": "V"})
    material.study_config["transcripts"] = "asr"
    for shard, manifest in zip(material.plan.all_shards, material.plan.transcript_manifests, strict=True):
        write_text(manifest, "damaged")
        store.write(paths.features("demo", shard, HistogramSpec()), HistogramSpec(), {}, 0.5)
    predict(material, 6.0, [], Path("p.parquet"))
    assert read_predictions(Path("p.parquet"))[1]["needs"] == ["videos:demo"]


@pytest.mark.parametrize("task", [STEP_RECOGNITION, RETRIEVAL])
def test_a_recording_without_samples_is_left_out(made_up: MadeUp, task: str) -> None:
    entry = LAST_LAYER | ({} if task == STEP_RECOGNITION else {"table": "2b", "modality": "L"})
    material = made_up.material(entry)
    spoil(task, "train", "a", lambda sample: False)
    spoil(task, "test", "d", lambda sample: False)
    assert lacking(material) == []
    fit(material, 6.0, 0, Path("0.safetensors"))
    predict(material, 6.0, [Path("0.safetensors")] * len(material.entry.seeds), Path("p.parquet"))
    made, _ = read_predictions(Path("p.parquet"))
    assert {p.video for p in made if p.split == "test"} == {"e"}
    assert scored(material, Path("p.parquet"))["n_videos"] == 1


def test_a_fit_without_a_clip_of_a_step_lacks_samples(made_up: MadeUp) -> None:
    material = made_up.material(LAST_LAYER)
    for video in "ab":
        spoil(STEP_RECOGNITION, "train", video, lambda sample: sample["label"] == 0)
    assert lacking(material) == [f"samples:demo/{STEP_RECOGNITION}/train"]
    assert lacking(made_up.material(TFIDF)) == []
    for video in "de":
        spoil(STEP_RECOGNITION, "test", video, lambda sample: sample["label"] == 0)
    assert lacking(made_up.material(TFIDF)) == []
    predict(material, 6.0, [], Path("p.parquet"))
    assert read_predictions(Path("p.parquet"))[1]["needs"] == [f"samples:demo/{STEP_RECOGNITION}/train"]


def test_without_a_clip_of_any_step_there_is_no_average_precision(made_up: MadeUp) -> None:
    material = made_up.material(TFIDF)
    for video in "de":
        spoil(STEP_RECOGNITION, "test", video, lambda sample: sample["label"] == 0)
    predict(material, 6.0, [], Path("p.parquet"))
    assert scored(material, Path("p.parquet"))["metrics"].keys() == {"accuracy"}


def test_an_option_of_scoring_is_none_of_the_prediction() -> None:
    """What a fit and a prediction are made again for does not hold the options of metrics; scores' parameters do."""
    plans = [
        Plan.of(validate({"spacewalk": {"text_encoders": ["tfidf"], "metrics": {"threshold_f1": f1}}}), "spacewalk")
        for f1 in ("binary", "macro")
    ]
    jobs = [list(plan.jobs("table2")) for plan in plans]
    assert [plans[0].predict_params(job) for job in jobs[0]] == [plans[1].predict_params(job) for job in jobs[1]]
    assert plans[0].score_params() != plans[1].score_params()
