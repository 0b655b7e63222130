"""Golden cases: inputs with the results of the released evaluations, against Stepline's functions.

``python -m tests.golden FILE`` recognises a file of cases of OEPP, PSS, HiREST or HT-Step by its keys and compares all
that is expected. It prints a line for each value that differs and for each group of cases; the last line has the number
of cases and the worst difference. It exits with 1 where that is above the tolerance, and with 2 where the file holds no
golden cases. Cases on released annotation need that below ``STEPLINE_MIRROR``.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from functools import partial
from itertools import pairwise
from math import inf, isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from stepline.benchmarks.oepp.windows import Window, observation_rows, windows
from stepline.datasets import hirest, oepp
from stepline.errors import SteplineError
from stepline.features.resize import resize
from stepline.fetch import fetch_release
from stepline.metrics.grounding import PredictedSegments, TrueSegments, article_grounding
from stepline.metrics.moments import (
    THRESHOLDS,
    moment_hits,
    moment_iou,
    preprocess_moment_bounds,
    segmentation_scores,
)
from stepline.metrics.plans import plan_scores
from stepline.metrics.retrieval import first_rank, rank, recall_at
from stepline.metrics.segments import detection, iou, mean_iou, mean_jaccard
from stepline.metrics.soda import soda_c, soda_d

TOLERANCE = 1e-6
"""Of numbers below 1 in size, and of others as a share."""
SHARED = Path(__file__).parents[2] / "shared/data"
KS = (1, 5, 10, 50)
PARTS: dict[str, oepp.Part] = {"train": "train", "val": "val", "test_base": "base", "test_novel": "novel"}
SPLITS = {
    "splits/all_data_train.json": "train",
    "splits/all_data_val.json": "val",
    "splits/all_data_test.json": "test",
    "val_testing/formated_moment_evaluation_gt.json": "val",
    "evaluation/formatted_moment_evaluation_gt.json": "test_507",
}
LOSSES: dict[str, dict[str, Any]] = {
    "ce_released_code(softmax(cos/0.1) fed to cross-entropy, summed over T, mean over B)": {"loss": "ce"},
    "ce_single_softmax_temp0.1": {"loss": "ce", "ce_mode": "plain"},
    "ce_single_softmax_temp1": {"loss": "ce", "ce_mode": "plain", "temperature": 1},
    "mse_mean_over_B_and_D_summed_over_T": {"loss": "mse", "mse_weight": 1},
    "total_1.0*ce_released+0.2*mse": {"loss": "both"},
}
DESCRIPTIVE = {"note", "brute_force_checked"}

Json = Any


class Case(NamedTuple):
    """One case: what Stepline finds, on demand, and what is expected, in the same form."""

    name: str
    found: Callable[[], Json]
    expected: Json


class Group(NamedTuple):
    """What came of a group of cases. differences: of each value that is off, or cannot be had, its place and size."""

    name: str
    cases: int
    worst: float
    differences: tuple[tuple[str, float], ...]


def compare(content: Json) -> Iterator[Group]:
    """Yield what comes of each group of a file's cases; raise ValueError where there is none, or an unknown one."""
    known = [key for key in content if key in GROUPS and len(content[key])]
    if not known:
        raise ValueError("it has no key of a known benchmark")
    for key, value in content.items():
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if key not in (*GROUPS, "taxonomy") and any(isinstance(part, dict) for part in parts):
            raise ValueError(f"its key {key!r} is not known")
    for key in known:
        sizes: list[tuple[str, float]] = []
        cases = list(GROUPS[key](content))
        for case in cases:
            try:
                found = case.found()
            except ValueError as error:
                sizes.append((f"{case.name}: {error}", inf))
            else:
                sizes += _differences(found, case.expected, case.name)
        off = tuple(each for each in sizes if not each[1] <= TOLERANCE)
        yield Group(key, len(cases), max((size for _, size in sizes), default=0.0), off)


