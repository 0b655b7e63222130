"""What the user supplies after a run: the next plain run notices, and computes what wanted it, and nothing else."""

import shutil
from pathlib import Path

import pytest

from stepline.backbones.torchvision import make_importable
from tests.workflow.runs import DEMO_TABLE, SMALL, TABLE, linked, rows, run, spacewalk

pytestmark = pytest.mark.slow
SENTENCE = [f"2a-senttransformer-{each}" for each in ("last-layer", "zero-shot")]


def random_mpnet(folder: Path) -> None:
    """Write a tiny sentence encoder with random weights to ``folder``. It counts words."""
    torch = pytest.importorskip("torch")
    make_importable()
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.MPNetConfig(vocab_size=len(words), max_position_embeddings=400, **sizes)
    transformers.MPNetModel(config).save_pretrained(folder)
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 0))
    tokenizer.save(str(folder / "tokenizer.json"))


def test_weights_fill_the_lines_that_wanted_them(small: Path, real_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    mirror = linked(real_data, tmp_path / "mirror")
    both = spacewalk(text_encoders=["tfidf", "mpnet"])
    assert run(TABLE, *both, folder=small, mirror=mirror) == [TABLE]
    before = {row["method"]: row for row in rows(small)}
    wanting = [row for row in rows(small) if (row["method"], row["context_s"]) == ("SentTransformer", "60")]
    assert {row["setting"] for row in wanting} == {"zero-shot", "last-layer"}
    for row in wanting:
        assert row["status"] == "needs"
        assert "weights:mpnet" in row["note"]
        assert row["command"].startswith("stepline fetch weights/mpnet && snakemake ")

    random_mpnet(mirror / "weights/mpnet")
    assert run(TABLE, *both, folder=small, mirror=mirror) == [
        "fit 2a-senttransformer-last-layer on v2 at 60s, seed 0",
        *(f"mpnet on the texts of {video}, v2 step_recognition" for video in SMALL["subset"]["videos"]),
        *(f"predict {entry} on v2 at 60s" for entry in SENTENCE),
        TABLE,
        *(f"samples of spacewalk v2, step_recognition {split}" for split in ("train", "val")),
        *(f"score {entry} on v2 at 60s" for entry in SENTENCE),
    ]
    after = rows(small)
    filled = [row for row in after if (row["method"], row["context_s"]) == ("SentTransformer", "60")]
    assert len(filled) == len(wanting) == 4
    assert all(row["value"] and row["status"] == "not comparable" and not row["command"] for row in filled)
    assert all(row == before[row["method"]] for row in after if row["method"] in {"Linear in time", "Sample rank"})
    assert run(TABLE, *both, folder=small, mirror=mirror) == []


def test_a_video_fills_the_lines_that_wanted_it(demo_mirror: Path, tmp_path: Path) -> None:
    pytest.importorskip("av")
    pytest.importorskip("cv2")
    mirror = Path(shutil.copytree(demo_mirror, tmp_path / "mirror"))
    held_back = (mirror / "demo/videos/camp.mp4").rename(tmp_path / "camp.mp4")
    config = tmp_path / "config.yaml"
    config.write_text(
        "demo: {releases: [demo], text_encoders: [], video_encoders: [histogram], "
        "contexts_s: {step_recognition: [4], intra-video_retrieval: []}}"
    )
    target = DEMO_TABLE, "--configfile", str(config)
    folder = tmp_path / "run"
    folder.mkdir()

    run(*target, folder=folder, mirror=mirror)
    availability = (folder / "datasets/demo/availability/000.json").read_text()
    assert '"reason": "not in the mirror at demo/videos/camp.mp4"' in availability
    (line, *_) = [row for row in rows(folder, DEMO_TABLE) if row["method"] == "Histogram"]
    assert (line["n_videos"], line["n_listed"]) == ("1", "2")
    assert "videos: 1 of 2 evaluated" in line["note"]

    held_back.rename(mirror / "demo/videos/camp.mp4")
    assert run(*target, folder=folder, mirror=mirror) == [
        "histogram on demo, shard 000",
        "predict 2a-histogram-zero-shot on demo at 4s",
        "predict 2b-histogram-tw-finch on demo at all",
        DEMO_TABLE,
        "score 2a-histogram-zero-shot on demo at 4s",
        "score 2b-histogram-tw-finch on demo at all",
        "videos of demo, shard 000",
    ]
    (line, *_) = [row for row in rows(folder, DEMO_TABLE) if row["method"] == "Histogram"]
    assert (line["n_videos"], line["n_listed"]) == ("2", "2")
    assert run(*target, folder=folder, mirror=mirror) == []
