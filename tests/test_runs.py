from pathlib import Path

import pytest

from stepline.errors import ConfigError, MissingError
from stepline.runs import Run
from tests.benchmarks.oepp.conftest import plan
from tests.benchmarks.oepp.synthetic import write_bank, write_releases


@pytest.fixture
def runs(tmp_path_factory: pytest.TempPathFactory) -> Run:
    write_releases()
    write_bank(tmp_path_factory.mktemp("features"))
    return Run(plan())


def test_each_verb_writes_its_file(runs: Run) -> None:
    runs.predict("split1", "matching-t3", "all")
    runs.score("split1", "matching-t3", "all")
    runs.table("table2")
    runs.report()
    found = {path.as_posix() for path in Path("results/oepp").rglob("*.*") if path.suffix != ".svg"}
    assert found == {
        "results/oepp/predictions/split1/matching-t3/all.parquet",
        "results/oepp/scores/split1/matching-t3/all.json",
        "results/oepp/table2.csv",
        "results/oepp/table2.md",
        "results/oepp/report.html",
    }


def test_what_cannot_be_fitted_is_one_line(runs: Run) -> None:
    with pytest.raises(ConfigError, match="^entry 'random-t3' is not fitted$"):
        runs.fit("split1", "random-t3", "all", 0)
    with pytest.raises(ConfigError, match=r"^config: oepp.heads.seeds: 7 is not one of them; add it, or fit with one"):
        runs.fit("split1", "mlp-t3", "all", 7)
    with pytest.raises(ConfigError, match="^oepp has no entry 'mlp-t9' on 'split1' at 'all'$"):
        runs.fit("split1", "mlp-t9", "all", 0)
    with pytest.raises(MissingError, match="^entry 'vlm-t3-1' on 'split1' needs config:oepp.llm.model=NAME$"):
        runs.predict("split1", "vlm-t3-1", "all")
