"""Shots, from the content scores of a video's frames."""

import csv
import io
from fractions import Fraction
from pathlib import Path
from typing import Any

from stepline.availability import read_manifest, write_manifest
from stepline.io import read_table, write_text
from stepline.progress import progress


def detect(
    media_manifest: Path, media_folder: Path, folder: Path, manifest: Path, *, threshold: float, min_shot_s: float
) -> None:
    """Write ``folder/<video>.csv`` of every present video: shot, start_frame, end_frame, start_s, end_s.

    A shot is [start, end); the first starts at frame 0 and the last ends with the video. The cuts are those of
    PySceneDetect's ContentDetector, made from the scores in ``media_folder/<video>/scores.parquet``. The file of a
    video that is not present is removed.

    threshold: score from which on a frame is a cut. min_shot_s: nearer cuts are merged; 0 keeps all.
    """
    videos: dict[str, dict[str, Any]] = {}
    for video, media in progress(read_manifest(media_manifest).items(), what="shots", unit="videos"):
        videos[video] = {"status": media["status"], "reason": media["reason"]}
        path = folder / f"{video}.csv"
        if media["status"] == "present":
            starts, times = _cuts(media_folder / video / "scores.parquet", threshold, float(min_shot_s))
            times.append(media["duration_s"])
            ends = [*starts[1:], media["n_frames"]]
            rows = [
                (shot, start, end, f"{times[start]:.6f}", f"{times[end]:.6f}")
                for shot, (start, end) in enumerate(zip(starts, ends, strict=True))
            ]
            buffer = io.StringIO()
            writer = csv.writer(buffer, lineterminator="\n")
            writer.writerow(["shot", "start_frame", "end_frame", "start_s", "end_s"])
            writer.writerows(rows)
            write_text(path, buffer.getvalue())
            videos[video]["n_shots"] = len(rows)
        else:
            path.unlink(missing_ok=True)
    write_manifest(manifest, videos)


def _cuts(scores: Path, threshold: float, min_shot_s: float) -> tuple[list[int], list[float]]:
    """Return the first frame of each shot, and the time of every frame."""
    from scenedetect.common import FrameTimecode, Timecode
    from scenedetect.detector import FlashFilter

    table = read_table(scores)
    time_base = Fraction(table.schema.metadata[b"time_base"].decode())
    merge = FlashFilter(FlashFilter.Mode.MERGE, length=min_shot_s)
    starts, frames = {0}, {}
    for frame, (pts, score) in enumerate(zip(table["pts"].to_pylist(), table["content_val"].to_pylist(), strict=True)):
        frames[pts] = frame
        time = FrameTimecode(Timecode(pts, time_base), fps=1 / time_base)
        starts |= {frames[cut.pts] for cut in merge.filter(time, score >= threshold)}
    return sorted(starts), table["t_s"].to_pylist()
