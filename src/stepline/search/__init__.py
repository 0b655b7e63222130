"""Search for the videos of a data set that best match a text, with the best moment in each video and its steps."""
