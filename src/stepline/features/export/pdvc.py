"""A folder for PDVC (Wang et al., 2021): features, and the segments with sentences of each split."""

from stepline.features.export.files import write_float32
from stepline.features.export.job import Export
from stepline.io import write_json

PREFIX = "v_"
"""Before an id in the keys of annotations and in the names of files; some feature types of PDVC omit it in names."""
ID = 11
"""The number of characters of an id in the names of files: the length of YouTube's ids."""


def name(prefix: str, video: str, suffix: str) -> str:
    """Return the name of a video's file: PDVC reads the first characters of its id."""
    return f"{prefix}{video[:ID]}{suffix}"


def write(job: Export) -> None:
    """Write ``features/<name>.npy`` (T, D) float32, and ``<split>.json``, or ``all.json`` for videos without a split.

    PDVC spreads the rows of a video evenly over its duration. Its annotations have only videos with segments.
    """
    write_float32(job)
    splits: dict[str, dict[str, object]] = {}
    for video in job.names:
        annotated = job.annotated(video)
        if annotated.segments:
            splits.setdefault(annotated.split or "all", {})[PREFIX + video] = {
                "duration": job.duration_s(video),
                "timestamps": [[span.start_s, span.end_s] for span in annotated.segments],
                "sentences": [span.label for span in annotated.segments],
            }
    for split, videos in splits.items():
        write_json(job.out / f"{split}.json", videos)
