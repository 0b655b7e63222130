"""The metrics of HiREST's four tasks, each on one split, in the order of columns."""

from stepline.backbones.weights import locate
from stepline.benchmark import Metric
from stepline.needs import Need, absent

SPLITS = {"val": "val", "test_507": "test, the 507 moments with steps", "test": "test"}
"""The splits on which moments and steps are evaluated, with their names in tables."""
PREPROCESS = ("preprocess_moment_bounds",)

RETRIEVAL = {
    **{f"r{k}": Metric(title=f"R@{k}") for k in (1, 5, 10, 50)},
    **{f"r{k}_all": Metric(title=f"R@{k}, absent queries as misses") for k in (1, 5, 10, 50)},
}
MOMENTS = {
    f"{split}_{name}": Metric(title=f"{split} {title}")
    for split in SPLITS
    for name, title in (("r_05", "R@0.5"), ("r_07", "R@0.7"), ("miou", "mIoU"))
}
SEGMENTS = {
    f"{split}_{name}": Metric(title=f"{split} {title}", options=PREPROCESS if released else ())
    for split in ("val", "test_507")
    for name, title, released in (
        ("recall_05", "Recall@0.5", True),
        ("recall_07", "Recall@0.7", True),
        ("precision_05", "Precision@0.5", True),
        ("precision_07", "Precision@0.7", True),
        ("raw_recall_05", "Recall@0.5 as predicted", False),
        ("raw_recall_07", "Recall@0.7 as predicted", False),
        ("raw_precision_05", "Precision@0.5 as predicted", False),
        ("raw_precision_07", "Precision@0.7 as predicted", False),
        ("f1_05", "F1@0.5 one to one", False),
        ("f1_07", "F1@0.7 one to one", False),
        ("segment_miou", "mIoU of steps", False),
    )
}
CAPTIONS = {
    f"{split}_{name}": Metric(title=f"{split} {title}", options=("entailment",) if name == "entailment" else ())
    for split in ("val", "test_507")
    for name, title in (
        ("meteor", "METEOR"),
        ("cider", "CIDEr"),
        ("spice", "SPICE"),
        ("entailment", "Entailment"),
        ("bert_score", "BERTScore (0 to 1)"),
        ("clip_score", "CLIPScore (0 to 1)"),
        ("bleu4", "B4"),
        ("rouge_l", "ROUGE-L"),
        ("meteor_stem", "METEOR-stem"),
    )
}
STATISTICS = {
    "videos": Metric(title="Videos", count=True),
    "stepped": Metric(title="Videos with steps", count=True),
    "steps": Metric(title="Steps", count=True),
    "steps_per_moment": Metric(title="Steps per moment (mean)"),
    "words_per_caption": Metric(title="Words per caption (mean)"),
    "captions": Metric(title="Unique captions", count=True),
    "video_s": Metric(title="Video (mean, s)"),
    "step_s": Metric(title="Step (mean, s)"),
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
