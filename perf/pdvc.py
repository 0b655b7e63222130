"""Updates and decoding of PDVC at the published size, compared with the same network on ``grid_sample``; also ProcNet.

It prints seconds and kernels on a GPU if there is one, otherwise CPU seconds and operators.
"""

from collections.abc import Callable
from typing import Any

import torch
from kernels import kernels
from measure import show, sized
from torch import Tensor
from torch.nn.functional import grid_sample
from torch.utils._python_dispatch import TorchDispatchMode
from updates import DEVICE, now_s

from stepline.models.deformable import DeformableAttention, Levels, View, values
from stepline.models.matching import Matcher
from stepline.models.pdvc import Pdvc
from stepline.models.pdvc_captions import CaptionHead, Seen
from stepline.models.pdvc_config import PdvcConfig
from stepline.models.procnet import ProcNet, ProcNetConfig

DIMENSION, WORDS, SEGMENTS, SAID = sized(3072, small=16), sized(1607, small=20), 8, 12
"""The dimension of features and the vocabulary of YouCook2; the mean segments per video; words per sentence."""
FITS = {"YouCook2": 840, "Tasty": 2998}
EPOCHS = 30
STEPS = sized(20 if DEVICE == "cuda" else 3, small=1)
NETWORK = sized(
    {}, small={"hidden": 32, "feedforward": 32, "caption_hidden": 16, "attention_hidden": 16, "queries": 20}
)
PROCNET = ProcNetConfig(**sized({}, small={"feature_dim": 16, "hidden": 16}))

Batch = dict[str, Any]


