from stepline.benchmarks.htstep.kinds import Found
from tests.benchmarks.htstep.conftest import inputs


def test_of_each_step_the_best_segment_is_judged(releases: None) -> None:
    of = inputs("uniform")
    unit = next(unit for unit in of.truth("val_seen") if unit.labelled)
    first = unit.segments[0]
    other = next(step for step in unit.steps if step != first.step)
    span = (first.start_s, first.end_s)
    said = {"seed": 0, "split": "val_seen", "video": unit.video}
    made = Found(**said, steps=(first.step, first.step), segments=(span, (900.0, 910.0)), scores=(2.0, 1.0))  # type: ignore[arg-type]
    found = of.benchmark.in_time(of, unit.video, made)
    assert found is not None
    verdicts = [each.verdict for each in found.predicted]
    assert (verdicts.count("hit"), verdicts.count("false positive")) == (1, 0)
    assert verdicts.count("miss") == len(unit.segments) - 1
    wrong = Found(**said, steps=(other,), segments=(span,), scores=(1.0,))  # type: ignore[arg-type]
    found = of.benchmark.in_time(of, unit.video, wrong)
    assert found is not None
    assert "hit" in [e.verdict for e in found.predicted] or "wrong label" in [e.verdict for e in found.predicted]
    points = Found(
        **said,
        steps=(),
        segments=(),
        scores=(),
        article=(first.step,),
        times_s=(first.start_s,),  # type: ignore[arg-type]
    )
    found = of.benchmark.in_time(of, unit.video, points)
    assert found is not None
    assert [each.verdict for each in found.predicted].count("hit") == 1
    assert "the second" in found.rule
