import hashlib
import json
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import stepline
from stepline import paths
from stepline.helpers import importable
from stepline.invocation import Invocation
from stepline.io import sha256_file
from stepline.runs import record
from stepline.runs.verbs import Verbs
from tests.benchmark.tiny import CONTENT, Fitted, Tiny, job, tiny, write_banks, write_releases

PLACE = "tiny", "first", "fitted", "all"


@pytest.fixture(autouse=True)
def _banks(tmp_path_factory: pytest.TempPathFactory) -> None:
    write_releases()
    write_banks(tmp_path_factory.mktemp("banks"))


def predicted(made: Tiny, entry: str = "fitted") -> dict[str, Any]:
    verbs = Verbs(made)
    for seed in made.entries[entry].seeds if made.entries[entry].trained else ():
        verbs.fit("first", entry, "all", seed)
    verbs.predict("first", entry, "all")
    path = paths.predictions("tiny", "first", entry, "all").with_suffix(".json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


class Own(Fitted):
    """A method in another module than the benchmark."""


def test_it_says_what_made_the_predictions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tiny(tmp_path, head={"epochs": 5})
    monkeypatch.setattr(Tiny, "method", classmethod(lambda cls, kind: Own))
    found = predicted(made)
    assert found["spec"] == made.spec(job(made, "fitted"))
    assert found["record"] == made.record(job(made, "fitted"))
    assert found["options"] == {"features": "net", "epochs": 5}
    assert found["method"] == {"module": __name__, "source": made.source(made.kinds["fitted"])}


def test_inputs_and_releases_stand_with_their_sha256(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tiny(tmp_path)
    found = predicted(made)["inputs"]
    assert found == {str(path): sha256_file(path) for path in made.predict_inputs(job(made, "fitted"))}
    assert len([path for path in found if path.endswith(".safetensors")]) == 2
    three, files = predicted(made, "three"), {"numbers.json": hashlib.sha256(CONTENT).hexdigest()}
    assert [*three["inputs"]] == ["datasets/tiny/first/release.json"]
    assert three["releases"] == {"first": {"origin": "https://tiny/1/first/numbers.json", "files": files}}
    monkeypatch.setattr(Tiny, "reads", lambda self, job: ["second", job.release])
    assert {name: each["origin"] for name, each in predicted(made, "three")["releases"].items()} == {
        name: f"https://tiny/1/{name}/numbers.json" for name in ("second", "first")
    }


def test_versions_and_how_the_run_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_INVOCATION", "")
    Invocation(configfiles=("/c.yaml",), overrides={"tiny": {"subset": None}}).keep()
    found = predicted(tiny(tmp_path), "three")
    assert found["invocation"] == {"snakefile": "", "configfiles": ["/c.yaml"], "overrides": {"tiny": {"subset": None}}}
    assert found["stepline"]["version"] == stepline.__version__
    assert found["versions"].keys() == {"python", *record.LIBRARIES, "conda"}
    assert found["versions"]["numpy"] == version("numpy")
    assert found["versions"]["conda"] == "no"
    monkeypatch.setenv("CONDA_PREFIX", "/data/.snakemake/conda/0123abcd_")
    assert predicted(tiny(tmp_path), "three")["versions"]["conda"] == "no"
    monkeypatch.setenv("STEPLINE_CONDA", "1")
    assert predicted(tiny(tmp_path), "three")["versions"]["conda"] == "0123abcd_"


class TestCommit:
    @pytest.fixture
    def checkout(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """A checkout in which the package's file is committed."""
        file = tmp_path / "checkout/src/stepline/__init__.py"
        file.parent.mkdir(parents=True)
        file.write_text("")
        folder = tmp_path / "checkout"
        commit = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]
        for words in (["init", "-q"], ["add", "."], commit):
            subprocess.run(["git", "-C", str(folder), *words], check=True)
        monkeypatch.setattr(stepline, "__file__", str(file))
        record._commit.cache_clear()
        yield folder
        record._commit.cache_clear()

    def test_a_checkout_has_one_and_says_where_files_are_changed(self, checkout: Path) -> None:
        head = subprocess.run(["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True)
        assert record._commit() == head.stdout.strip()
        (checkout / "src/stepline/__init__.py").write_text("x = 1")
        record._commit.cache_clear()
        assert record._commit() == f"{head.stdout.strip()} and local changes"

    def test_a_job_imports_the_checkout_through_a_link(
        self, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        commit = record._commit()
        monkeypatch.setattr(stepline, "__file__", f"{importable()}/stepline/__init__.py")
        record._commit.cache_clear()
        assert record._commit() == commit != ""

    def test_an_installed_package_or_a_machine_without_git_has_none(
        self, checkout: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PATH", "")
        assert record._commit() == ""
        record._commit.cache_clear()
        monkeypatch.undo()
        monkeypatch.setattr(stepline, "__file__", "/nowhere/lib/python/stepline/__init__.py")
        assert record._commit() == ""
