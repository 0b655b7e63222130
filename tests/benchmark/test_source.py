import sys
from collections.abc import Callable, Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any

import pytest

from stepline.benchmark import declared, source
from stepline.benchmark.source import source_digest
from stepline.benchmarks.hirest.benchmark import Hirest
from stepline.benchmarks.segments.benchmark import Segments
from stepline.io import write_text
from stepline.syntax import code_text
from tests.benchmark.tiny import Tiny

CODE = 'def f(a, b=2):\n    """Add."""\n    return a + b  # both\n'
FILES = {
    "__init__.py": "",
    "benchmark.py": "from made.kinds import KINDS\nTITLE = 'a'\n",
    "kinds.py": "KINDS = 1\n",
    "inputs.py": "from made.benchmark import TITLE\nimport made.words\n",
    "words.py": "WORD = 1\n",
    "methods/__init__.py": "",
    "methods/first.py": (
        "from made.inputs import TITLE\nfrom made.kinds import KINDS\n"
        "from stepline.models.hmm import x\nfrom stepline.metrics import soda\n"
        "class First:\n    N = 1\n"
    ),
    "methods/second.py": "def f():\n    from stepline.models import linear\nclass Second:\n    N = 1\n",
}


def test_the_modules_of_a_benchmarks_class_and_of_its_bases_are_about_all_methods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[list[str]] = []
    for name in ("source_digest", "scoring_digest"):
        monkeypatch.setattr(declared, name, lambda _, modules: asked.append(modules) or "")
    Segments.source(Segments.kinds["prior"])
    Segments.scoring_source()
    assert [modules[:3] for modules in asked] == [
        [f"stepline.benchmarks.segments.{name}" for name in ("benchmark", "recognition")] + ["stepline.benchmark.plan"]
    ] * 2


class TestCodeText:
    @pytest.mark.parametrize(
        "same",
        [
            '"""Head."""\ndef f(\n    a,\n    b = 2,\n):\n    return (a + b)\n',
            "def f(a, b=2):\n    # a comment\n    return a + b\n",
            'def f(a, b=2):\n    """Another."""\n\n    return a + b\n',
        ],
    )
    def test_comments_docstrings_and_layout_play_no_part(self, same: str) -> None:
        assert code_text(same) == code_text(CODE)

    @pytest.mark.parametrize("changed", ["return a - b", "return b + a", 'return a + "b"'])
    def test_code_does(self, changed: str) -> None:
        assert code_text(CODE) != code_text(CODE.replace("return a + b", changed))
        assert code_text(CODE) != code_text(CODE.replace("b=2", "b=3"))


