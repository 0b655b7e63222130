"""Speech recognition: from audio to sentences with times."""