def _differences(found: Json, expected: Json, where: str) -> Iterator[tuple[str, float]]:
    """Yield the place and size of the difference of each value that is expected: inf where it must be equal."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if not expected and found:
            yield f"{where}: {found} instead of nothing", inf
        for key, value in expected.items():
            if key in found:
                yield from _differences(found[key], value, f"{where} {key}")
            elif key not in DESCRIPTIVE:
                yield f"{where} {key}: nothing instead of {value}", inf
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for place, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from _differences(one, other, f"{where} {place}")
    elif isinstance(found, float) and isinstance(expected, float | int) and isfinite(found) and isfinite(expected):
        yield f"{where}: {found} instead of {expected}", abs(found - expected) / max(1, abs(expected))
    else:
        yield f"{where}: {found} instead of {expected}", 0.0 if found == expected else inf


def _plans(case: Json, _: Json) -> Json:
    pred, true = np.array(case["pred"]), np.array(case["target"])
    scores = plan_scores(pred, true)
    found = {
        "acc": scores.acc,
        "sr": scores.sr,
        "miou_sample_level(MIoU2)": scores.miou,
        "miou_batch_level(MIoU1)": plan_scores(pred, true, batch_size=case["batch_size"]).miou,
        "acc_first_step": plan_scores(pred[:, :1], true[:, :1]).acc,
        "acc_last_step": plan_scores(pred[:, -1:], true[:, -1:]).acc,
    }
    return {name: 100 * value for name, value in found.items()}


def _losses(case: Json, _: Json) -> Json:
    import torch

    from stepline.models.plan_loss import plan_loss, read_out

    x, text = (torch.tensor(case[name], dtype=torch.float64) for name in ("x[B,T,D]", "text[N,D]"))
    labels = torch.tensor(case["labels[B,T]"])
    of_pdpp: dict[str, dict[str, Any]] = {
        "mse_sum_over_D_mean_over_B_summed_over_T(PDPP*)": {"loss": "mse", "mse_weight": x.shape[-1]}
    }
    losses = {name: float(plan_loss(x, text, labels, **options)) for name, options in (LOSSES | of_pdpp).items()}
    return {"pred_argmax[B][T]": read_out(x.float(), text.float()).tolist(), **losses}


def _frames(case: Json, _: Json) -> Json:
    steps = [oepp.Step(action="", start_s=start_s, end_s=end_s) for start_s, end_s in case["segments"]]
    rows = [
        [None if row < 0 else row for row in observation_rows(step, step, case["n_feature_rows"], "released")]
        for step in steps
    ]
    return {"start_rows": [each[:3] for each in rows], "end_rows": [each[3:] for each in rows]}


def _window(window: Window) -> Json:
    """Return a window as the released code has it."""
    source, vid = window.video.split("_", 1)
    number = int if source == "CrossTask" else float
    ends = ([number(each.start_s), number(each.end_s)] for each in (window.start, window.end))
    return [vid, list(window.actions), *ends]


def _windows(part: oepp.Part, horizon: int) -> Json:
    found = windows(oepp.load("split1", part), horizon, "repeat_first")
    listed = [_window(each) for each in found]
    text = json.dumps(listed, separators=(",", ":"))
    return {
        "n_windows": len(found),
        "n_padded": sum(each.padded for each in found),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "first3": listed[:3],
    }


def _window_cases(content: Json) -> Iterator[Case]:
    fetch_release(oepp.RELEASES, "split1")
    for name, horizons in content["splits"].items():
        for horizon, expected in horizons.items():
            yield Case(f"{name} {horizon}", partial(_windows, PARTS[name], int(horizon)), expected)


def _segments(case: Json, _: Json) -> Json:
    gt, pred = case["gt"], case["pred"]
    soda = soda_d(gt, pred, order="start")
    tious = case["expected"].get("tiou_detection", {})
    return {
        "matched_iou_sum": soda.recall * len(gt),
        **{f"soda_d_{name}": value for name, value in soda._asdict().items()},
        "miou_per_video": mean_iou(gt, pred),
        "mjaccard_per_video": mean_jaccard(gt, pred),
        "tiou_detection": {
            tiou: dict(zip(("precision", "recall"), detection(gt, pred, threshold=float(tiou)), strict=True))
            for tiou in tious
        },
    }


def _captioned(case: Json, content: Json) -> Json:
    of = {each["case"]: each for each in content["segment_cases"]}[case["case"]]
    scores = case["sentence_score_matrix[gt][pred]"]
    found = soda_c(of["gt"], of["pred"], scores, order="start")
    return {"sum": found.recall * len(of["gt"]), **found._asdict()}


def _soft(case: Json, _: Json) -> Json:
    import torch

    from stepline.models.matching import ordered, soft_ordered
    from tests.models.soft_soda import Smooth, cell_by_cell

    cost = torch.tensor(case["cost[rows][cols]"], dtype=torch.float64)
    found = {"hard_min": float(cost[ordered(cost, complete=False)].sum())}
    for name in case["expected_table_end"].keys() - found.keys():
        kind, gamma = name.split("_gamma")
        smooth: Smooth = "expectation" if kind == "prob" else "logsumexp"
        found[name] = float(soft_ordered(cost[None], gamma=float(gamma), smooth=smooth))
        if smooth == "logsumexp":  # the release has 1e-5 beside the sum
            one, other = (cell_by_cell(cost.numpy(), float(gamma), smooth, beside) for beside in (1e-5, 0))
            found[name] += one - other
    return found


def _figure(case: Json) -> Json:
    gt, pred = case["gt"], case["pred_in_this_order"]
    soda = soda_d(gt, pred, order="start")
    return {
        "iou": iou(gt, pred).round(4).tolist(),
        "sum": soda.recall * len(gt),
        "precision": soda.precision,
        "recall": soda.recall,
        "f1_percent": 100 * soda.f1,
    }


def _figure_cases(content: Json) -> Iterator[Case]:
    for name, case in content["paper_fig4"].items():
        yield Case(
            name, partial(_figure, case), {key: case[key] for key in case if key not in ("gt", "pred_in_this_order")}
        )


def _resized(case: Json, _: Json) -> Json:
    return {"picked_rows": resize(np.arange(case["n_in"])[:, None], case["n_out"])[:, 0].tolist()}


def _grouped(category: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the items of each category, and of all."""
    found: dict[str, list[str]] = {"all": list(category)}
    for item, name in category.items():
        found.setdefault(name, []).append(item)
    return found


