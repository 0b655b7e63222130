"""Extraction with networks: one decode for all specs, what they compute, and what becomes of their failures."""

import errno
import itertools
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from filelock import FileLock

from stepline.availability import Record, read_manifest, write_availability
from stepline.backbones import registry
from stepline.backbones.histogram import HistogramSpec
from stepline.backbones.picture import Pictures
from stepline.errors import StoreError
from stepline.features import cache
from stepline.features import frames as frames_of
from stepline.features.bank import Bank
from stepline.features.extract import Work
from stepline.features.network import Network
from stepline.media.decode import DamagedError, frames
from stepline.media.timeline import scan
from stepline.paths import computing
from stepline.spec import ClipSpec, FrameSpec
from tests import forked
from tests.conftest import ROOT
from tests.features import toy
from tests.features.test_extract import present, store
from tests.gpu import GPU
from tests.media.clips import CFR_25, VFR, make

TOY, HISTOGRAM = toy.SPEC, HistogramSpec()
WIDE = replace(TOY, name="wide", fps=8, num_frames=8, hop=8, dimension=24)
ONE = replace(TOY, name="one", fps=1, num_frames=2, hop=1, interval=1, tail="repeat", dtype="float32")


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.FAMILIES, "toy", "tests.features.toy")


def work(tmp_path: Path, spec: FrameSpec, **more: Any) -> Work:
    return Work(spec=spec, store=tmp_path / "features" / spec.name / "000", **more)


def shard(tmp_path: Path, *records: Record) -> None:
    write_availability(tmp_path / "availability.json", list(records))


def bank(tmp_path: Path, spec: FrameSpec) -> Bank:
    return Bank.open([tmp_path / "features" / spec.name / "000"], spec)


def expected(video: Path, spec: ClipSpec, times: list[Fraction]) -> np.ndarray:
    """Return the rows by the definition: the last frame at or before each time, one clip at a time, all in float32."""
    pictures = [Pictures(frame).after(spec.steps) for frame in frames(video)]
    timeline = scan(video)
    end = timeline.end * timeline.time_base
    network, rows, k = toy.load(spec, {}), [], 0
    while Fraction(k * spec.hop, int(spec.fps)) < end:
        clip = np.zeros((spec.num_frames, 32, 32, 3), np.float32)
        for i in range(spec.num_frames):
            t = Fraction(k * spec.hop + i * spec.interval, int(spec.fps))
            last = (end * int(spec.fps)).__ceil__() - 1
            if t >= end and spec.tail == "zero":
                continue
            t = min(t, Fraction(last, int(spec.fps)))
            index = max(j for j, at in enumerate(times) if at <= t)
            clip[i] = (pictures[index] / np.float32(255) - np.float32(spec.mean)) / np.float32(spec.std)
        with torch.inference_mode():
            rows.append(network(torch.from_numpy(clip.transpose(3, 0, 1, 2)[None]))[0].numpy())
        k += 1
    return np.stack(rows)


