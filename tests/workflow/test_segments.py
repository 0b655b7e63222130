"""From an empty folder with four videos, a CSV file of labels and a line of configuration to a table."""

import os
from fractions import Fraction
from pathlib import Path

import pytest

from tests.conftest import snakemake
from tests.workflow.runs import by_entry, by_video, messages

pytest.importorskip("av")
pytest.importorskip("pocketsphinx")
pytest.importorskip("torch")
pytestmark = pytest.mark.slow
COLOURS = {"red": (220, 30, 30), "green": (30, 220, 30), "blue": (30, 30, 220)}
ORDERS = {"a": "red green blue", "b": "green blue red", "c": "blue red green", "d": "blue red green"}
"""The colours of a video, two seconds each. By the sha256 of its id, d is the test video and c that of validation."""
TABLES = ["results/segments/table1.csv", "results/segments/table2.csv"]
TRAINED = "linear-histogram"
ENTRIES = (TRAINED, "most-frequent", "tfidf", "time-prior", "uniform-order")


def go(folder: Path) -> list[str]:
    """Run all of the configuration on one core and return the messages of the jobs."""
    done = snakemake("--cores", "1", "--configfile", "mine.yaml", folder=folder, traced=True)
    assert done.returncode == 0, done.stderr
    assert messages(done) or "Nothing to be done" in done.stderr, done.stderr
    return messages(done)


def accuracy(folder: Path) -> dict[str, float]:
    rows = by_entry(folder, TABLES[0])
    return {entry: round(float(rows[entry, "accuracy"]["value"]), 2) for entry in ENTRIES}


def test_labels_become_a_table(tmp_path: Path) -> None:
    import numpy as np

    from tests.media.clips import make

    (tmp_path / "videos").mkdir()
    tone = (300 * np.sin(np.arange(96_000) / 6)).astype(np.int16)
    lines = ["video,start_s,end_s,label"]
    for name, order in ORDERS.items():
        steps = order.split()
        times = [Fraction(i, 5) for i in range(30)]
        pictures = [np.full((64, 96, 3), COLOURS[step], np.uint8) for step in steps]
        make(tmp_path / f"videos/{name}.mp4", times, picture=lambda i, of=pictures: of[i // 10], audio=tone)
        lines += [f"{name},{2 * place},{2 * place + 2},{step}" for place, step in enumerate(steps)]
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join([*lines, "d,0,6,"]) + "\n")
    (tmp_path / "mine.yaml").write_text("datasets: {my_own: {videos: videos, segments: labels.csv}}\n")

    made = go(tmp_path)
    assert {*TABLES, "results/segments/report.html", "results/my_own/videos.csv", "results/my_own/report.html"} <= {
        *made
    }
    found = accuracy(tmp_path)
    assert found.pop(TRAINED) == 100
    assert {found[entry] for entry in ("most-frequent", "uniform-order", "tfidf")} == {33.33}
    assert found["time-prior"] == 0
    counts = by_entry(tmp_path, TABLES[1])
    assert {metric: row["value"] for (_, metric), row in counts.items() if metric != "hours"} == {
        "videos": "4", "segments": "12", "steps": "3", "unseen": "0"
    }  # fmt: skip
    rows = by_video(tmp_path, "results/my_own/videos.csv")
    assert {video: row["split"] for video, row in rows.items()} == {"a": "train", "b": "train", "c": "val", "d": "test"}

    os.utime(labels)
    assert go(tmp_path) == []

    labels.write_text(labels.read_text().replace("d,4,6,green", "d,4,6,red"))
    assert {*go(tmp_path)} == {
        "release files of segments my_own",
        *(f"fit {TRAINED} on my_own at all, seed {seed}" for seed in range(3)),
        *(f"{stage} {entry} on my_own at all" for stage in ("predict", "score") for entry in ENTRIES),
        *TABLES,
        "results/segments/report.html",
        "results/my_own/report.html",
    }
    assert accuracy(tmp_path)[TRAINED] == pytest.approx(66.67)
    assert go(tmp_path) == []
