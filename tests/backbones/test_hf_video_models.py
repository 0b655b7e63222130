"""Tiny video models, saved as they stand on the hub, on real clips: rows, texts and errors, against transformers."""

import csv
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from stepline import cli, paths
from stepline.availability import write_availability
from stepline.backbones import named
from stepline.backbones.registry import missing, similarity, tower_of
from stepline.backbones.torchvision import make_importable
from stepline.backbones.weights import locate
from stepline.config import validate
from stepline.errors import ConfigError, MissingError, StoreError
from stepline.features.bank import Bank
from stepline.features.clips import rows
from stepline.features.work import works
from stepline.io import write_text
from stepline.media.timeline import scan
from stepline.needs import Need
from stepline.pipeline import Pipeline
from stepline.spec import ClipSpec
from tests.backbones.models import random_values, small_vit, vit_pictures
from tests.conftest import DEMO, ONE_WINDOW, ROOT, snakemake
from tests.features.reference import Footage, footage, shown
from tests.features.test_extract import present
from tests.features.test_extract import store as extracted
from tests.photographs import ffmpeg, moving

make_importable()
import transformers  # noqa: E402
from transformers import AutoImageProcessor, AutoModel, AutoVideoProcessor  # noqa: E402

REAL = {"astronaut": (640, 272, "25", 10), "coffee": (176, 144, "30000/1001", 4)}
"""Clips of photographs: width, height, frames per second, seconds."""
CLOSE = 1e-3
"""The distance of our rows from the library's, whose processor rounds a few pixels to the next level of 255."""
LAYERS = {"num_hidden_layers": 1, "num_attention_heads": 2}
VISION = {**LAYERS, "hidden_size": 32, "intermediate_size": 37, "image_size": 32, "patch_size": 16, "num_frames": 4}
TEXT = {**LAYERS, "hidden_size": 32, "intermediate_size": 37, "vocab_size": 100, "max_position_embeddings": 8}
PRISM = {
    "image_size": 36,
    "num_frames": 16,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_spatial_layers": 1,
    "num_temporal_layers": 1,
    "num_auxiliary_layers": 1,
}
SQUARE = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}
Made = tuple[Any, Any]


def vjepa2() -> Made:
    config = transformers.VJEPA2Config(
        **{f"{part}{key}": value for part in ("", "pred_") for key, value in (LAYERS | {"hidden_size": 24}).items()},
        crop_size=32,
        frames_per_clip=8,
        num_pooler_layers=1,
    )
    return transformers.VJEPA2Model(config), transformers.VJEPA2VideoProcessor(crop_size=32)


def videomae() -> Made:
    """As MCG-NJU's: with the decoder of the pre-training, and a processor of images."""
    config = transformers.VideoMAEConfig(**VISION, decoder_hidden_size=24, decoder_num_hidden_layers=1)
    return transformers.VideoMAEForPreTraining(config), transformers.VideoMAEImageProcessor(**SQUARE)


def timesformer() -> Made:
    """As Meta's: with a classifier."""
    network = transformers.TimesformerForVideoClassification(transformers.TimesformerConfig(**VISION))
    return network, transformers.VideoMAEImageProcessor(**SQUARE)


def videoprism() -> Made:
    config = transformers.VideoPrismConfig(vision_config=PRISM, text_config=TEXT)
    return transformers.VideoPrismClipModel(config), _prism()


def videoprism_vision() -> Made:
    return transformers.VideoPrismVisionModel(transformers.VideoPrismVisionConfig(**PRISM)), _prism()


def _prism() -> Any:
    """As transformers' tests of VideoPrism make it."""
    return transformers.LlavaOnevisionVideoProcessor(resample=1, size={"height": 36, "width": 36}, do_normalize=False)


def xclip() -> Made:
    mit = {f"mit_{key}": value for key, value in {**LAYERS, "hidden_size": 16, "intermediate_size": 20}.items()}
    config = transformers.XCLIPConfig(
        vision_config={**VISION, **mit},
        text_config={**TEXT, "eos_token_id": 99},
        projection_dim=16,
        prompt_layers=1,
        prompt_num_attention_heads=2,
    )
    return transformers.XCLIPModel(config), transformers.VideoMAEImageProcessor(**SQUARE)