def _retrieved(case: Json) -> Json:
    ranked = {query: rank(pred["videos"], pred["scores"]) for query, pred in case["pred"].items()}
    first = {query: first_rank(ranked[query], videos) for query, videos in case["gt"].items()}
    return {
        "per_item": {
            query: {
                "first_gt_rank": int(place) if isfinite(place) else None,
                "order_first5": ranked[query][:5],
                "hit": {str(k): int(place <= k) for k in KS},
            }
            for query, place in first.items()
        },
        "per_category": {
            name: {
                "total_prompt_count": len(queries),
                **{f"R@{k}": 100 * recall_at(k, [first[query] for query in queries]) for k in KS},
            }
            for name, queries in _grouped({query: case["prompt_to_cat"][query] for query in first}).items()
        },
    }


def _retrieved_moments(case: Json) -> Json:
    return _moments(case["gt"], case["pred"], case["prompt_to_cat"])


def _moments(gt: Json, pred: Json, category: Mapping[str, str]) -> Json:
    pairs = [(query, video) for query in gt for video, each in gt[query].items() if each["clip"]]
    true, predicted = (np.array([of[query][video]["bounds"] for query, video in pairs], float) for of in (gt, pred))
    overlaps, hits = moment_iou(true, predicted).tolist(), moment_hits(true, predicted)
    by_video = {video: place for place, (_, video) in enumerate(pairs)}
    return {
        "per_item": {
            video: {"iou": overlaps[place], "hit": _by_threshold(hits[place].astype(int))}
            for video, place in by_video.items()
        },
        "per_category": {
            name: {
                "total_videos": len(videos),
                **{
                    f"R@{threshold}": 100 * value
                    for threshold, value in _by_threshold(
                        hits[[by_video[video] for video in videos]].mean(axis=0)
                    ).items()
                },
            }
            for name, videos in _grouped({video: category[query] for query, video in pairs}).items()
        },
    }


