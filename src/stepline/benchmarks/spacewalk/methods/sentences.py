"""Zero-shot without truncation: each sentence is embedded, and a window is the mean of its sentences.

The method is not in the paper, where encoders truncate a window's text to their maximum number of tokens.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from stepline.benchmarks.spacewalk.features import SentenceFeatures
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.methods import Chooser, SpacewalkMethod
from stepline.benchmarks.spacewalk.methods.zero_shot import match


class Sentences(SpacewalkMethod):
    """Zero-shot matching with all sentences of a window."""

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return the chooser for windows of ``context_s`` seconds."""
        assert context_s is not None
        return partial(match, SentenceFeatures(inputs), context_s)
