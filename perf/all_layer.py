"""All-layer fine-tuning of InternVideo, random weights: batched texts; on a GPU, updates at the published size."""

import tempfile
from math import ceil
from pathlib import Path
from time import perf_counter

import torch
from measure import show, sized
from torch.nn import functional
from updates import DEVICE

from stepline.backbones import clip_text, internvideo
from stepline.backbones.presets.internvideo import TOWER
from stepline.benchmarks.spacewalk.methods.all_layer import CLIPS, TEXTS
from stepline.models.all_layer import Recipe, train

ONE = "one by one, on a CPU"
STEPS, BATCH, FRAMES, SAMPLES, LABELS = sized(100, small=4), sized(16, small=2), 12, 20000, 26
"""Measured updates; samples per update; frames per window; samples of a whole fit; steps of a recording."""
NETWORK = sized(
    {},
    small={
        "image": 32, "patch": 16, "width": 32, "dimension": 32, "layers": 1, "heads": 2, "extractors": (0,),
        "text": clip_text.Config(dimension=32, width=32, heads=2, layers=1, quick_gelu=True),
    },
)  # fmt: skip


def main() -> None:
    """Print the tables."""
    texts(internvideo.Config(**NETWORK))
    if DEVICE == "cuda":
        for compute in (torch.float32, torch.bfloat16):
            update_s = fitted(DEVICE, compute, STEPS)
            print(
                f"{compute}, {STEPS} updates of {BATCH} windows: {update_s:.2f} s each, "
                f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB; "
                f"{SAMPLES} samples: {update_s * ceil(SAMPLES / BATCH) / 3600:.2f} hours",
                flush=True,
            )


def texts(config: internvideo.Config) -> None:
    """Print the cost of the text tower for a batch of texts."""
    torch.set_num_threads(1)
    here, there = random(clip_text.tower(config.text)).eval(), random(clip_text.tower(config.text)).eval().to(DEVICE)
    encoder = clip_text.TextEncoder(TOWER, clip_text.tokenize, here)
    ids = tokens(TEXTS)

    def batch() -> torch.Tensor:
        with torch.inference_mode():
            return there(ids.to(DEVICE)).cpu()

    one = torch.stack([torch.from_numpy(encoder.encode(each)) for each in ids.tolist()])
    print(f"relative L2 difference: {float((batch() - one).norm() / one.norm()):.1e}")
    calls = {ONE: lambda: [encoder.encode(each) for each in ids.tolist()], f"{TEXTS} at once, {DEVICE}": batch}
    show(f"{TEXTS} texts of 77 tokens, torch {torch.__version__}", ONE, calls, repeats=3)


def fitted(device: str, compute: torch.dtype, steps: int) -> float:
    """Return the mean seconds of an update in a fit of ``steps`` updates, without the first and the last."""
    config = internvideo.Config(**NETWORK)
    video, text = (random(each).to(device) for each in (internvideo.VideoTower(config), clip_text.tower(config.text)))
    towers = internvideo.Towers(video, text, torch.nn.Parameter(torch.tensor(4.6, device=device)))
    pictures = torch.randint(256, (steps * BATCH, 3, FRAMES, config.image, config.image), dtype=torch.uint8)
    ids = tokens(len(pictures)).to(device)
    animations = functional.normalize(torch.randn(LABELS, 3 * config.dimension, device=device), dim=1)
    labels = torch.arange(len(pictures), device=device) % LABELS
    begun: list[float] = []

    def losses(numbers: list[int]) -> torch.Tensor:
        begun.append(perf_counter())
        with torch.autocast(device, compute, enabled=compute != torch.float32):
            seen, told = towers.video(pictures[numbers].to(device).float().div_(255)), towers.text(ids[numbers])
        parts = [functional.normalize(each.float(), dim=1) for each in (seen, told, told)]
        logits = torch.cat(parts, dim=1) @ animations.T * towers.logit_scale.exp()
        return functional.cross_entropy(logits, labels[numbers], reduction="none")

    recipe = Recipe(
        optimiser="bert_adam",
        learning_rate=4e-6,
        weight_decay=0.2,
        warm_up=0.1,
        epochs=1,
        batch_size=BATCH,
        seed=0,
    )
    with tempfile.TemporaryDirectory() as folder:
        train(
            towers.parameters(video=True, text=True, scale=True),
            losses,
            len(pictures),
            Path(folder, "fit"),
            recipe,
            at_once=CLIPS,
            made_from="",
        )
    update = ceil(BATCH / CLIPS)
    return (begun[-update] - begun[update]) / (steps - 2)


def random(network: torch.nn.Module) -> torch.nn.Module:
    """Return the network with random parameters from a fixed seed."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_(std=0.02)
    return network


def tokens(n: int) -> torch.Tensor:
    """Return (n, 77) random token ids without padding."""
    ids = torch.randint(1, 49000, (n, 77))
    ids[:, 0], ids[:, -1] = 49406, 49407
    return ids


if __name__ == "__main__":
    main()