def test_rows_are_what_the_network_makes_of_each_clip_and_a_video_is_decoded_once(
    tmp_path: Path, decoded: list[str]
) -> None:
    a, b = make(tmp_path / "a.mp4", CFR_25), make(tmp_path / "b.mp4", VFR)
    shard(tmp_path, present(a), present(b))
    specs = [TOY, WIDE, ONE, HISTOGRAM]
    works = [work(tmp_path, spec) for spec in specs]
    for _ in works:
        store(tmp_path, *works)
        works.append(works.pop(0))
    assert decoded == ["a", "b"]
    for spec in specs[:3]:
        stored = bank(tmp_path, spec)
        for video, times in ((a, CFR_25), (b, VFR)):
            rows, wanted = np.asarray(stored.rows[video.stem], np.float32), expected(video, spec, times)
            assert rows.shape == wanted.shape
            error = np.linalg.norm(rows - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
            assert error.max() <= (5e-4 if spec.dtype == "float16" else 1e-5)
    assert stored.rows["a"].dtype == np.float32
    assert bank(tmp_path, TOY).rows["a"].dtype == np.float16
    assert read_manifest(tmp_path / "manifest.json")["a"]["n_rows"] == len(bank(tmp_path, HISTOGRAM).rows["a"])


def test_rows_depend_on_no_neighbour_and_hardly_on_the_batch(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a.mp4", CFR_25), make(tmp_path / "b.mp4", VFR)
    shard(tmp_path, present(a), present(b))
    rows = {}
    for size in (1, 3, 8):
        folder = tmp_path / str(size)
        folder.mkdir()
        shard(folder, present(a), present(b))
        store(folder, work(folder, TOY), batch_size=size)
        rows[size] = np.asarray(bank(folder, TOY).rows["a"])
    for size in (3, 8):
        apart = rows[size].view(np.int16).astype(int) - rows[1].view(np.int16).astype(int)
        assert np.abs(apart).max() <= 1
    alone = tmp_path / "alone"
    alone.mkdir()
    shard(alone, present(a))
    store(alone, work(alone, TOY), batch_size=3)
    assert bank(alone, TOY).rows["a"].tobytes() == rows[3].tobytes()


def test_a_network_sees_a_video_s_clips_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    forward = toy.Toy.forward

    def noted(self: toy.Toy, clips: torch.Tensor) -> torch.Tensor:
        sizes.append(len(clips))
        return forward(self, clips)

    monkeypatch.setattr(toy.Toy, "forward", noted)
    a, b = make(tmp_path / "a.mp4", CFR_25), make(tmp_path / "b.mp4", CFR_25[:30])
    shard(tmp_path, present(a), present(b))
    store(tmp_path, work(tmp_path, replace(TOY, hop=1)), batch_size=7)
    assert sizes == [4, 4, 4, 4, 1]


def test_several_decoders_give_the_same_bytes(tmp_path: Path) -> None:
    videos = [make(tmp_path / f"{name}.mp4", CFR_25[: 40 + 9 * i]) for i, name in enumerate("abcd")]
    folders = {}
    for decoders in (1, 3):
        folders[decoders] = tmp_path / str(decoders)
        folders[decoders].mkdir()
        shard(folders[decoders], *map(present, videos))
        works = [work(folders[decoders], spec) for spec in (TOY, WIDE)]
        for manifest in ("one.json", "two.json"):
            store(folders[decoders], *works, decoders=decoders, manifest=manifest)
        store(folders[decoders], *reversed(works))
    for file in ("toy/000/features/c/0/0", "wide/000/features/c/0/0", "toy/000/index.parquet"):
        one, three = (folder / "features" / file for folder in folders.values())
        assert one.read_bytes() == three.read_bytes()
    one, two = (folders[1] / name for name in ("one.json", "two.json"))
    assert one.read_bytes() == two.read_bytes(), "the manifest says the same whichever job computed the rows"


def no_load(monkeypatch: pytest.MonkeyPatch) -> str:
    def load(spec: ClipSpec, files: Any) -> toy.Toy:
        if spec.name == "wide":
            raise RuntimeError("not enough memory: you tried to allocate 99 bytes")
        return toy.Toy(spec.dimension)

    monkeypatch.setattr(toy, "load", load)
    return "its network cannot be loaded: RuntimeError: not enough memory: "


def no_forward(monkeypatch: pytest.MonkeyPatch) -> str:
    forward = toy.Toy.forward

    def broken(self: toy.Toy, clips: torch.Tensor) -> torch.Tensor:
        if self.conv.out_channels == 3:
            raise RuntimeError("shapes do not fit")
        return forward(self, clips)

    monkeypatch.setattr(toy.Toy, "forward", broken)
    return "its network fails: RuntimeError: shapes do not fit$"


def no_numbers(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(registry.FAMILIES, "bad", "tests.features.bad")
    return "its layer second has values that are not finite$"


@pytest.mark.parametrize("fails", [no_load, no_forward, no_numbers])
def test_a_network_that_fails_is_one_line_and_stops_its_own_job_alone(
    tmp_path: Path, fails: Callable[[pytest.MonkeyPatch], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25)))
    line = fails(monkeypatch)
    wide = replace(WIDE, dimension=3, architecture="bad" if fails is no_numbers else "toy")
    works = [work(tmp_path, TOY), work(tmp_path, wide)]
    store(tmp_path, *works)
    with pytest.raises(StoreError, match=f"^wide: {line}"):
        store(tmp_path, *reversed(works), manifest="wide.json")
    assert bank(tmp_path, TOY).videos == {"a"}
    assert not (tmp_path / "wide.json").exists()
    assert not (tmp_path / "features/wide/000").exists()


def test_values_beyond_float16_are_an_error_that_names_the_layer(tmp_path: Path) -> None:
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25)))
    large = replace(TOY, std=(1e-5, 1e-5, 1e-5))
    with pytest.raises(
        StoreError,
        match="^toy: its output pooled reaches .* and float16 holds up to 65504: set features.dtype to float32$",
    ):
        store(tmp_path, work(tmp_path, large))
    store(tmp_path, work(tmp_path, replace(large, name="large", dtype="float32")))


