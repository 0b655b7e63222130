import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline import paths
from stepline.availability import Record, write_availability
from stepline.backbones import registry
from stepline.benchmarks.oepp import material as module
from stepline.benchmarks.oepp.windows import NO_ROW, observation_rows
from stepline.datasets import oepp
from stepline.datasets.oepp import PARTS
from stepline.errors import ConfigError
from stepline.spec import Spec
from tests.benchmarks.oepp.conftest import material
from tests.benchmarks.oepp.synthetic import CONFIG, planted, write_bank

pytestmark = pytest.mark.usefixtures("banks")


def features(key: str = "videoclip", **named: str) -> dict[str, Any]:
    return {**CONFIG["features"], key: {"video": "planted", **named}}


class TestWindows:
    def test_all_are_listed_and_used_where_their_features_are_there(self) -> None:
        of = material("matching-t3")
        for part in PARTS:
            assert of.used(part) == of.windows(part)
            assert {len(window.actions) for window in of.windows(part)} == {3}
            videos = oepp.load("split1", part)
            assert len(of.windows(part)) == sum(max(1, len(video.steps) - 2) for video in videos)
        video = of.windows("base")[1].video
        del of.bank.blocks[video]
        assert {each.video for each in of.windows("base")} - {each.video for each in of.used("base")} == {video}

    def test_short_videos_are_left_out_by_an_option(self) -> None:
        of = material("random-t3", windows={"padding": "drop"})
        assert len(of.windows("novel")) == sum(max(0, len(v.steps) - 2) for v in oepp.load("split1", "novel"))

    def test_labels_are_places_in_the_pool_of_the_part(self) -> None:
        of = material("random-whole")
        for part in PARTS:
            for window, label in zip(of.windows(part), of.labels(part, of.windows(part)), strict=True):
                assert tuple(of.pool(part)[place] for place in label) == window.actions
        assert set(of.pool("base")) != set(of.pool("novel"))

    def test_a_subset_is_used(self) -> None:
        of = material("random-t3", subset={"fraction": 0.5, "seed": 1})
        used = [{each.video for each in of.used(part)} for part in PARTS]
        assert set().union(*used) == of.plan.chosen()
        assert [len(each) for each in used[:2]] == [10, 4]
        assert len(used[2]) + len(used[3]) == 10
        assert len(of.windows("base")) == len(material("random-t3").windows("base"))

    def test_who_looks_at_videos_uses_those_that_are_there(self) -> None:
        there, gone = Path("there.mp4"), Path("gone.mp4")
        there.touch()
        records = [
            Record(video="COIN_base-MakeTea-1", status="present", path=str(there)),
            Record(video="COIN_base-MakeTea-0", status="present", path=str(gone)),
            Record(video="COIN_base-CleanBathtub-1", status="mismatched", path=str(there)),
        ]
        write_availability(paths.availability("openevent", "000"), records)
        of = material("vlm-t3-1", llm={"model": "m", "url": "http://localhost:1"})
        assert {each.video for each in of.used("base")} == {"COIN_base-MakeTea-1"}
        assert of.video_file("COIN_base-MakeTea-1") == there


