"""Real decoders that hang, that take all memory, that crash; and a parent that is killed."""

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepline.availability import Record, read_manifest, write_availability
from stepline.media.decode import MediaError, frames
from stepline.media.prepare import Media, prepare
from stepline.media.process import Decoder, Limits, killable
from tests.media.clips import CFR_25, LIMITS, make
from tests.processes import alive

av = pytest.importorskip("av")
NARROW = Limits(memory_mb=100, least_s=120, s_per_video_s=4)


def count(n: int) -> Iterator[int]:
    yield from range(n)


def fail(reason: str) -> Iterator[None]:
    raise MediaError(reason)
    yield


def lack() -> Iterator[None]:
    import a_package_that_is_not_there

    yield a_package_that_is_not_there


def die(signal_number: int) -> Iterator[int]:
    yield 1
    os.kill(os.getpid(), signal_number)


def late() -> Iterator[int]:
    time.sleep(60)
    yield 1


def leave(code: int) -> Iterator[int]:
    os._exit(code)
    yield 1


def sizes(path: Path) -> Iterator[int]:
    for frame in frames(path):
        yield frame.rgb().size


def hang_in_c() -> Iterator[int]:
    """Call into C, which neither comes back nor lets go of Python's lock."""
    ctypes.PyDLL(None).pause()
    yield 1


def test_what_is_yielded_comes_in_order() -> None:
    assert list(killable(count, 1000, limits=LIMITS, duration_s=0)) == list(range(1000))


def test_an_error_comes_as_it_was_raised() -> None:
    with pytest.raises(MediaError, match="no luck"):
        list(killable(fail, "no luck", limits=LIMITS, duration_s=0))


def test_a_package_that_is_not_installed_keeps_its_name() -> None:
    with pytest.raises(ModuleNotFoundError) as error:
        list(killable(lack, limits=LIMITS, duration_s=0))
    assert error.value.name == "a_package_that_is_not_there"


def pid(*_: object) -> Iterator[int]:
    yield os.getpid()


def test_one_process_does_one_piece_after_the_other_until_it_dies_hangs_or_grows() -> None:
    def by() -> int:
        [found] = decoder(pid, duration_s=0)
        return int(found)

    patient = Limits(memory_mb=1000, least_s=120, s_per_video_s=1)
    with Decoder(patient) as decoder:
        first = by()
        with pytest.raises(MediaError, match="no luck"):
            list(decoder(fail, "no luck", duration_s=0))
        assert list(decoder(count, 3, duration_s=0)) == [0, 1, 2]
        assert by() == first != os.getpid()
        with pytest.raises(MediaError, match="SIGSEGV"):
            list(decoder(die, signal.SIGSEGV, duration_s=0))
        second = by()
        decoder.limits = replace(patient, least_s=1)
        with pytest.raises(MediaError, match="takes longer than 1 s"):
            list(decoder(stuck, duration_s=0))
        decoder.limits = patient
        third = by()
        assert list(decoder(grow, 300, duration_s=0)) == [300 << 20]
        fourth = by()
        assert next(decoder(stuck, duration_s=0)) == fourth  # which nobody waits for
        killed = by()
        ended = os.pidfd_open(killed)
        os.kill(killed, signal.SIGKILL)
        assert select.select([ended], [], [], 60)[0]
        os.close(ended)
        assert len({first, second, third, fourth, by()}) == 5
    assert not alive(fourth)


KEPT = []


def grow(megabytes: int) -> Iterator[int]:
    KEPT.append(bytearray(megabytes << 20))
    yield len(KEPT[-1])


def test_what_one_video_takes_is_not_counted_for_the_next() -> None:
    with Decoder(Limits(memory_mb=40, least_s=120, s_per_video_s=1)) as decoder:
        for _ in range(3):
            assert list(decoder(grow, 30, duration_s=0)) == [30 << 20]


def test_a_crash_is_an_error_that_names_the_signal() -> None:
    items = killable(die, signal.SIGSEGV, limits=LIMITS, duration_s=0)
    assert next(items) == 1
    with pytest.raises(MediaError, match="the decoder crashed .SIGSEGV."):
        next(items)


def test_a_decoder_leaves_sigterm_to_its_parent() -> None:
    assert list(killable(die, signal.SIGTERM, limits=LIMITS, duration_s=0)) == [1]


def test_a_decoder_that_ends_without_a_word_is_an_error_of_its_video() -> None:
    with pytest.raises(MediaError, match="exit code 7"):
        list(killable(leave, 7, limits=LIMITS, duration_s=0))


