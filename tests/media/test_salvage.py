"""Files that are damaged or odd: what can be had of them is right, and what cannot is named."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from stepline.features.frames import Batch, Begun, Message, Refused, Request, batches
from stepline.media.decode import MediaError, Stream, frames, opened, read_header
from stepline.media.one_pass import one_pass
from stepline.media.read import pyav, with_timeline
from stepline.media.salvage import salvaged
from stepline.media.timeline import Timeline
from stepline.spec import ClipSpec
from tests.media.clips import CFR_25, DECODER, HEIGHT, WIDTH, barcode, index_of, make, turned

av = pytest.importorskip("av")
RNG = np.random.default_rng(0)
NOISE = RNG.integers(0, 60, (HEIGHT, WIDTH, 3), dtype=np.uint8)
TEN_S = [Fraction(i, 25) for i in range(250)]


def noisy(index: int) -> np.ndarray:
    """Return a barcode with a moving texture, so that packets have some size."""
    bits, noise = barcode(index).astype(int), np.roll(NOISE, 3 * index, 1)
    return np.clip(np.where(bits > 127, bits - noise, bits + noise), 0, 255).astype(np.uint8)


def packets_of(path: Path) -> list[tuple[int, int, bool, bytes]]:
    """Return position, pts, key and bytes of each packet of the video."""
    with av.open(str(path)) as container:
        return [(p.pos, p.pts, p.is_keyframe, bytes(p)) for p in container.demux(video=0) if p.size]


def spoil(path: Path, choose: Callable[[list[tuple[int, int, bool, bytes]]], int], head: int = 8) -> float:
    """Overwrite one packet behind its head with noise and return when its frame is shown, in seconds."""
    listed = packets_of(path)
    position, pts, _, content = listed[choose(listed)]
    whole = bytearray(path.read_bytes())
    whole[position + head : position + len(content)] = RNG.bytes(len(content) - head)
    path.write_bytes(whole)
    with opened(path) as container:
        return float(pts * Stream(container).time_base)


def shown(path: Path) -> tuple[Timeline, dict[int, int]]:
    """Return the timeline, and for each frame that can be had its place and the index that it shows."""

    def read(timeline: Timeline) -> tuple[Timeline, dict[int, int]]:
        had = np.flatnonzero(~timeline.lost)
        return timeline, {int(i): index_of(f.rgb()) for i, f in zip(had, pyav(path, timeline, had), strict=True)}

    return with_timeline(path, read)


def test_a_damaged_reference_frame_loses_all_until_the_next_key_frame(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", TEN_S, picture=noisy)
    at_s = spoil(path, lambda listed: next(n for n, (*_, key, _) in enumerate(listed) if key and n > 50))
    timeline, indices = shown(path)
    assert len(timeline.gaps) == 1, timeline.gaps
    [(start_s, end_s, reason)] = timeline.gaps
    assert (start_s, end_s) == pytest.approx((at_s, at_s + 12 / 25), abs=0.2)
    assert reason
    assert all(place == index for place, index in indices.items())
    assert len(indices) == 250 - round((end_s - start_s) * 25)


def test_a_damaged_frame_from_which_none_is_predicted_loses_itself_alone(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", TEN_S, picture=noisy)
    whole = path.read_bytes()
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        stream.codec_context.skip_frame = "NONREF"
        predicted = {frame.pts for frame in container.decode(stream)}

    def by_size(listed: list[tuple[int, int, bool, bytes]]) -> list[int]:
        sizes = ((len(content), n) for n, (_, pts, _, content) in enumerate(listed) if pts not in predicted)
        return [n for _, n in sorted(sizes)]

    noticed = 0
    for place in range(-8, 0):
        path.write_bytes(whole)
        at_s = spoil(path, lambda listed, place=place: by_size(listed)[place], head=40)
        timeline, indices = shown(path)
        if timeline.gaps:
            noticed += 1
            assert [gap[:2] for gap in timeline.gaps] == [pytest.approx((at_s, at_s + 1 / 25), abs=1e-3)]
            assert indices == {n: n for n in range(250) if n != round(25 * at_s)}
    assert noticed


def test_a_file_that_is_cut_off_gives_what_is_there(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", TEN_S, picture=noisy, options={"movflags": "faststart"})
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 5])
    timeline, indices = shown(path)
    assert 100 < len(indices) < 200
    assert all(place == index for place, index in indices.items())
    assert timeline.truncated_s == pytest.approx(10, abs=0.1)


@pytest.mark.parametrize("suffix", ["avi", "mpg", "h264", "ts", "flv"])
def test_a_container_without_presentation_times_is_timed_by_the_order(suffix: str, tmp_path: Path) -> None:
    path = make(tmp_path / f"a.{suffix}", CFR_25)
    timeline, indices = shown(path)
    assert indices == {n: n for n in range(75)}
    assert timeline.t_s[:-1].tolist() == pytest.approx([float(time) for time in CFR_25[:-1]], abs=1e-3)
    assert timeline.gaps == ()


@pytest.mark.parametrize("suffix", ["ts", "mkv", "mpg", "h264"])
def test_recordings_that_were_joined_go_on(suffix: str, tmp_path: Path) -> None:
    part = make(tmp_path / f"a.{suffix}", CFR_25).read_bytes()
    (tmp_path / f"both.{suffix}").write_bytes(part + part)
    timeline, indices = shown(tmp_path / f"both.{suffix}")
    assert indices == {n: n % 75 for n in range(150)}
    assert timeline.gaps == ()
    assert np.diff(timeline.t_s).max() < 0.1
    assert timeline.end_s == pytest.approx(6, abs=0.1)


@pytest.fixture
def encoded(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a transport stream of 3 s, 25 frames a second, with options of ffmpeg."""
    import subprocess

    import imageio_ffmpeg

    def write(name: str, *options: str) -> Path:
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=160x120:r=25:d=3"]
        subprocess.run([*command, *options, str(tmp_path / name)], check=True)
        return tmp_path / name

    return write


