import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.backbones import registry
from stepline.benchmarks.oepp import features as module
from stepline.benchmarks.oepp.features import vectors
from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.datasets import oepp
from stepline.datasets.oepp import PARTS
from stepline.errors import ConfigError
from stepline.spec import Spec
from tests.benchmarks.oepp.conftest import inputs
from tests.benchmarks.oepp.synthetic import CONFIG

pytestmark = pytest.mark.usefixtures("banks")


def features(**named: str) -> dict[str, Any]:
    return {**CONFIG["features"], "videoclip": {"video": "planted", **named}}


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
        of = inputs(entry)
        for part in PARTS:
            theirs = original("split1", "s3d")
            assert vectors(of, part).dtype == np.float32
            assert np.allclose(vectors(of, part), [theirs[action] for action in oepp.pool("split1", part)])
        assert set(asked) == {which}
        assert np.ptp(np.linalg.norm(vectors(of, "base"), axis=1)) > 0.1
        twins = [of.pool("base").index(action) for action in ("make the detergent", "make the  detergent")]
        assert np.array_equal(*vectors(of, "base")[twins])

    def own(self, content: dict[str, Any]) -> OeppInputs:
        Path("own.json").write_text(json.dumps(content))
        return inputs("mlp-t3", features=features(text="./own.json"))

    def test_a_file_of_ones_own(self) -> None:
        actions = {*oepp.pool("split1", "base"), *oepp.pool("split1", "novel")}
        of = self.own({action: [[len(action), 1.0, 0.0]] for action in actions})
        assert vectors(of, "novel").tolist() == [[len(action), 1, 0] for action in of.pool("novel")]

    def test_a_file_without_an_action_is_one_line(self) -> None:
        actions = {*oepp.pool("split1", "base"), *oepp.pool("split1", "novel")}
        known = {action: [[1.0]] for action in actions}
        of, key = self.own(known), "oepp.features.videoclip.text"
        del known["make the  detergent"]
        with pytest.raises(
            ConfigError, match=f"^config: {key}: 'own.json' has no vector of the action 'make the  detergent'; add it$"
        ):
            self.own(known)
        with pytest.raises(
            ConfigError, match=f"^{key}: './own.json' has no vector of the action 'make the  detergent'; add it$"
        ):
            vectors(of, "val")
        novel = min({*oepp.pool("split1", "novel")} - {*oepp.pool("split1", "base")})
        with pytest.raises(ConfigError, match=f"has no vector of the action '{novel}'; add it$"):
            self.own({action: [[1.0]] for action in actions - {novel}})

    def test_the_weights_of_a_tower_are_needed_until_they_are_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        of = inputs("mlp-t3", features=features(text="s3d-text"))
        for found, needs in ((None, ["weights:s3d"]), (Path("s3d"), [])):
            monkeypatch.setattr(module, "locate", lambda name, found=found: found)
            assert list(map(str, module.missing_text(of.entry, of.options))) == needs

    @pytest.mark.parametrize("content", [{"a": [[1.0]], "b": [[1.0, 2.0]]}, {"a": [1.0]}, []])
    def test_a_file_of_another_form_is_one_line(self, content: Any) -> None:
        with pytest.raises(ConfigError, match=r"^config: .*: 'own.json' is not allowed; give vectors of [^\n]+$"):
            self.own(content)

    def test_an_encoder_reads_actions_as_they_are_written(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "text_encoder", lambda name, config: Letters())
        of = inputs("mlp-t3", features=features(text="minilm"))
        for part in ("base", "novel", "base"):
            assert vectors(of, part).tolist() == [[len(a), a.count(" "), 1] for a in of.pool(part)]
        assert Path("features/letters").is_dir()
        assert registry.text_encoder is not module.text_encoder