Embed = Callable[[Any, torch.Tensor], torch.Tensor]
MODELS: dict[str, tuple[Callable[[], Made], Embed]] = {
    "vjepa2": (vjepa2, lambda model, frames: model(frames).last_hidden_state.mean(1)),
    "videomae": (videomae, lambda model, frames: model(frames).last_hidden_state.mean(1)),
    "timesformer": (timesformer, lambda model, frames: model(frames).last_hidden_state[:, 0]),
    "videoprism-vision": (videoprism_vision, lambda model, frames: model(frames).last_hidden_state.mean(1)),
    "videoprism": (
        videoprism,
        lambda model, frames: (
            model(pixel_values_videos=frames, input_ids=torch.ones(1, 8, dtype=torch.long)).video_embeds
        ),
    ),
    "xclip": (xclip, lambda model, frames: model.get_video_features(pixel_values=frames).pooler_output),
}
"""A model as on the hub, and its embedding by transformers alone."""
WITH_TEXT = ("videoprism", "xclip")


def hub(name: str) -> str:
    return f"hf-video:someone/{name}@0123abc"


def folder(name: str) -> Path:
    return Path("weights", named.weights(name).name)


def put(name: str, network: Any, processor: Any) -> None:
    random_values(network).save_pretrained(folder(name))
    processor.save_pretrained(folder(name))


def tokenizer(name: str) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = {"<pad>": 0, "</s>": 1, "<unk>": 2, "a": 3, "bicycle": 4, "phone": 5, "<start>": 98, "<end>": 99}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    if name == "xclip":
        made.post_processor = processors.TemplateProcessing(
            single="<start> $A <end>", special_tokens=[("<start>", 98), ("<end>", 99)]
        )
    path = folder(f"{hub(name)}#tokenizer") / "tokenizer.json"
    path.parent.mkdir()
    made.save(str(path))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the models, real clips and their features, as the job of a shard computes them."""
    place = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        for name, (make, _) in MODELS.items():
            put(hub(name), *make())
        for name in WITH_TEXT:
            tokenizer(name)
        own = folder(hub("videoprism")) / "video_preprocessor_config.json"
        nested = {"processor_class": "VideoPrismProcessor", "video_processor": json.loads(own.read_text("utf-8"))}
        own.with_name("processor_config.json").write_text(json.dumps(nested), encoding="utf-8")
        own.unlink()
        Path("clips").mkdir()
        for name, (width, height, rate, seconds) in REAL.items():
            ffmpeg(*moving(f"{name}.png", width, height, rate), "-t", str(seconds), f"clips/{name}.mp4")
        pipeline = configured()
        write_availability("availability.json", [present(Path(f"clips/{name}.mp4")) for name in REAL])
        work = works(pipeline, hub("vjepa2"), "000")
        for each in (work, *([other] for other in work[1:])):
            extracted(Path(), *each)
        yield place


@pytest.fixture
def in_study(study: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.chdir(study)
    return configured()


@pytest.fixture(scope="module")
def real(study: Path) -> Mapping[str, Footage]:
    return {name: footage(study / f"clips/{name}.mp4") for name in REAL}


def configured() -> Pipeline:
    backbones = [hub(name) for name in MODELS]
    mine = {"videos": "clips", "backbones": backbones, "stages": ["features"]}
    write_text("config.yaml", json.dumps({"datasets": {"mine": mine}, "features": {"dtype": "float32"}}))
    return Pipeline.of(validate(json.loads(Path("config.yaml").read_text(encoding="utf-8"))), "mine")


def clip_of(spec: ClipSpec, video: Footage, second: int, late: int = 0) -> list[np.ndarray]:
    """Return the frames around the middle of a second, as the page says; late: by how many frames they are wrong."""
    last = -(-video.end * int(spec.fps) // 1) - 1
    first = second * int(spec.fps) + (int(spec.fps) - spec.num_frames) // 2
    slots = [min(max(first + i, 0), last) for i in range(spec.num_frames)]
    indices = [shown(video, Fraction(slot, int(spec.fps))) + late for slot in slots]
    return [video.frames[min(index, len(video.frames) - 1)].to_ndarray(format="rgb24") for index in indices]


def library(name: str) -> Callable[[list[np.ndarray]], np.ndarray]:
    """Return the library's own function from the frames of a clip to its vector."""
    kind = AutoImageProcessor if name == "xclip" else AutoVideoProcessor
    processor: Any = kind.from_pretrained(folder(hub(name)))
    network: Any = AutoModel.from_pretrained(folder(hub(name))).eval()
    more = {} if name == "xclip" else {"do_sample_frames": False}

    def vector(frames: list[np.ndarray]) -> np.ndarray:
        (pixels,) = processor(frames, return_tensors="pt", **more).values()
        with torch.inference_mode():
            return MODELS[name][1](network, pixels)[0].numpy()

    return vector


def apart(one: Any, two: Any) -> float:
    """Return the length of the difference of two vectors, relative to the second."""
    one, two = (np.asarray(each) for each in (one, two))
    return float(np.linalg.norm(one - two) / np.linalg.norm(two))


