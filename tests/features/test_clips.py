"""The frames of rows against definitions that look at every frame, on the five clip kinds."""

from dataclasses import replace
from fractions import Fraction
from math import floor, inf
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stepline.backbones.histogram import HistogramSpec
from stepline.features.clips import OUTSIDE, ClipError, Readable, order, readable, rows
from stepline.media.read import timeline_of
from stepline.media.timeline import Gap, Timeline
from stepline.spec import ClipSpec, FrameSpec
from tests.media.clips import KINDS, kind

RULES = ("at_or_before", "nearest", "ffmpeg_near", "index_linspace")
TAILS = ("zero", "repeat", "drop")
SPEC = ClipSpec(
    name="n", label="l", revision=1, fps=8, architecture="a",
    weights=(), licence="MIT", num_frames=8, steps=(), mean=(0, 0, 0),
    std=(1, 1, 1), output="o", dimension=1,
)  # fmt: skip
SECONDS = st.integers(-2000, 9000).map(lambda ms: ms / 1000)


@pytest.fixture(scope="module")
def timelines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Timeline]:
    folder = tmp_path_factory.mktemp("clips")
    return {name: timeline_of(kind(folder, name)[0]) for name in KINDS}


def exact(timeline: Timeline) -> tuple[list[Fraction], Fraction]:
    """Return when each frame is shown, and when the last is no longer."""
    return [pts * timeline.time_base for pts in timeline.pts.tolist()], timeline.end * timeline.time_base


def shown_at(times: list[Fraction], at: Fraction) -> int:
    return max((i for i, time in enumerate(times) if time <= at), default=0)


def nearest_to(times: list[Fraction], at: Fraction) -> int:
    return min(range(len(times)), key=lambda i: (abs(times[i] - at), i))


def grid_of(timeline: Timeline, rule: str, fps: float) -> list[int]:
    """Return the frame of every time k / fps of the video, by the definition of each rule."""
    times, end = exact(timeline)
    rate = Fraction(str(fps))
    if rule == "ffmpeg_near":
        slots = [Fraction(floor(time * rate + Fraction(1, 2))) for time in times]
        return [shown_at(slots, Fraction(k)) for k in range(floor(end * rate + Fraction(1, 2)))]
    grid = [k / rate for k in range(10_000) if k / rate < end]
    if rule == "index_linspace":
        return [int(index) for index in np.linspace(0, len(times) - 1, len(grid))]
    return [{"at_or_before": shown_at, "nearest": nearest_to}[rule](times, at) for at in grid]


def defined(spec: ClipSpec, timeline: Timeline) -> dict[int, list[int]]:
    """Return the frames of each row k of a grid."""
    grid = grid_of(timeline, spec.frame_rule, spec.fps)
    found = {}
    for k in range(len(grid)):
        if k * spec.hop >= len(grid):
            break
        slots = [spec.offset + k * spec.hop + i * spec.interval for i in range(spec.num_frames)]
        if spec.tail == "drop" and not all(0 <= slot < len(grid) for slot in slots):
            continue
        if spec.tail == "zero":
            found[k] = [grid[slot] if 0 <= slot < len(grid) else OUTSIDE for slot in slots]
        else:
            found[k] = [grid[min(max(slot, 0), len(grid) - 1)] for slot in slots]
    return found


specs = st.builds(
    replace,
    st.just(SPEC),
    fps=st.sampled_from([0.5, 1, 8, 16, 29.97, 30]),
    frame_rule=st.sampled_from(RULES),
    tail=st.sampled_from(TAILS),
    num_frames=st.integers(1, 40),
    interval=st.integers(1, 4),
    hop=st.integers(1, 20),
    offset=st.integers(-40, 40),
)


