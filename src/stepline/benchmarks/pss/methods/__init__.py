"""Methods: from an entry's inputs to segments, and sentences, of every video; a module for each kind."""