def test_what_no_row_can_be_made_of_is_a_record_for_that_spec_alone(tmp_path: Path, decoded: list[str]) -> None:
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25[:15])))
    long = replace(TOY, name="long", tail="drop")
    big = replace(TOY, name="big", steps=(("centre_crop", 4000, "round"),))
    works = [work(tmp_path, spec) for spec in (TOY, long, big)]
    reasons = []
    for _ in works:
        store(tmp_path, *works)
        reasons.append(read_manifest(tmp_path / "manifest.json")["a"]["reason"])
        works.append(works.pop(0))
    assert reasons[:2] == ["", "it is shorter than one clip"]
    assert "centre_crop" in reasons[2]


def test_a_video_that_fails_is_decoded_once_in_a_run(
    tmp_path: Path, decoded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.mp4").write_text("no video")
    shard(tmp_path, present(tmp_path / "text.mp4"))
    works = [work(tmp_path, TOY), work(tmp_path, WIDE)]
    monkeypatch.setenv("STEPLINE_RUN", "first")
    store(tmp_path, *works)
    store(tmp_path, *reversed(works))
    assert decoded == ["text"]
    assert read_manifest(tmp_path / "manifest.json")["text"]["status"] == "failed"
    monkeypatch.setenv("STEPLINE_RUN", "second")
    store(tmp_path, *works)
    assert decoded == ["text", "text"]


def test_listed_clips_are_rows_in_the_order_of_the_list(tmp_path: Path, decoded: list[str]) -> None:
    a, b = make(tmp_path / "a.mp4", CFR_25), make(tmp_path / "b.mp4", VFR)
    shard(tmp_path, present(a), present(b))
    spec = replace(TOY, name="listed", placement="middles", dtype="float32")
    clips = [(0.0, 2.0), (0.0, 2.9), (0.5, 1.0), (1.0, 3.0)]
    store(tmp_path, work(tmp_path, spec, listed={"a": clips}))
    pictures = [Pictures(frame).after(spec.steps) for frame in frames(a)]
    for start_s, end_s in clips:
        times = [start_s + (i + 0.5) / 4 * (end_s - start_s) for i in range(4)]
        clip = np.stack([pictures[max(j for j, at in enumerate(CFR_25) if at <= t)] for t in times])
        network = Network(spec, toy.load(spec, {}), "cpu", 1)
        wanted = network(clip[None], np.ones((1, 4), bool))[0]
        row = bank(tmp_path, spec).clip("a", start_s, end_s)
        assert np.linalg.norm(row - wanted) <= 1e-5 * np.linalg.norm(wanted)
    store(tmp_path, work(tmp_path, spec, listed={"a": clips}))
    assert decoded == ["a"]
    assert read_manifest(tmp_path / "manifest.json")["b"]["reason"] == "no clip of it is listed"
    store(tmp_path, work(tmp_path, spec, listed={"a": clips[:2]}))
    assert decoded == ["a", "a"]
    assert len(bank(tmp_path, spec).rows["a"]) == 2


def test_vectors_of_another_length_are_an_error(tmp_path: Path) -> None:
    network = Network(TOY, toy.Toy(15), "cpu", 2)
    with pytest.raises(StoreError, match=r"toy: its output pooled has the shape \(1, 15\), not \(1, 16\)"):
        network(np.zeros((1, 4, 32, 32, 3), np.uint8), np.ones((1, 4), bool))


class Corner(torch.nn.Module):
    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        return clips[:, :, 0, 0, 0]


def test_vectors_stay_what_they_are_while_the_next_batch_is_computed() -> None:
    network = Network(replace(TOY, dimension=3), Corner(), "cpu", 1)
    shown = np.ones((1, 4), bool)
    first = network(np.zeros((1, 4, 32, 32, 3), np.uint8), shown)
    network(np.full((1, 4, 32, 32, 3), 255, np.uint8), shown)
    np.testing.assert_allclose(first, -np.array([TOY.mean]) / TOY.std, rtol=1e-6)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc says how much memory is held")
def test_more_batches_take_no_more_memory() -> None:
    def held_mb() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20

    network = Network(replace(TOY, dimension=3), toy.Means(), "cpu", 4)
    held, rows = [], []
    for size in [4, 2, 1] * 20:
        clips = np.zeros((size, 8, 224, 224, 3), np.uint8)
        rows.append(network(clips, np.ones((size, 8), bool)))
        held.append(held_mb())
    assert held[-1] - held[2] < 60


def test_a_device_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25)))
    with pytest.raises(StoreError, match="no GPU is usable here"):
        store(tmp_path, work(tmp_path, TOY), device="cuda")


