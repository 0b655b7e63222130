"""The metrics of article grounding, each on one split, and of CrossTask, in the order of columns."""

from stepline.benchmark import Metric

SPLITS = {
    "val_seen": "val, seen",
    "test_seen": "test, seen (S1)",
    "test_unseen": "test, unseen (S2)",
    "val_unseen": "val, unseen",
}
"""The splits on which methods are evaluated, with their names in tables."""
SEEN = ("val_seen", "test_seen")
"""The splits with the activities of train."""
THRESHOLDS = ("03", "05", "07")
"""The thresholds of temporal IoU with their own columns, as written in the keys of metrics."""
RANGE = "0.3, 0.39999999999999997, 0.5, 0.6 and 0.7 (the mean)"
PRECISION = (
    "the mean over {} with a true segment of the interpolated average precision, at a temporal IoU of {}, of all "
    "predictions for steps of the video's article{}: by descending score, each takes the free true segment {} with the "
    "highest IoU of at least the threshold, or is false. True segments shorter than 1 ms, and repeats of a step within "
    "1 ms at both ends, are left out"
)
ANY, OWN = (" that have a true segment in the split", "of its video"), ("", "of its step in its video")
IN_ORDER = ", with times in the order of the article"
GROUNDING = {
    f"{split}_{reading}map{at and '_'}{at}": Metric(
        title=f"{split} mAP@{'0.' + at[1] if at else '[0.3-0.7]'}{' per query' if reading else ''}",
        definition=PRECISION.format("activities", f"0.{at[1]}" if at else RANGE, *(OWN if reading else ANY)),
    )
    for split in SPLITS
    for reading in ("", "query_")
    for at in (*THRESHOLDS, "")
}
MATCHES = {
    f"{split}_{match}_map": Metric(
        title=f"{split} mAP@[0.3-0.7] {match}",
        definition=f"{PRECISION.format('activities', RANGE, *OWN)}, and so are the segments and predictions of a "
        f"step in each video where it has a segment that is not a {match} match",
    )
    for split in SPLITS
    for match in ("partial", "full")
}
DROPPED = {
    f"{split}_dropped": Metric(
        title=f"{split} dropped predictions",
        definition="the share of predictions that the released evaluation ignores: their step is not of the video's "
        "article, or has no true segment in the split",
    )
    for split in SPLITS
}
RECALL = {
    f"{split}_{order}r1": Metric(
        title=f"{split} R@1{' in order' if order else ''}",
        definition="the share, over all videos, of the steps that a video shows whose predicted second is in one of "
        f"the step's segments, from floor(start) to ceil(end), both included{IN_ORDER if order else ''}",
    )
    for split in SPLITS
    for order in ("", "ordered_")
}
POOL = ("crosstask_validation",)
SUBSETS = (*POOL, "crosstask_subsets", "crosstask_videos", "crosstask_evaluated", "crosstask_seed")
RECALLED = (
    "the {} over random splits of the mean over tasks with a shown step of the share of shown steps, over all videos "
    "of the task, whose predicted second is in one of the step's segments, from floor(start) to before ceil(end){}"
)
CROSSTASK = {
    f"crosstask_{order}r1{'_sd' if sd else ''}": Metric(
        title=f"Avg. R@1{' in order' if order else ''}{', sd over subsets' if sd else ''}",
        definition=RECALLED.format("standard deviation (n - 1)" if sd else "mean", IN_ORDER if order else ""),
        options=SUBSETS,
    )
    for order in ("", "ordered_")
    for sd in (False, True)
} | {"crosstask_map": Metric(title="mAP@[0.3-0.7]", definition=PRECISION.format("tasks", RANGE, *ANY), options=POOL)}
PARTS = {
    "train": ("train",),
    **{split: (split,) for split in SPLITS},
    "seen": SEEN,
    "full": ("train", *SEEN, "test_unseen"),
}
"""The splits of each part in Table 1; the paper does not have ``val_unseen``."""
COUNTS = {
    name: Metric(title=name.capitalize(), definition=f"the number of {name} of the part of the release", unit="count")
    for name in ("hours", "videos", "segments", "activities")
}
METRICS = GROUNDING | MATCHES | DROPPED | RECALL | CROSSTASK | COUNTS


def split_of(metric: str) -> str:
    """Return the split in the name of a metric; "" for CrossTask and for counts."""
    return next((split for split in SPLITS if metric.startswith(f"{split}_")), "")


def of_splits(*splits: str) -> tuple[str, ...]:
    """Return the metrics of the splits."""
    return tuple(metric for metric in METRICS if split_of(metric) in splits)
