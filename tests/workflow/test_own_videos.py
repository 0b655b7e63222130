"""Anyone's own videos: every stage, and what is computed again when a file comes, goes or changes."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from stepline import open_bank, paths
from stepline.availability import read_manifest
from stepline.backbones.histogram import HistogramSpec
from stepline.cli import main
from stepline.io import write_text
from tests.conftest import made_once, snakemake
from tests.file_server import serving
from tests.workflow.runs import by_video, messages

pytest.importorskip("av")
pytest.importorskip("pocketsphinx")
pytestmark = pytest.mark.slow
TABLE, PAGE = "results/mine/videos.csv", "results/mine/report.html"
UMLAUT = "Mein Urlaub/Tag 1 – Größe.MKV"
RESULTS = [PAGE, TABLE]
TIMES = [Fraction(i, 10) for i in range(20)]


def clip(path: Path, *, brightness: int = 60, frames: int = 20, amplitude: int = 300) -> Path:
    """A clip with one cut in its middle, and a tone that no recogniser takes for speech at its default amplitude."""
    import numpy as np

    from tests.media.clips import make

    tone = (amplitude * np.sin(np.arange(1600 * frames) / 6)).astype(np.int16)
    path.parent.mkdir(parents=True, exist_ok=True)
    return make(
        path,
        TIMES[:frames],
        picture=lambda i: np.full((64, 320, 3), brightness if i < frames // 2 else 220, np.uint8),
        audio=tone,
    )


def configure(folder: Path, **changes: object) -> None:
    mine = {"videos": "videos"} | changes.pop("mine", {})  # type: ignore[operator]
    (folder / "mine.yaml").write_text(json.dumps({"datasets": {"mine": mine}, "shard_hours": 1e-6} | changes))


def go(folder: Path, *, traced: bool = False) -> list[str]:
    """Run all of the configuration ``mine.yaml`` and return the messages of the jobs."""
    done = snakemake("--cores", "2", "--configfile", "mine.yaml", folder=folder, traced=traced)
    assert done.returncode == 0, done.stderr
    assert messages(done) or "Nothing to be done" in done.stderr, done.stderr
    return messages(done)


def table(folder: Path) -> dict[str, dict[str, str]]:
    return by_video(folder, TABLE)


def jobs(*shards: str, results: bool = True) -> list[str]:
    """Return the messages of all jobs of some shards."""
    kinds = (
        "audio and content scores of mine",
        "histogram on mine",
        "pictures of mine",
        "shots of mine",
        "videos of mine",
    )
    made = [f"{kind}, shard {shard}" for kind in kinds for shard in shards]
    made += [f"transcripts of mine, shard {shard}, by pocketsphinx" for shard in shards]
    return sorted(made + RESULTS * results)


@pytest.fixture(scope="session")
def own_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder with two videos, each in a shard of its own, after a first run."""

    def compute(folder: Path) -> None:
        clip(folder / "videos" / UMLAUT)
        clip(folder / "videos/a.mp4", brightness=100)
        configure(folder)
        assert go(folder, traced=True) == jobs("000", "001")

    return made_once(tmp_path_factory, "own-run", compute)


@pytest.fixture
def own(own_run: Path, tmp_path: Path) -> Path:
    """A copy of that folder, in which links of the first lead to its own videos, and whose run knows them."""
    folder = Path(shutil.copytree(own_run, tmp_path / "own", symlinks=True))
    for link in (folder / "datasets/mine/videos").iterdir():
        if link.is_symlink():
            target = folder / link.readlink().relative_to(own_run)
            link.unlink()
            link.symlink_to(target)
    return folder


def stamps(folder: Path, *parts: str) -> dict[Path, int]:
    made = [path for part in parts for path in folder.rglob(part) if path.is_file()]
    return {path: path.stat().st_mtime_ns for path in made}


def pictures(folder: Path) -> int:
    """Return how many pictures of shots the timelines of all videos hold."""
    return sum(page.read_text().count("data:image/jpeg") for page in (folder / PAGE).parent.glob("videos/*.html"))