@pytest.mark.gpu
def test_a_gpu_gives_the_rows_of_the_cpu_but_for_rounding(tmp_path: Path) -> None:
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25)))
    rows = {}
    for device, name in (("cpu", "cpu"), (GPU, "gpu")):
        made = replace(TOY, name=name, dtype="float32")
        store(tmp_path, work(tmp_path, made), device=device, jobs_per_gpu=1)
        rows[name] = bank(tmp_path, made).rows["a"]
    np.testing.assert_allclose(rows["gpu"], rows["cpu"], rtol=1e-4)


class Huge(torch.nn.Module):
    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        return clips.new_empty(1 << 50)


@pytest.mark.gpu
@pytest.mark.skipif(GPU == "cpu", reason="only a GPU's memory is full in this way")
def test_a_full_gpu_is_one_line() -> None:
    with pytest.raises(StoreError, match="toy: 2 clips do not fit into the GPU's memory: lower features.batch_size"):
        Network(TOY, Huge(), GPU, 2)(np.zeros((2, 4, 32, 32, 3), np.uint8), np.ones((2, 4), bool))


WAITING = """
import logging, sys
from pathlib import Path
from stepline.backbones import registry
from stepline import turns
from tests.features import test_networks as tests
registry.FAMILIES["toy"] = "tests.features.toy"
logging.basicConfig(level="INFO", format="%(message)s", stream=sys.stdout, force=True)
def acquire(path, before=turns.acquire):
    if Path(path).name == "lock":
        print("waits for the shard", flush=True)
    return before(path)
turns.acquire = acquire
tests.store(Path(sys.argv[1]), tests.work(Path(sys.argv[1]), tests.TOY), device="cuda", jobs_per_gpu=1)
"""


def test_a_job_that_waits_for_its_shard_has_no_gpu(tmp_path: Path) -> None:
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25)))
    (tmp_path / "features/.locks").mkdir(parents=True)
    (tmp_path / "stepline-gpus").mkdir()
    gpu = FileLock(tmp_path / "stepline-gpus/host.0.0.lock", blocking=False)
    environment = {key: value for key, value in os.environ.items() if key != "SLURM_JOB_ID"}
    environment |= {"CUDA_VISIBLE_DEVICES": "0", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", WAITING, str(tmp_path)]
    with (
        FileLock(tmp_path / "features/.locks/lock") as lock,
        gpu,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as job,
    ):
        assert job.stdout is not None
        try:
            assert job.stdout.readline() == "waits for the shard\n"
            lock.release()
            assert job.stdout.readline().startswith("all GPUs (0) are in use by other jobs: waiting for one")
        finally:
            job.kill()


RUN = "tests.store(folder, *works)"
OTHER = "tests.store(folder, *reversed(works), manifest='wide.json')"
TOGETHER = "computing toy, wide in one pass; if it is killed, the next run computes each alone"


def ended(folder: Path, end: str, *runs: str) -> list[str]:
    """Run the stage, each time in a process in which the network ``wide`` ends by ``end``; return what was printed."""
    done = forked.run("tests.features.ending", [str(folder), end, *runs], ROOT, dict(os.environ))
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if line.startswith(("computing", "ended"))]


