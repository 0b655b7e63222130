"""The user's predictions, in the form that the released README describes."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepline.benchmark import Method
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import FILES, Found
from stepline.benchmarks.hirest.methods.found import asked, found, ranking
from stepline.datasets import hirest
from stepline.datasets.schema import SPLITS
from stepline.errors import ConfigError
from stepline.io import parse_json
from stepline.metrics.retrieval import rank

(RANKINGS,), (MOMENTS, SEGMENTS, CAPTIONS) = FILES["retrieval_files"], FILES["files"]


class PredictionFiles(Method[HirestInputs, Found]):
    """Predictions from files in the entry's folder, which the configuration's key ``files`` names.

    A video that is not in the files counts as missing; predictions for other videos are ignored. Ties of scores are
    resolved as in `rank`.
    """

    def predict(self, inputs: HirestInputs, fits: Sequence[Path]) -> Iterator[Found]:
        """Yield the ranking of each query, or the prediction for each pair.

        Raises ConfigError if a file is absent, has an invalid value, or has no evaluated query or pair.
        """
        folder = Path(inputs.options["files"][inputs.entry.id]).expanduser()
        files = {name: _read(folder / name) for name in FILES[inputs.entry.kind_name]}
        made = list(_ranked(inputs, files[RANKINGS]) if RANKINGS in files else _said(inputs, files))
        if not made:
            raise ConfigError(f"{folder}: no file names a video of {' or '.join(inputs.entry.splits)}: give others")
        yield from made


@dataclass(frozen=True)
class _Value:
    """A value in a file, with the keys that lead to it."""

    value: Any
    file: Path
    keys: tuple[str | int, ...] = ()

    def wrong(self, allowed: str) -> ConfigError:
        where = ": ".join([str(self.file), *map(repr, self.keys)])
        return ConfigError(f"{where}: {self.value!r:.80} is not allowed; give {allowed}")

    def members(self) -> "dict[str, _Value]":
        if not isinstance(self.value, dict):
            raise self.wrong("an object")
        return {key: _Value(value, self.file, (*self.keys, key)) for key, value in self.value.items()}

    def member(self, key: str) -> "_Value":
        members = self.members()
        if key not in members:
            raise self.wrong(f"an object with {key!r}")
        return members[key]

    def listed(self, what: str, n: int | None = None) -> "list[_Value]":
        allowed = f"a list of {what if n is None else f'{n} {what}'}"
        if not isinstance(self.value, list):
            raise self.wrong(allowed)
        if n not in (None, len(self.value)):
            raise self.wrong(f"{allowed}, instead of {len(self.value)}")
        return [_Value(value, self.file, (*self.keys, place)) for place, value in enumerate(self.value)]

    def number(self) -> float:
        is_number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not is_number or not abs(self.value) <= sys.float_info.max:
            raise self.wrong("a finite number")
        return float(self.value)

    def interval(self) -> tuple[float, ...]:
        return tuple(each.number() for each in self.listed("numbers, start and end in seconds", 2))

    def text(self) -> str:
        try:
            self.value.encode()
        except (AttributeError, UnicodeEncodeError):
            raise self.wrong("a string") from None
        return str(self.value)

    def by_query(self) -> "dict[str, _Value]":
        known = {pair.query for split in SPLITS for pair in hirest.load(split)}
        for query in self.members():
            if query not in known:
                raise _Value(query, self.file).wrong("a query of the HiREST release")
        return self.members()

    def by_video(self) -> "dict[str, _Value]":
        return {_Value(name, self.file, self.keys).video(): each for name, each in self.members().items()}

    def video(self) -> str:
        if not self.text().endswith(".mp4"):
            raise self.wrong("a video id with .mp4")
        return self.text().removesuffix(".mp4")


def _read(file: Path) -> _Value:
    try:
        return _Value(parse_json(file.read_bytes()), file)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read ({error.strerror}): give predictions in the released form") from None
    except ValueError as error:
        raise ConfigError(f"{file} is not JSON ({error}): give predictions in the released form") from None


def _ranked(inputs: HirestInputs, file: _Value) -> Iterator[Found]:
    """Yield the rankings of the pool for the queries in the file."""
    pool, said = {each.video for each in inputs.used("pool")}, file.by_query()
    for query in asked(inputs, pool):
        if query not in said:
            continue
        listed = said[query].member("videos")
        videos = [each.video() for each in listed.listed("videos")]
        if len({*videos}) < len(videos):
            raise listed.wrong("each video once")
        scores = [each.number() for each in said[query].member("scores").listed("scores, one per video", len(videos))]
        kept = {video: score for video, score in zip(videos, scores, strict=True) if video in pool}
        if not kept:
            raise listed.wrong("videos of test and distractors")
        yield ranking(query, rank([*kept], [*kept.values()]), len(kept))


def _said(inputs: HirestInputs, files: Mapping[str, _Value]) -> Iterator[Found]:
    """Yield the predictions for each pair in the files; steps only for pairs with annotated steps."""
    queries = files[MOMENTS].by_query() if MOMENTS in files else {}
    moments = {query: each.by_video() for query, each in queries.items()}
    segments = files[SEGMENTS].by_video() if SEGMENTS in files else {}
    captions = files[CAPTIONS].by_video()
    for pair in inputs.evaluated:
        said: dict[str, Any] = {}
        if moment := moments.get(pair.query, {}).get(pair.video):
            said["moment"] = moment.member("bounds").interval()
        if pair.steps and pair.video in segments:
            bounds = segments[pair.video].member("bounds").listed("intervals")
            said["segments"] = tuple(each.interval() for each in bounds)
        if pair.steps and pair.video in captions:
            listed = captions[pair.video].member("captions").listed("captions, one per step", len(pair.steps))
            said["sentences"] = tuple(each.member("sentence").text() for each in listed)
        if said:
            yield found(pair, **said)