def test_every_video_has_a_line_with_what_the_stages_made(own_run: Path) -> None:
    rows = table(own_run)
    assert list(rows) == ["Mein_Urlaub__Tag_1___Größe", "a"]
    for row in rows.values():
        assert (row["status"], row["reason"]) == ("present", "transcript: no speech found")
        assert (row["width"], row["height"], row["frames"], row["codec"]) == ("320", "64", "20", "h264")
        assert (row["audio"], row["shots"], row["sentences"], row["words"]) == ("present", "2", "0", "0")
        assert row["histogram"] == "10"
        assert (row["needs"], row["command"]) == ("", "")
    assert rows["a"]["source"] == str(own_run / "videos/a.mp4")
    page = (own_run / PAGE).read_text()
    assert pictures(own_run) == 4
    assert "2 of 2 videos, 0.1 minutes, 4 shots." in page
    assert (own_run / "results/mine/videos.md").read_text().count("\n| ") == 4


def test_a_file_that_comes_changes_goes_and_comes_back(own: Path) -> None:
    clip(own / "videos/b.mov")
    assert go(own) == jobs("002")
    assert list(table(own)) == ["Mein_Urlaub__Tag_1___Größe", "a", "b"]

    clip(own / "videos/b.mov", frames=10)
    assert go(own) == jobs("002")
    assert table(own)["b"]["frames"] == "10"

    held = (own / "videos/b.mov").rename(own / "b.mov")
    assert go(own) == RESULTS
    assert list(table(own)) == ["Mein_Urlaub__Tag_1___Größe", "a"]
    assert go(own) == []

    held.rename(own / "videos/b.mov")
    assert go(own) == RESULTS
    assert table(own)["b"]["frames"] == "10"
    for file in (own / "videos").rglob("*.*"):
        os.utime(file)
    assert go(own) == []


def test_what_is_named_and_cannot_run_leaves_what_is_there(own: Path) -> None:
    configure(own, asr={"engine": "whisper"}, mine={"backbones": ["histogram", "s3d-htstep"]})
    assert go(own) == RESULTS
    for row in table(own).values():
        assert (row["sentences"], row["histogram"]) == ("0", "10")
        assert {"weights:whisper/small.en", "weights:s3d"} <= set(row["needs"].split(";"))
        assert "stepline fetch weights/s3d" in row["command"]
    note = "The transcripts are by pocketsphinx: whisper needs "
    assert note in (own / "results/mine/videos.md").read_text()
    assert note in (own / PAGE).read_text()
    assert go(own) == []


NET = """
from stepline.spec import ClipSpec
from colours import N

SPEC = ClipSpec(
    name="net", label="mean", revision=1, architecture="file", weights=(), licence="none", fps=1, num_frames=1,
    steps=(("exact", 8, 8, "pil_bilinear"),), mean=(0, 0, 0), std=(1, 1, 1), output="mean", dimension=N,
)


def load(spec, files):
    from layers.mean import Mean
    return Mean()
"""
BESIDE = {
    "colours.py": "N = 3\n",
    "layers/__init__.py": "",
    "layers/mean.py": (
        "from torch import nn\nclass Mean(nn.Module):\n    def forward(self, x):\n        return x.mean((2, 3, 4))\n"
    ),
}


