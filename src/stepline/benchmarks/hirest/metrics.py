"""The metrics of HiREST's four tasks, each on one split, in the order of columns."""

from stepline.backbones.weights import locate
from stepline.benchmark import Metric
from stepline.needs import Need, absent

SPLITS = {"val": "val", "test_507": "test, the 507 moments with steps", "test": "test"}
"""The splits on which moments and steps are evaluated, with their names in tables."""
PREPROCESS = ("preprocess_moment_bounds",)

FOUND = "the share of queries with one of their videos among the first {} of the pool"
RETRIEVAL = {
    **{
        f"r{k}": Metric(title=f"R@{k}", definition=f"{FOUND.format(k)}, without absent queries") for k in (1, 5, 10, 50)
    },
    **{
        f"r{k}_all": Metric(title=f"R@{k}, absent queries as misses", definition=FOUND.format(k))
        for k in (1, 5, 10, 50)
    },
}
MOMENTS = {
    f"{split}_{name}": Metric(title=f"{split} {title}", definition=definition)
    for split in SPLITS
    for name, title, definition in (
        ("r_05", "R@0.5", "the share of videos whose predicted moment has an IoU of at least 0.5 with the true one"),
        ("r_07", "R@0.7", "the share of videos whose predicted moment has an IoU of at least 0.7 with the true one"),
        ("miou", "mIoU", "the mean IoU of predicted and true moments"),
    )
}
CLEANED = "after the released cleaning of predictions (preprocess_moment_bounds)"
RECALL = "the share of a video's true steps whose IoU with any predicted step is above {}"
PRECISION = "the share of a video's predicted steps whose IoU with any true step is above {}"
PAIRED = (
    "2 pairs / (true steps + predicted steps) of a video, for the one-to-one matching with the most pairs whose IoU is "
    "above {}"
)
SEGMENTS = {
    f"{split}_{name}": Metric(
        title=f"{split} {title}",
        definition=f"{definition}, {CLEANED}" if released else definition,
        options=PREPROCESS if released else (),
    )
    for split in ("val", "test_507")
    for name, title, definition, released in (
        ("recall_05", "Recall@0.5", RECALL.format(0.5), True),
        ("recall_07", "Recall@0.7", RECALL.format(0.7), True),
        ("precision_05", "Precision@0.5", PRECISION.format(0.5), True),
        ("precision_07", "Precision@0.7", PRECISION.format(0.7), True),
        ("raw_recall_05", "Recall@0.5 as predicted", RECALL.format(0.5), False),
        ("raw_recall_07", "Recall@0.7 as predicted", RECALL.format(0.7), False),
        ("raw_precision_05", "Precision@0.5 as predicted", PRECISION.format(0.5), False),
        ("raw_precision_07", "Precision@0.7 as predicted", PRECISION.format(0.7), False),
        ("f1_05", "F1@0.5 one to one", PAIRED.format(0.5), False),
        ("f1_07", "F1@0.7 one to one", PAIRED.format(0.7), False),
        (
            "segment_miou",
            "mIoU of steps",
            "the mean over a video's true steps of the best IoU with a predicted one",
            False,
        ),
    )
}
CAPTIONS = {
    f"{split}_{name}": Metric(
        title=f"{split} {title}",
        definition=f"{definition}, of the caption of each annotated step against the annotated one",
        unit="" if name in ("bert_score", "clip_score") else "%",
        options=("entailment",) if name == "entailment" else (),
    )
    for split in ("val", "test_507")
    for name, title, definition in (
        ("meteor", "METEOR", "METEOR 1.5 of all steps together"),
        ("cider", "CIDEr", "100 times CIDEr-D"),
        ("spice", "SPICE", "SPICE 1.0"),
        ("entailment", "Entailment", "the share of captions that the annotated caption entails, by a network"),
        ("bert_score", "BERTScore (0 to 1)", "BERTScore F1 with RoBERTa-large"),
        ("clip_score", "CLIPScore (0 to 1)", "the mean cosine of CLIP's vectors with four frames of the step"),
        ("bleu4", "B4", "BLEU-4 of all steps together"),
        ("rouge_l", "ROUGE-L", "ROUGE-L"),
        ("meteor_stem", "METEOR-stem", "METEOR 1.5 with exact and stem matches only, of all steps together"),
    )
}
STATISTICS = {
    name: Metric(title=title, definition=definition, unit="count" if counted else "")
    for name, title, definition, counted in (
        ("videos", "Videos", "the number of videos of all splits", True),
        ("stepped", "Videos with steps", "the number of videos with public steps", True),
        ("steps", "Steps", "the number of public steps", True),
        ("steps_per_moment", "Steps per moment (mean)", "the number of steps per moment with steps", False),
        ("words_per_caption", "Words per caption (mean)", "the mean number of parts between single spaces", False),
        ("captions", "Unique captions", "the number of different captions of steps", True),
        ("video_s", "Video (mean, s)", "the mean duration of a video with steps, in seconds", False),
        ("step_s", "Step (mean, s)", "the mean duration of a step, in seconds", False),
    )
}
METRICS = RETRIEVAL | MOMENTS | SEGMENTS | CAPTIONS | STATISTICS


def split_of(metric: str) -> str:
    """Return the split in the name of a metric; ``test`` for video retrieval."""
    return next((split for split in ("val", "test_507", "test") if metric.startswith(f"{split}_")), "test")


TRANSFORMERS = (Need("package", "torch"), Need("package", "transformers"))
CAPTIONED_BY = {
    "meteor": (Need("java"), Need("package", "pycocoevalcap")),
    "spice": (Need("java"), Need("package", "pycocoevalcap"), Need("weights", "corenlp")),
    "bert_score": (*TRANSFORMERS, Need("weights", "roberta-large")),
    "entailment": (*TRANSFORMERS, Need("weights", "nli-deberta-v3-base")),
}
"""The needs of `stepline.metrics.step_captions` by metric. They are listed here because plans do not import NumPy."""


def missing_scorer(name: str) -> list[Need]:
    """Return the unmet needs of a caption metric."""
    needs = CAPTIONED_BY.get(name, ())
    weights = [need for need in needs if need.kind == "weights" and not locate(need.what)]
    return [*absent(*(need for need in needs if need.kind != "weights")), *weights]
