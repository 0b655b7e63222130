"""The verbs for a benchmark's jobs. A job has a release, an entry and a window length such as ``180s``, or ``all``."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.benchmark import Benchmark, Method, Prediction, UnavailableError
from stepline.errors import ConfigError
from stepline.io import sha256_file, write_bytes, write_text
from stepline.runs.inputs import Inputs
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
        """Train with one seed; the checkpoint is empty if an input is missing.

        Raises ConfigError if the entry is not trained, or not with that seed.
        """
        job = self.benchmark.job(release, entry, context)
        if not job.entry.trained:
            raise ConfigError(f"entry {entry!r} is not trained")
        if seed not in job.entry.seeds:
            key = f"{self.benchmark.name}.{job.entry.kind.options}.seeds"
            raise ConfigError(f"config: {key}: {seed} is not in the list; add it, or use a seed of the list")
        fit(self.benchmark.inputs(job), seed, paths.fit(self.benchmark.name, release, entry, context, seed))

    def predict(self, release: str, entry: str, context: str) -> None:
        """Write predictions, with all checkpoints if the entry is trained. A file without rows lists missing inputs."""
        job = self.benchmark.job(release, entry, context)
        fits = self.benchmark.fits(job) if job.entry.trained else []
        inputs = self.benchmark.inputs(job)
        write_record(inputs, predict(inputs, fits, self.benchmark.predictions(job)))

    def score(self, release: str, entry: str, context: str) -> None:
        """Score the predictions."""
        job = self.benchmark.job(release, entry, context)
        score(self.benchmark.inputs(job), self.benchmark.predictions(job), self.benchmark.scores(job))

    def table(self, file: str) -> None:
        """Write a table file; raise ConfigError if it is not configured."""
        self.benchmark.check_table(file)
        write_table(self.benchmark, file)

    def picture(self, file: str) -> None:
        """Write a table file as a figure; raise ConfigError if it is not configured."""
        self.benchmark.check_table(file)
        write_picture(self.benchmark, file)

    def pairs(self) -> None:
        """Write the declared differences between entries."""
        write_pairs(self.benchmark)

    def examples(self) -> None:
        """Write the benchmark's page of examples; raise ConfigError if it has none."""
        self.benchmark.write_examples()

    def results(self) -> None:
        """Write the sha256 of all results for ``sha256sum --check``."""
        lines = [f"{sha256_file(path)}  {path}\n" for path in self.benchmark.results]
        write_text(paths.all_results(self.benchmark.name), "".join(lines))


def fit(inputs: Inputs[Any], seed: int, path: Path) -> None:
    """Write the checkpoint of one seed, or an empty file if an input is missing."""
    inputs = inputs.staged("fit")
    if inputs.missing("fit"):
        write_bytes(path, b"")
    else:
        inputs.benchmark.method(inputs.entry.kind)().fit(inputs, seed, path)


def predict(inputs: Inputs[Any], fits: Sequence[Path], path: Path) -> Method[Any, Prediction]:
    """Write predictions and return their method. A file without rows lists the missing inputs.

    Raises ConfigError if the method's predictions have other seeds than its entry.
    """
    inputs = inputs.staged("predict")
    method: Method[Any, Prediction] = inputs.benchmark.method(inputs.entry.kind)()
    needs, made = inputs.missing("predict"), list[Prediction]()
    if not needs:
        try:
            made = list(method.predict(inputs, fits))
        except UnavailableError as error:
            needs = error.needs
    seeds, known = {each.seed for each in made}, {*inputs.entry.seeds}
    if made and seeds != known:
        raise ConfigError(
            f"the method of {inputs.entry.id} returned predictions for the seeds {sorted(seeds)}, but its entry has "
            f"{sorted(known)}"
        )
    about: dict[str, Any] = {"selection": method.selection, "in_part": inputs.in_part} if made else {"selection": ""}
    write_predictions(path, inputs.benchmark.prediction, made, spec=inputs.spec, needs=needs, **about)
    return method
