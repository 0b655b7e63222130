"""Shots, from the scores of a video's frames: those that PySceneDetect finds in the video."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from stepline.availability import length_s, read_manifest, write_manifest
from stepline.errors import StoreError
from stepline.io import atomic_path, read_table, write_table
from stepline.media import SHOTS_REVISION
from stepline.progress import VIDEO, progress
from stepline.spec import digest

if TYPE_CHECKING:
    from scenedetect.common import FrameTimecode

Detector = Literal["content", "adaptive", "threshold", "hash", "histogram"]
SCORES = {
    "content": "content_val",
    "adaptive": "content_val",
    "threshold": "average_rgb",
    "hash": "hash_dist",
    "histogram": "hist_diff",
}
THRESHOLDS = {"content": 27.0, "adaptive": 3.0, "threshold": 12.0, "hash": 0.35, "histogram": 0.2}
"""PySceneDetect's defaults."""
MADE_BY = b"made by"
"""In a file of shots, the digest of what it was made from."""

Rule = Callable[["FrameTimecode", float], list["FrameTimecode"]]
"""Takes each frame's time and score, in order, and returns the cuts that are then known."""


class Shots(NamedTuple):
    """The shots of a video: rows of the Parquet file, and the scenes of PySceneDetect that they come from."""

    rows: list[tuple[int, int, float, float]]
    scenes: list[tuple["FrameTimecode", "FrameTimecode"]]


@dataclass(frozen=True, kw_only=True)
class Detection:
    """How shots are found: the options of PySceneDetect's detectors.

    threshold: from which score on the detector cuts; None is its default. min_shot_s: nearer cuts are merged or
        dropped, as the detector does; 0 keeps all. window_width, min_content_val: of the detector ``adaptive``.
    """

    detector: Detector
    threshold: float | None
    min_shot_s: float
    window_width: int = 2
    min_content_val: float = 15

    def rule(self) -> Rule:
        """Return the detector before the first frame."""
        limit = THRESHOLDS[self.detector] if self.threshold is None else self.threshold
        return _rule(self.detector, limit, float(self.min_shot_s), self.window_width, self.min_content_val)


def detect(media_manifest: Path, media_folder: Path, folder: Path, manifest: Path, detection: Detection) -> None:
    """Write the shots of every present video, as ``detect_in`` does. Those of a video that is not present are removed.

    In the manifest ``n_shots`` is the number of shots.
    """
    videos: dict[str, dict[str, Any]] = {}
    listed = read_manifest(media_manifest)
    for video, media in progress(listed.items(), what="shots", unit=VIDEO, size=length_s):
        videos[video] = {"status": media["status"], "reason": media["reason"]}
        path = folder / f"{video}.parquet"
        if media["status"] == "present":
            videos[video]["n_shots"] = len(detect_in(media, media_folder / video, path, detection))
        else:
            path.unlink(missing_ok=True)
            path.with_suffix(".csv").unlink(missing_ok=True)
    write_manifest(manifest, videos)


def detect_in(media: dict[str, Any], media_folder: Path, path: Path, detection: Detection) -> list[tuple[float, float]]:
    """Write the shots of a video to ``path`` and return start and end of each; nothing is decoded.

    ``path`` has a line per shot: shot, start_frame, end_frame, start_s, end_s; a shot is [start, end). It is there only
    with PySceneDetect's list of the same shots, a CSV file beside it. A shot begins with every span of frames that were
    decoded without a gap (``first`` in the scores), and wherever the detector cuts; none reaches into a gap of a
    damaged video. Files that were made from the same media by the same options are kept.
    media: the video's record in the manifest. media_folder: where ``scores.parquet`` stands.
    """
    by = digest([media, asdict(detection), SHOTS_REVISION])
    if path.is_file() and path.with_suffix(".csv").is_file():
        table = read_table(path)
        if (table.schema.metadata or {}).get(MADE_BY) == by.encode():
            return list(zip(table["start_s"].to_pylist(), table["end_s"].to_pylist(), strict=True))
    path.unlink(missing_ok=True)
    gaps = [start_s for start_s, *_ in media.get("gaps", ())]
    scores = media_folder / "scores.parquet"
    shots = _shots(scores, SCORES[detection.detector], detection.rule, media["duration_s"], gaps)
    _write(path, shots, by)
    return [(start_s, end_s) for *_, start_s, end_s in shots.rows]


