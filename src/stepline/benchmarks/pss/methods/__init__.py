"""Methods: from an entry's inputs to segments, and sentences, of each video; one module per kind."""
