"""Methods, which predict rankings, moments, steps and captions from an entry's inputs."""