def _by_threshold(values: Any) -> dict[str, Any]:
    return dict(zip(map(str, THRESHOLDS), values.tolist(), strict=True))


def _steps(gt: Json, pred: Json, category: Mapping[str, str], *, preprocess: bool) -> Json:
    items, scores = {}, {}
    for video, true in gt.items():
        found = pred[video]
        if preprocess:
            found = preprocess_moment_bounds(found, (true[0][0], true[-1][1])).tolist()
        scores[video] = 100 * np.array(segmentation_scores(true, found))
        best = moment_iou(np.array(true)[:, None], found).max(axis=0) if found else np.empty(0)
        recall, precision = map(_by_threshold, scores[video])
        items[video] = {"recall": recall, "precision": precision, "best_iou_per_prediction": best.tolist()}
        items[video] |= {"bounds_after": found} if preprocess else {}
    categories = {}
    for name, videos in _grouped({video: category[video] for video in gt}).items():
        recall, precision = map(_by_threshold, np.mean([scores[video] for video in videos], axis=0))
        categories[name] = {"recall": recall, "precision": precision, "total": len(videos)}
    return {"per_item": items, "per_category": categories}


def _segmented(case: Json) -> Json:
    gt, pred = ({video: each["bounds"] for video, each in case[of].items()} for of in ("gt", "pred"))
    return {
        f"{word}_preprocess": _steps(gt, pred, case["video_to_cat"], preprocess=word == "with")
        for word in ("with", "without")
    }


def _hirest_cases(key: str, content: Json) -> Iterator[Case]:
    tasks = {"video_retrieval": _retrieved, "moment_retrieval": _retrieved_moments, "moment_segmentation": _segmented}
    for place, case in enumerate(content[key]):
        expected = {name: each for name, each in case["expected"].items() if not name.endswith("not_order_keeping")}
        yield Case(f"{key} {case.get('case', place)}", partial(tasks[case["task"]], case), expected)


def _released_cases(content: Json) -> Iterator[Case]:
    fetch_release(hirest.RELEASES, "v1")
    for place, case in enumerate(content["real_annotations"]):
        retrieval = case["task"] == "moment_retrieval"
        found = partial(_released_moments if retrieval else _released_steps, case)
        keep = case.keys() - {"task", "gt_file", "rule", "f", "k", "max_segments_surviving_border_test"}
        expected = {name: case[name] for name in keep if not name.endswith("not_order_keeping")}
        yield Case(f"real_annotations {place}", found, expected)


def _released_moments(case: Json) -> Json:
    gt: Json = {}
    pred: Json = {}
    for pair in hirest.load(SPLITS[case["gt_file"]]):
        middle = [pair.duration_s * (1 - case["f"]) / 2, pair.duration_s * (1 + case["f"]) / 2]
        bounds = pair.bounds_s or hirest.BLINDED
        gt.setdefault(pair.query, {})[pair.video] = {"clip": pair.clippable, "bounds": bounds}
        pred.setdefault(pair.query, {})[pair.video] = {"bounds": middle}
    category = hirest.categories()
    return {"expected": {name: {} for name in category.values()} | _moments(gt, pred, category)["per_category"]}


def _released_steps(case: Json) -> Json:
    pairs = [pair for pair in hirest.load(SPLITS[case["gt_file"]]) if pair.steps]
    gt = {f"{pair.video}.mp4": [[step.start_s, step.end_s] for step in pair.steps] for pair in pairs}
    pred = gt
    if case["k"] != "gt":
        parts = range(case["k"] + 1)
        edges = {
            video: [each[0][0] + (each[-1][1] - each[0][0]) * part / case["k"] for part in parts]
            for video, each in gt.items()
        }
        pred = {video: [[*each] for each in pairwise(at)] for video, at in edges.items()}
    found = {}
    for word in ("with", "without"):
        scored = _steps(gt, pred, dict.fromkeys(gt, "any"), preprocess=word == "with")
        found[f"{word}_preprocess"] = scored["per_category"]["all"]
        found[f"{word}_preprocess_per_video_recall_precision_0.5_0.7"] = {
            video: [*each["recall"].values(), *each["precision"].values()] for video, each in scored["per_item"].items()
        }
    return found