def test_a_decoder_that_waits_for_ever_is_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    limits = Limits(memory_mb=1000, least_s=1, s_per_video_s=0.1)
    with pytest.raises(MediaError, match="takes longer than 1 s: see media.limits"):
        list(killable(sizes, tmp_path / "pipe.mp4", limits=limits, duration_s=3))


def test_a_decoder_that_hangs_in_c_is_killed() -> None:
    limits = Limits(memory_mb=1000, least_s=1, s_per_video_s=0.1)
    start = time.monotonic()
    with pytest.raises(MediaError, match="takes longer than 1 s: see media.limits"):
        list(killable(hang_in_c, limits=limits, duration_s=3))
    assert time.monotonic() - start < 10


def bomb(path: Path) -> Path:
    """Write a video of two frames of 10,000 x 10,000 pixels into some kilobytes."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("png", rate=1)
        stream.width, stream.height, stream.pix_fmt = 10_000, 10_000, "gray"
        for _ in range(2):
            frame = av.VideoFrame.from_ndarray(np.zeros((10_000, 10_000), np.uint8), format="gray")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def test_a_video_that_needs_too_much_memory_is_a_record_and_the_next_goes_on(tmp_path: Path) -> None:
    paths = {"bomb": bomb(tmp_path / "bomb.mov"), "clip": make(tmp_path / "clip.mp4", CFR_25)}
    assert paths["bomb"].stat().st_size < 2_000_000
    records = [Record(video=n, status="present", path=str(p), sha256=n) for n, p in paths.items()]
    write_availability(tmp_path / "availability.json", records)
    prepare(tmp_path / "availability.json", Media(tmp_path / "media"), tmp_path / "manifest.json", limits=NARROW)
    made = read_manifest(tmp_path / "manifest.json")
    assert made["clip"]["status"] == "present"
    assert made["bomb"]["status"] == "failed"
    assert made["bomb"]["reason"] in (
        "needs more than 100 MB: see media.limits",
        "the decoder crashed (SIGSEGV); its limit is 100 MB: see media.limits",  # where libavcodec gets no memory
    )
    assert not (tmp_path / "media/bomb").exists()


def dawdle(n: int) -> Iterator[int]:
    for number in range(n):
        time.sleep(0.2)
        yield number


def test_the_time_counts_for_the_whole_video() -> None:
    limits = Limits(memory_mb=1000, least_s=1, s_per_video_s=1)
    with pytest.raises(MediaError, match="takes longer than 1 s"):
        list(killable(dawdle, 100, limits=limits, duration_s=0))


def take(megabytes: int) -> Iterator[int]:
    yield len(bytearray(megabytes << 20))


def test_memory_counts_beyond_the_program_itself() -> None:
    limits = Limits(memory_mb=40, least_s=120, s_per_video_s=1)
    assert list(killable(take, 30, limits=limits, duration_s=0)) == [30 << 20]
    with pytest.raises(MediaError, match="needs more than 40 MB: see media.limits"):
        list(killable(take, 400, limits=limits, duration_s=0))  # more than a test may have freed before


def test_a_longer_video_may_take_longer(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", CFR_25)
    limits = Limits(memory_mb=1000, least_s=0.001, s_per_video_s=1)
    with pytest.raises(MediaError, match="takes longer than"):
        list(killable(late, limits=limits, duration_s=0))
    assert len(list(killable(sizes, path, limits=limits, duration_s=60))) == 75


def test_a_consumer_that_takes_its_time_costs_none() -> None:
    with Decoder(LIMITS) as decoder:
        assert list(decoder(count, 1, duration_s=0)) == [0]  # the process has started
        decoder.limits = replace(LIMITS, least_s=1)
        for number, item in enumerate(decoder(count, 5, duration_s=0)):
            assert item == number
            time.sleep(0.3)


def test_what_nobody_takes_any_more_ends_the_process() -> None:
    items = killable(stuck, limits=LIMITS, duration_s=0)
    child = next(items)
    assert alive(child)
    items.close()
    assert not alive(child)


PARENT = """
import sys
from tests.media.test_process import stuck
from stepline.media.process import Decoder, Limits, killable
if __name__ == "__main__":
    for pid in killable(stuck, limits=Limits(memory_mb=500, least_s=600, s_per_video_s=1), duration_s=0):
        print(pid, flush=True)
"""


def stuck() -> Iterator[int]:
    yield os.getpid()
    time.sleep(600)


def test_the_process_dies_with_its_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(child)


def test_a_program_ends_that_closes_no_decoder() -> None:
    limits = "Limits(memory_mb=9, least_s=9, s_per_video_s=1)"
    code = (
        f"from stepline.media.process import *; d = Decoder({limits}); assert list(d(range, 2, duration_s=0)) == [0, 1]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
