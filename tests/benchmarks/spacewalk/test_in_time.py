from itertools import pairwise

import numpy as np

from stepline.benchmarks.spacewalk.kinds import Choice
from tests.benchmarks.spacewalk.conftest import MadeUp


def test_answers_stand_between_samples_with_what_is_wrong_of_them(made_up: MadeUp) -> None:
    inputs = made_up.inputs({"kind": "random"})
    items = sorted(inputs.items("test")["d"], key=lambda item: item.t_s)
    ids, labels = np.array([item.id for item in items]), np.array([item.label for item in items])
    recording = inputs.annotation.recordings["d"]

    def verdicts(chosen: np.ndarray) -> set[str]:
        made = Choice(seed=0, split="test", video="d", ids=ids, chosen=chosen, scores=None)
        found = inputs.benchmark.in_time(inputs, "d", made)
        assert found is not None
        assert [each.label for each in found.truth] == [
            recording.steps[segment.label].caption for segment in recording.segments if segment.label > 0
        ]
        spans = [(each.start_s, each.end_s) for each in found.predicted]
        assert all(end <= start for (_, end), (start, _) in pairwise(spans))
        return {each.verdict for each in found.predicted}

    assert verdicts(labels) == {"hit"}
    assert verdicts(np.zeros_like(labels)) == {"miss"}
    assert verdicts(np.full_like(labels, -1)) == {""}
    assert verdicts(np.where(labels == 1, 2, 1)) == {"wrong label", "false positive"}
    missed = Choice(seed=0, split="test", video="d", ids=ids, chosen=np.zeros_like(labels), scores=None)
    found = inputs.benchmark.in_time(inputs, "d", missed)
    assert found is not None
    assert {each.label for each in found.predicted} == {recording.steps[label].caption for label in labels if label}


def test_an_answer_ends_in_the_middle_between_two_samples(made_up: MadeUp) -> None:
    inputs = made_up.inputs({"kind": "random"})
    first, second, third = items = sorted(inputs.items("test")["d"], key=lambda item: item.t_s)[::13][:3]
    ids = np.array([item.id for item in items])
    made = Choice(seed=0, split="test", video="d", ids=ids[::-1], chosen=np.array([1, 2, 1]), scores=None)
    found = inputs.benchmark.in_time(inputs, "d", made)
    assert found is not None
    middles_s = (first.t_s + second.t_s) / 2, (second.t_s + third.t_s) / 2
    edges_s = [0.0, *middles_s, inputs.annotation.recordings["d"].duration_s]
    assert [(each.start_s, each.end_s) for each in found.predicted] == [*pairwise(edges_s)]


def test_of_retrieval_only_the_truth_is_shown(made_up: MadeUp) -> None:
    inputs = made_up.inputs({"kind": "random", "table": "2b"})
    made = Choice(seed=0, split="test", video="d", ids=np.array([0]), chosen=np.array([0]), scores=None)
    assert inputs.benchmark.in_time(inputs, "d", made) is None
    truth = inputs.benchmark.in_time(inputs, "d", None)
    assert truth is not None
    assert truth.truth
