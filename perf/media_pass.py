"""The pass that probes, scores and extracts the audio, compared with only PySceneDetect's default detector."""

import tempfile
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq
from clip import SECONDS, clip
from measure import show
from scenedetect import ContentDetector, SceneManager, StatsManager, detect, open_video

from stepline.media.one_pass import decode, one_pass
from stepline.media.process import Decoder, Limits

TIMES = 3
PEER = "PySceneDetect, default ContentDetector"
LIMITS = Limits(memory_mb=2000, least_s=600, s_per_video_s=4)


def scores(path: Path) -> list[float]:
    """Return PySceneDetect's content scores."""
    stats = StatsManager()
    manager = SceneManager(stats)
    manager.add_detector(ContentDetector())
    manager.detect_scenes(open_video(str(path)))
    rows = stats._frame_metrics
    return [rows[time]["content_val"] for time in sorted(rows) if "content_val" in rows[time]]


def main() -> None:
    """Check that the scores are equal, then print the table."""
    with tempfile.TemporaryDirectory() as name:
        path, runs = clip(Path(name), times=TIMES), count()

        def folder() -> Path:
            made = Path(name, str(next(runs)))
            made.mkdir()
            return made

        def in_a_process() -> None:
            with Decoder(LIMITS) as decoder:
                one_pass(path, folder(), decoder=decoder, duration_s=TIMES * SECONDS)

        in_a_process()
        assert pq.read_table(Path(name, "0/scores.parquet"))["content_val"].to_pylist()[1:] == scores(path)
        show(
            f"{TIMES * SECONDS} s of 1280x720 at 30 frames per second; all scores equal",
            PEER,
            {
                PEER: lambda: detect(str(path), ContentDetector()),
                "stepline: probe, 7 scores of every frame, audio": lambda: list(
                    decode(path, folder() / "a.wav", (), True)
                ),
                "the same, with output files, in a new process": in_a_process,
            },
        )


if __name__ == "__main__":
    main()
