"""Media: probing, the single pass for scores and audio, and frames by presentation time."""

REVISION = 2
"""The revision of scores, audio and their record: raise it with any change of these. The workflow uses it too."""
SHOTS_REVISION = 1
"""The revision of shot detection from scores."""
