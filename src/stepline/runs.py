"""What the verbs `fit`, `predict`, `score`, `table` and `report` do on a benchmark with released data sets."""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.benchmark import Benchmark
from stepline.errors import ConfigError


@dataclass(frozen=True)
class Run:
    """The jobs of a plan, each by its release and entry; the context is always ``all``.

    The benchmark's package has ``material.Material``, ``predict.fit``, ``predict.predict``, ``score.score``,
    ``table.write_table`` and ``report.write_report``.
    """

    plan: Benchmark[Any]

    def fit(self, release: str, entry: str, context: str, seed: int) -> None:
        """Fit with one seed; raise ConfigError where the entry is not fitted, or not with that seed."""
        material, place = self._material(release, entry, context)
        if not material.entry.trained:
            raise ConfigError(f"entry {entry!r} is not fitted")
        if seed not in material.entry.seeds:
            key = f"{self.plan.name}.{material.entry.made.options}.seeds"
            raise ConfigError(f"config: {key}: {seed} is not one of them; add it, or fit with one of them")
        self._module("predict").fit(material, seed, paths.fit(*place, seed))

    def predict(self, release: str, entry: str, context: str) -> None:
        """Predict, by all fits where the entry is fitted."""
        material, place = self._material(release, entry, context)
        fits = [paths.fit(*place, seed) for seed in material.entry.seeds] if material.entry.trained else []
        self._module("predict").predict(material, fits, paths.predictions(*place))

    def score(self, release: str, entry: str, context: str) -> None:
        """Score the predictions."""
        material, place = self._material(release, entry, context)
        self._module("score").score(material, paths.predictions(*place), paths.scores(*place))

    def table(self, target: str) -> None:
        """Write a table; raise ConfigError where it is not configured."""
        self.plan.check_table(target)
        self._module("table").write_table(self.plan, target)

    def report(self) -> None:
        """Write the page to look at."""
        self._module("report").write_report(self.plan, Path("results", self.plan.name, "report.html"))

    def _material(self, release: str, entry: str, context: str) -> tuple[Any, tuple[str, str, str, str]]:
        job = self.plan.job(release, entry, context)
        material = self._module("material").Material(self.plan, job.release, job.entry)
        return material, (self.plan.name, release, entry, context)

    def _module(self, name: str) -> Any:
        return import_module(f"{self.plan.package}.{name}")