class Counted(TorchDispatchMode):
    """Counts operators."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.n += 1
        return function(*args, **(kwargs or {}))


class GridAttention(DeformableAttention):
    """Deformable attention as implemented without a custom kernel: one ``grid_sample`` per level."""

    def forward(self, query: Tensor, view: View, rows: Tensor, levels: Levels) -> Tensor:
        """Return what ``DeformableAttention`` returns."""
        locations = self.locations(query, view).permute(0, 2, 1, 3, 4).flatten(0, 1)
        weight = self.weight(query).unflatten(-1, (self.heads, -1)).softmax(dim=-1)
        weight = weight.permute(0, 2, 1, 3).flatten(0, 1).view(locations.shape)
        value = values(self.value, rows, levels).view(*rows.shape[:2], self.heads, -1).permute(0, 2, 3, 1).flatten(0, 1)
        found = 0
        for number, part in enumerate(value.split(levels.lengths.tolist(), dim=2)):
            found = found + (_sampled(part, locations[:, :, number], self.padding) * weight[:, None, :, number]).sum(-1)
        result: Tensor = self.output(found.unflatten(0, (len(rows), -1)).flatten(1, 2).transpose(1, 2))
        return result


class GridCaptions(CaptionHead):
    """The caption head, which reads rows in the same way."""

    def _read(self, locations: Tensor, seen: Seen) -> Tensor:
        videos = seen.rows.view(int(seen.first.max()) // int(seen.levels.lengths.sum()) + 1, -1, seen.rows.shape[1])
        parts = videos.transpose(1, 2)[seen.asked.video].split(seen.levels.lengths.tolist(), dim=2)
        read = [_sampled(part, locations[:, :, n], self.padding)[:, :, 0] for n, part in enumerate(parts)]
        return torch.cat(read, dim=2).transpose(1, 2)


def _sampled(rows: Tensor, locations: Tensor, padding: str) -> Tensor:
    """Return (N, D, Q, P) of (N, D, T) rows at (N, Q, P) locations."""
    grid = torch.stack((2 * locations - 1, torch.zeros_like(locations)), dim=-1)
    return grid_sample(rows[:, :, None], grid, padding_mode=padding, align_corners=False)


def on_grid(network: Pdvc) -> Pdvc:
    """Return the network with both ways of attention replaced."""
    for each in network.modules():
        if isinstance(each, DeformableAttention):
            each.__class__ = GridAttention
    network.captions.__class__ = GridCaptions
    return network


def made(matcher: Matcher = "hungarian") -> Pdvc:
    """Return the published network."""
    torch.manual_seed(0)
    return Pdvc(PdvcConfig(feature_dim=DIMENSION, vocabulary=WORDS, matcher=matcher, **NETWORK)).to(DEVICE)


def batch(size: int) -> Batch:
    """Return videos of random rows, with equal segments and sentences."""
    torch.manual_seed(1)
    starts = torch.arange(SEGMENTS) / SEGMENTS
    segments = torch.stack((starts, starts + 0.9 / SEGMENTS), dim=1).to(DEVICE)
    said = torch.randint(1, WORDS, (SEGMENTS, SAID), device=DEVICE)
    return {
        "features": torch.randn(size, 200, DIMENSION, device=DEVICE),
        "segments": [segments] * size,
        "captions": [said] * size,
        "durations_s": torch.full((size,), 320.0, device=DEVICE),
    }


def update(network: Pdvc, videos: Batch) -> Callable[[], None]:
    """Return a function that computes an update from a batch."""
    adam = torch.optim.Adam(network.parameters(), lr=5e-5, weight_decay=1e-4, fused=True)

    def learn() -> None:
        adam.zero_grad()
        network.total(network.losses(**videos)).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 100)
        adam.step()

    return learn


def update_s(call: Callable[[], None]) -> float:
    """Return the mean seconds of an update, after a warm-up."""
    call()
    start_s = now_s()
    for _ in range(STEPS):
        call()
    return (now_s() - start_s) / STEPS


def launches(call: Callable[[], None]) -> int:
    """Return the number of kernels and copies of a call, or without a GPU its operators."""
    call()
    if DEVICE == "cpu":
        with Counted() as counted:
            call()
        return counted.n
    return len(kernels(call))


def same(first: Pdvc, second: Pdvc) -> None:
    """Raise AssertionError if two networks differ by more than rounding."""
    with torch.no_grad():
        for network in (first, second):
            network.eval()
        torch.testing.assert_close(*(torch.stack([*n.losses(**batch(2))[0].values()]) for n in (first, second)))
        for network in (first, second):
            network.train()


def main() -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    same(made(), on_grid(made()))
    several = 16 if DEVICE == "cuda" else 4
    rows = {
        "one video, on grid_sample": (update(on_grid(made()), batch(1)), 1),
        "one video": (update(made(), batch(1)), 1),
        "one video, SoftSODA": (update(made("soft_soda"), batch(1)), 1),
        f"{several} videos": (update(made(), batch(several)), several),
    }
    if DEVICE == "cpu":
        calls = {name: call for name, (call, _) in rows.items()}
        show("an update by", next(iter(calls)), calls, repeats=2)
    print(f"{'an update by':40}{'launches':>10}{'updates/s':>12}" + "".join(f"{f'h, {name}':>14}" for name in FITS))
    for name, (call, size) in rows.items():
        rate = 1 / update_s(call)
        hours = "".join(f"{EPOCHS * videos / size / rate / 3600:14.1f}" for videos in FITS.values())
        print(f"{name:40}{launches(call):10}{rate:12.2f}{hours}", flush=True)
    network = made().eval()
    one, eight = batch(1), batch(8)
    for videos, n in ((one, 1), (eight, 8)):
        start_s = now_s()
        said = network.decode(videos["features"], durations_s=videos["durations_s"])
        assert len(said) == n
        print(f"decoding {n} at once: {(now_s() - start_s) / n:.2f} s a video", flush=True)
    procnet()


def procnet() -> None:
    """Print the seconds of an update of ProcNet, and of a prediction."""
    network, features = ProcNet(PROCNET).to(DEVICE), rows_of_procnet()
    print(f"ProcNet, an update: {update_s(procnet_update(network, features)):.2f} s", flush=True)
    print(f"ProcNet, a prediction: {update_s(lambda: network.predict(features)):.2f} s", flush=True)


def rows_of_procnet() -> Tensor:
    """Return the random rows of a video."""
    return torch.randn(1, PROCNET.length, PROCNET.feature_dim, device=DEVICE)


def procnet_update(network: ProcNet, features: Tensor) -> Callable[[], None]:
    """Return a function that computes an update from a video."""
    adam, segments = torch.optim.Adam(network.parameters(), lr=1e-4), batch(1)["segments"][0]

    def learn() -> None:
        adam.zero_grad()
        network.loss(features, segments).backward()  # type: ignore[no-untyped-call]
        adam.step()

    return learn


if __name__ == "__main__":
    main()