H264, MPEG2 = ("-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", "25"), ("-c:v", "mpeg2video", "-bf", "2")
AAC, MP2 = (("-f", "lavfi", "-i", "sine=d=3", "-c:a", codec) for codec in ("aac", "mp2"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (MPEG2, MPEG2),
        ((*AAC, *H264, "-x264-params", "open-gop=1:b-pyramid=normal"), H264),
        ((*MP2, *MPEG2), (*MP2, *MPEG2)),
        (("-c:v", "libx265", "-x265-params", "log-level=none"),) * 2,
        (H264, (*H264, "-output_ts_offset", "60")),
        (H264, (*H264, "-s", "96x64")),
    ],
    ids=["mpeg2", "open-gop", "mp2", "hevc", "later", "smaller"],
)
def test_every_frame_of_joined_transport_streams_is_read(
    encoded: Callable[..., Path], first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    parts = [encoded("a.ts", *first), encoded("b.ts", *second)]
    (both := parts[0].with_name("both.ts")).write_bytes(b"".join(part.read_bytes() for part in [*parts, parts[0]]))
    timeline = salvaged(both)
    assert (len(timeline.pts), timeline.gaps) == (225, ())
    assert np.diff(timeline.t_s).tolist() == pytest.approx([0.04] * 224, abs=1e-3)
    assert len([*pyav(both, timeline, np.arange(225))]) == 225


@pytest.mark.parametrize("codec", [H264, MPEG2], ids=["h264", "mpeg2"])
def test_a_recording_that_was_split_and_joined_is_whole(encoded: Callable[..., Path], codec: tuple[str, ...]) -> None:
    pieces = sorted(encoded("%d.ts", *codec, "-f", "segment", "-segment_time", "1").parent.glob("*.ts"))
    (path := pieces[0].with_name("whole.ts")).write_bytes(b"".join(piece.read_bytes() for piece in pieces))
    assert len(pieces) > 1
    timeline = with_timeline(path, lambda timeline: timeline if [*pyav(path, timeline, np.arange(75))] else None)
    assert timeline is not None
    assert (len(timeline.pts), timeline.gaps) == (75, ())


@pytest.mark.parametrize("codec", [H264, MPEG2], ids=["h264", "mpeg2"])
@pytest.mark.parametrize("at", ["middle", "joint"])
def test_damage_of_joined_transport_streams_is_seen(
    encoded: Callable[..., Path], codec: tuple[str, ...], at: str
) -> None:
    part = (path := encoded("a.ts", *codec)).read_bytes()
    cut = next(position for position, pts, key, _ in packets_of(path) if key and pts > 2.2 * 90_000) + 5 * 188
    path.write_bytes(part[:cut] + (b"" if at == "joint" else part[cut + 8 * 188 :]) + part)
    [(start_s, end_s, _), *more] = salvaged(path).gaps
    assert 0.5 < start_s < end_s < 2.6
    assert all(gap[1] < 2.6 for gap in more)


def test_sound_and_pictures_go_on_together_where_recordings_were_joined(tmp_path: Path) -> None:
    quiet = np.zeros(48_000, np.int16)
    loud = np.where(np.arange(48_000) // 20 % 2, 12_000, -12_000).astype(np.int16)
    parts = [make(tmp_path / f"{n}.ts", CFR_25, audio=sound) for n, sound in enumerate((quiet, loud))]
    (tmp_path / "both.ts").write_bytes(b"".join(part.read_bytes() for part in parts))
    (tmp_path / "out").mkdir()
    made = one_pass(tmp_path / "both.ts", tmp_path / "out", decoder=DECODER, duration_s=6)
    samples = np.frombuffer((tmp_path / "out/audio.wav").read_bytes()[44:], "<i2")
    assert made["audio"]["status"] == "present"
    begins_s = int(np.argmax(np.abs(samples) > 6000)) / 16000
    assert begins_s == pytest.approx(3, abs=0.15)


def test_a_picture_that_changes_its_size_is_described_at_each_size(tmp_path: Path) -> None:
    grey = [np.full((height, width, 3), value, np.uint8) for height, width, value in ((64, 96, 50), (48, 64, 200))]
    parts = [make(tmp_path / f"{n}.h264", CFR_25, picture=lambda _, n=n: grey[n]) for n in range(2)]
    path = tmp_path / "both.h264"
    path.write_bytes(b"".join(part.read_bytes() for part in parts))

    def sizes(timeline: Timeline) -> list[tuple[int, int]]:
        assert timeline.gaps == ()
        return [frame.size for frame in pyav(path, timeline, np.arange(150))]

    assert with_timeline(path, sizes) == [(96, 64)] * 75 + [(64, 48)] * 75
    (tmp_path / "out").mkdir()
    assert one_pass(path, tmp_path / "out", decoder=DECODER, duration_s=6)["n_frames"] == 150


def test_a_video_that_does_not_start_at_a_key_frame_says_from_when_on_it_is_there(tmp_path: Path) -> None:
    whole = make(tmp_path / "a.mp4", CFR_25, picture=noisy)
    with av.open(str(whole)) as before, av.open(str(tmp_path / "late.mkv"), "w") as after:
        copied = after.add_stream_from_template(before.streams.video[0])
        for number, packet in enumerate(before.demux(video=0)):
            if packet.size and number >= 5:
                packet.stream = copied
                after.mux(packet)
    timeline, indices = shown(tmp_path / "late.mkv")
    assert timeline.gaps[0][0] == 0
    assert timeline.gaps[0][1] == pytest.approx(float(timeline.t_s[min(indices)]))
    first = indices[min(indices)]
    assert first % 12 == 0
    assert [indices[place] for place in sorted(indices)] == list(range(first, 75))


def test_nothing_that_can_be_decoded_is_an_error(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", CFR_25, picture=noisy)
    whole = bytearray(path.read_bytes())
    for position, _, _, content in packets_of(path):
        whole[position : position + len(content)] = RNG.bytes(len(content))
    path.write_bytes(whole)
    with pytest.raises(MediaError, match="no frame could be decoded"):
        salvaged(path)


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
@pytest.mark.parametrize("hflip", [False, True])
def test_pictures_stand_upright_as_ffmpeg_turns_them(degrees: int, hflip: bool, tmp_path: Path) -> None:
    import subprocess

    import imageio_ffmpeg

    corner = np.zeros((64, 320, 3), np.uint8)
    corner[:16, :80] = 255
    plain = make(tmp_path / "plain.mp4", CFR_25[:5], picture=lambda _: corner)
    path = turned(plain, tmp_path / "turned.mp4", degrees, hflip=hflip)
    width, height = (64, 320) if degrees % 180 else (320, 64)
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(path), "-frames:v", "1", "-f", "rawvideo"]
    out = subprocess.run([*command, "-pix_fmt", "rgb24", "-"], check=True, capture_output=True).stdout
    theirs = np.frombuffer(out, np.uint8).reshape(height, width, 3).astype(int)
    [upright, *_], [stored, *_] = frames(path), frames(path, turned=False)
    assert upright.size == (width, height)
    assert stored.size == (320, 64)
    assert np.abs(upright.rgb().astype(int) - theirs).mean() < 2
    assert read_header(path).rotation % 180 == degrees % 180


def request(**spec: object) -> Request:
    """Return a request for pictures of 16 x 16, one each second unless ``spec`` says otherwise."""
    fixed = {"name": "toy", "label": "toy", "revision": 1, "architecture": "none", "weights": (), "licence": "MIT"}
    picture = {"steps": (("exact", 16, 16, "swscale_bicubic"),), "mean": (0, 0, 0), "std": (1, 1, 1)}
    rest = {"num_frames": 1, "output": "mean", "dimension": 3}
    return Request(spec=ClipSpec(**{**fixed, **picture, **rest, **spec}), batch_size=4)  # type: ignore[arg-type]


def begun(messages: Iterator[Message]) -> dict[int, Begun]:
    """Return the last Begun of each request; check that as many rows come as it says."""
    found: dict[int, Begun] = {}
    rows: dict[int, int] = {}
    for message in messages:
        if isinstance(message, Begun):
            found[message.of], rows[message.of] = message, 0
        elif isinstance(message, Batch):
            rows[message.of] += len(message.clips)
        elif isinstance(message, Refused):
            raise AssertionError(message.reason)
    assert rows == {of: len(each.k) for of, each in found.items()}
    return found


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video of 10 s that is lost from 4.8 s (a key frame) to 5.28 s."""
    path = make(tmp_path_factory.mktemp("damaged") / "a.mp4", TEN_S, picture=noisy)
    assert spoil(path, lambda listed: [n for n, (*_, key, _) in enumerate(listed) if key][10]) == pytest.approx(4.8)
    return path


class TestRowsOfADamagedVideo:
    def test_those_outside_of_gaps_come(self, damaged: Path) -> None:
        found = begun(batches(damaged, [request(), request(fps=5)], ()))
        assert [each.k.tolist() for each in found.values()] == [
            [0, 1, 2, 3, 4, 6, 7, 8, 9],
            [*range(24), *range(27, 50)],
        ]
        assert found[0].spans == [[0.0, 5.0], [6.0, float("inf")]]
        assert found[1].spans == [[0.0, 4.8], [5.4, float("inf")]]
        assert [gap[:2] for gap in found[0].gaps] == [pytest.approx((4.8, 5.28))]

    def test_one_that_misses_the_gap_is_as_of_a_whole_video(self, damaged: Path) -> None:
        alone = begun(batches(damaged, [request(fps=0.25)], ()))[0]
        with_another = begun(batches(damaged, [request(fps=0.25), request()], ()))[0]
        for found in (alone, with_another):
            assert (found.k.tolist(), found.spans, found.gaps) == ([0, 1, 2], [], [])

    def test_a_request_is_refused_only_for_damage_that_its_own_frames_meet(self, damaged: Path) -> None:
        early = Request(spec=request(placement="middles", num_frames=2).spec, batch_size=4, listed=((0.0, 4.0),))
        alone = [*batches(damaged, [early], (), "skip")]
        found = [*batches(damaged, [request(), early, request(fps=5)], (), "skip")]
        assert [each.of for each in found if isinstance(each, Refused)] == [0, 2]
        last = max(n for n, each in enumerate(found) if isinstance(each, Begun) and each.of == 1)
        rows = [each.clips.tobytes() for each in found[last:] if isinstance(each, Batch) and each.of == 1]
        assert rows == [each.clips.tobytes() for each in alone if isinstance(each, Batch)]
        assert rows

    def test_a_clip_that_runs_into_the_gap_is_lost(self, damaged: Path) -> None:
        found = begun(batches(damaged, [request(num_frames=3, fps=1, hop=1, tail="drop")], ()))[0]
        assert found.k.tolist() == [0, 1, 2, 6, 7]

    def test_spans_are_cut_at_gaps(self, damaged: Path) -> None:
        found = begun(batches(damaged, [request()], [[2.0, 8.0]]))[0]
        assert found.k.tolist() == [2, 3, 4, 6, 7]
        assert found.spans == [[2.0, 5.0], [6.0, 8.0]]

    def test_listed_clips_that_can_be_had_come(self, damaged: Path) -> None:
        listed = ((0.0, 1.0), (4.5, 5.2), (6.0, 7.0))
        asked = request(placement="middles", num_frames=2)
        found = begun(batches(damaged, [Request(spec=asked.spec, batch_size=4, listed=listed)], ()))[0]
        assert (found.k.tolist(), found.spans) == ([0, 2], [])

    def test_a_damaged_video_can_be_refused(self, damaged: Path, tmp_path: Path) -> None:
        *_, refused = batches(damaged, [request()], (), "skip")
        assert isinstance(refused, Refused)
        assert refused.reason.startswith("4.800 to 5.280 s: ")
        with pytest.raises(MediaError, match=r"^4\.800 to 5\.280 s: "):
            one_pass(damaged, tmp_path, decoder=DECODER, duration_s=10, damaged="skip")

    def test_the_one_pass_names_the_gap_and_starts_anew_behind_it(self, damaged: Path, tmp_path: Path) -> None:
        import pyarrow.parquet as pq

        made = one_pass(damaged, tmp_path, decoder=DECODER, duration_s=10)
        scores = pq.read_table(tmp_path / "scores.parquet").to_pydict()
        assert [gap[:2] for gap in made["gaps"]] == [pytest.approx([4.8, 5.28])]
        assert made["n_frames"] == 238
        assert [t for t, first in zip(scores["t_s"], scores["first"], strict=True) if first] == pytest.approx([0, 5.28])

    def test_of_a_truncated_video_no_row_runs_over_its_end(self, tmp_path: Path) -> None:
        path = make(tmp_path / "a.mkv", TEN_S, picture=noisy)
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 5])
        end_s = salvaged(path).end_s
        for tail in ("zero", "repeat", "drop"):
            found = begun(batches(path, [request(num_frames=2, interval=1, tail=tail)], ()))[0]
            assert found.k.tolist() == list(range(int(end_s)))
            assert found.spans == [[0.0, float(int(end_s))]]


def test_the_track_flagged_as_default_is_heard(tmp_path: Path) -> None:
    path = tmp_path / "two.mkv"
    loud = np.where(np.arange(32_000) // 20 % 2, 12_000, -12_000).astype(np.int16)
    one = make(tmp_path / "one.mp4", CFR_25, audio=np.zeros(32_000, np.int16))
    other = make(tmp_path / "other.mp4", CFR_25, audio=loud)
    with av.open(str(one)) as first, av.open(str(other)) as second, av.open(str(path), "w") as out:
        streams = [first.streams.video[0], first.streams.audio[0], second.streams.audio[0]]
        copies = [out.add_stream_from_template(stream) for stream in streams]
        copies[1].disposition = av.stream.Disposition(0)
        copies[2].disposition = av.stream.Disposition.default
        for stream, copied in zip(streams, copies, strict=True):
            stream.container.seek(0)
            for packet in stream.container.demux(stream):
                if packet.size:
                    packet.stream = copied
                    out.mux(packet)
    (tmp_path / "out").mkdir()
    one_pass(path, tmp_path / "out", decoder=DECODER, duration_s=3)
    samples = np.frombuffer((tmp_path / "out/audio.wav").read_bytes()[44:], "<i2")
    assert np.abs(samples).max() > 6000


def test_titles_that_are_no_utf_8_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.mkv"
    with av.open(str(make(tmp_path / "a.mp4", CFR_25))) as before, av.open(str(path), "w") as after:
        copied = after.add_stream_from_template(before.streams.video[0])
        after.metadata["title"] = copied.metadata["title"] = "TITLExx"
        for packet in before.demux(video=0):
            if packet.size:
                packet.stream = copied
                after.mux(packet)
    path.write_bytes(path.read_bytes().replace(b"TITLExx", b"TI\xff\xfe\xe9xx"))
    assert len(list(frames(path))) == 75
    assert read_header(path).codec == "h264"


def test_the_times_of_a_gap_are_between_frames(tmp_path: Path) -> None:
    path = make(tmp_path / "a.ts", TEN_S, picture=noisy)
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2 // 188 * 188 :][: 188 * 8] = b""
    path.write_bytes(whole[: len(whole) // 2 // 188 * 188] + whole[(len(whole) // 2 // 188 + 8) * 188 :])
    timeline, _ = shown(path)
    assert timeline.gaps
    for (_, end_s, _), (start_s, _, _) in pairwise(timeline.gaps):
        assert end_s < start_s


def test_damaged_sound_is_silent_there_and_costs_no_picture(tmp_path: Path) -> None:
    loud = np.where(np.arange(160_000) // 20 % 2, 12_000, -12_000).astype(np.int16)
    path = make(tmp_path / "a.mp4", TEN_S, audio=loud)
    with av.open(str(path)) as container:
        sounds = [(packet.pos, packet.size) for packet in container.demux(audio=0) if packet.size]
    whole = bytearray(path.read_bytes())
    for position, size in sounds[60:80]:
        whole[position : position + size] = bytes(size)
    path.write_bytes(whole)
    (tmp_path / "out").mkdir()
    made = one_pass(path, tmp_path / "out", decoder=DECODER, duration_s=10)
    assert made["gaps"] == []
    assert made["n_frames"] == 250
    assert made["audio"]["status"] == "present"
    assert "cannot be decoded, the first after" in made["audio"]["reason"]
    samples = np.frombuffer((tmp_path / "out/audio.wav").read_bytes()[44:], "<i2")
    assert len(samples) == pytest.approx(160_000, abs=3000)
    assert np.abs(samples[:40_000]).max() > 6000 < np.abs(samples[-40_000:]).max()
