"""Methods, which predict a plan of every window from an entry's inputs."""
