"""The metrics of PSS, in the order of columns."""

from stepline.benchmark import Metric

EMPTY = "; a video without predictions counts 0, or is left out with missing=drop"
UNION = "IoU (with 1e-8 s added to the union)"
BEST = f"the mean over videos of the mean over true segments of the {{}}{EMPTY}"
IOU = BEST.format(f"highest {UNION} with any predicted segment")
JACCARD = BEST.format("largest share of any one predicted segment that the true segment covers")
GRID = (
    "; each second from int(start) to int(end) - 1 has the label of its segment, the last one in the list if several "
    "cover it, and each run of equal labels is a segment, as long as its last second less its first"
)
ORDERED = (
    f"the mean over videos of the greatest sum of {UNION}{{}} over one-to-one matchings of true and predicted segments "
    f"in the order of start, then end (order=start: of start alone), divided by {{}}{EMPTY}"
)
SENTENCES = (
    "the mean over videos, and over the thresholds 0.3, 0.5, 0.7 and 0.9, of {} of one corpus: all pairs of a "
    f"predicted and a true sentence of the video whose segments have an {UNION} of at least the threshold. A "
    f"prediction without a pair gets an impossible reference{EMPTY}"
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
        definition=ORDERED.format("", "the number of predicted segments"),
        options=("missing", "order"),
    ),
    "recall": Metric(
        title="Recall", definition=ORDERED.format("", "the number of true segments"), options=("missing", "order")
    ),
    "soda_d": Metric(title="SODA-D", definition=ORDERED.format("", BOTH), options=("missing", "order")),
    "bleu4": Metric(title="B4", definition=SENTENCES.format("BLEU-4"), options=("missing",)),
    "meteor": Metric(title="METEOR", definition=SENTENCES.format("METEOR 1.5"), options=("missing",)),
    "cider": Metric(title="CIDEr", definition=SENTENCES.format("100 times CIDEr-D (0 to 10)"), options=("missing",)),
    "soda_c": Metric(
        title="SODA-C",
        definition=ORDERED.format(" times METEOR 1.5, with the prediction as the reference,", BOTH),
        options=("missing", "order"),
    ),
    "rouge_l": Metric(title="ROUGE-L", definition=SENTENCES.format("ROUGE-L"), options=("missing",)),
    "meteor_stem": Metric(title="METEOR-stem", definition=SENTENCES.format(STEMS), options=("missing",)),
    "soda_c_stem": Metric(
        title="SODA-C (METEOR-stem)",
        definition=ORDERED.format(f" times {STEMS}, with the prediction as the reference,", BOTH),
        options=("missing", "order"),
    ),
}
SEGMENTS = ("miou_1fps", "mjaccard_1fps", "miou", "mjaccard", "precision", "recall", "soda_d")
"""The metrics of segments, which read no sentences."""
METEOR = ("meteor", "soda_c")
"""The metrics that need the original METEOR program."""