@pytest.mark.parametrize(
    ("end", "code"),
    [("os.kill(os.getpid(), signal.SIGKILL)", -9), ("os.abort()", -6), ("os._exit(3)", 3)],
    ids=["killed", "crashed", "exited"],
)
def test_a_network_that_ends_the_process_is_then_computed_alone(tmp_path: Path, end: str, code: int) -> None:
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25)))
    printed = ended(tmp_path, end, RUN, OTHER, RUN, OTHER)
    assert printed == [
        *(TOGETHER, f"ended with {code}"),
        *("computing wide", f"ended with {code}"),
        *("computing toy", "ended with 0"),
        *("computing wide", f"ended with {code}"),
    ]
    assert bank(tmp_path, TOY).videos == {"a"}
    assert not (tmp_path / "features/wide/000").exists()
    assert [mark.read_text() for mark in tmp_path.rglob("*.computing")] == ["alone"]
    shard(tmp_path, *(present(make(tmp_path / f"{name}.mp4", CFR_25)) for name in "ab"))
    assert ended(tmp_path, "pass", RUN, OTHER, RUN) == [
        *("computing toy", "ended with 0"),
        *("computing wide", "ended with 0"),
        "ended with 0",
    ]
    assert bank(tmp_path, WIDE).videos == {"a", "b"}
    assert not [*tmp_path.rglob("*.computing")]


def test_a_process_that_is_asked_to_end_was_not_killed(tmp_path: Path) -> None:
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25)))
    interrupted = ended(tmp_path, "os.kill(os.getpid(), signal.SIGINT)", f"try: {RUN}\nexcept KeyboardInterrupt: pass")
    assert interrupted == [TOGETHER, "ended with 0"]
    assert ended(tmp_path, "raise SystemExit(3)", RUN) == [TOGETHER, "ended with 0"]
    assert bank(tmp_path, TOY).videos == {"a"}


def test_an_interrupt_of_a_network_that_is_computed_alone_forgets_nothing(tmp_path: Path) -> None:
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25)))
    ended(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)", RUN)
    ended(tmp_path, "os.kill(os.getpid(), signal.SIGINT)", f"try: {OTHER}\nexcept KeyboardInterrupt: pass")
    assert ended(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)", RUN) == ["computing toy", "ended with 0"]


LISTED = replace(TOY, name="listed", placement="middles")
CLIPS = {"a": [(i / 10, 3 - i / 10) for i in range(9)], "b": [(0.2, 1.0)]}


def test_rows_that_were_staged_before_an_error_are_not_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    each = replace(TOY, hop=1)
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25)))
    store(tmp_path, Work(spec=each, store=tmp_path / "whole"), batch_size=2)
    monkeypatch.setattr(cache, "CHUNK", 4)
    forward, computed, most = toy.Toy.forward, [0], [4]

    def counted(self: toy.Toy, clips: torch.Tensor) -> torch.Tensor:
        computed[0] += len(clips)
        assert computed[0] <= most[0], "no more"
        return forward(self, clips)

    monkeypatch.setattr(toy.Toy, "forward", counted)
    with pytest.raises(StoreError, match="no more"):
        store(tmp_path, work(tmp_path, each), batch_size=2)
    computed[0], most[0] = 0, 8
    store(tmp_path, work(tmp_path, each), batch_size=2)
    assert computed == [8]
    assert bank(tmp_path, each).rows["a"].tobytes() == Bank.open([tmp_path / "whole"], each).rows["a"].tobytes()


def test_what_a_kill_left_beside_complete_rows_goes(tmp_path: Path) -> None:
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25)))
    store(tmp_path, work(tmp_path, TOY))
    mark = computing(work(tmp_path, TOY).store)
    mark.write_text("alone")
    store(tmp_path, work(tmp_path, TOY))
    assert not mark.exists()


