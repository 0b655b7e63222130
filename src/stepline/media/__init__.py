"""Media: probing, the decode pass, frames by presentation time, audio."""

REVISION = 1
"""Of scores, audio and their record: raise it with a change that gives others. The workflow asks for it."""
