"""The works of a features job: its own spec, and the other specs of the shard that are computed in the same pass."""

from stepline import paths
from stepline.backbones.registry import files_of, own_file
from stepline.datasets.segments import known_ends_s
from stepline.features.extract import Work
from stepline.io import write_json
from stepline.pipeline import Pipeline
from stepline.spec import ClipSpec, FrameSpec


def works(pipeline: Pipeline, backbone: str, shard: str) -> list[Work]:
    """Return the work of ``backbone`` on a shard, followed by the works of all others in the same environment.

    The record of each spec is written next to its features.
    """
    features = pipeline.features
    same = [name for name in features.computed if features.environment(name) == features.environment(backbone)]
    ends_s = known_ends_s(pipeline.name, shard)
    return [_work(pipeline, name, shard, ends_s) for name in [backbone, *(name for name in same if name != backbone)]]


def _work(pipeline: Pipeline, name: str, shard: str, ends_s: dict[str, float]) -> Work:
    spec = pipeline.features.spec_of(name)
    assert isinstance(spec, FrameSpec)
    write_json(paths.spec_record(spec), spec.record())
    files = files_of(spec.weights, own_file(name, pipeline.config)) if isinstance(spec, ClipSpec) else {}
    said: list[str] = []
    clips = listed = pipeline.features.clips(name)
    if isinstance(spec, ClipSpec) and clips:
        rounded = spec.tail != "drop"  # which refuses clips that end after the end
        listed = pipeline.demand.clips_within(name, ends_s, rounded, said.append)
    late = {video: line for line in said for video in clips if clips[video] != listed[video]}
    return Work(spec=spec, store=pipeline.features.store(name, shard), files=files, listed=listed, late=late)
