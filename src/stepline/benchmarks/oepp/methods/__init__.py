"""Methods: from an entry's inputs to a plan of every window; a module for each kind."""
