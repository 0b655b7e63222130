"""Entries of OEPP, as declared in ``tables.yaml``."""

from dataclasses import dataclass

from stepline import declared
from stepline.datasets.oepp import Part

KINDS = {
    "statistics": declared.Kind(module=""),
    "random": declared.Kind(module="random"),
    "frequent": declared.Kind(module="frequent", trains=True),
    "matching": declared.Kind(module="matching", environment="text"),
    "mlp": declared.Kind(module="heads", options="heads", trains=True, environment="text"),
    "transformer": declared.Kind(module="heads", options="heads", trains=True, environment="text"),
    "pdpp": declared.Kind(module="pdpp", options="pdpp", trains=True, environment="text"),
    "vlm": declared.Kind(module="vlm", environment="vision", decoded=True),
}


@dataclass(frozen=True, kw_only=True)
class Entry(declared.Entry):
    """What is computed. See the head of ``tables.yaml`` for the fields."""

    @property
    def made(self) -> declared.Kind:
        """How its predictions are made."""
        return KINDS[self.kind]

    @property
    def horizon(self) -> int | None:
        """T, the number of actions of a plan; None where it is that of each video."""
        found: int | None = self.settings.get("horizon")
        return found

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the split of which plans are made; a service is paid for, and not asked about validation."""
        return ("base", "novel") if self.made.decoded else ("val", "base", "novel")

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it may see, words of `stepline.tables.SEES`."""
        seen = ["observations"] if self.features or self.made.decoded else []
        if self.made.trains:
            seen += ["train", "val"] if self.trained else ["train_annotation"]
        return (*seen, *(["action_pool"] if self.kind != "statistics" else []))
