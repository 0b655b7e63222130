"""Data sets: readers of release files into one schema of recordings, steps and segments."""

from stepline.datasets.schema import Recording, Release, Segment, Step, Video

__all__ = ["Recording", "Release", "Segment", "Step", "Video"]