def _grounded(case: Json, content: Json) -> Json:
    articles = {row["global_step_index"]: (row["activity"], row["variation"]) for row in content["taxonomy"]}
    listed = [
        (video, *each["segment"], each["id"], each.get("label_id", str(each["id"] - 1)))
        for video, about in case["annotations"].items()
        if about["subset"] == content.get("split", "val_seen")
        for each in about["annotations"]
    ]
    true, predicted = ([[row[column] for row in rows] for column in range(5)] for rows in (listed, case["predictions"]))
    try:
        found = article_grounding(TrueSegments(*true), PredictedSegments(*predicted), articles)
    except ValueError:
        if "expected_error" in case:
            return case["expected_error"]
        raise
    return {
        "per_activity_ap": dict(zip(found.activities, found.ap.tolist(), strict=True)),
        "map_per_tiou": found.at.tolist(),
        "mAP": found.mean,
    }


def _htstep_cases(content: Json) -> Iterator[Case]:
    for place, case in enumerate(content["cases"]):
        if case.get("tie_order_changes_result"):
            expected = case["expected_if_ties_in_input_row_order"]
        else:
            expected = case["expected_error" if "expected_error" in case else "expected"]
        yield Case(case.get("name", f"cases {place}"), partial(_grounded, case, content), expected)


def _each(
    key: str, found: Callable[[Json, Json], Json], *, expected: str = "", names: Sequence[str] = ()
) -> Callable[[Json], Iterator[Case]]:
    """Return what makes the cases of a group; names: of what is expected, where it does not stand under one key."""

    def cases(content: Json) -> Iterator[Case]:
        for place, case in enumerate(content[key]):
            wanted = {name: case[name] for name in names} if names else case[expected]
            yield Case(f"{key} {place}", partial(found, case, content), wanted)

    return cases


GROUPS: dict[str, Callable[[Json], Iterator[Case]]] = {
    "metric_cases": _each("metric_cases", _plans, expected="expected_percent"),
    "loss_and_readout_cases": _each("loss_and_readout_cases", _losses, expected="expected"),
    "frame_selection_cases_M3": _each("frame_selection_cases_M3", _frames, names=("start_rows", "end_rows")),
    "splits": _window_cases,
    "segment_cases": _each("segment_cases", _segments, expected="expected"),
    "soda_c_given_scores": _each("soda_c_given_scores", _captioned, expected="expected"),
    "soft_soda_cases": _each("soft_soda_cases", _soft, expected="expected_table_end"),
    "paper_fig4": _figure_cases,
    "feature_resize_nearest": _each("feature_resize_nearest", _resized, names=("picked_rows",)),
    "cases": lambda content: _htstep_cases(content) if "taxonomy" in content else _hirest_cases("cases", content),
    "many": partial(_hirest_cases, "many"),
    "real_annotations": _released_cases,
}
"""Of each key of a file what makes its cases."""
WITH_TORCH = {"loss_and_readout_cases", "soft_soda_cases"}


def main(words: Sequence[str]) -> int:
    """Compare the cases of a file, print what came of it and return the exit code."""
    if len(words) != 1:
        print("usage: python -m tests.golden FILE", file=sys.stderr)
        return 2
    os.environ.setdefault("STEPLINE_MIRROR", os.environ.get("STEPLINE_REAL_DATA", str(SHARED)))
    try:
        content = json.loads(Path(words[0]).read_bytes())
        with TemporaryDirectory() as folder, chdir(folder):
            groups = list(compare(content))
    except (AttributeError, ImportError, LookupError, OSError, SteplineError, TypeError, ValueError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"{words[0]} cannot be compared: {reason}", file=sys.stderr)
        return 2
    for group in groups:
        for place, size in group.differences:
            print(f"{place} ({size:.1e})")
        print(f"{group.name}: {group.cases} cases, worst difference {group.worst:.1e}")
    worst = max(group.worst for group in groups)
    print(f"{sum(group.cases for group in groups)} cases, worst difference {worst:.1e}")
    return int(not worst <= TOLERANCE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
