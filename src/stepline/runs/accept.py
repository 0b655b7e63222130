"""Acceptance of existing predictions and scores after a source change."""

import os
from pathlib import Path
from typing import Any

from stepline.benchmark import Benchmark
from stepline.benchmark.plan import SCORES, read_score
from stepline.errors import ConfigError
from stepline.io import write_json, write_sealed
from stepline.runs.record import read_record


def accept(benchmark: type[Benchmark[Any]], study: str, what: str = "") -> int:
    """Record that the current source of a kind, of ``scores`` or, by default, of all gives the same results.

    Returns the number of files. The records keep the source that computed the results. Raises ConfigError if no entry
    of that kind has predictions, StoreError if a record is damaged.
    """
    known = [*(name for name, each in benchmark.kinds.items() if each.method), SCORES]
    if what and what not in known:
        raise ConfigError(f"kind {what!r} of {study} is not known; choose from {', '.join(known)}")
    kinds = {what} if what else {*known}
    accepted = _accept_scores(benchmark.scoring_source(), study) if SCORES in kinds else 0
    for path in sorted(Path("results", study, "predictions").glob("*/*/*.json")):
        record = read_record(path)
        kind = record["record"]["kind"]
        if kind in kinds and (source := benchmark.source(benchmark.kinds[kind])) != record["method"]["source"]:
            write_json(path, record | {"method": record["method"] | {"accepted": source}})
            accepted += 1
    return accepted


def _accept_scores(source: str, study: str) -> int:
    accepted = 0
    for path in sorted(Path("results", study, "scores").glob("*/*/*.json")):
        score, times = read_score(path), path.stat()
        if score.get("source") not in (None, source):
            write_sealed(path, score | {"accepted": source})
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # tables stay up to date
            accepted += 1
    return accepted
