"""OEPP: procedure planning for events that were not trained on (Wu et al., 2024)."""