@given(name=st.sampled_from(list(KINDS)), spec=specs)
@settings(deadline=None, max_examples=50)
def test_a_grid_is_its_definition(timelines: dict[str, Timeline], name: str, spec: ClipSpec) -> None:
    made, wanted = rows(spec, timelines[name]), defined(spec, timelines[name])
    assert dict(zip(made.k.tolist(), made.frames.tolist(), strict=True)) == wanted
    assert made.frames.shape == (len(wanted), spec.num_frames)
    assert not made.span.any()


@pytest.mark.parametrize("name", KINDS)
def test_single_frames_are_a_grid_of_clips_of_one(timelines: dict[str, Timeline], name: str) -> None:
    made = rows(FrameSpec(name="n", label="l", revision=1, fps=5), timelines[name])
    assert made.frames[:, 0].tolist() == timelines[name].select("at_or_before", 5).tolist()


@given(
    name=st.sampled_from(list(KINDS)),
    spec=specs,
    cuts=st.lists(st.integers(0, 8000), min_size=2, max_size=6, unique=True).map(sorted),
)
@settings(deadline=None, max_examples=50)
def test_rows_of_spans_are_those_of_the_whole_that_lie_in_one(
    timelines: dict[str, Timeline], name: str, spec: ClipSpec, cuts: list[int]
) -> None:
    timeline = timelines[name]
    _, end = exact(timeline)
    spans = [(a / 1000, b / 1000) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    whole = rows(spec, timeline)
    wanted = []
    for k, frames in zip(whole.k.tolist(), whole.frames.tolist(), strict=True):
        slots = [spec.offset + k * spec.hop + i * spec.interval for i in range(spec.num_frames)]
        times = [slot / Fraction(str(spec.fps)) for slot in slots]
        for number, (start_s, end_s) in enumerate(spans):
            least, most = Fraction(start_s), Fraction(end_s)
            if all((time >= least or least <= 0) and (time < most or most >= end) for time in times):
                wanted.append((number, k, frames))
    made = rows(spec, timeline, spans=spans)
    assert list(zip(made.span.tolist(), made.k.tolist(), made.frames.tolist(), strict=True)) == sorted(wanted)


@given(name=st.sampled_from(list(KINDS)), spec=specs)
@settings(deadline=None, max_examples=50)
def test_a_span_of_all_is_the_whole(timelines: dict[str, Timeline], name: str, spec: ClipSpec) -> None:
    whole, span = rows(spec, timelines[name]), rows(spec, timelines[name], spans=[(0.0, 100.0)])
    assert np.array_equal(whole.frames, span.frames)
    assert np.array_equal(whole.k, span.k)


@given(
    name=st.sampled_from(list(KINDS)),
    clip=st.tuples(SECONDS, SECONDS),
    n=st.integers(1, 16),
    rule=st.sampled_from(RULES[:2]),
    tail=st.sampled_from(TAILS),
)
@settings(deadline=None, max_examples=50)
def test_middles_are_their_definition(
    timelines: dict[str, Timeline], name: str, clip: tuple[float, float], n: int, rule: str, tail: str
) -> None:
    spec = replace(SPEC, placement="middles", num_frames=n, frame_rule=rule, tail=tail)
    times, end = exact(timelines[name])
    start_s, end_s = (Fraction(str(time)) for time in clip)
    partly = start_s < 0 or end_s > end
    if not start_s < end_s or end_s <= 0 or start_s >= end or (partly and tail == "drop"):
        with pytest.raises(ClipError, match=f"the clip from {clip[0]} s to {clip[1]} s"):
            rows(spec, timelines[name], listed=[clip])
        return
    wanted = []
    for i in range(n):
        at = start_s + (i + Fraction(1, 2)) / n * (end_s - start_s)
        frame = {"at_or_before": shown_at, "nearest": nearest_to}[rule](times, at)
        wanted.append(OUTSIDE if tail == "zero" and not 0 <= at < end else frame)
    assert rows(spec, timelines[name], listed=[clip]).frames.tolist() == [wanted]


@given(name=st.sampled_from(list(KINDS)), clip=st.tuples(SECONDS, SECONDS).map(sorted), n=st.integers(1, 40))
@example(name="30.mp4", clip=[1.0, 2.0], n=2)
@settings(deadline=None, max_examples=50)
def test_ends_go_from_the_first_frame_shown_to_the_last(
    timelines: dict[str, Timeline], name: str, clip: list[float], n: int
) -> None:
    times, end = exact(timelines[name])
    start_s, end_s = clip
    if start_s == end_s or end_s <= 0 or start_s >= end:
        return
    spec = replace(SPEC, placement="ends", num_frames=n)
    first = shown_at(times, Fraction(str(start_s)))
    shown = [first, *(i for i, time in enumerate(times) if i > first and time < Fraction(str(end_s)))]
    [made] = rows(spec, timelines[name], listed=[(start_s, end_s)]).frames.tolist()
    assert made == [shown[int(at)] for at in np.linspace(0, len(shown) - 1, n)]


def test_rows_of_listed_clips_keep_their_order(timelines: dict[str, Timeline]) -> None:
    spec, clips = replace(SPEC, placement="middles", num_frames=1), [(3.0, 4.0), (0.0, 1.0), (3.0, 4.0)]
    made = rows(spec, timelines["30.mp4"], listed=clips)
    assert made.frames[:, 0].tolist() == [105, 15, 105]
    assert made.k.tolist() == [0, 1, 2]
    assert rows(spec, timelines["30.mp4"]).frames.shape == (0, 1)
    for rule in RULES[2:]:
        with pytest.raises(ClipError, match=f"the frame rule {rule} cannot choose frames of listed clips"):
            rows(replace(spec, frame_rule=rule), timelines["30.mp4"], listed=clips)


def test_listed_clips_lie_in_one_of_the_spans(timelines: dict[str, Timeline]) -> None:
    spec, spans = replace(SPEC, placement="middles", num_frames=2), [(0.0, 1.0), (3.0, 9.0)]
    made = rows(spec, timelines["30.mp4"], spans=spans, listed=[(3.5, 4.5), (-1.0, 1.0)])
    assert made.span.tolist() == [1, 0]
    for clip in [(0.5, 1.5), (0.5, 3.5), (1.5, 2.0)]:
        with pytest.raises(ClipError, match=rf"from {clip[0]} s to {clip[1]} s does not lie in one of the spans"):
            rows(spec, timelines["30.mp4"], spans=spans, listed=[clip])
    with pytest.raises(ClipError, match=r"from 3.0 s to 4.0 s does not lie in one"):
        rows(spec, timelines["30.mp4"], spans=[(3.1, 3.9)], listed=[(3.0, 4.0)])


def test_a_video_too_short_for_a_frame_of_the_grid_has_no_rows() -> None:
    timeline = Timeline(np.array([0]), Fraction(1, 1000), 40, np.array([0]))
    spec = replace(SPEC, fps=1, frame_rule="ffmpeg_near")
    assert rows(spec, timeline).frames.shape == (0, 8)
    assert rows(spec, timeline, spans=[(0.0, 1.0)]).frames.shape == (0, 8)


@given(st.lists(st.lists(st.integers(-1, 9), min_size=3, max_size=3), max_size=12))
def test_rows_are_ordered_by_the_last_frame_that_they_wait_for(frames: list[list[int]]) -> None:
    found = order(np.array(frames, np.int64).reshape(-1, 3)).tolist()
    assert found == sorted(range(len(frames)), key=lambda row: (max(frames[row]), row))


def test_seconds_are_every_rth_frame_and_zeros_after_the_last() -> None:
    timeline = Timeline(np.arange(600) * 1001, Fraction(1, 30000), 600 * 1001, np.array([0]))
    spec = replace(SPEC, placement="seconds", num_frames=12)
    short, just, long = rows(spec, timeline, listed=[(1.0, 6.0), (0.0, 11.5), (0.0, 20.0)]).frames
    assert short.tolist() == [29, 59, 89, 119, 149, 179, *[OUTSIDE] * 6]
    assert just.tolist() == [30 * i for i in range(12)]
    assert long.tolist() == [30 * i for i in np.linspace(0, 19, 12).astype(int)]


def test_each_second_is_a_frame_at_each_whole_second() -> None:
    timeline = Timeline(np.arange(600) * 1001, Fraction(1, 30000), 600 * 1001, np.array([0]))
    spec = replace(SPEC, placement="each_second", num_frames=4)
    at = [int(second * 30000 / 1001) for second in range(21)]
    expected = {
        (2.0, 6.0): [at[2], at[3], at[4], at[5]],
        (2.2, 6.2): [at[3], at[4], at[5], at[6]],
        (2.0, 9.5): [at[2], at[4], at[6], at[9]],
        (2.0, 4.0): [at[2], at[2], at[2], at[3]],
        (2.3, 2.6): [int(2.3 * 30000 / 1001)] * 4,
        (-1.5, 3.0): [at[0], at[0], at[1], at[2]],
        (18.5, 22.5): [at[19], at[19], at[19], at[20]],
    }
    assert rows(spec, timeline, listed=[*expected]).frames.tolist() == [*expected.values()]


@given(st.lists(st.floats(0, 800), min_size=1, max_size=8), st.sampled_from([60, 120]))
def test_windows_at_each_second_share_their_frames(starts_s: list[float], length_s: int) -> None:
    timeline = Timeline(np.arange(30_000) * 1001, Fraction(1, 30000), 30_000 * 1001, np.array([0]))
    spec = replace(SPEC, placement="each_second", num_frames=length_s)
    made = rows(spec, timeline, listed=[(start_s, start_s + length_s) for start_s in starts_s]).frames
    on_the_grid = timeline.select("at_or_before", 1)
    assert np.isin(made, on_the_grid).all()
    for row, start_s in zip(made, starts_s, strict=True):
        least = int(np.ceil(start_s))
        end = int(np.ceil(start_s + length_s))
        if end - least == length_s:
            assert row.tolist() == on_the_grid[least:end].tolist()


class TestReadable:
    """Of a video of 10 s with 10 frames a second."""

    LOST = (3.0, 5.0, "lost")
    CUT = (10.0, 14.0, "cut off")
    SECONDS = HistogramSpec(fps=1)
    CLIPS = replace(SPEC, fps=1, num_frames=3, hop=2, tail="drop")
    LISTED = replace(SPEC, fps=1, num_frames=2, placement="middles", tail="zero")

    def found(self, spec: FrameSpec, *gaps: Gap, **read: Any) -> Readable:
        pts = np.arange(100)
        lost = np.logical_or.reduce([np.zeros(100, bool), *((pts >= 10 * a) & (pts < 10 * b) for a, b, _ in gaps)])
        timeline = Timeline(pts, Fraction(1, 10), 100, pts, gaps, np.where(lost, -1, pts))
        return readable(spec, timeline, rows(spec, timeline, **read), read.get("spans", ()))

    @pytest.mark.parametrize(
        ("spec", "gaps", "spans", "k", "span", "stretches"),
        [
            (SECONDS, (), (), [*range(10)], [0] * 10, ()),
            (SECONDS, (LOST,), (), [0, 1, 2, *range(5, 10)], [0] * 3 + [1] * 5, [[0, 3], [5, inf]]),
            (SECONDS, ((3.0, 4.0, "lost"),), (), [0, 1, 2, *range(4, 10)], [0] * 3 + [1] * 6, [[0, 3], [4, inf]]),
            (SECONDS, (LOST,), [[2, 6], [8, 10]], [2, 5, 8, 9], [0, 1, 2, 2], [[2, 3], [5, 6], [8, 10]]),
            (SECONDS, (LOST,), [[3, 5], [6, 8]], [6, 7], [0, 0], [[6, 8]]),
            (SECONDS, (CUT,), (), [*range(10)], [0] * 10, [[0, 10]]),
            (SECONDS, (LOST, CUT), [[0, 1], [4, 14]], [0, *range(5, 10)], [0] + [1] * 5, [[0, 1], [5, 10]]),
            (SECONDS, (CUT,), [[0.5, 1.5], [7.5, 14]], [1, 8, 9], [0, 1, 1], [[0.5, 1.5], [7.5, 10]]),
            (CLIPS, (LOST,), (), [0, 3], [0, 1], [[0, 2], [6, inf]]),
        ],
    )
    def test_rows_without_lost_frames_are_kept_in_stretches(
        self, spec: FrameSpec, gaps: Any, spans: Any, k: list[int], span: list[int], stretches: Any
    ) -> None:
        found = self.found(spec, *gaps, spans=spans)
        assert (found.rows.k.tolist(), found.rows.span.tolist(), found.spans) == (k, span, stretches)
        assert (found.rows.frames[:, 0] == 10 * getattr(spec, "hop", 1) * found.rows.k).all()
        assert found.gaps == gaps

    def test_a_video_that_ends_within_its_last_row_has_all_rows(self) -> None:
        pts, gaps = np.arange(96), [(9.6, 10.0, "cut off")]
        timeline = Timeline(pts, Fraction(1, 10), 96, pts, gaps, pts)
        found = readable(self.SECONDS, timeline, rows(self.SECONDS, timeline), ())
        assert (found.rows.k.tolist(), found.spans, found.gaps) == ([*range(10)], (), ())

    def test_clips_at_the_very_ends_of_the_video(self) -> None:
        pts = np.arange(100)
        timeline = Timeline(pts, Fraction(1, 10), 100, pts)
        clips = replace(self.CLIPS, hop=1, tail="zero")
        assert rows(clips, timeline, spans=[(5.0, 10.0)]).k.tolist() == [5, 6, 7, 8, 9], "none ends before the video"
        one = replace(self.LISTED, num_frames=1)
        assert rows(one, timeline, listed=[(9.0, 11.0), (8.0, 11.9)]).frames.tolist() == [[OUTSIDE], [99]]
        assert rows(one, timeline, spans=[(0.0, 4.0), (5.0, 10.0)], listed=[(9.0, 10.5)]).span.tolist() == [1]
        for clip in ((-2.0, 0.0), (10.0, 12.0)):
            with pytest.raises(ClipError, match="lies outside the video, which ends at 10.000 s"):
                rows(one, timeline, listed=[clip])
        half = replace(self.LISTED, frame_rule="nearest")
        assert rows(half, timeline, listed=[(0.0, 0.2)]).frames.tolist() == [[0, 1]], "of two as near the earlier"

    def test_what_ends_with_the_frames_of_a_cut_video_is_not_lost(self) -> None:
        assert self.found(self.LISTED, self.CUT, listed=[(8, 10), (9, 11)]).rows.k.tolist() == [0]
        after = replace(self.CLIPS, hop=1, tail="zero")
        assert self.found(after, self.CUT).rows.k.tolist() == [*range(8)]
        assert self.found(replace(after, offset=-2), self.CUT).rows.k.tolist() == [*range(10)]

    def test_frames_before_the_start_are_no_lost_frames_at_the_end(self) -> None:
        found = self.found(replace(self.CLIPS, hop=1, offset=-2, tail="zero"), (9.5, 10.0, "lost"))
        assert (found.rows.k.tolist(), found.gaps) == ([*range(10)], ())

    def test_listed_clips_without_lost_frames_are_kept(self) -> None:
        found = self.found(self.LISTED, self.LOST, listed=[(6, 8), (3, 5), (0, 2), (2, 4)])
        assert (found.rows.k.tolist(), found.rows.frames.tolist()) == ([0, 2], [[65, 75], [5, 15]])
        assert (found.spans, found.gaps) == ((), (self.LOST,))
