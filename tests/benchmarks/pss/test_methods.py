from collections import Counter
from dataclasses import replace
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepline.benchmark import Job
from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.kinds import Segmentation
from stepline.benchmarks.pss.methods import pdvc, procnet, trained
from stepline.benchmarks.pss.words import Words
from stepline.errors import ConfigError, StoreError
from stepline.metrics.soda import soda_d
from tests.benchmarks.pss.conftest import plan
from tests.benchmarks.pss.synthetic import CONFIG as SMALL
from tests.benchmarks.pss.synthetic import VIDEOS


def inputs(entry: str, dataset: str = "youcook2", **changes: object) -> PssInputs:
    made = plan(changes)
    return made.inputs(Job(release=dataset, entry=made.entries[entry]))


def method(of: PssInputs) -> Any:
    return of.benchmark.method(of.entry.kind)()


def predicted(of: PssInputs, *fits: Path) -> list[Segmentation]:
    return list(method(of).predict(of, fits))


@pytest.mark.usefixtures("releases")
class TestBaselines:
    @pytest.mark.parametrize(("dataset", "n"), [("youcook2", 8), ("tasty", 10)])
    def test_the_average_number_of_segments(self, dataset: str, n: int) -> None:
        for p in predicted(inputs("uniform-segments", dataset)):
            assert len(p.segments) == n
            assert p.segments[0][0] == 0
            assert p.segments[-1][1] == 61  # floor(60) + 1
            assert {round(end_s - start_s, 9) for start_s, end_s in p.segments} == {round(61 / n, 9)}

    def test_the_exact_duration_is_an_option(self) -> None:
        made = predicted(inputs("uniform-segments", duration="exact"))
        assert {p.segments[-1][1] for p in made} == {60.0}

    @pytest.mark.parametrize(("dataset", "segment_s"), [("youcook2", 19.6), ("tasty", 6)])
    def test_the_average_duration_of_segments(self, dataset: str, segment_s: float) -> None:
        assert {len(p.segments) for p in predicted(inputs("uniform-duration", dataset))} == {ceil(60 / segment_s)}

    def test_the_annotated_number_of_segments(self) -> None:
        for changes, n in (({}, 4), ({"subset": {"fraction": 0.5, "seed": 0}}, 2)):
            of = inputs("uniform-count", **changes)
            of._truth["test"] = [replace(each, sentences=("cut",) * len(each.segments)) for each in of.truth("test")]
            truth = {each.video: len(each.segments) for each in of.used("test")}
            assert {p.video: len(p.segments) for p in predicted(of)} == truth
            assert len(truth) == n

    def test_more_splits_than_test(self) -> None:
        made = predicted(inputs("uniform-count-pooled", "tasty"))
        assert Counter(p.split for p in made) == {"val": 4, "test": 4}

    def test_the_most_frequent_sentence_is_of_training(self) -> None:
        of = inputs("frequent-given", subset={"fraction": 0.5, "seed": 0})
        of._truth["train"] = [
            each if each in of.used("train") else replace(each, sentences=("serve",) * len(each.segments))
            for each in of.truth("train")
        ]
        counts = Counter(sentence for each in of.used("train") for sentence in each.sentences)
        of._truth["test"] = [replace(t, sentences=("serve",) * len(t.segments)) for t in of.truth("test") * 9]
        most = max(counts.values())
        first = min(sentence for sentence, number in counts.items() if number == most)
        for p, each in zip(predicted(of), of.used("test"), strict=True):
            assert p.segments == each.segments
            assert p.sentences == (first,) * len(each.segments)
        for dataset, n in (("youcook2", 8), ("tasty", 10)):
            made = predicted(inputs("frequent-uniform", dataset))
            assert {(len(p.segments), len(p.sentences)) for p in made} == {(n, n)}
        of._truth["train"] = [replace(t, sentences=("serve it", "cut it")) for t in of.truth("train")]
        assert {sentence for p in predicted(of) for sentence in p.sentences} == {"cut it"}


