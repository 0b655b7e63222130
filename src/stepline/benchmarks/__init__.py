"""One package per benchmark, with all code that only its paper needs."""
