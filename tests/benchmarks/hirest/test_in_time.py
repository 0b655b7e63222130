from stepline.benchmarks.hirest.kinds import Found
from stepline.datasets import hirest
from tests.benchmarks.hirest.conftest import inputs
from tests.benchmarks.hirest.synthetic import recordings, write_labels


def test_moments_steps_and_captions_stand_over_time(releases: None) -> None:
    of = inputs("random")
    pair = next(pair for pair in hirest.load("val") if pair.clippable and len(pair.steps) > 1)
    assert pair.bounds_s is not None
    spans = [(step.start_s, step.end_s) for step in pair.steps]

    def shown(**said: object) -> list[tuple[float, float, str]] | None:
        made = Found(seed=0, split="val", video=pair.video, query=pair.query, **said)  # type: ignore[arg-type]
        found = of.benchmark.in_time(of, pair.video, made)
        return found and [(each.start_s, each.end_s, each.verdict) for each in found.predicted]

    assert shown(moment=pair.bounds_s) == [(*pair.bounds_s, "hit")]
    assert shown(moment=(0.0, 1.5)) == [(0.0, 1.5, "false positive"), (*pair.bounds_s, "miss")]
    assert [verdict for *_, verdict in shown(segments=spans) or ()] == ["hit"] * len(spans)
    assert [verdict for *_, verdict in shown(segments=spans[1:]) or ()].count("miss") == 1
    for part, verdict in ((0.4, "false positive"), (0.6, "hit")):
        for name, (start_s, end_s) in (("moment", pair.bounds_s), ("segments", spans[0])):
            span = start_s, start_s + part * (end_s - start_s)
            assert (*span, verdict) in (shown(**{name: span if name == "moment" else [span]}) or ()), name
    captions = [f"stir {number}" for number in range(len(spans))]
    assert shown(sentences=captions) == [(*span, "") for span in sorted(spans)]
    made = Found(seed=0, split="val", video=pair.video, query=pair.query, sentences=tuple(captions))
    found = of.benchmark.in_time(of, pair.video, made)
    assert found is not None
    assert [each.label for each in found.predicted] == captions
    assert shown(ranked=(pair.video,)) is None
    truth = of.benchmark.in_time(of, pair.video, None)
    assert truth is not None
    assert [each.label for each in truth.truth] == [pair.query, *(step.caption for step in pair.steps)]
    guess = of.benchmark.in_time(of, pair.video, Found(seed=0, split="val", video="", query="said", moment=(0.0, 1.5)))
    assert guess is not None
    assert "said" in [each.label for each in guess.predicted]


def test_videos_of_each_split_have_a_truth_where_their_moment_is_known(releases: None) -> None:
    of = inputs("random")
    known = {
        each.video: of.benchmark.in_time(of, each.video, None) is not None for each in recordings() if each.annotated
    }
    assert known == {video: not video.startswith("test") or video.endswith("-0") for video in known}
    write_labels()
    assert all(of.benchmark.in_time(of, video, None) for video in known)
