"""Search: the videos of a data set that are most like a text, in each of them the moment, and the moment's steps."""
