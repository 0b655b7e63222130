"""Features: extraction, stores and the bank."""
