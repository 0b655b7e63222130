"""Windows of samples, as in the released evaluation and the paper (Sec. 4.1)."""

from collections.abc import Container, Mapping, Sequence

from stepline.benchmarks.spacewalk.items import read_items
from stepline.datasets.studies import Study


def window(t_s: float, length_s: float, duration_s: float) -> tuple[float, float]:
    """Return the start and end, in seconds, of the window centred at ``t_s``: clipped to the recording, not shifted."""
    return max(0.0, t_s - length_s / 2), min(duration_s, t_s + length_s / 2)


def clips(
    study: Study, releases: Sequence[str], lengths_s: Mapping[str, Sequence[float]], videos: Container[str]
) -> dict[str, list[tuple[float, float]]]:
    """Return by video, in ascending order, the windows of all samples of the releases and the steps' animations.

    lengths_s: window lengths by task.
    """
    found: dict[str, set[tuple[float, float]]] = {}
    for release in map(study.load, releases):
        for video, recording in release.recordings.items():
            found.setdefault(video, set()).update(step.animation_s for step in recording.steps if step.animation_s)
        for task in lengths_s.keys() & {*study.tasks[release.name]}:
            for split in study.splits(release.name, task):
                for video, items in read_items(release, task, split).items():
                    duration_s = release.recordings[video].duration_s
                    times_s = {t_s for item in items for t_s in item.times_s}
                    found[video].update(window(t_s, w, duration_s) for t_s in times_s for w in lengths_s[task])
    return {video: sorted(spans) for video, spans in found.items() if video in videos}
