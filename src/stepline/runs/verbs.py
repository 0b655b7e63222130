"""The verbs on the jobs of a benchmark, each by its release, entry and window length such as ``180s``, or ``all``."""

from dataclasses import dataclass
from typing import Any

from stepline import paths
from stepline.benchmark import Benchmark, Job, Method, Prediction, UnavailableError
from stepline.errors import ConfigError
from stepline.io import sha256_file, write_bytes, write_text
from stepline.runs.pairs import write_pairs
from stepline.runs.predictions import write_predictions
from stepline.runs.record import write_record
from stepline.runs.report import write_picture
from stepline.runs.score import score
from stepline.runs.table import write_table


@dataclass(frozen=True)
class Verbs:
    """The verbs of one benchmark."""

    benchmark: Benchmark[Any]

    def fit(self, release: str, entry: str, context: str, seed: int) -> None:
        """Fit with one seed; the checkpoint is empty where something is missing.

        Raises ConfigError where the entry is not fitted, or not with that seed.
        """
        job = self.benchmark.job(release, entry, context)
        if not job.entry.trained:
            raise ConfigError(f"entry {entry!r} is not fitted")
        if seed not in job.entry.seeds:
            key = f"{self.benchmark.name}.{job.entry.kind.options}.seeds"
            raise ConfigError(f"config: {key}: {seed} is not one of them; add it, or fit with one of them")
        inputs, path = self.benchmark.inputs(job), paths.fit(self.benchmark.name, release, entry, context, seed)
        if inputs.missing("fit"):
            write_bytes(path, b"")
        else:
            _method(job).fit(inputs, seed, path)

    def predict(self, release: str, entry: str, context: str) -> None:
        """Predict, by all fits where the entry is fitted. A file without rows says what is missing."""
        job = self.benchmark.job(release, entry, context)
        inputs, fits = self.benchmark.inputs(job), self.benchmark.fits(job) if job.entry.trained else []
        method, needs, made = _method(job), inputs.missing("predict"), list[Prediction]()
        if not needs:
            try:
                made = list(method.predict(inputs, fits))
            except UnavailableError as error:
                needs = error.needs
            seeds = {each.seed for each in made}
            if seeds and seeds != {*job.entry.seeds}:
                said = f"the seeds {sorted(seeds)}, not with {sorted(job.entry.seeds)}"
                raise ConfigError(f"the method of {entry} predicted with {said}, those of its entry")
        about = {"spec": inputs.spec, "needs": needs, "selection": method.selection if made else ""}
        write_predictions(self.benchmark.predictions(job), self.benchmark.prediction, made, **about)
        write_record(inputs, method)

    def score(self, release: str, entry: str, context: str) -> None:
        """Score the predictions."""
        job = self.benchmark.job(release, entry, context)
        score(self.benchmark.inputs(job), self.benchmark.predictions(job), self.benchmark.scores(job))

    def table(self, file: str) -> None:
        """Write a file of tables; raise ConfigError where it is not configured."""
        self.benchmark.check_table(file)
        write_table(self.benchmark, file)

    def picture(self, file: str) -> None:
        """Write a file of tables as a figure; raise ConfigError where it is not configured."""
        self.benchmark.check_table(file)
        write_picture(self.benchmark, file)

    def pairs(self) -> None:
        """Write the differences that the benchmark declares."""
        write_pairs(self.benchmark)

    def examples(self) -> None:
        """Write the benchmark's page of examples; raise ConfigError where it has none."""
        self.benchmark.write_examples()

    def results(self) -> None:
        """Write the sha256 of all results, as ``sha256sum --check`` reads it."""
        lines = [f"{sha256_file(path)}  {path}\n" for path in self.benchmark.results]
        write_text(paths.all_results(self.benchmark.name), "".join(lines))


def _method(job: Job) -> Method[Any, Prediction]:
    assert job.entry.kind.method is not None
    method: Method[Any, Prediction] = job.entry.kind.method()()
    return method
