"""Shots from the scores of a video's frames, identical to the shots that PySceneDetect finds in the video."""

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
"""The metadata key of the digest of a shots file's inputs."""

Rule = Callable[["FrameTimecode", float], list["FrameTimecode"]]
"""Called with each frame's time and score, in order; returns the cuts that are found with it."""


class Shots(NamedTuple):
    """The shots of a video: rows of the Parquet file, and the corresponding scenes of PySceneDetect."""

    rows: list[tuple[int, int, float, float]]
    scenes: list[tuple["FrameTimecode", "FrameTimecode"]]


@dataclass(frozen=True, kw_only=True)
class Detection:
    """The options of PySceneDetect's detectors.

    threshold: the score at which the detector cuts; None is its default. min_shot_s: cuts that are closer are merged or
        dropped, depending on the detector; 0 keeps all. window_width, min_content_val: of the detector ``adaptive``.
    """

    detector: Detector
    threshold: float | None
    min_shot_s: float
    window_width: int = 2
    min_content_val: float = 15

    def rule(self) -> Rule:
        """Return a new detector."""
        limit = THRESHOLDS[self.detector] if self.threshold is None else self.threshold
        return _rule(self.detector, limit, float(self.min_shot_s), self.window_width, self.min_content_val)


def detect(media_manifest: Path, media_folder: Path, folder: Path, manifest: Path, detection: Detection) -> None:
    """Write the shots of every present video, as ``detect_in`` does, and remove the shots of other videos.

    In the manifest, ``n_shots`` is the number of shots.
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
    """Write the shots of a video to ``path`` and return their start and end times, without decoding.

    ``path`` has a row per shot: shot, start_frame, end_frame, start_s, end_s; a shot is [start, end). It exists only
    together with PySceneDetect's list of the same shots, a CSV file next to it. A shot begins at each start of a
    continuous stretch of decoded frames (``first`` in the scores), and at each cut of the detector. No shot extends
    into a gap of a damaged video. Existing files from the same media with the same options are kept.
    media: the video's record in the manifest. media_folder: the folder of ``scores.parquet``.
    """
    if (known := found(media, path, detection)) is not None:
        return known
    path.unlink(missing_ok=True)
    gaps = [start_s for start_s, *_ in media.get("gaps", ())]
    scores = media_folder / "scores.parquet"
    shots = _shots(scores, SCORES[detection.detector], detection.rule, media["duration_s"], gaps)
    _write(path, shots, _made_by(media, detection))
    return [(start_s, end_s) for *_, start_s, end_s in shots.rows]


def found(media: dict[str, Any], path: Path, detection: Detection) -> list[tuple[float, float]] | None:
    """Return the shots in ``path``, see ``detect_in``; None if there are none from these media with these options."""
    if path.is_file() and path.with_suffix(".csv").is_file():
        table = read_table(path)
        if (table.schema.metadata or {}).get(MADE_BY) == _made_by(media, detection).encode():
            return list(zip(table["start_s"].to_pylist(), table["end_s"].to_pylist(), strict=True))
    return None


def _made_by(media: dict[str, Any], detection: Detection) -> str:
    return digest([media, asdict(detection), SHOTS_REVISION])


def _rule(detector: Detector, threshold: float, min_shot_s: float, window_width: int, min_content_val: float) -> Rule:
    """Return PySceneDetect's detector with the stored score in place of the score that it computes from the picture."""
    from scenedetect.detector import FlashFilter
    from scenedetect.detectors import AdaptiveDetector, ThresholdDetector

    class Adaptive(AdaptiveDetector):  # type: ignore[misc]
        def _calculate_frame_score(self, _: "FrameTimecode", frame_img: float) -> float:
            return frame_img

    if detector == "adaptive":
        return Adaptive(threshold, min_shot_s, window_width, min_content_val).process_frame  # type: ignore[no-any-return]
    if detector == "threshold":  # it computes the picture's mean, and the mean of one number is the number
        return ThresholdDetector(threshold, min_shot_s).process_frame  # type: ignore[no-any-return]
    # ContentDetector merges close cuts with this filter; HashDetector and HistogramDetector use its other mode.
    near = FlashFilter(FlashFilter.Mode.MERGE if detector == "content" else FlashFilter.Mode.SUPPRESS, min_shot_s)
    if detector == "histogram":
        return lambda time, score: near.filter(time, score <= 1 - threshold)
    return lambda time, score: near.filter(time, score >= threshold)


def _shots(path: Path, score: str, rule: Callable[[], Rule], duration_s: float, gaps: Sequence[float]) -> Shots:
    """Return the shots of the scores in ``path``, stretch by stretch. gaps: the start times of a damaged video's gaps.

    Raises StoreError if the scores are absent or damaged.
    """
    from scenedetect.common import FrameTimecode, Timecode, framerate_to_fraction
    from scenedetect.scene_manager import get_scenes_from_cuts

    if not path.is_file():
        raise StoreError(f"{path} does not exist: run `snakemake`, which writes it")
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
