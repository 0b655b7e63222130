"""What all methods share: windows of a split are planned together."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from stepline.benchmark import Method
from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.kinds import Plan
from stepline.benchmarks.oepp.windows import Window


class Planner(Method[OeppInputs, Plan]):
    """A method that says a plan of each window."""

    def plans(
        self, inputs: OeppInputs, split: str, windows: Sequence[Window], fit: Path | None
    ) -> Sequence[tuple[int, ...] | None]:
        """Return a plan of each of a split's windows, places in its pool; None of one that cannot be evaluated.

        fit: the checkpoint, where the entry is fitted.
        """
        raise NotImplementedError

    def said(self) -> str:
        """Return what must be known of the plans, in words, after they are made."""
        return ""

    def predict(self, inputs: OeppInputs, fits: Sequence[Path]) -> Iterator[Plan]:
        """Yield the plans of the windows of each split with each seed."""
        checkpoints: Sequence[Path | None] = fits or [None]
        for seed, fit in zip(inputs.entry.seeds, checkpoints, strict=True):
            for split in inputs.entry.splits:
                windows = inputs.used(split)
                for window, plan in zip(windows, self.plans(inputs, split, windows, fit), strict=True):
                    if plan is not None:
                        yield Plan(seed=seed, split=split, video=window.video, index=window.index, plan=plan)
        said = [self.said(), _left_out(inputs)]
        if "train" in inputs.splits("fit"):
            said.append(f"fitted on {len(inputs.used('train'))} of {len(inputs.truth('train'))} training windows")
        if inputs.entry.trained:
            said.append("epoch of the best success rate on val")
        self.selection = "; ".join(filter(None, said))


def _left_out(inputs: OeppInputs) -> str:
    late = sum(len(inputs.late(split)) for split in inputs.entry.splits)
    return f"left out: {late} windows that begin after the features of their video end" if late else ""
