"""The timeline: one page per video with a player and all results of the video on one time axis."""
