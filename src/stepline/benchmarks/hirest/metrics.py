"""The metrics of HiREST's four tasks, each on one split, in the order of columns."""

from stepline.backbones.weights import locate
from stepline.benchmark import Metric
from stepline.needs import Need, absent

SPLITS = {"val": "val", "test_507": "test, the 507 moments with steps", "test": "test"}
"""The splits on which moments and steps are evaluated, with their names in tables."""
PREPROCESS = ("preprocess_moment_bounds",)

FOUND = "the share of queries with one of their videos among the first {} of the pool"
UNION = "; an IoU is the overlap / (the union + 1e-8 s), so an exact half is below 0.5"
RETRIEVAL = {
    **{
        f"r{k}": Metric(
            title=f"R@{k}", definition=f"{FOUND.format(k)}; queries without a video in the pool are left out"
        )
        for k in (1, 5, 10, 50)
    },
    **{
        f"r{k}_all": Metric(
            title=f"R@{k}, absent queries as misses",
            definition=f"{FOUND.format(k)}; queries without a video in the pool are misses",
        )
        for k in (1, 5, 10, 50)
    },
}
MOMENTS = {
    f"{split}_{name}": Metric(title=f"{split} {title}", definition=definition + UNION)
    for split in SPLITS
    for name, title, definition in (
        ("r_05", "R@0.5", "the share of videos whose predicted moment has an IoU of at least 0.5 with the true one"),
        ("r_07", "R@0.7", "the share of videos whose predicted moment has an IoU of at least 0.7 with the true one"),
        ("miou", "mIoU", "the mean over videos of the IoU of the predicted and the true moment"),
    )
}
CLEANED = (
    ". With preprocess_moment_bounds, only predictions strictly inside the true moment are kept, from the last to the "
    "first, each at least 1 s away from those already kept; their edges divide the moment into the steps to score"
)
RECALL = "the mean over videos of the share of true steps whose IoU with any predicted step is above {}"
PRECISION = (
    "the mean over videos of the share of predicted steps whose IoU with any true step is above {}, 0 without any"
)
PAIRED = (
    "the mean over videos of 2 pairs / (true steps + predicted steps), for the one-to-one matching with the most pairs "
    "whose IoU is above {}"
)
SEGMENTS = {
    f"{split}_{name}": Metric(
        title=f"{split} {title}",
        definition=definition + UNION + (CLEANED if released else ""),
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
            "the mean over videos of the mean over true steps of the highest IoU with a predicted one, 0 without any",
            False,
        ),
    )
}
TOGETHER, OVER_STEPS = "of all steps as one corpus", ", the mean over all steps"
FOUR_FRAMES = (
    "the mean over steps of the mean cosine of CLIP's vectors of the caption and of the frames at "
    "int(linspace(start, end - 1, 4)) s; with T frames, steps that start or end at T s or later are left out"
)
AGAINST = "each caption and its one reference, the annotated caption of the step, are lower-cased"
CAPTIONS = {
    f"{split}_{name}": Metric(
        title=f"{split} {title}",
        definition=definition if name == "clip_score" else f"{definition}; {AGAINST}",
        unit="" if name in ("bert_score", "clip_score") else "%",
        options=("entailment",) if name == "entailment" else (),
    )
    for split in ("val", "test_507")
    for name, title, definition in (
        ("meteor", "METEOR", f"METEOR 1.5 {TOGETHER}"),
        ("cider", "CIDEr", f"100 times CIDEr-D (0 to 10){OVER_STEPS}, with the document frequencies of the references"),
        ("spice", "SPICE", f"SPICE 1.0{OVER_STEPS}"),
        (
            "entailment",
            "Entailment",
            "the share of captions that their reference entails, by the network of the option",
        ),
        ("bert_score", "BERTScore (0 to 1)", f"BERTScore F1 with RoBERTa-large, layer 17{OVER_STEPS}"),
        ("clip_score", "CLIPScore (0 to 1)", FOUR_FRAMES),
        ("bleu4", "B4", f"BLEU-4 {TOGETHER}"),
        ("rouge_l", "ROUGE-L", f"ROUGE-L{OVER_STEPS}"),
        ("meteor_stem", "METEOR-stem", f"METEOR 1.5 with exact and stem matches only, {TOGETHER}"),
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
