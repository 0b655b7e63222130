"""The index of a bank: its matches compared with those of all rows, its stated recall, and when it is not used.

This module is itself a family: a network of 32 values and a tower whose vectors depend on the words.
"""

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

pytest.importorskip("torch")
faiss = pytest.importorskip("faiss")

from stepline import cli, paths  # noqa: E402
from stepline.backbones import registry  # noqa: E402
from stepline.errors import ConfigError, MissingError, StoreError  # noqa: E402
from stepline.io import write_text  # noqa: E402
from stepline.pipeline import Pipeline  # noqa: E402
from stepline.report.search import lines  # noqa: E402
from stepline.search import indexed, indexing, sources  # noqa: E402
from stepline.search.index import Index  # noqa: E402
from stepline.search.searcher import Found, Searcher  # noqa: E402
from stepline.search.state import state  # noqa: E402
from stepline.spec import TextSpec  # noqa: E402
from tests.search import test_searcher as colours  # noqa: E402
from tests.search.test_searcher import configured, registered  # noqa: E402

SPEC = replace(colours.SPEC, dimension=32)
TOWER = replace(colours.TOWER, dimension=32, max_tokens=9)
VIDEOS, LENGTH = 20, 300
TEXT = "stir the soup"


class Tower:
    spec = TOWER

    def tokens(self, text: str) -> list[int]:
        return [crc32(word.encode()) for word in text.split()]

    def encode(self, tokens: list[int]) -> np.ndarray:
        return np.random.default_rng(tokens).normal(size=32).astype(np.float32)


def load_text(spec: TextSpec, files: Mapping[str, Path]) -> Tower:
    return Tower()


OWN = __name__, SPEC, TOWER


@pytest.fixture(autouse=True)
def _family(monkeypatch: pytest.MonkeyPatch) -> None:
    registered(monkeypatch, *OWN)


