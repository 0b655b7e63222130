"""The metrics of PSS, in the order of columns."""

from stepline.benchmark import Metric

METRICS = {
    "miou_1fps": Metric(title="mIoU (1 fps)", options=("missing",)),
    "mjaccard_1fps": Metric(title="mJaccard (1 fps)", options=("missing",)),
    "miou": Metric(title="mIoU", options=("missing",)),
    "mjaccard": Metric(title="mJaccard", options=("missing",)),
    "precision": Metric(title="Precision", options=("missing", "order")),
    "recall": Metric(title="Recall", options=("missing", "order")),
    "soda_d": Metric(title="SODA-D", options=("missing", "order")),
    "bleu4": Metric(title="B4", options=("missing",)),
    "meteor": Metric(title="METEOR", options=("missing",)),
    "cider": Metric(title="CIDEr", options=("missing",)),
    "soda_c": Metric(title="SODA-C", options=("missing", "order")),
    "rouge_l": Metric(title="ROUGE-L", options=("missing",)),
    "meteor_stem": Metric(title="METEOR-stem", options=("missing",)),
    "soda_c_stem": Metric(title="SODA-C (METEOR-stem)", options=("missing", "order")),
}
SEGMENTS = ("miou_1fps", "mjaccard_1fps", "miou", "mjaccard", "precision", "recall", "soda_d")
"""The metrics of segments, which read no sentences."""
METEOR = ("meteor", "soda_c")
"""The metrics that need the original METEOR program."""