def _rule(detector: Detector, threshold: float, min_shot_s: float, window_width: int, min_content_val: float) -> Rule:
    """Return PySceneDetect's detector, which takes the stored score where it would compute it from the picture."""
    from scenedetect.detector import FlashFilter
    from scenedetect.detectors import AdaptiveDetector, ThresholdDetector

    class Adaptive(AdaptiveDetector):  # type: ignore[misc]
        def _calculate_frame_score(self, _: "FrameTimecode", frame_img: float) -> float:
            return frame_img

    if detector == "adaptive":
        return Adaptive(threshold, min_shot_s, window_width, min_content_val).process_frame  # type: ignore[no-any-return]
    if detector == "threshold":  # of the picture it takes the mean, and the mean of one number is the number
        return ThresholdDetector(threshold, min_shot_s).process_frame  # type: ignore[no-any-return]
    # ContentDetector merges near cuts by this filter; what HashDetector and HistogramDetector do is its other mode.
    near = FlashFilter(FlashFilter.Mode.MERGE if detector == "content" else FlashFilter.Mode.SUPPRESS, min_shot_s)
    if detector == "histogram":
        return lambda time, score: near.filter(time, score <= 1 - threshold)
    return lambda time, score: near.filter(time, score >= threshold)


def _shots(path: Path, score: str, rule: Callable[[], Rule], duration_s: float, gaps: Sequence[float]) -> Shots:
    """Return the shots of the scores in ``path``, span by span. gaps: where those of a damaged video begin.

    Raises StoreError where the scores are absent or damaged.
    """
    from scenedetect.common import FrameTimecode, Timecode, framerate_to_fraction
    from scenedetect.scene_manager import get_scenes_from_cuts

    if not path.is_file():
        raise StoreError(f"{path} is not there: run `snakemake`, which makes it")
    scores = read_table(path, columns=["pts", "frame", "t_s", "first", score])
    time_base = Fraction(scores.schema.metadata[b"time_base"].decode())
    rate = framerate_to_fraction(Fraction(scores.schema.metadata[b"frame_rate"].decode()))
    pts, frame, t_s, values = (scores[name].to_numpy() for name in ("pts", "frame", "t_s", score))

    def time(row: int) -> "FrameTimecode":
        return FrameTimecode(Timecode(int(pts[row]), time_base), rate)

    def nearest(cut: "FrameTimecode", start: int, end: int) -> int:
        after = bisect_left(t_s, cut.seconds, start, end - 1)
        return min(max(after - 1, start), after, key=lambda row: abs(t_s[row] - cut.seconds))

    spans = [*(row for row, first in enumerate(scores["first"].to_pylist()) if first), len(pts)]
    shots = Shots([], [])
    for start, end in pairwise(spans):
        detected = rule()
        cuts = sorted({cut for row in range(start, end) for cut in detected(time(row), float(values[row]))})
        over = time(end - 1) + 1
        shots.scenes.extend(get_scenes_from_cuts(cuts, time(start), over))
        over_s = duration_s if end == len(pts) else over.seconds
        over_s = min([over_s, *(gap_s for gap_s in gaps if gap_s > t_s[end - 1])])
        starts = sorted({start, *(nearest(cut, start, end) for cut in cuts)})
        for row, until in pairwise([*starts, end]):
            until_s = over_s if until == end else float(t_s[until])
            shots.rows.append((int(frame[row]), int(frame[until - 1]) + 1, float(t_s[row]), until_s))
    return shots


def _write(path: Path, shots: Shots, by: str) -> None:
    import pyarrow as pa
    from scenedetect.output import write_scene_list

    with atomic_path(path.with_suffix(".csv")) as part:
        write_scene_list(part, shots.scenes, include_cut_list=False)
    start_frame, end_frame, start_s, end_s = zip(*shots.rows, strict=True)
    columns = {
        "shot": pa.array(range(len(shots.rows)), pa.int64()),
        "start_frame": pa.array(start_frame, pa.int64()),
        "end_frame": pa.array(end_frame, pa.int64()),
        "start_s": pa.array(start_s, pa.float64()),
        "end_s": pa.array(end_s, pa.float64()),
    }
    write_table(path, pa.table(columns, metadata={MADE_BY: by}))
