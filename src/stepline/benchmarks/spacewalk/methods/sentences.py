"""Zero-shot without truncation: each sentence is embedded, and a window is the mean of its sentences.

It is not the paper's: its encoders cut a window's text after their limit of tokens.
"""

from functools import partial
from pathlib import Path

from stepline.benchmarks.spacewalk.features import SentenceFeatures
from stepline.benchmarks.spacewalk.material import Material
from stepline.benchmarks.spacewalk.methods import Method
from stepline.benchmarks.spacewalk.methods.zero_shot import match


def make(material: Material, context_s: float | None, fits: list[Path]) -> Method:
    """Return the method at windows of ``context_s`` seconds."""
    assert context_s is not None
    return partial(match, SentenceFeatures(material), context_s)
