"""Numbers that tables ask for, and a small paper."""

import csv
from pathlib import Path
from typing import Any

from stepline import tables
from stepline.benchmark.words import Metric, Sees
from stepline.tables import Number, Row

METRICS = {
    "accuracy": Metric(title="Acc"),
    "map": Metric(title="mAP"),
    "soda_d": Metric(title="SODA-D"),
    "base_sr": Metric(title="Base SR"),
    "novel_sr": Metric(title="Novel SR"),
    "videos": Metric(title="Videos", unit="count"),
    "duration": Metric(title="Duration (mean, s)", unit=""),
}
SETTINGS = ("baseline", "reference", "zero-shot")
RERUN = "the number of the same cell in the paper's later edition"
WINDOW = Sees("window", "its window")
SAMPLE_LIST = Sees("sample_list", "the sample list", oracle=True)
PAPER = """\
table,method,modality,setting,context_s,metric,split,paper,rerun,decimals,tolerance,tolerance_source,evidence,note
2a,Random,,baseline,60,accuracy,test,4.22,,2,0.005,known,,
2a,Human,V+L,reference,,accuracy,test,67.0,,1,,,,
2a,MiniLM,L,zero-shot,60,accuracy,test,11.22,,2,1,a rerun,,
2a,MiniLM,L,zero-shot,60,map,test,12.17,,2,1,a rerun,,
2a,MiniLM,L,zero-shot,180,accuracy,test,12.39,,2,,,,
2a,Broken,L,zero-shot,60,accuracy,test,99.00,,2,,,more than all,
3b,MiniLM,V,last-layer,60,accuracy,test,9.4,9.81,2,0.5,a rerun,,copied by hand
3b,MiniLM,V,zero-shot,60,accuracy,test,,7.84,2,,,,later only
3b,MiniLM,V,zero-shot,180,accuracy,test,,,,,,,damaged
3b,People,V,reference,,accuracy,test,50.0,51.0,1,,,,
"""


def score(accuracy: float | None = 11.22, **more: Any) -> dict[str, Any]:
    measured = {
        "value": accuracy, "sd": None, "ci": [8.0, 14.0], "seeds": [0], "per_seed": [accuracy], "per_video": {"a": 8.0},
    }  # fmt: skip
    base = {
        "metrics": {"accuracy": measured, "map": {**measured, "value": 12.0}}, "n_videos": 6,
        "n_listed": 6, "n_samples": 12000, "n_queries": None, "pool_used": None, "pool_listed": None,
        "selection": "", "status": "present", "needs": [],
    }  # fmt: skip
    return base | more


def number(**changes: Any) -> Number:
    base: dict[str, Any] = {
        "table": "2a", "title": "Step recognition", "entry": "minilm", "method": "MiniLM", "modality": "L",
        "setting": "zero-shot", "context_s": 60.0, "metric": "accuracy", "release": "v0", "paper_release": "v0",
        "split": "test", "sees": (WINDOW,), "spec": "1a2b3c4d", "score": score(),
    }  # fmt: skip
    return Number(**(base | changes))


def build(numbers: list[Number], paper: Path | None) -> list[Row]:
    return tables.build(numbers, paper, METRICS, settings=SETTINGS, rerun=RERUN)


def row(paper: Path | None, **changes: Any) -> Row:
    asked = number(**changes)
    return next(r for r in build([asked], paper) if r.entry == "minilm" and r.metric == asked.metric)


def cells(rows: list[Row], tmp_path: Path) -> list[dict[str, str]]:
    tables.write_csv(rows, tmp_path / "table.csv")
    with open(tmp_path / "table.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
