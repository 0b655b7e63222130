from stepline.benchmark import Job
from stepline.benchmarks.pss.kinds import Segmentation
from stepline.datasets import pss
from tests.benchmarks.pss.conftest import plan


def test_segments_stand_beside_the_annotated_ones(releases: None) -> None:
    made = plan()
    video, true = next(iter(pss.load("youcook2", "test").items()))
    inputs = made.inputs(Job(release="youcook2", entry=made.entries["uniform-segments"]))
    said = Segmentation(seed=0, split="test", video=video, segments=(true.segments[0], (900.0, 901.0)))
    found = made.in_time(inputs, video, said)
    assert found is not None
    assert [(each.start_s, each.end_s, each.label) for each in found.truth] == [
        (*span, sentence) for span, sentence in zip(true.segments, true.sentences, strict=True)
    ]
    counted = [each.verdict for each in found.predicted]
    assert (counted.count("hit"), counted.count("false positive")) == (1, 1)
    assert counted.count("miss") == len(true.segments) - 1
    alone = made.in_time(inputs, video, None)
    assert alone is not None
    assert alone.truth == found.truth
    assert made.in_time(inputs, "nobody", None) is None
