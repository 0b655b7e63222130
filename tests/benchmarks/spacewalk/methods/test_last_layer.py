from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from stepline.benchmarks.spacewalk.features import Features
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.methods import last_layer
from stepline.models import linear
from tests.benchmarks.spacewalk.conftest import MadeUp, chooser_of, fit

OPTIONS = {"seeds": [5, 3], "epochs": 2, "batch_size": 16, "learning_rate": 0.02}
tables = pytest.mark.parametrize("table", ["2a", "2b"])


def inputs(made_up: MadeUp, table: str) -> SpacewalkInputs:
    entry = {"kind": "last-layer", "setting": "last-layer", "encoder": "minilm", "table": table, "inputs": []}
    return made_up.inputs(entry, last_layer=OPTIONS)


@tables
def test_it_is_fitted_on_train_and_judged_on_val_by_the_options(
    made_up: MadeUp, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, asked = "fit_linear" if table == "2a" else "fit_pairs", list[Any]()
    monkeypatch.setattr(last_layer, name, lambda *args, **options: asked.append((args, options)))
    found = inputs(made_up, table)
    fit(found, 6.0, 3, Path("fit"))
    (((*parts, path), options),) = asked
    assert (path, options) == (
        Path("fit"),
        {key: value for key, value in OPTIONS.items() if key != "seeds"} | {"seed": 3},
    )
    features = Features(found)
    for part, videos in zip(parts, (["a", "b"], ["c"]), strict=True):
        split = "train" if len(videos) > 1 else "val"
        items = {video: [i for i in found.items(split)[video] if i.label > 0 or table == "2b"] for video in videos}
        windows = [
            np.concatenate(each) for each in zip(*(features.windows(v, items[v], 6.0) for v in videos), strict=True)
        ]
        labels = [item.label for each in items.values() for item in each]
        if table == "2b":
            np.testing.assert_array_equal(part.query, windows[0])
            np.testing.assert_array_equal(part.candidates[:, 0], windows[1])
            np.testing.assert_array_equal(part.candidates[:, 1], windows[2])
            assert part.answer.tolist() == labels
            continue
        np.testing.assert_array_equal(part.features, windows[0])
        assert part.label.tolist() == labels
        assert part.owner.tolist() == [number for number, video in enumerate(videos) for _ in items[video]]
        for video, steps in zip(videos, part.steps, strict=True):
            np.testing.assert_array_equal(steps, features.steps(video)[1:])


@tables
def test_each_seed_answers_by_its_own_fit(made_up: MadeUp, table: str) -> None:
    found = inputs(made_up, table)
    fits = [Path("5"), Path("3")]
    for path in fits:
        fit(found, 6.0, int(path.name), path)
    items, features = found.items("test")["d"], Features(found)
    windows = list(features.windows("d", items, 6.0))
    outcomes = chooser_of(found, 6.0, fits)("d", items)
    assert [seed for seed, _, _ in outcomes] == [5, 3]
    for (_, chosen, scores), path in zip(outcomes, fits, strict=True):
        if table == "2b":
            expected = linear.apply_pairs(path, windows[0], np.stack(windows[1:], axis=1))
        else:
            expected = linear.apply_linear(path, windows[0]) @ features.steps("d")[1:].T
            assert scores is not None
            assert np.isnan(scores[:, 0]).all()
            scores = scores[:, 1:]
        np.testing.assert_allclose(scores, expected, rtol=1e-5)  # type: ignore[arg-type]
        assert chosen.tolist() == (expected.argmax(axis=1) + (table == "2a")).tolist()
    assert not np.array_equal(outcomes[0][1], outcomes[1][1])
