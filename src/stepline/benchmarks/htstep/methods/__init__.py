"""Methods, which predict segments of steps from an entry's inputs."""
