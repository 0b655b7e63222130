import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib")
from stepline import paths
from stepline.benchmark import Job
from stepline.benchmarks.oepp.benchmark import Oepp
from stepline.benchmarks.oepp.kinds import Plan
from stepline.benchmarks.oepp.windows import windows
from stepline.datasets import oepp
from stepline.metrics.plans import NO_ACTION
from stepline.runs.predictions import write_predictions
from stepline.runs.report import write_report
from stepline.runs.shown import SHOWN
from stepline.runs.verbs import Verbs
from tests.benchmarks.oepp.conftest import plan
from tests.benchmarks.oepp.test_table import compute, measured


def page(made: Oepp) -> str:
    """Write the page and the picture of its first table; return the page, which shows nothing that is not in it."""
    write_report(made, Path("results/oepp/report.html"))
    Verbs(made).picture(made.tables[0])
    text = Path("results/oepp/report.html").read_text()
    assert re.findall(r'(?:src|href)="(?!data:|#)[^"]*"', text) == []
    assert "@import" not in text
    svg = ElementTree.parse(f"results/oepp/{made.tables[0]}.svg")
    assert svg.getroot().tag == "{http://www.w3.org/2000/svg}svg"
    return text


def test_a_page_of_counts_has_no_figures(releases: None) -> None:
    text = page(plan({"tables": ["table8"]}))
    assert "<figure>" not in text
    assert "Test novel" in text


def write_plans(made: Oepp, entry: str, names: dict[str, int]) -> None:
    """Write plans of a planner for the first window of each video of base and novel: one action throughout."""
    plans = [
        Plan(seed=seed, split=part, video=window.video, index=window.index, plan=(names[part] + seed - 5,) * 3)
        for seed in (6, 5)
        for part in ("base", "novel")
        for video in oepp.load("split1", part)  # type: ignore[arg-type]
        for window in windows([video], 3, "repeat_first")[:1]
    ]
    path, spec = (
        paths.predictions("oepp", "split1", entry, "all"),
        made.spec(Job(release="split1", entry=made.entries[entry])),
    )
    write_predictions(path, Plan, plans, spec=spec, needs=[], selection="")


def test_the_page_shows_results_and_plans(banks: None) -> None:
    made = plan({"tables": ["table2"]})
    measured(made, "table2", 12.5)
    compute(made, "table2")
    write_plans(made, "mlp-t3", {"base": 1, "novel": 2})
    write_plans(made, "pdpp-t3", {"base": NO_ACTION, "novel": 0})
    text = page(made)
    captions = re.findall("<figcaption>(.*?)</figcaption>", text, re.DOTALL)
    assert len(captions) == 2 + 2
    assert "Plans of test novel windows, split1" in " ".join(captions)
    assert "MLP-based T=3 12.50" in text
    shown = [alt for alt in re.findall(r'alt="([^"]*)"', text) if "MLP:" in alt]
    base, novel = oepp.pool("split1", "base"), oepp.pool("split1", "novel")
    assert len(shown) == 2
    assert f"MLP: {', '.join([base[1]] * 3)}" in shown[0]
    assert "PDPP*: None, None, None" in shown[0]
    assert f"MLP: {', '.join([novel[2]] * 3)}" in shown[1]
    assert f"PDPP*: {', '.join([novel[0]] * 3)}" in shown[1]
    for alt, part in zip(shown, ("base", "novel"), strict=True):
        long = [video for video in oepp.load("split1", part) if len(video.steps) >= 3]  # type: ignore[arg-type]
        first = {video.event: video for video in reversed(long)}
        assert alt.count("MLP:") == min(SHOWN, len(first))
        video = first[long[0].event]
        assert alt.startswith(f"{video.event}, {video.id}: {', '.join(step.action for step in video.steps[:3])}; ")


def test_plans_of_a_model_stand_under_its_name(banks: None) -> None:
    made = plan({"tables": ["table7"], "llm": {"model": "mine", "url": "http://localhost:1"}})
    write_plans(made, "vlm-t3-1", {"base": 1, "novel": 2})
    assert ["mine: " in picture.alt for picture in made.examples()] == [True, True]


def test_plans_of_what_is_missing_something_now_are_not_shown(banks: None) -> None:
    made = plan({"tables": ["table2"]})
    write_plans(made, "mlp-t3", {"base": 1, "novel": 2})
    assert len(made.examples()) == 2
    shutil.rmtree("features")
    assert plan({"tables": ["table2"], "releases": ["split1", "rebuilt"]}).examples() == []
