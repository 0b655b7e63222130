"""The user's predictions, in the challenge's form."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from stepline.benchmark import Method
from stepline.benchmarks.htstep.inputs import HtstepInputs
from stepline.benchmarks.htstep.kinds import Found
from stepline.datasets.htstep_files import LAST_STEP
from stepline.datasets.htstep_submission import read_submission
from stepline.errors import ConfigError


class PredictionFiles(Method[HtstepInputs, Found]):
    """Predictions from files in the entry's folder, which the configuration's key ``files`` names; one file per split.

    A video of the split that is not in its file has no segments. Equal scores keep the order of the file.
    """

    def predict(self, inputs: HtstepInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the segments of each video; raise ConfigError if there is no file, or a file is invalid."""
        files = {path.stem: path for path in inputs.benchmark.files(inputs.entry)}
        if not files:
            folder, names = inputs.options["files"][inputs.entry.id], [f"{split}.csv" for split in inputs.predicted]
            raise ConfigError(f"{folder} has none of {', '.join(names)}: put one there")
        for split, path in files.items():
            said = read_submission(path, {each.video for each in inputs.truth(split)}, range(LAST_STEP + 1))
            rows: dict[str, list[int]] = defaultdict(list)
            for row, video in enumerate(said.video):
                rows[video].append(row)
            for each in inputs.used(split):
                best = sorted(rows[each.video], key=lambda row: -said.score[row])
                yield Found(
                    seed=0,
                    split=split,
                    video=each.video,
                    steps=tuple(said.step[row] for row in best),
                    segments=tuple((said.start_s[row], said.end_s[row]) for row in best),
                    scores=tuple(said.score[row] for row in best),
                )
