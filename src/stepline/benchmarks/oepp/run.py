"""What the verbs `fit`, `predict`, `score`, `table` and `report` do on OEPP."""

from dataclasses import dataclass
from pathlib import Path

from stepline import paths
from stepline.benchmarks.oepp.material import Material
from stepline.benchmarks.oepp.plan import Plan
from stepline.benchmarks.oepp.predict import fit, predict
from stepline.benchmarks.oepp.report import write_oepp_report
from stepline.benchmarks.oepp.score import score
from stepline.benchmarks.oepp.table import write_table
from stepline.errors import ConfigError


@dataclass(frozen=True)
class Run:
    """The jobs of the plan, each by its release and entry; the context is always ``all``."""

    plan: Plan

    def fit(self, release: str, entry: str, context: str, seed: int) -> None:
        """Fit with one seed; raise ConfigError where the entry is not fitted."""
        material = self._material(release, entry, context)
        if not material.entry.trained:
            raise ConfigError(f"entry {entry!r} is not fitted")
        if seed not in material.entry.seeds:
            block = material.entry.made.options
            raise ConfigError(f"config: oepp.{block}.seeds: {seed} is not one of them; add it, or fit with one of them")
        fit(material, seed, paths.fit("oepp", release, entry, context, seed))

    def predict(self, release: str, entry: str, context: str) -> None:
        """Predict, by all fits where the entry is fitted."""
        material = self._material(release, entry, context)
        seeds = material.entry.seeds if material.entry.trained else ()
        fits = [paths.fit("oepp", release, entry, context, seed) for seed in seeds]
        predict(material, fits, paths.predictions("oepp", release, entry, context))

    def score(self, release: str, entry: str, context: str) -> None:
        """Score the predictions."""
        material, place = self._material(release, entry, context), ("oepp", release, entry, context)
        score(material, paths.predictions(*place), paths.scores(*place))

    def table(self, target: str) -> None:
        """Write a table; raise ConfigError where it is not configured."""
        self.plan.check_table(target)
        write_table(self.plan, target)

    def report(self) -> None:
        """Write the page to look at."""
        write_oepp_report(self.plan, Path("results/oepp/report.html"))

    def _material(self, release: str, entry: str, context: str) -> Material:
        job = self.plan.job(release, entry, context)
        return Material(self.plan, job.release, job.entry)
