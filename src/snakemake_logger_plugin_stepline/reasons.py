"""Why a job runs, as text."""

PARTS = (
    ("Forced", "requested with --force"),
    ("Missing output files", "output is missing"),
    ("Incomplete output files", "output is unfinished"),
    ("Updated input files", "input changed"),
    ("Set of input files has changed", "other inputs"),
    ("Code has changed", "code of the rule changed"),
    ("Software environment", "software changed"),
)
"""Prefix of Snakemake's reason -> printed reason."""


def in_words(rule: str, reason: str) -> str:
    """Return Snakemake's reason for a rule's job as short text, without digests."""
    words = [word for begin, word in PARTS if begin in reason]
    if "Params have changed" in reason:
        words.append("videos were added, removed or changed" if rule == "videos" else "its configuration changed")
    if not words and "Input files updated by another job" in reason:
        words.append("an earlier stage runs")
    return ", ".join(words) or reason
