"""Methods: from an entry's inputs to rankings, moments, steps and captions; a module for each kind."""
