"""The metrics of PSS, in the order of columns."""

from stepline.benchmark import Metric

BEST = "the mean over true segments of the {} of the best predicted segment, 0 without predictions"
IOU, JACCARD = BEST.format("IoU"), BEST.format("overlap, as a share of the predicted segment,")
GRID = (
    "; a segment is the whole seconds from int(start) to int(end) - 1, the later segment where two overlap, and as "
    "long as its last second less its first"
)
ORDERED = (
    "the greatest sum of {} over one-to-one matchings of true and predicted segments in temporal order, divided by {}"
)
SENTENCES = (
    "{} of the sentences of all pairs of a predicted and a true segment whose IoU reaches a threshold, of each video "
    "alone; the mean of thresholds 0.3, 0.5, 0.7 and 0.9; a prediction without a pair gets an impossible reference"
)
BOTH = "the mean of the numbers of true and predicted segments"
STEMS = "METEOR 1.5 with exact and stem matches only"

METRICS = {
    "miou_1fps": Metric(title="mIoU (1 fps)", definition=IOU + GRID, options=("missing",)),
    "mjaccard_1fps": Metric(title="mJaccard (1 fps)", definition=JACCARD + GRID, options=("missing",)),
    "miou": Metric(title="mIoU", definition=IOU, options=("missing",)),
    "mjaccard": Metric(title="mJaccard", definition=JACCARD, options=("missing",)),
    "precision": Metric(
        title="Precision",
        definition=ORDERED.format("IoUs", "the number of predicted segments"),
        options=("missing", "order"),
    ),
    "recall": Metric(
        title="Recall", definition=ORDERED.format("IoUs", "the number of true segments"), options=("missing", "order")
    ),
    "soda_d": Metric(title="SODA-D", definition=ORDERED.format("IoUs", BOTH), options=("missing", "order")),
    "bleu4": Metric(title="B4", definition=SENTENCES.format("BLEU-4"), options=("missing",)),
    "meteor": Metric(title="METEOR", definition=SENTENCES.format("METEOR 1.5"), options=("missing",)),
    "cider": Metric(title="CIDEr", definition=SENTENCES.format("100 times CIDEr-D"), options=("missing",)),
    "soda_c": Metric(
        title="SODA-C",
        definition=ORDERED.format("IoUs times METEOR 1.5, with the prediction as the reference,", BOTH),
        options=("missing", "order"),
    ),
    "rouge_l": Metric(title="ROUGE-L", definition=SENTENCES.format("ROUGE-L"), options=("missing",)),
    "meteor_stem": Metric(title="METEOR-stem", definition=SENTENCES.format(STEMS), options=("missing",)),
    "soda_c_stem": Metric(
        title="SODA-C (METEOR-stem)",
        definition=ORDERED.format(f"IoUs times {STEMS}, with the prediction as the reference,", BOTH),
        options=("missing", "order"),
    ),
}
SEGMENTS = ("miou_1fps", "mjaccard_1fps", "miou", "mjaccard", "precision", "recall", "soda_d")
"""The metrics of segments, which read no sentences."""
METEOR = ("meteor", "soda_c")
"""The metrics that need the original METEOR program."""