def rows(seed: int = 0) -> dict[str, np.ndarray]:
    """Return rows that change slowly in scenes of 10 s, around a direction that all share; a few are zeros."""
    rng = np.random.default_rng(seed)
    scenes = rng.normal(size=(VIDEOS, LENGTH // 10, 32)).repeat(10, axis=1) + 1
    values = np.float32(scenes + 0.3 * rng.normal(size=(VIDEOS, LENGTH, 32)))
    values[0, :3] = 0
    return {f"v{number:02d}": each for number, each in enumerate(values)}


def put(values: Mapping[str, np.ndarray]) -> Pipeline:
    """Store the rows, a second apart."""
    pipeline = configured("colours")
    colours.put(pipeline, values)
    return pipeline


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a work folder with an index by cosine, to be copied."""
    folder = tmp_path_factory.mktemp("ready")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        registered(patched, *OWN)
        indexing.build(put(rows()), "colours")
    return folder


@pytest.fixture
def pipeline(ready: Path) -> Pipeline:
    shutil.copytree(ready, ".", dirs_exist_ok=True)
    return configured("colours")


@pytest.fixture
def index(pipeline: Pipeline) -> Index:
    found = Index.read(paths.index("mine", pipeline.features.spec_of("colours")))
    assert found
    return found


def moments(found: Found) -> list[tuple[str, float, float]]:
    return [(match.video, match.time_s, match.score) for match in found.matches]


def exact_scores(query: np.ndarray, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    scores = {}
    for video, stored in values.items():
        each = stored.astype(np.float16)
        lengths = np.linalg.norm(each.astype(np.float64), axis=1) * np.linalg.norm(query)
        scores[video] = np.where(lengths > 0, each.astype(np.float64) @ query / np.maximum(lengths, 1e-9), 0).round(6)
    return scores


def test_matches_by_index_are_those_of_all_rows_and_its_recall_is_stated(pipeline: Pipeline, index: Index) -> None:
    assert index.folder == paths.index("mine", pipeline.features.spec_of("colours"))
    assert {kind: (each.queries, each.at_10 > 0.95) for kind, each in index.recalls.items()} == {
        "rows": ("100 rows of other videos", True),
        "texts": ("48 short texts", True),
    }
    near, every = Searcher.open(pipeline), Searcher.open(pipeline, exact=True)
    same, recalled = [], []
    for number in range(20):
        text = f"question {number}"
        by_index, by_all = near.ask(text), every.ask(text)
        assert by_index.compared == f"by index: {index.recalls['texts']}"
        assert by_all.compared == "all 6,000 rows were compared"
        assert by_index.hint == by_all.hint == ""
        assert [(each.video, each.score, each.start_s) for each in by_index.videos] == [
            (each.video, each.score, each.start_s) for each in by_all.videos
        ]
        for video in by_index.curves.keys() & by_all.curves.keys():
            np.testing.assert_allclose(by_index.curves[video], by_all.curves[video], atol=1e-4)
        assert by_index.spread.usual == pytest.approx(by_all.spread.usual, abs=0.01)
        assert (by_index.spread.rows, by_index.spread.sampled) == (6000, 6000)
        same.append(len({*moments(by_index)} & {*moments(by_all)}))
        query = Tower().encode(Tower().tokens(text)).astype(np.float64)
        scores = exact_scores(query, rows())
        for video, time_s, score in moments(by_index):  # each is a true local maximum with its exact score
            first = max(int(time_s) - 9, 0)
            assert score == pytest.approx(scores[video][int(time_s)], abs=1e-6)
            assert scores[video][first : int(time_s) + 10].max() <= score + 1e-6
        best = np.argsort(-np.concatenate([*scores.values()]), kind="stable")[:10]
        recalled.append(np.isin(best, index.candidates(query, 2560, "texts")).mean())
    assert np.mean(same) > 9.5
    assert np.mean(recalled) == pytest.approx(index.recalls["texts"].at_10, abs=0.03)


def test_more_matches_than_the_candidates_have_and_chosen_videos_are_compared_whole(
    pipeline: Pipeline, index: Index
) -> None:
    near, every = Searcher.open(pipeline), Searcher.open(pipeline, exact=True)
    found = near.like("v03", 42.0)
    assert found.compared == f"by index: {index.recalls['rows']}"
    assert len({*moments(found)} & {*moments(every.like("v03", 42.0))}) >= 9
    assert ("v03", 42.0) not in [each[:2] for each in moments(found)]
    many = near.ask(TEXT, top=21, window_s=1000)
    assert many.compared == "all 6,000 rows were compared"
    assert len(many.matches) == VIDEOS
    assert moments(many) == moments(every.ask(TEXT, top=21, window_s=1000))
    few = near.ask(TEXT, videos=["v01", "v02"])
    assert few.compared == "all 600 rows were compared"
    assert moments(few) == moments(every.ask(TEXT, videos=["v01", "v02"]))


def test_an_index_for_the_dot_product_is_not_used_for_moments_like_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "DOT", ("colours",))
    pipeline = put(rows())
    index = indexing.build(pipeline, "colours")
    assert index.similarity == "dot product"
    searcher, every = Searcher.open(pipeline), Searcher.open(pipeline, exact=True)
    found = searcher.ask(TEXT)
    assert found.compared.startswith("by index")
    assert len({*moments(found)} & {*moments(every.ask(TEXT))}) >= 9
    assert [each.score for each in found.videos] == [each.score for each in every.ask(TEXT).videos]
    like = searcher.like("v03", 42.0)
    assert like.hint == "the index is not used: it compares by dot product, not by cosine"
    assert moments(like) == moments(every.like("v03", 42.0))


def test_an_index_of_changed_features_is_not_used(pipeline: Pipeline, index: Index) -> None:
    before = state(pipeline, "colours")
    put(rows(1))
    found = Searcher.open(pipeline).ask(TEXT)
    assert found.compared == "all 6,000 rows were compared"
    assert found.hint == (
        f"the index {index.folder} is not used: the features have changed since it was built; "
        "`stepline bank index colours mine` builds it again"
    )
    assert f"matches: {found.compared}" in [*lines(found)]
    assert found.hint in [*lines(found)]
    assert moments(found) == moments(Searcher.open(pipeline, exact=True).ask(TEXT))
    changed = state(pipeline, "colours")
    indexing.build(pipeline, "colours")
    assert len({before, changed, state(pipeline, "colours")}) == 3
    assert Searcher.open(pipeline).ask(TEXT).compared.startswith("by index")


def test_an_index_is_used_only_where_its_recall_is_stated_and_high_and_faiss_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(indexing, "INSTRUCTIONS", ("cut the onion",))
    pipeline = put(rows())
    index = indexing.build(pipeline, "colours")
    assert [*index.recalls] == ["rows"]
    found = Searcher.open(pipeline).ask(TEXT)
    assert found.hint == "the index is not used: its recall for texts was not measured"
    assert found.compared == "all 6,000 rows were compared"
    monkeypatch.setattr(indexed, "LEAST_RECALL", 1.01)
    hint = Searcher.open(pipeline).like("v03", 42.0).hint
    assert hint == f"the index is not used: {index.recalls['rows']}, is below 1.01"
    monkeypatch.setattr("stepline.search.index.find_spec", lambda name: None)
    found = Searcher.open(pipeline).ask(TEXT)
    assert found.compared == "all 6,000 rows were compared"
    assert "the package faiss is not installed: pip install" in found.hint


def test_rows_are_read_only_where_they_are_needed_and_those_of_shown_videos_are_checked(pipeline: Pipeline) -> None:
    found = Searcher.open(pipeline).ask(TEXT, top=2)
    shown = {each.video for each in (*found.videos, *found.matches)}
    file = next(Path("features").glob("colours/*/mine/000/features/c/0/0"))
    whole = file.read_bytes()
    for video, fails in ((min({*rows()} - shown), False), (found.matches[0].video, True)):
        first = int(video[1:]) * LENGTH * 32 * 2
        content = bytearray(whole)
        content[first + 1] ^= 1
        file.write_bytes(content)
        if fails:
            with pytest.raises(StoreError, match=f"the rows of {video} are damaged"):
                Searcher.open(pipeline).ask(TEXT, top=2)
        else:
            assert moments(Searcher.open(pipeline).ask(TEXT, top=2)) == moments(found)
            with pytest.raises(StoreError, match=f"the rows of {video} are damaged"):
                Searcher.open(pipeline, exact=True)
            with pytest.raises(StoreError, match=f"the rows of {video} are damaged"):
                indexing.build(pipeline, "colours")


def test_a_damaged_index_is_one_line_that_names_the_command(pipeline: Pipeline, index: Index) -> None:
    file = index.folder / "index.faiss"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(StoreError, match="index.faiss is absent or damaged: run `stepline bank index` again"):
        Searcher.open(pipeline)


def test_an_index_is_replaced_whole_or_not_at_all_and_has_the_same_bytes_again(
    pipeline: Pipeline, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {file.name: file.read_bytes() for file in index.folder.iterdir()}
    assert {*files} == {"index.faiss", "arrays.npz", "record.json"}

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(indexing, "write_sealed", stop)
        with pytest.raises(KeyboardInterrupt):
            indexing.build(pipeline, "colours")
    assert {file.name: file.read_bytes() for file in index.folder.parent.rglob("*") if file.is_file()} == files
    faiss.omp_set_num_threads(1)
    indexing.build(pipeline, "colours")
    assert {file.name: file.read_bytes() for file in index.folder.iterdir()} == files


def test_what_cannot_have_an_index_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    few = put({video: each[:100] for video, each in rows().items()})
    with pytest.raises(ConfigError, match="colours has 2,000 rows of 20 videos of mine: an index needs more"):
        indexing.build(few, "colours")
    few.config["features"]["store"] = "s3://bucket/prefix"
    with pytest.raises(ConfigError, match="features on s3://bucket/prefix cannot have an index"):
        indexing.build(few, "colours")
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingError, match=r"needs the package faiss: pip install .*\[index\]"):
        indexing.build(few, "colours")


def test_a_large_bank_without_an_index_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = put(rows())
    assert Searcher.open(pipeline).ask(TEXT).hint == ""
    monkeypatch.setattr(sources, "MANY", 5000)
    command = "`stepline bank index colours mine`"
    assert Searcher.open(pipeline).ask(TEXT).hint == f"an index answers faster: {command} builds it"
    assert Searcher.open(pipeline, exact=True).ask(TEXT).hint == ""


def test_the_verbs_build_an_index_and_search_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    put(rows())
    write_text("config.yaml", json.dumps({"datasets": {"mine": {"videos": "clips", "backbones": ["colours"]}}}))
    assert cli.main(["bank", "index", "colours", "mine"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith("/mine/search/index: 6,000 rows")
    assert [line.split(" with ")[1] for line in said[1:]] == ["100 rows of other videos", "48 short texts"]
    for more, compared in (((), "by index: recall@10 "), (("--exact",), "all 6,000 rows were compared")):
        assert cli.main(["search", "mine", TEXT, *more]) == 0
        out = capsys.readouterr().out
        assert f"\nmatches: {compared}" in out
        page = Path(out.splitlines()[-1].removeprefix("Page: ")).read_text(encoding="utf-8")
        assert f"How matches were found: {compared}" in page
        assert ("search mine --exact" in page) == bool(more)
