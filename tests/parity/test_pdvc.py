"""PDVC's comparison where all captions end early: the release's log likelihoods then have a column for the end."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.parity import check, pdvc, weight, weights  # noqa: E402

VARIANT = "gpu_gt_proposals"


def test_captions_may_all_end_early(parity: Path) -> None:
    manifest = parity / "pdvc/manifest.json"
    config = json.loads(manifest.read_text())["configs"]["tiny"]
    filled = weights(config["keys"], config["digest_sha256"])
    filled |= {alias: filled[key] for alias, key in config["aliases"].items()}
    settings = {ours: config["args"][arg] for arg, ours in pdvc.ARGS.items()} | pdvc.VARIANTS[VARIANT]
    network = pdvc.network_of({name: torch.from_numpy(array) for name, array in filled.items()}, **settings)
    given = {
        "tiny_short/features": weight("short/9", (12, 32), "scaled"),
        "tiny_short/duration_s": np.float32(60),
        "tiny_short/segments_s": np.array([[0, 20], [20, 60]], np.float32),
        "tiny_short/caption_ids": np.array([[1, 2], [3, 0]]),
    }
    made = pdvc._Case(network, given, "tiny_short").outputs(0)
    assert (made["greedy/tokens"] > 0).sum(axis=1).tolist() == [13, 2]
    golden = given | {f"tiny_short/{VARIANT}/{name}": made[name] for name in made if name.startswith("greedy/")}
    likelihoods = np.pad(made["greedy/logprobs"], ((0, 0), (0, 1), (0, 0)))
    best = np.sort(likelihoods, axis=2)
    margin = best[..., -1] - best[..., -2]
    margin[1, 3:] = 0
    of = f"tiny_short/{VARIANT}/greedy"
    golden |= {f"{of}/logprobs": likelihoods, f"{of}/margin": margin, f"{of}/stable_words": np.array([13, 13])}
    golden[f"{of}/logprobs"][1, 3] += 1
    assert disagreeing(manifest, golden) == set()
    golden[f"{of}/tokens"][1, 2] += 1
    golden[f"{of}/logprobs"][1, 2, 0] += 1
    golden[f"{of}/score"][1] += 1
    assert disagreeing(manifest, golden) == {f"{of}/{name}" for name in ("tokens", "logprobs", "score")}


def disagreeing(manifest: Path, golden: dict[str, Any]) -> set[str]:
    np.savez("golden.npz", **golden)
    return {output.name for output in check("pdvc", manifest, Path("golden.npz")) if not output.agrees}
