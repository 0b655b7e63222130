"""Faults in random order. Each part is a module with ``campaign(seed, n)``; ``python -m tests.chaos`` runs all parts.

A part's ``campaign(seed: int, n: int) -> dict[str, int]`` does n cases, the same ones each time, and returns counts by
name. A case that breaks a promise raises AssertionError, whose text says how to play it again.
"""