@pytest.mark.slow
def test_killed_at_any_batch_it_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a.mp4", CFR_25), make(tmp_path / "b.mp4", VFR)

    def run(folder: Path, batches: int) -> subprocess.CompletedProcess[str]:
        folder.mkdir(exist_ok=True)
        shard(folder, present(a), present(b))
        return forked.run("tests.features.killed", [str(folder), str(batches)], ROOT, dict(os.environ))

    def content(folder: Path) -> dict[str, bytes]:
        kept = [path for path in (folder / "features").rglob("*") if path.is_file() and path.suffix != ".lock"]
        return {str(path.relative_to(folder)): path.read_bytes() for path in [*kept, folder / "manifest.json"]}

    whole, killed = tmp_path / "whole", tmp_path / "killed"
    left = [run(whole, 1000)] + [run(killed, batches) for batches in (4, 2, 1000)]
    codes = [0, 128 + signal.SIGKILL, 128 + signal.SIGKILL, 0]
    assert [done.returncode for done in left] == codes, [done.stderr for done in left]
    assert int(left[0].stdout) < int(left[-1].stdout)
    assert content(killed) == content(whole)


def test_a_disk_that_is_full_ends_the_job_with_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25)))

    def full(path: Path, **arrays: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(cache, "write_arrays", full)
    with pytest.raises(OSError, match="No space left"):
        store(tmp_path, work(tmp_path, TOY), batch_size=1)


@pytest.mark.parametrize(("start_s", "reason"), [(2.5, "all frames of its clips are outside the video"), (-6.0, "")])
def test_clips_that_lie_outside_are_a_record(tmp_path: Path, start_s: float, reason: str) -> None:
    shard(tmp_path, present(make(tmp_path / "a.mp4", CFR_25)))
    store(tmp_path, work(tmp_path, replace(LISTED, num_frames=2), listed={"a": [(start_s, start_s + 27.5)]}))
    assert read_manifest(tmp_path / "manifest.json")["a"]["reason"] == reason


def test_listed_clips_of_spans_are_made_once(tmp_path: Path, decoded: list[str]) -> None:
    a = replace(present(make(tmp_path / "a.mp4", CFR_25)), spans=[[0.0, 2.5]])
    shard(tmp_path, a)
    for _ in range(2):
        store(tmp_path, work(tmp_path, LISTED, listed={"a": [(0.5, 1.5)]}))
    assert decoded == ["a"]


def test_a_damaged_video_that_fails_now_leaves_the_store(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a.mp4", CFR_25), make(tmp_path / "b.mp4", VFR)
    shard(tmp_path, present(a), present(b))
    store(tmp_path, work(tmp_path, TOY))
    rows = tmp_path / "features/toy/000/features/c/0/0"
    rows.write_bytes(b"?" + rows.read_bytes()[1:])
    sha256 = present(a).sha256
    a.write_text("no video")
    shard(tmp_path, replace(present(a), sha256=sha256), present(b))
    store(tmp_path, work(tmp_path, TOY))
    assert bank(tmp_path, TOY).videos == {"b"}


def test_rows_come_anew_where_the_packets_announce_a_frame_that_does_not_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = present(make(tmp_path / "a.mp4", CFR_25))
    asked = frames_of.Request(spec=TOY, batch_size=1, done=1)
    reader, lost = frames_of.READERS["pyav"], []

    def losing(path: Path, timeline: Any, indices: Any, *, turned: bool) -> Any:
        if not lost:
            lost.append(path)
            yield from itertools.islice(reader(path, timeline, indices, turned=turned), 6)
            raise DamagedError("the frame at 2 s cannot be decoded")
        yield from reader(path, timeline, indices, turned=turned)

    monkeypatch.setitem(frames_of.READERS, "pyav", losing)
    filled = cache.FeatureCache(TOY, tmp_path / "features/toy/000", {})
    network = Network(TOY, toy.load(TOY, {}), "cpu", 1)
    for message in frames_of.batches(Path(record.path), [asked], []):
        if isinstance(message, frames_of.Begun):
            filled.begin(record, message)
        elif isinstance(message, frames_of.Batch):
            filled.add(record, network(message.clips, message.shown))
    filled.finish(record)
    filled.commit([record])
    shard(tmp_path, record)
    store(tmp_path, Work(spec=TOY, store=tmp_path / "whole"), batch_size=1)
    rows = Bank.open([tmp_path / "whole"], TOY).rows["a"]
    assert bank(tmp_path, TOY).rows["a"].tobytes() == rows.tobytes()
