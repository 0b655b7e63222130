"""Media: probing, the decode pass, frames by presentation time, audio."""
