"""The timeline: one page per video with the player and, on one time axis, all that is known of the video."""
