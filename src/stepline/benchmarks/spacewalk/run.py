"""What the verbs `fit`, `predict`, `score`, `table` and `report` do on a study in Spacewalk-18's form."""

from dataclasses import dataclass
from pathlib import Path

from stepline import paths
from stepline.benchmarks.spacewalk.material import Material
from stepline.benchmarks.spacewalk.plan import Job, Plan
from stepline.benchmarks.spacewalk.predict import fit, predict
from stepline.benchmarks.spacewalk.score import score
from stepline.benchmarks.spacewalk.table import write_study_report, write_table
from stepline.errors import ConfigError


@dataclass(frozen=True)
class Run:
    """The jobs of one plan, each by its release, entry and window length, such as ``180s`` or ``all``."""

    plan: Plan

    def fit(self, release: str, entry: str, context: str, seed: int) -> None:
        """Fit with one seed; raise ConfigError where the entry is not fitted."""
        job, material = self._job(release, entry, context)
        if not job.entry.trained:
            raise ConfigError(f"entry {job.entry.id!r} is not fitted")
        path = paths.fit(self.plan.study.name, job.release, job.entry.id, job.context, seed)
        fit(material, job.context_s, seed, path)

    def predict(self, release: str, entry: str, context: str) -> None:
        """Predict, by all fits where the entry is fitted."""
        job, material = self._job(release, entry, context)
        place = self.plan.study.name, job.release, job.entry.id, job.context
        fits = [paths.fit(*place, seed) for seed in job.entry.seeds] if job.entry.trained else []
        predict(material, job.context_s, fits, paths.predictions(*place))

    def score(self, release: str, entry: str, context: str) -> None:
        """Score the predictions."""
        job, material = self._job(release, entry, context)
        place = self.plan.study.name, job.release, job.entry.id, job.context
        score(material, paths.predictions(*place), paths.scores(*place))

    def table(self, target: str) -> None:
        """Write a table; raise ConfigError where it is not configured."""
        self.plan.check_table(target)
        write_table(self.plan, target)

    def report(self) -> None:
        """Write the page to look at."""
        write_study_report(self.plan, Path("results", self.plan.study.name, "report.html"))

    def _job(self, release: str, entry: str, context: str) -> tuple[Job, Material]:
        job = self.plan.job(release, entry, context)
        return job, Material(self.plan, self.plan.study.load(job.release), job.entry)
