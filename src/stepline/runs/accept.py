"""Predictions that stay as they are though their method's source changed."""

from pathlib import Path
from typing import Any

from stepline.benchmark import Benchmark
from stepline.errors import ConfigError
from stepline.io import write_json
from stepline.runs.record import read_record


def accept(benchmark: type[Benchmark[Any]], study: str, kind: str) -> int:
    """Note beside the predictions of a kind that its source, as it is now, gives the same, and return of how many.

    Their records keep the source that made them. Raises ConfigError where nothing of that kind is predicted,
    StoreError where a record is damaged.
    """
    known = [name for name, each in benchmark.kinds.items() if each.method]
    if kind not in known:
        raise ConfigError(f"kind {kind!r} of {study} is not known; choose from {', '.join(known)}")
    source, accepted = benchmark.source(benchmark.kinds[kind]), 0
    for path in sorted(Path("results", study, "predictions").glob("*/*/*.json")):
        record = read_record(path)
        if record["record"]["kind"] == kind and record["method"]["source"] != source:
            write_json(path, record | {"method": record["method"] | {"accepted": source}})
            accepted += 1
    return accepted
