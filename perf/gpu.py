"""The features stage on a GPU: its rate, as a share of the slower of decoding and network; and training."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path

LENGTH_S = 60


def main() -> None:
    """Print the tables."""
    import all_layer
    import torch

    if not torch.cuda.is_available():
        print("no GPU: nothing is measured")
        return
    cores = len(os.sched_getaffinity(0))
    print(
        f"{torch.cuda.get_device_name()}, {cores} cores, {cores} videos of {LENGTH_S} s, bf16; video seconds per second"
    )
    with tempfile.TemporaryDirectory() as name:
        measure(Path(name), cores)
    all_layer.main()


def measure(folder: Path, cores: int) -> None:
    """Print the table, with ``cores`` decoders."""
    # Imported here, because the decoding processes import this file too.
    import shutil
    from time import perf_counter

    import numpy as np
    import random_weights
    from clip import clip
    from stage import FOUR, extracted

    from stepline.backbones.registry import FAMILIES, presets
    from stepline.features.frames import Request, batches
    from stepline.features.network import Network

    FAMILIES.update(dict.fromkeys(random_weights.MADE, "random_weights"))
    source = clip(folder, times=LENGTH_S // 20)
    videos = [Path(shutil.copy(source, folder / f"{number}.mp4")) for number in range(cores)]
    specs = [replace(presets()[each], compute="bfloat16", dtype="float32") for each in FOUR]
    print(f"{'':30}{'decode':>10}{'network':>10}{'stage':>10}{'share':>10}")
    network_s = {}
    for chosen in [*([spec] for spec in specs), specs]:
        start = perf_counter()
        sizes = {}
        for message in batches(source, [Request(spec=spec, batch_size=64) for spec in chosen], ()):
            sizes[message.of] = getattr(message, "clips", np.zeros(0)).shape[1:]
        decode = cores * LENGTH_S / (perf_counter() - start)
        for spec, size in zip(chosen, sizes.values(), strict=True):
            if spec.name in network_s:
                continue
            network = Network(spec, random_weights.load(spec, {}), "cuda", None)
            clips = np.zeros((network.batch_size, *size), np.uint8)
            shown = np.ones(clips.shape[:2], bool)
            network(clips, shown)
            start = perf_counter()
            for _ in range(10):
                network(clips, shown)
            network_s[spec.name] = (perf_counter() - start) / (10 * network.batch_size * spec.hop / spec.fps)
        model = 1 / sum(network_s[spec.name] for spec in chosen)
        extracted(videos[:1], folder, chosen, decoders=1)
        start = perf_counter()
        extracted(videos, folder, chosen, decoders=cores)
        stage = cores * LENGTH_S / (perf_counter() - start)
        what = "all" if len(chosen) > 1 else chosen[0].name
        print(f"{what:30}{decode:10.1f}{model:10.1f}{stage:10.1f}{stage / min(decode, model):10.2f}", flush=True)


if __name__ == "__main__":
    main()