@pytest.mark.parametrize("name", MODELS)
def test_rows_of_real_clips_are_those_of_transformers(
    name: str, in_study: Pipeline, real: Mapping[str, Footage]
) -> None:
    spec = in_study.features.spec_of(hub(name))
    assert isinstance(spec, ClipSpec)
    bank, vector = Bank.open([paths.features("mine", "000", spec)], spec), library(name)
    for clip, seconds in zip(REAL, (10, 5), strict=True):
        video = real[clip]
        assert bank[clip].shape == (seconds, spec.dimension)
        for second in (0, seconds // 2, seconds - 1):
            assert apart(bank[clip][second], vector(clip_of(spec, video, second))) < CLOSE
        late = clip_of(spec, video, seconds // 2, late=1)
        assert apart(bank[clip][seconds // 2], vector(late)) > 5 * CLOSE


CUT = (("short_side", 32, "torchvision_bilinear"), ("centre_crop", 32, "floor"))
WHOLE = (("exact", 36, 36, "torchvision_lanczos"),)
WRITTEN = {
    "vjepa2": (8, 4, "token_mean", 24, (("short_side", 36, "torchvision_bilinear"), ("centre_crop", 32, "floor"))),
    "videomae": (4, 8, "token_mean", 32, CUT),
    "timesformer": (4, 1, "first_token", 32, CUT),
    "videoprism-vision": (16, 2, "token_mean", 32, WHOLE),
    "videoprism": (16, 2, "video_embed", 32, WHOLE),
    "xclip": (4, 1, "video_embed", 16, CUT),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_spec_says_all_that_decides(name: str, in_study: Pipeline) -> None:
    spec = named.spec(hub(name))
    frames, fps, *_ = WRITTEN[name]
    assert (spec.num_frames, spec.fps, spec.output, spec.dimension, spec.steps) == WRITTEN[name]
    assert (spec.label, spec.hop, spec.offset) == (f"{frames}x{fps}fps", fps, (fps - frames) // 2)
    assert (spec.placement, spec.tail, spec.weights) == ("grid", "repeat", (hub(name),))
    assert similarity(spec) == "cosine"
    processor = json.loads(next(folder(hub(name)).glob("*processor_config.json")).read_text(encoding="utf-8"))
    processor = processor.get("video_processor", processor)
    own = (processor["image_mean"], processor["image_std"])
    assert ([*spec.mean], [*spec.std]) == (own if processor["do_normalize"] else ([0] * 3, [1] * 3))
    full = in_study.features.spec_of(hub(name))
    assert isinstance(full, ClipSpec)
    assert {file for file, _ in full.weights_sha256} == {path.name for path in folder(hub(name)).iterdir()}
    tower = tower_of(spec)
    assert (tower and tower.name) == (f"{spec.name}-text" if name in WITH_TEXT else None)


def test_the_frames_are_the_ones_that_the_name_chooses(in_study: Pipeline) -> None:
    name = hub("vjepa2")
    grid, listed = named.spec(f"{name}#16x8fps"), named.spec(f"{name}#6-frames")
    assert (grid.name, grid.label) == ("hf-video-someone-vjepa2-0123abc-16x8fps", "16x8fps")
    assert (grid.num_frames, grid.fps, grid.hop, grid.offset) == (16, 8, 8, -4)
    assert (listed.label, listed.num_frames, listed.placement) == ("6-frames", 6, "middles")
    assert named.weights(f"{name}#16x8fps") == named.weights(name)
    assert grid.weights == listed.weights == (name,)
    with pytest.raises(ConfigError, match=r"^[^\n]*cannot be used by name with 6 frames \(its own: 4\): [^\n]*$"):
        named.spec(f"{hub('videomae')}#6x8fps")
    timeline = scan(Path("clips/astronaut.mp4"))
    assert rows(listed, timeline, listed=[(2.0, 8.0)]).frames.tolist() == [[62, 87, 112, 137, 162, 187]]
    assert rows(grid, timeline).frames[1].tolist()[::4] == [12, 25, 37, 50]
    frames = torch.randn(2, 3, 6, 32, 32)
    with torch.inference_mode():
        ours = named.load(listed, locate(name) or {})(frames)
        theirs = AutoModel.from_pretrained(folder(name)).eval()(frames.transpose(1, 2)).last_hidden_state.mean(1)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def encoder_of(name: str) -> Any:
    text = named.text_spec(hub(name))
    return named.load_text(text, {file: path for each in text.weights for file, path in (locate(each) or {}).items()})


@pytest.mark.parametrize("name", WITH_TEXT)
def test_texts_are_those_of_transformers(name: str, in_study: Pipeline) -> None:
    text, encoder = named.text_spec(hub(name)), encoder_of(name)
    assert (text.name, text.max_tokens) == (f"hf-video-someone-{name}-0123abc-text", 8)
    network: Any = AutoModel.from_pretrained(folder(hub(name))).eval()
    tokens = {"xclip": [98, 3, 4, 99], "videoprism": [3, 4, 0, 0, 0, 0, 0, 0]}[name]
    assert encoder.tokens("a bicycle") == tokens
    assert len(encoder.tokens("a " * 20)) == 8
    ids = torch.tensor([tokens])
    expected = network.get_text_features(input_ids=ids, attention_mask=(ids != 0).long()).pooler_output[0]
    torch.testing.assert_close(torch.from_numpy(encoder.encode(tokens)), expected, rtol=1e-5, atol=1e-5)
    assert apart(encoder.encode(encoder.tokens("a phone")), expected.detach()) > 0.01


@pytest.mark.parametrize("name", WITH_TEXT)
def test_a_text_finds_the_rows_nearest_to_it(name: str, in_study: Pipeline, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["search", "mine", "a bicycle", "--backbone", hub(name)]) == 0
    said = capsys.readouterr().out
    encoder = encoder_of(name)
    query = encoder.encode(encoder.tokens("a bicycle"))
    query /= np.linalg.norm(query)
    spec = in_study.features.spec_of(hub(name))
    assert isinstance(spec, ClipSpec)
    bank = Bank.open([paths.features("mine", "000", spec)], spec)
    units = {clip: bank[clip] / np.linalg.norm(bank[clip], axis=1, keepdims=True) for clip in REAL}
    score, clip, second = max((score, clip, at) for clip in REAL for at, score in enumerate(units[clip] @ query))
    assert re.search(rf"^ +1  {clip} +{score:.3f} +0:{second:02}$", said, re.MULTILINE), said


def test_what_is_absent_is_asked_for_by_the_name_of_the_weights() -> None:
    name = hub("vjepa2")
    with pytest.raises(MissingError, match=f"^weights {name} are absent: run `stepline fetch weights/{name}`$"):
        named.spec(f"{name}#16x8fps")
    assert missing(f"{name}#16x8fps", validate({})) == (Need("weights", name),)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("hf-video:google/videoprism", "name a model of the hub as hf-video:<owner>/<name>@<revision>"),
        ("hf-video:a/b@main#8fps", "after `#` write <frames>x<fps>fps or <frames>-frames"),
        ("hf-video:a/b@main#0x8fps", "after `#` write <frames>x<fps>fps or <frames>-frames"),
        ("hf:a/b@main#8x8fps", "name a model of the hub as hf:<owner>/<name>@<revision>"),
    ],
)
def test_a_name_that_chooses_no_frames_is_one_line(name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"^backbone '{name}' is not known: {hint}"):
        named.spec(name)


def test_the_files_are_those_of_the_repository() -> None:
    weights = named.weights("hf-video:google/videoprism-base-f16r288@refs/pr/4")
    assert {file.name: file.optional for file in weights.files} == {
        "processor_config.json": True,
        "video_preprocessor_config.json": True,
        "preprocessor_config.json": True,
        "config.json": False,
        "model.safetensors": False,
    }
    origin = "https://huggingface.co/google/videoprism-base-f16r288/resolve/refs%2Fpr%2F4"
    assert all(file.url == f"{origin}/{file.name}" for file in weights.files)


def tampered(name: str, study: Path, **more: Mapping[str, Any]) -> str:
    """Copy a model under another name, with other values in its files."""
    other = f"hf-video:someone/other-{name}@main"
    shutil.copytree(study / "weights" / named.weights(hub(name)).name, folder(other))
    for file, values in more.items():
        path = folder(other) / f"{file}.json"
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | values), encoding="utf-8")
    return other


def test_a_processor_that_does_something_else_is_one_line(study: Path) -> None:
    other = tampered("vjepa2", study, video_preprocessor_config={"resample": 0})
    with pytest.raises(ConfigError, match=f"^the preprocessing of {other} is not supported: write it as a model by"):
        named.spec(other)
    for path in folder(other).glob("*processor*"):
        path.unlink()
    with pytest.raises(ConfigError, match=f"^{other} has no processor that transformers knows: "):
        named.spec(other)


def test_a_processor_s_own_sampling_counts(study: Path) -> None:
    spec = named.spec(tampered("vjepa2", study, video_preprocessor_config={"num_frames": 6, "fps": 2}))
    assert (spec.label, spec.fps, spec.hop, spec.offset) == ("6x2fps", 2, 2, -2)


@pytest.mark.parametrize("name", ["videomae", "xclip"])
def test_a_processor_that_an_older_transformers_saved_is_read(name: str, study: Path) -> None:
    other = tampered(name, study)
    path = folder(other) / "preprocessor_config.json"
    older = {"feature_extractor_type": "VideoMAEFeatureExtractor", "size": 32, "crop_size": 32, "resample": 2}
    path.write_text(json.dumps({**older, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}))
    spec = named.spec(other)
    assert spec.mean == (0.485, 0.456, 0.406)
    assert spec.steps == WRITTEN[name][-1]


def test_models_of_other_things_and_files_of_other_models_are_one_line(study: Path) -> None:
    image = "hf-video:someone/image@main"
    put(image, small_vit(), vit_pictures())
    with pytest.raises(ConfigError, match=f"^{image} is a vit: models of videos by name are vjepa2, videomae, "):
        named.spec(image)
    other = tampered("videomae", study)
    spec, files = named.spec(other), locate(other) or {}
    save_file({"weight": torch.zeros(3)}, folder(other) / "model.safetensors")
    with pytest.raises(StoreError, match=rf"model.safetensors is not {other}: \d+ missing"):
        named.load(spec, files)
    (folder(other) / "model.safetensors").write_bytes(b"PK\x03\x04 a pickle")
    with pytest.raises(StoreError, match="model.safetensors is damaged or no checkpoint"):
        named.load(spec, files)


def test_code_of_a_repository_is_never_run(study: Path) -> None:
    own = {"model_type": "own", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}}
    video = {"video_processor_type": "Own", "auto_map": {"AutoVideoProcessor": "own.Own"}}
    for name, values in (("config", own), ("video_preprocessor_config", video)):
        other = tampered("vjepa2", study, **{name: values})
        (folder(other) / "own.py").write_text("open('ran', 'w').close()\nclass Config: pass\nclass Own: pass\n")
        with pytest.raises(ConfigError, match="has no (configuration|processor) that transformers knows"):
            named.spec(other)
        shutil.rmtree(folder(other))
    assert not Path("ran").exists()


def test_a_vector_is_normalised_where_the_spec_says_so(in_study: Pipeline) -> None:
    name, clips = hub("videomae"), torch.randn(2, 3, 4, 32, 32)
    spec = named.spec(name)
    plain, normalised = (named.load(each, locate(name) or {})(clips) for each in (spec, replace(spec, normalise=True)))
    torch.testing.assert_close(normalised, torch.nn.functional.normalize(plain, dim=1))


@pytest.mark.slow
def test_the_page_s_lines_enter_v_jepa_2_into_the_demo_s_table(
    demo_run: Path, demo_mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs/own-backbones.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"<!-- file: vjepa2.yaml -->\n```yaml\n(.*?)```", page, re.DOTALL)
    assert len(lines.splitlines()) <= 10
    place = tmp_path / "demo"
    shutil.copytree(demo_run, place, symlinks=True)
    monkeypatch.chdir(place)
    before = table()
    Path("vjepa2.yaml").write_text(lines, encoding="utf-8")
    name = "hf-video:facebook/vjepa2-vitl-fpc64-256@main"
    put(name, *vjepa2())
    assert named.spec(f"{name}#16x4fps").num_frames == 16  # and Snakemake need not import transformers to plan
    options = *DEMO, "vjepa2.yaml", "--config", f"demo={{{ONE_WINDOW}}}", "--", "results/demo/table2.csv"
    done = snakemake(*options, folder=place, lines=True, STEPLINE_MIRROR=str(demo_mirror), OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    assert "4 of 4 jobs done" in done.stdout + done.stderr, done.stderr
    after = table()
    ours = {key: row for key, row in after.items() if key not in before}
    assert {key[:3] for key in ours} == {("2a", "2a-vjepa2", "4")}
    assert {row["metric"]: row["status"] for row in ours.values()} == {"accuracy": "ours", "map": "ours"}
    assert all(0 < float(row["value"]) < 100 for row in ours.values())
    assert {key: after[key]["value"] for key in before} == {key: row["value"] for key, row in before.items()}


def table() -> dict[tuple[str, ...], dict[str, str]]:
    """Return the rows of the demo's Table 2."""
    with open("results/demo/table2.csv", newline="", encoding="utf-8") as file:
        return {
            tuple(row[key] for key in ("table", "entry", "context_s", "metric")): row for row in csv.DictReader(file)
        }