class TestObservations:
    @pytest.mark.parametrize("rule", ["released", "within"])
    def test_rows_are_the_banks(self, rule: Any) -> None:
        of = material("mlp-t3", windows={"rows": rule})
        bank, n_zero = planted(), 0
        for part in PARTS:
            used = of.used(part)
            found = of.observations(used)
            assert found.rows.dtype == np.float32
            assert found.index.shape == (len(used), 6)
            gathered = found.rows[found.index]
            for window, rows in zip(used, gathered, strict=True):
                its_own = bank[window.video]
                wanted = observation_rows(window.start, window.end, len(its_own), rule)
                n_zero += wanted.count(NO_ROW)
                naive = [its_own[row] if row != NO_ROW else np.zeros(8) for row in wanted]
                assert np.array_equal(rows, np.array(naive, np.float32))
        assert (n_zero > 0) == (rule == "released")

    def test_each_row_is_stored_once_and_the_zeros_last(self) -> None:
        of = material("mlp-t3")
        used = of.used("train")
        found = of.observations(used[::-1])
        asked = {
            (each.video, row)
            for each in used
            for row in observation_rows(each.start, each.end, len(of.bank[each.video]), "released")
        }
        assert len(found.rows) == len({pair for pair in asked if pair[1] != NO_ROW}) + 1
        assert set(found.index.ravel()) | {len(found.rows) - 1} == set(range(len(found.rows)))
        assert not found.rows[-1].any()
        forward = of.observations(used)
        assert np.array_equal(found.rows[found.index], forward.rows[forward.index][::-1])

    def test_a_window_that_begins_after_the_features_is_zeros_or_left_out(self) -> None:
        released, within = material("mlp-t3"), material("mlp-t3", windows={"rows": "within"})
        late = max(released.windows("base"), key=lambda each: each.end.start_s)
        for of in (released, within):
            of.bank.rows[late.video] = of.bank.rows[late.video][: int(late.start.start_s)]
        assert late in released.used("base")
        found = released.observations([late])
        assert (found.index[0, :3] == len(found.rows) - 1).all()
        left_out = [each for each in within.windows("base") if each not in within.used("base")]
        assert (released.late("base"), within.late("base")) == (0, len(left_out))
        assert late in left_out
        assert {each.video for each in left_out} == {late.video}

    def test_no_window_has_no_rows(self) -> None:
        found = material("mlp-t3").observations([])
        assert (found.rows.shape, found.index.shape) == ((1, 8), (0, 6))

    def test_rows_of_other_seconds_are_one_line(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        write_bank(tmp_path_factory.mktemp("hop"), "slow", 2.0)
        of = material("matching-t3", features=features(video="slow"))
        with pytest.raises(ConfigError, match="^features 'slow' have a row each 2 s; OEPP reads one a second$"):
            of.used("base")


class Letters:
    """An encoder of a text's length and number of blanks."""

    spec = Spec(name="letters", label="letters", revision=1)

    def tokens(self, text: str) -> list[int]:
        return [len(text), text.count(" ")]

    def encode(self, tokens: list[int]) -> Any:
        return np.array([*tokens, 1], dtype=np.float32)


class TestText:
    @pytest.mark.parametrize(("entry", "which"), [("mlp-t3", "videoclip"), ("pdpp-t3-mil-nce", "s3d")])
    def test_released_vectors_stand_in_the_pools_order_as_they_are(
        self, entry: str, which: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = []
        original = oepp.text_features
        monkeypatch.setattr(oepp, "text_features", lambda release, of: asked.append(of) or original(release, of))
        of = material(entry)
        for part in PARTS:
            vectors = original("split1", "s3d")
            assert of.text(part).dtype == np.float32
            assert np.allclose(of.text(part), [vectors[action] for action in oepp.pool("split1", part)])
        assert set(asked) == {which}
        assert np.ptp(np.linalg.norm(of.text("base"), axis=1)) > 0.1
        twins = [of.pool("base").index(action) for action in ("make the detergent", "make the  detergent")]
        assert np.array_equal(*of.text("base")[twins])

    def own(self, vectors: dict[str, Any]) -> module.Material:
        Path("own.json").write_text(json.dumps(vectors))
        return material("mlp-t3", features=features(text="./own.json"))

    def test_a_file_of_ones_own(self) -> None:
        actions = {*oepp.pool("split1", "base"), *oepp.pool("split1", "novel")}
        of = self.own({action: [[len(action), 1.0, 0.0]] for action in actions})
        assert of.text("novel").tolist() == [[len(action), 1, 0] for action in of.pool("novel")]

    def test_a_file_that_lacks_an_action_is_one_line(self) -> None:
        actions = {*oepp.pool("split1", "base"), *oepp.pool("split1", "novel")}
        known = {action: [[1.0]] for action in actions}
        of, key = self.own(known), "oepp.features.videoclip.text"
        del known["make the  detergent"]
        with pytest.raises(
            ConfigError, match=f"^config: {key}: 'own.json' has no vector of the action 'make the  detergent'; add it$"
        ):
            self.own(known)
        with pytest.raises(ConfigError, match=f"^{key}: './own.json' lacks the action 'make the  detergent'$"):
            of.text("val")

    @pytest.mark.parametrize("vectors", [{"a": [[1.0]], "b": [[1.0, 2.0]]}, {"a": [1.0]}, []])
    def test_a_file_of_another_form_is_one_line(self, vectors: Any) -> None:
        with pytest.raises(ConfigError, match=r"^config: .*: 'own.json' is not allowed; give vectors of [^\n]+$"):
            self.own(vectors)

    def test_an_encoder_reads_actions_as_they_are_written(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "text_encoder", lambda name, config: Letters())
        of = material("mlp-t3", features=features(text="minilm"))
        for part in ("base", "novel", "base"):
            pool = of.pool(part)  # type: ignore[arg-type]
            assert of.text(part).tolist() == [[len(a), a.count(" "), 1] for a in pool]  # type: ignore[arg-type]
        assert Path("features/letters").is_dir()
        assert registry.text_encoder is not module.text_encoder