@pytest.fixture
def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Return what computes the digest of a method of a small package, with some of its files changed."""
    for name in ("models/hmm", "models/linear", "metrics/plans", "metrics/soda"):
        write_text(tmp_path / f"{name}.py", "y = 1\n")
    monkeypatch.setattr(source, "ROOT", tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def compute(number: int = 0, **changes: str) -> str:
        folder = tmp_path / "made"
        for name, content in (FILES | changes).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
        source._read.cache_clear()
        invalidate_caches()
        import_module("made.benchmark")
        return source_digest(("methods.first", "methods.second")[number], ["made.benchmark"])

    yield compute
    source._read.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "made"]:
        del sys.modules[name]


def changed(file: str, old: str, new: str) -> dict[str, str]:
    assert old in FILES[file]
    return {file: FILES[file].replace(old, new)}


class TestDigest:
    def test_it_is_of_a_methods_module_and_what_that_imports_of_its_package(self, digest: Callable[..., str]) -> None:
        before = digest()
        assert len(before) == 8
        assert digest(**changed("methods/first.py", "N = 1", "N = 2")) != before
        assert digest(**changed("inputs.py", "import made.words", "")) != before
        assert digest(**changed("words.py", "1", "2")) != before
        assert digest() == before

    def test_what_a_package_imports_of_itself_counts(self, digest: Callable[..., str]) -> None:
        first = changed("methods/first.py", "from made.inputs import TITLE\n", "import made.tools\n")
        files = first | {"tools/__init__.py": "from .deep import z\n", "tools/deep.py": "z = 1\n"}
        assert digest(**files) != digest(**files | {"tools/deep.py": "z = 2\n"})

    def test_a_module_with_a_base_of_the_benchmark_plays_no_part(self, digest: Callable[..., str]) -> None:
        found = []
        for words in ("WORD = 1", "WORD = 2"):
            digest(**changed("words.py", "WORD = 1", words))
            found.append(source_digest("methods.first", ["made.benchmark", "made.words"]))
        assert found[0] == found[1]

    def test_a_file_that_moves_plays_no_part(self, digest: Callable[..., str]) -> None:
        inputs = FILES["inputs.py"].replace("made.words", "made.deep.terms")
        moved = {"inputs.py": inputs, "deep/terms.py": FILES["words.py"], "words.py": "WORD = 3\n"}
        before = digest()
        assert digest(**moved) == before
        assert digest(**moved | {"deep/terms.py": "WORD = 4\n"}) != before

    def test_nor_does_a_statement_that_moves(self, digest: Callable[..., str]) -> None:
        both = {"words.py": "WORD = 1\nLATE = 2\n"}
        before = digest(**both)
        assert before != digest()
        assert digest(**{"inputs.py": FILES["inputs.py"] + "LATE = 2\n", "words.py": "WORD = 1\n"}) == before

    def test_nor_do_imports(self, digest: Callable[..., str]) -> None:
        late = "def f():\n    import re\n    return 1\n"
        checked = "import os\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import sys\n"
        assert digest(**{"words.py": checked + late}) == digest(**{"words.py": "def f():\n    return 1\n"})

    def test_no_method_counts_for_another(self, digest: Callable[..., str]) -> None:
        before = digest(0), digest(1)
        assert before[0] != before[1]
        change = changed("methods/second.py", "N = 1", "N = 2")
        assert digest(0, **change) == before[0]
        assert digest(1, **change) != before[1]

    def test_the_benchmark_itself_and_its_kinds_play_no_part(self, digest: Callable[..., str]) -> None:
        before = digest()
        assert digest(**changed("benchmark.py", "'a'", "'b'")) == before
        assert digest(**changed("kinds.py", "1", "2")) == before

    @pytest.mark.parametrize(
        ("old", "new", "counts"),
        [
            ("units = 1", "units = 2", True),
            ("seconds = 1", "seconds = 2", True),
            ("KINDS = {1}", "KINDS = {2}", False),
            ("scores = 1", "scores = 2", False),
        ],
    )
    def test_of_a_benchmark_outside_its_readers_count(
        self, digest: Callable[..., str], old: str, new: str, counts: bool
    ) -> None:
        content = (
            "class B:\n    KINDS = {1}\n    def segments(self):\n        units = 1\n"
            "    def values(self):\n        scores = 1\ndef lengths():\n    seconds = 1\n"
        )
        before = digest(**{"benchmark.py": content})
        assert (digest(**{"benchmark.py": content.replace(old, new)}) != before) == counts

    def test_models_count_also_where_they_are_imported_late(self, digest: Callable[..., str], tmp_path: Path) -> None:
        before = digest(0), digest(1)
        (tmp_path / "models/linear.py").write_text("y = 2\n")
        assert digest(0) == before[0]
        assert digest(1) != before[1]

    def test_metrics_count_where_they_are_imported(self, digest: Callable[..., str], tmp_path: Path) -> None:
        before = digest(0), digest(1)
        (tmp_path / "metrics/soda.py").write_text("y = 2\n")
        (tmp_path / "metrics/plans.py").write_text("y = 2\n")
        assert digest(0) != before[0]
        assert digest(1) == before[1]

    def test_the_metrics_of_another_study_play_no_part_in_scores(self, monkeypatch: pytest.MonkeyPatch) -> None:
        read, found = source._read, set[str]()

        def record(path: Path, module: str) -> Any:
            found.add(module)
            return read(path, module)

        monkeypatch.setattr(source, "_read", record)
        Hirest.scoring_source()
        assert {"stepline.metrics.transformer", "stepline.metrics.step_captions"} <= found
        assert not {"stepline.metrics", "stepline.metrics.plans", "stepline.metrics.soda"} & found

    def test_scores_are_of_what_selects_predictions_too(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def select(self: Tiny, inputs: Any, made: Any) -> tuple[Any, str]:
            return made[:1], "the first"

        before = Tiny.scoring_source()
        monkeypatch.setattr(Tiny, "select", select)
        assert Tiny.scoring_source() != before

    def test_a_comment_plays_no_part(self, digest: Callable[..., str]) -> None:
        assert digest(**changed("methods/first.py", "N = 1", 'N = 1  # a number\n    """Of it."""')) == digest()

    def test_a_method_beside_its_kind_counts(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        found = []
        for number in (1, 2):
            folder = tmp_path / f"alone{number}"
            folder.mkdir()
            (folder / "__init__.py").write_text(f"class M:\n    N = {number}\n")
            monkeypatch.syspath_prepend(str(tmp_path))
            import_module(folder.name)
            found.append(source_digest("", [folder.name]))
        assert found[0] != found[1]

    def test_nothing_is_imported(self, digest: Callable[..., str]) -> None:
        digest()
        assert "made.methods.first" not in sys.modules