@pytest.mark.usefixtures("banks")
class TestTrained:
    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        pytest.importorskip("torch")

    @pytest.mark.parametrize("entry", ["procnet", "softsoda-s3d", "pdvc-r3d-given"])
    def test_a_fit_predicts_every_test_video_by_every_seed(self, entry: str) -> None:
        of = inputs(entry)
        of = replace(of, job=replace(of.job, entry=replace(of.entry, seeds=(3, 5))))
        fits = [Path(f"{seed}.safetensors") for seed in of.entry.seeds]
        for seed, path in zip(of.entry.seeds, fits, strict=True):
            method(of).fit(of, seed, path)
        assert fits[0].read_bytes() != fits[1].read_bytes()
        made = predicted(of, *fits)
        assert [(p.seed, p.video) for p in made] == [(seed, each.video) for seed in (3, 5) for each in of.used("test")]
        for p, each in zip(made, of.used("test") * 2, strict=True):
            assert list(p.segments) == sorted(p.segments)
            assert all(0 <= start_s <= end_s <= each.duration_s for start_s, end_s in p.segments)
            assert len(p.scores) == len(p.segments)
            assert len(p.sentences) == (0 if of.entry.kind.metrics else len(p.segments))
            if entry == "pdvc-r3d-given":
                assert p.segments == each.segments
        each_alone = [replace(of, job=replace(of.job, entry=replace(of.entry, seeds=(seed,)))) for seed in (3, 5)]
        first, second = (predicted(alone, path) for alone, path in zip(each_alone, fits, strict=True))
        assert first + second == made
        assert [replace(p, seed=5) for p in first] != second
        said = method(of)
        assert [*said.predict(of, fits)] == made
        assert said.selection == "fitted on 10 of 10 training videos; epoch of the best validation score"
        fewer = replace(of)
        del fewer.banks[0].blocks[of.truth("train")[3].video]
        assert [*said.predict(fewer, fits)] == made
        assert said.selection.startswith("fitted on 9 of 10 training videos")
        half = replace(inputs(entry, subset={"fraction": 0.5, "seed": 0}), job=of.job)
        assert 2 * len([*said.predict(half, fits)]) == len(made)
        assert said.selection.startswith("fitted on 5 of 10 training videos")
        if entry == "procnet":
            both = replace(of, job=replace(of.job, entry=replace(of.entry, seeds=(3,), splits=("val", "test"))))
            assert [p.split for p in predicted(both, fits[0])] == ["val"] * 4 + ["test"] * 4
        again = Path("again.safetensors")
        method(of).fit(of, 3, again)
        assert again.read_bytes() == fits[0].read_bytes()

    @pytest.mark.parametrize("entry", ["procnet", "soda-s3d", "softsoda-s3d-given"])
    def test_a_fit_reads_no_test_video(self, entry: str) -> None:
        of = inputs(entry)
        method(of).fit(of, 0, Path("whole"))
        without = inputs(entry)
        kept, *others = without.truth("test")
        without._truth["test"] = [replace(kept, segments=((0.0, 1.0),), sentences=("serve",)), *others]
        for bank in without.banks:
            bank.rows[kept.video] = bank.rows[kept.video] * 0
            for other in others:
                del bank.blocks[other.video]
        method(without).fit(without, 0, Path("without"))
        assert Path("without").read_bytes() == Path("whole").read_bytes()
        assert [each.video for each in without.used("val")] == [f"youcook2-val-{number}" for number in range(4)]

    @pytest.mark.parametrize("entry", ["procnet", "soda-s3d", "softsoda-s3d-given"])
    def test_a_fit_is_asked_for_as_configured(self, entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: dict[str, Any] = {}

        def watched(build: Any, losses: Any, val_loss: Any, size: int, path: Path, **options: Any) -> None:
            asked.update(options, model=build(), val_loss=val_loss, size=size)

        monkeypatch.setattr(trained, "fit_head", watched)
        pdvc = {**SMALL["pdvc"], "decay_epochs": [1, 3], "clip": 7, "weight_decay": 0.5, "batch_size": 3}
        changed: dict[str, Any] = {"pdvc": pdvc}
        changed["procnet"] = {**SMALL["procnet"], "decay": 0.5, "weight_decay": 0.25, "learning_rate": 0.125}
        of = inputs(entry, **changed)
        options, resumes = of.entry.kind.options, []
        for changes, split in (({options: of.options[options] | {"epochs": 5}}, ""), ({}, "train"), ({}, "val")):
            other = inputs(entry, **(changed | changes))
            if split:
                other._truth[split] = other.truth(split)[1:]
            method(other).fit(other, 9, Path("f"))
            resumes.append(asked["resume"])
        method(of).fit(of, 9, Path("f"))
        assert (asked["size"], asked["seed"], asked["epochs"]) == (VIDEOS["train"], 9, 1 if entry == "procnet" else 2)
        assert asked["batch_size"] == (1 if entry == "procnet" else 3)
        assert len({asked["resume"], *resumes}) == 4
        if entry == "procnet":
            assert (asked["betas"], asked["weight_decay"], asked["learning_rate"]) == ((0.8, 0.999), 0.25, 0.125)
            assert [asked["factor"](epoch) for epoch in (0, 1, 2)] == [1, 0.5, 0.25]
        else:
            assert (asked["clip"], asked["weight_decay"], asked["learning_rate"]) == (7, 0.5, 0.001)
            assert [asked["factor"](epoch) for epoch in (0, 1, 2, 3)] == [1, 0.5, 0.5, 0.25]
        if entry != "softsoda-s3d-given":
            right = {each.video: each.segments for each in of.used("val")}
            asks = type(method(of))
            monkeypatch.setattr(
                asks, "decode", lambda self, model, of, videos: ({"segments": right[each.video]} for each in videos)
            )
            assert asked["val_loss"](asked["model"]) == pytest.approx(0, abs=1e-6)
            right.update({video: segments[:1] for video, segments in right.items()})
            f1 = [2 / (1 + len(each.segments)) for each in of.used("val")]  # precision is 1, recall one of all
            assert asked["val_loss"](asked["model"]) == pytest.approx(1 - sum(f1) / len(f1), abs=1e-6)
            right.update(dict.fromkeys(right, ((0.0, 0.1),)))
            assert asked["val_loss"](asked["model"]) > 0.9
            spans = {each.video: each.segments[:2] for each in of.used("val")}
            right.update({video: ((a, d), (a, b)) for video, ((a, b), (_, d)) in spans.items()})
            f1 = [soda_d(each.segments, right[each.video], order="start_end").f1 for each in of.used("val")]
            assert asked["val_loss"](asked["model"]) == pytest.approx(1 - sum(f1) / len(f1))
            few = inputs(entry, subset={"fraction": 0.5, "seed": 0}, **changed)
            method(few).fit(few, 9, Path("f"))
            right.clear()
            right.update({each.video: each.segments for each in few.used("val")})
            assert asked["val_loss"](asked["model"]) == pytest.approx(0, abs=1e-6)
            assert (asked["size"], len(right)) == (5, 2)
        else:
            name = "stepline.benchmarks.pss.methods.pdvc._loss"
            monkeypatch.setattr(name, lambda model, of, videos, kept: sum(map(len, kept)) / len(videos))
            counts = [len(each.segments) for each in of.used("val")]
            assert asked["val_loss"](asked["model"]) == sum(counts) / len(counts)

    def test_the_network_is_the_configured_one(self) -> None:
        options = {**SMALL["pdvc"], "gamma": 0.3, "soft_weight": 2.5, "cost": "iou", "dropout": 0.25, "words": 11}
        options |= {"caption_padding": "zeros", "count_weights": "none"}
        of = inputs("softsoda-s3d", "tasty", pdvc=options)
        found = vars(pdvc._config(of))
        expected = {key: value for key, value in options.items() if key in found}
        assert len(expected) == 11
        assert {key: found[key] for key in expected} == expected
        assert (found["matcher"], found["proposals"]) == ("soft_soda", "learned")
        assert found["caption_dropout"] == 0.5  # as released; there is no option
        assert pdvc._features(of, of.used("train")[:2]).shape == (2, 24, 6)
        assert (found["feature_dim"], found["vocabulary"]) == (6, Words.released("tasty").size)
        assert {found[key] for key in ("hidden", "feedforward", "caption_hidden", "attention_hidden")} == {32}
        assert (found["encoder_layers"], found["decoder_layers"]) == (1, 1)
        of = inputs("pdvc-r3d-given")
        given = pdvc._config(of)
        assert (given.proposals, given.matcher, given.count_weight) == ("ground_truth", "hungarian", 0)
        assert (given.caption_padding, given.transformer_padding) == ("border", "zeros")
        assert (given.count_weights, found["count_weight"]) == ("activitynet", 0.5)

    def test_procnet_is_the_configured_one(self) -> None:
        of = inputs("procnet", procnet={"length": 40, "hidden": 24, "anchors": 4, "most_segments": 5})
        found = procnet._config(of)
        assert (found.feature_dim, found.length, found.hidden, found.max_segments) == (6, 40, 24, 5)
        assert method(of).build(of).sizes == [3, 11, 19, 27]
        assert procnet._features(of, of.used("val")[0]).shape == (1, 40, 6)

    def test_procnets_segments_are_in_order_each_with_its_score(self) -> None:
        import torch

        parts, scores = torch.tensor([[0.5, 0.75], [0, 0.25], [0.25, 1]]), torch.tensor([0.25, 0.5, 0.125])
        of, model = inputs("procnet"), SimpleNamespace(predict=lambda features: (parts, scores))
        (found,) = method(of).decode(model, of, of.used("test")[:1])
        assert found == {"segments": ((0, 15), (15, 60), (30, 45)), "scores": (0.5, 0.125, 0.25)}

    def test_pdvc_s_segments_keep_their_scores_and_sentences(self) -> None:
        import torch

        from stepline.models.pdvc import Decoded

        said = Decoded(torch.tensor([[0.25, 0.5], [0.5, 1]]), torch.tensor([0.125, 0.5]), [[2, 1], [1]])
        of = inputs("pdvc-s3d")
        model = SimpleNamespace(config=SimpleNamespace(proposals="learned"), decode=lambda *_, **__: [said])
        (found,) = method(of).decode(model, of, of.used("test")[:1])
        sentences = tuple(map(of.words.decode, said.captions))
        assert found == {"segments": ((15, 30), (30, 60)), "scores": (0.125, 0.5), "sentences": sentences}
        assert len({*sentences}) == 2

    def test_no_more_segments_than_asked_for_are_trained_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        seen: list[list[int]] = []

        def watched(build: Any, losses: Any, *_: Any, **__: Any) -> None:
            for _epoch in range(8):
                list(losses(build(), torch.arange(VIDEOS["train"])))

        monkeypatch.setattr(trained, "fit_head", watched)
        monkeypatch.setattr(pdvc, "_loss", lambda model, of, videos, kept: seen.extend(map(list, kept)))
        of = inputs("pdvc-s3d", pdvc={**SMALL["pdvc"], "train_segments": 2})
        method(of).fit(of, 0, Path("f"))
        assert {len(kept) for kept in seen} == {2}
        assert all(kept == sorted(kept) for kept in seen)
        assert {number for kept in seen for number in kept} > {0, 1}
        assert inputs("pdvc-s3d").options["pdvc"]["train_segments"] == 10
        seen.clear()
        method(given := inputs("pdvc-r3d-given", pdvc={**SMALL["pdvc"], "train_segments": 2})).fit(given, 0, Path("f"))
        assert {len(kept) for kept in seen} == {len(each.segments) for each in given.used("train")} > {2}

    def test_what_is_drawn_changes_from_update_to_update(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        drawn: list[tuple[int, ...]] = []
        monkeypatch.setattr(pdvc, "_loss", lambda model, of, videos, kept: drawn.extend(map(tuple, kept)))
        of = inputs("pdvc-s3d", pdvc={**SMALL["pdvc"], "train_segments": 1})
        video = max(of.used("train"), key=lambda each: len(each.segments))
        made = method(of)
        model = made.build(of)
        torch.manual_seed(0)
        for _ in range(40):
            made.losses(model, of, [video])
        assert len({*drawn}) == len(video.segments)

    def test_a_loss_is_of_the_kept_segments_with_their_sentences(self) -> None:
        of = inputs("pdvc-s3d")
        model = method(of).build(of).eval()
        whole = next(each for each in of.used("train") if len(each.segments) > 2)
        cut = replace(whole, segments=whole.segments[::2], sentences=whole.sentences[::2])
        kept = range(0, len(whole.segments), 2)
        assert pdvc._loss(model, of, [whole], [kept]) == pdvc._loss(model, of, [cut], [range(len(cut.segments))])
        silent = replace(cut, sentences=("", *cut.sentences[1:]))
        assert pdvc._loss(model, of, [silent], [range(len(cut.segments))]).isfinite()

    @pytest.mark.parametrize("entry", ["pdvc-s3d", "pdvc-r3d-given"])
    def test_videos_decoded_together_are_as_each_alone(self, entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
        of = inputs(entry)
        made = method(of)
        model = made.build(of).eval()
        videos = [replace(each, duration_s=60.0 + 10 * n) for n, each in enumerate(of.used("train")[:5])]
        found, durations_s = [], list[float]()
        decode = model.decode
        monkeypatch.setattr(
            model, "decode", lambda *rows, **given: durations_s.extend(given["durations_s"]) or decode(*rows, **given)
        )
        for together in (1, 3):
            monkeypatch.setattr(pdvc, "TOGETHER", together)
            found.append([*made.decode(model, of, videos)])
        assert durations_s == [60, 70, 80, 90, 100] * 2
        for alone, beside in zip(*found, strict=True):
            assert beside["sentences"] == alone["sentences"]
            for found_there, found_alone in zip(beside["segments"], alone["segments"], strict=True):
                assert found_there == pytest.approx(found_alone, rel=1e-4, abs=1e-3)

    def test_too_few_queries_are_one_line(self) -> None:
        of = inputs("soda-s3d", pdvc={**SMALL["pdvc"], "queries": 3})
        with pytest.raises(ConfigError, match=r"pss.pdvc.queries: 3 is not allowed; 4 segments per video are trained"):
            method(of).fit(of, 0, Path("f"))
        of = inputs("soda-s3d", pdvc={**SMALL["pdvc"], "queries": 3, "epochs": 1}, subset={"fraction": 0.5, "seed": 0})
        listed = [*of.truth("train"), *of.truth("val")]
        of.__dict__["_chosen"] = frozenset(each.video for each in listed if len(each.segments) < 4)
        method(of).fit(of, 0, Path("f"))
        for entry, more in (("softsoda-s3d-given", {}), ("soda-s3d", {"train_segments": 3})):
            of = inputs(entry, pdvc={**SMALL["pdvc"], "queries": 3, "epochs": 1, **more})
            method(of).fit(of, 0, Path("f"))

    def test_words_of_training_alone(self) -> None:
        of = inputs("softsoda-s3d-given", vocabulary="train")
        for split in ("val", "test"):
            of._truth[split] = [replace(t, sentences=("zest",) * len(t.segments)) for t in of.truth(split)]
        assert of.words.ids.keys() - {"UNK"} <= Words.released("youcook2").ids.keys()
        said = " ".join(sentence for each in of.used("train") for sentence in each.sentences).lower().split()
        assert of.words.ids.keys() == {word for word in said if said.count(word) > 1} | {"UNK"}
        few = inputs("softsoda-s3d-given", vocabulary="train", subset={"fraction": 0.5, "seed": 0})
        few._truth["train"] = [
            each if each in few.used("train") else replace(each, sentences=("zest",) * len(each.segments))
            for each in few.truth("train")
        ]
        assert "zest" not in few.words.ids

    def test_an_absent_checkpoint_is_one_line(self) -> None:
        with pytest.raises(StoreError, match="0.safetensors does not exist: run `stepline fit`"):
            predicted(inputs("procnet"), Path("0.safetensors"))
