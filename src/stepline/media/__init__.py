"""Media: probing, the one pass for scores and audio, frames by presentation time."""

REVISION = 2
"""Of scores, audio and their record: raise it with a change that gives others. The workflow asks for it."""
SHOTS_REVISION = 1
"""Of how shots are found from scores."""
