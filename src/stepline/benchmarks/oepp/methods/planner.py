"""The base of all methods, which plan the windows of a split together."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from stepline.benchmark import Method
from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.kinds import Plan
from stepline.benchmarks.oepp.windows import Window


class Planner(Method[OeppInputs, Plan]):
    """A method that predicts a plan for each window."""

    def plans(
        self, inputs: OeppInputs, split: str, windows: Sequence[Window], fit: Path | None
    ) -> Sequence[tuple[int, ...] | None]:
        """Return a plan for each of a split's windows, as indices into its pool; None if the window is left out.

        fit: the checkpoint if the entry is fitted.
        """
        raise NotImplementedError

    def said(self) -> str:
        """Return a note on the plans, after they are computed."""
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
            said.append("epoch with the best success rate on val")
        self.selection = "; ".join(filter(None, said))


def _left_out(inputs: OeppInputs) -> str:
    late = sum(len(inputs.late(split)) for split in inputs.entry.splits)
    return f"left out: {late} windows that begin after the end of their video's features" if late else ""