def test_features_alone_by_a_file_that_imports_what_is_beside_it(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    nets, mean = tmp_path / "nets", tmp_path / "nets/layers/mean.py"
    for name, text in {"net.py": NET, **BESIDE}.items():
        write_text(nets / name, text)
    video = clip(tmp_path / "videos/a.mp4")
    mine = {"backbones": ["net"], "stages": ["features"]}
    configure(tmp_path, mine=mine, backbones={"net": {"path": "nets/net.py"}}, shard_hours=10)

    def rows() -> float:
        return float(open_bank("net", "mine", root=tmp_path)["a"][0].mean())

    assert go(tmp_path) == sorted(["videos of mine, shard 000", "net on mine, shard 000", *RESULTS])
    assert {path.name for path in (tmp_path / "datasets/mine").iterdir()} == {"availability", "shards.csv", "videos"}
    (row,) = table(tmp_path).values()
    assert (row["status"], row["net"], round(float(row["duration_s"]))) == ("present", "2", 2)
    assert not row.keys() & {"shots", "words", "audio"}
    first = rows()

    mean.write_text(f'"""Of all pixels."""\n{mean.read_text()}  # the end\n')
    os.utime(video)
    assert go(tmp_path) == []

    code = mean.read_text()
    mean.write_text(code.replace("return", "return 2 *"))
    assert go(tmp_path) == sorted(["net on mine, shard 000", *RESULTS])
    assert rows() == pytest.approx(2 * first, rel=1e-3)

    mean.write_text(code)
    assert go(tmp_path) == RESULTS
    assert rows() == first


def test_what_was_removed_behind_the_workflow_is_made_again_once(own: Path) -> None:
    def made() -> list[dict[str, str]]:
        return [row | {"source": ""} for row in table(own).values()]

    mine, rows = own / "datasets/mine", made()
    (mine / "videos/Mein_Urlaub__Tag_1___Größe.mkv").unlink()
    for path in ("videos/a.mp4", "videos/a.json", "media/a/scores.parquet", "shots/a.csv"):
        (mine / path).unlink()
    (mine / "transcripts/pocketsphinx/a.parquet").unlink()
    shutil.rmtree(mine / "thumbnails/a")
    before = stamps(own, "datasets/mine/media/Mein*/*", "features/*/*/mine/*/index.parquet")
    configure(own, shots={"threshold": 28})
    assert go(own) == jobs("000", "001")
    assert stamps(own, "datasets/mine/media/Mein*/*", "features/*/*/mine/*/index.parquet") == before
    assert made() == rows
    assert pictures(own) == 4
    assert go(own) == []


def test_what_cannot_be_read_is_a_line_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import av

    videos = tmp_path / "videos"
    whole = clip(videos / "whole.mp4").read_bytes()
    (videos / "truncated.mp4").write_bytes(whole[: len(whole) // 2])
    cut = clip(videos / "cut.mkv")
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 4])
    (videos / "nothing.mp4").write_bytes(b"")
    (videos / "text.mp4").write_text("This is no video.")
    for name, kind in (("sound.mp4", "audio"), ("picture.mp4", "video")):
        with av.open(str(videos / "whole.mp4")) as before, av.open(str(videos / name), "w") as after:
            stream = getattr(before.streams, kind)[0]
            copied = after.add_stream_from_template(stream)
            for packet in before.demux(stream):
                if packet.dts is not None:
                    packet.stream = copied
                    after.mux(packet)
    configure(tmp_path, shard_hours=10)
    assert go(tmp_path) == jobs("000")
    rows = table(tmp_path)
    assert {video: row["status"] for video, row in rows.items()} == {
        "cut": "partial",
        "nothing": "failed",
        "picture": "present",
        "sound": "failed",
        "text": "failed",
        "truncated": "failed",
        "whole": "present",
    }
    assert all(row["reason"] for row in rows.values())
    assert (rows["picture"]["audio"], rows["picture"]["reason"]) == ("missing", "audio: no audio stream")
    assert "truncated" in rows["cut"]["reason"]
    assert 0 < int(rows["cut"]["histogram"]) < int(rows["whole"]["histogram"])
    ends_s = float(rows["cut"]["duration_s"]) + float(rows["cut"]["absent_s"])
    assert ends_s == pytest.approx(float(rows["whole"]["duration_s"]), abs=0.1)
    assert "1 of them partly" in (tmp_path / PAGE).read_text()
    assert go(tmp_path) == []
    monkeypatch.chdir(tmp_path)
    configure(tmp_path, shard_hours=10, media={"damaged": "skip"})
    (features,) = Path("features/histogram").glob("*/manifests/mine.000.json")
    for verb, manifest in (("media", paths.manifest(paths.media("mine"), "000")), ("extract", features)):
        backbone = ["--backbone", "histogram"] if verb == "extract" else []
        assert main(["--configfile", "mine.yaml", verb, "mine", "--shard", "000", *backbone]) == 0
        made = read_manifest(manifest)
        assert (made["cut"]["status"], made["whole"]["status"]) == ("failed", "present")
        assert "truncated" in made["cut"]["reason"]


def test_after_fetch_the_network_is_not_asked(tmp_path: Path) -> None:
    videos = {f"{name}.mp4": clip(tmp_path / f"{name}.mp4").read_bytes() for name in "ab"}
    with serving(**videos) as server:
        (tmp_path / "list.csv").write_text("".join(["video,url\n", *(f"{n},{server.url}/{n}.mp4\n" for n in "ab")]))
        configure(tmp_path, mine={"kind": "list", "videos": "list.csv"}, shard_hours=10)
        command = [sys.executable, "-m", "stepline", "--configfile", "mine.yaml", "fetch"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "mine/videos: 2 of 2 videos\n"), done.stderr
        asked = len(server.asked)
    assert go(tmp_path) == jobs("000")
    assert len(server.asked) == asked
    assert {row["status"] for row in table(tmp_path).values()} == {"present"}
    assert go(tmp_path) == []


def delete(shard: str) -> list[str]:
    return [f"delete the videos of mine, shard {shard}"]


def test_videos_that_are_not_kept_come_again_when_they_are_needed(tmp_path: Path) -> None:
    pytest.importorskip("decord")
    list_ = {"kind": "list", "videos": "list.csv"}
    with serving(**{"a.mp4": clip(tmp_path / "source.mp4").read_bytes()}) as server:
        (tmp_path / "list.csv").write_text(f"video,url\na,{server.url}/a.mp4\n")
        configure(tmp_path, mine=list_, media={"keep": "none"})
        assert go(tmp_path) == sorted(jobs("000") + delete("000"))
        file = tmp_path / "datasets/mine/videos/a.mp4"
        assert not file.exists()
        record = read_manifest(file.with_suffix(".json"))["a"]
        assert (record["status"], record["kept"]) == ("present", False)
        assert pictures(tmp_path) == 2
        assert go(tmp_path) == []

        configure(tmp_path, mine=list_, media={"keep": "none"}, shots={"threshold": 20})
        found = go(tmp_path)
        assert found == sorted(["pictures of mine, shard 000", "shots of mine, shard 000", *delete("000"), *RESULTS])
        assert len(server.gets) == 1

        other = {"keep": "none", "reader": "decord"}
        configure(tmp_path, mine=list_, media=other, shots={"threshold": 20})
        assert go(tmp_path) == sorted(jobs("000") + delete("000"))
        assert len(server.gets) == 2
        assert not file.exists()
        assert table(tmp_path)["a"]["histogram"] == "10"
        assert go(tmp_path) == []

        server.files["/b.mp4"] = server.files["/a.mp4"]
        with open(tmp_path / "list.csv", "a", encoding="utf-8") as file:
            file.write(f"b,{server.url}/b.mp4\n")
        configure(tmp_path, mine=list_, media=other, shots={"threshold": 20}, shard_hours=10)
        assert go(tmp_path) == sorted(jobs("000") + delete("000"))
        assert [path for path, _ in server.gets] == ["/a.mp4", "/a.mp4", "/b.mp4"]
        assert {row["histogram"] for row in table(tmp_path).values()} == {"10"}
        assert go(tmp_path) == []


def test_a_real_clip_is_seen_and_heard(real_data: Path, tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos/spacewalk3.mp4").symlink_to(real_data / "spacewalk/clips/spacewalk3.mp4")
    configure(tmp_path)
    assert go(tmp_path) == jobs("000")
    (row,) = table(tmp_path).values()
    assert row["status"] == "present"
    assert int(row["shots"]) > 1
    assert int(row["words"]) > int(row["sentences"]) > 0
    assert int(row["histogram"]) == pytest.approx(5 * float(row["duration_s"]), abs=2)


def at_once(folder: Path, targets: Sequence[Path], *options: str, **environment: str) -> list[str]:
    """Return how many jobs began together, as Snakemake says, where none of the targets is there."""
    for target in targets:
        (folder / target).unlink(missing_ok=True)
    words = "--cores", "2", "--configfile", "mine.yaml", *options, "--", *map(str, targets)
    done = snakemake(*words, folder=folder, **environment)
    assert done.returncode == 0, done.stderr
    return re.findall(r"^Execute (\d) jobs", done.stderr, re.MULTILINE)


def listed(folder: Path, *, hours: int) -> None:
    """Configure two videos so long, that nobody has."""
    urls = "".join(f"{name},http://127.0.0.1:9/{name}.mp4,{3600 * hours}\n" for name in "ab")
    (folder / "list.csv").write_text(f"video,url,duration_s\n{urls}")
    configure(folder, mine={"kind": "list", "videos": "list.csv"})


def test_a_small_disk_bounds_what_is_downloaded_at_once(tmp_path: Path) -> None:
    listed(tmp_path, hours=1)
    targets = [paths.availability("mine", shard) for shard in ("000", "001")]
    assert at_once(tmp_path, targets, "--resources", "disk_mb=2000") == ["1", "1"]
    assert at_once(tmp_path, targets, "--resources", "disk_mb=4000") == ["2"]


def test_as_many_jobs_with_a_gpu_run_at_once_as_the_host_has(tmp_path: Path) -> None:
    listed(tmp_path, hours=20)
    at_once(tmp_path, [paths.availability("mine", shard) for shard in ("000", "001")])
    targets = [paths.features_manifest("mine", shard, HistogramSpec()) for shard in ("000", "001")]
    asked = "--set-resources", "extract:gpu=1"
    assert at_once(tmp_path, targets, *asked, CUDA_VISIBLE_DEVICES="0") == ["1", "1"]
    assert at_once(tmp_path, targets, *asked, CUDA_VISIBLE_DEVICES="0,1") == ["2"]
