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
GROUNDING = {
    f"{split}_{reading}map{at and '_'}{at}": Metric(
        title=f"{split} mAP@{'0.' + at[1] if at else '[0.3-0.7]'}{' per query' if reading else ''}"
    )
    for split in SPLITS
    for reading in ("", "query_")
    for at in (*THRESHOLDS, "")
}
MATCHES = {
    f"{split}_{match}_map": Metric(title=f"{split} mAP@[0.3-0.7] {match}")
    for split in SPLITS
    for match in ("partial", "full")
}
DROPPED = {f"{split}_dropped": Metric(title=f"{split} dropped predictions") for split in SPLITS}
RECALL = {
    f"{split}_{order}r1": Metric(title=f"{split} R@1{' in order' if order else ''}")
    for split in SPLITS
    for order in ("", "ordered_")
}
POOL = ("crosstask_validation",)
SUBSETS = (*POOL, "crosstask_subsets", "crosstask_videos", "crosstask_evaluated", "crosstask_seed")
CROSSTASK = {
    "crosstask_r1": Metric(title="Avg. R@1", options=SUBSETS),
    "crosstask_r1_sd": Metric(title="Avg. R@1, sd over subsets", options=SUBSETS),
    "crosstask_ordered_r1": Metric(title="Avg. R@1 in order", options=SUBSETS),
    "crosstask_ordered_r1_sd": Metric(title="Avg. R@1 in order, sd over subsets", options=SUBSETS),
    "crosstask_map": Metric(title="mAP@[0.3-0.7]", options=POOL),
}
PARTS = {
    "train": ("train",),
    **{split: (split,) for split in SPLITS},
    "seen": SEEN,
    "full": ("train", *SEEN, "test_unseen"),
}
"""The splits of each part in Table 1; the paper does not have ``val_unseen``."""
COUNTS = {
    "hours": Metric(title="Hours", count=True),
    "videos": Metric(title="Videos", count=True),
    "segments": Metric(title="Segments", count=True),
    "activities": Metric(title="Activities", count=True),
}
METRICS = GROUNDING | MATCHES | DROPPED | RECALL | CROSSTASK | COUNTS


def split_of(metric: str) -> str:
    """Return the split in the name of a metric; "" for CrossTask and for counts."""
    return next((split for split in SPLITS if metric.startswith(f"{split}_")), "")


def of_splits(*splits: str) -> tuple[str, ...]:
    """Return the metrics of the splits."""
    return tuple(metric for metric in METRICS if split_of(metric) in splits)
