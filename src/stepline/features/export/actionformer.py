"""A folder for ActionFormer (Zhang et al., 2022): features, annotations and the lines of its configuration."""

from typing import Any

from stepline.datasets.segments import LabelledSpan
from stepline.features.export.files import write_float32
from stepline.features.export.job import Export
from stepline.io import write_json, write_text

SUBSETS = {"train": "training", "val": "validation", "test": "test", None: "all"}
"""Split -> subset of a video with segments; others are ``UNLABELLED``, as ActionFormer cannot train on them."""
UNLABELLED = "unlabelled"
HEAD = "# Add the options of the model and of training. The paths are relative to the folder of this file.\n"


def write(job: Export) -> None:
    """Write ``features/<name>.npy`` (T, D) float32, ``annotations.json`` and ``config.yaml`` for the loader ``anet``.

    Feature k of ActionFormer is at (k feat_stride + num_frames / 2) / fps seconds, the middle of the clip of row k: of
    num_frames frames, each with the length of the interval between them. Without frames, as of imported features, it
    is the middle of the hop.
    """
    import yaml

    write_float32(job)
    fps, stride, frames = timing(job.bank.spec, job.bank.hop_s)
    annotated = {video: job.annotated(video) for video in job.names}
    labels = sorted({_label(span) for each in annotated.values() for span in each.segments})
    ids = {label: number for number, label in enumerate(labels)}
    database = {
        video: {
            "subset": SUBSETS[each.split] if each.segments else UNLABELLED,
            "duration": job.duration_s(video),
            "fps": fps,
            "annotations": [
                {"segment": [span.start_s, span.end_s], "label": _label(span), "label_id": ids[_label(span)]}
                for span in each.segments
            ],
        }
        for video, each in annotated.items()
    }
    write_json(job.out / "annotations.json", {"database": database})
    subsets = {each["subset"] for each in database.values()}
    dataset = {
        "json_file": "annotations.json",
        "feat_folder": "features",
        "file_prefix": job.prefix,
        "file_ext": f"{job.suffix}.npy",
        "num_classes": max(1, len(ids)),
        "input_dim": job.bank.dimension,
        "feat_stride": stride,
        "num_frames": frames,
        "default_fps": fps,
    }
    config = {
        "dataset_name": "anet",
        "train_split": [next((each for each in ("training", "all") if each in subsets), UNLABELLED)],
        "val_split": [next((each for each in ("validation", "test", "all") if each in subsets), UNLABELLED)],
        "dataset": dataset,
    }
    write_text(job.out / "config.yaml", HEAD + yaml.safe_dump(config, sort_keys=False, allow_unicode=True))


def _label(span: LabelledSpan) -> str:
    return span.label or "segment"


def timing(spec: dict[str, Any], hop_s: float) -> tuple[float, float, float]:
    """Return fps, feat_stride and num_frames of a bank."""
    if "fps" not in spec:
        return 1, hop_s, hop_s
    frames = spec.get("num_frames", 1) * spec.get("interval", 1) + 2 * spec.get("offset", 0)
    return spec["fps"], spec.get("hop", 1), frames
