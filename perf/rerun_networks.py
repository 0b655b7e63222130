"""Three cheap networks: each is a function whose source all systems of ``reruns.py`` share.

Pictures are (n, 112, 112, 3) float32 RGB in [0, 1]. Each call appends a line to the file that the variable CALLS names.
"""

import inspect

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
DIMENSIONS = {"a": 64, "b": 128, "c": 96}


def a(pictures: "Floats") -> "Floats":
    """Return (n, 64) histograms of brightness."""
    import os

    import numpy as np

    with open(os.environ["CALLS"], "a") as calls:
        calls.write(f"a {len(pictures)}\n")
    levels = (pictures.mean(axis=3) * 63.99).astype(np.int64).reshape(len(pictures), -1)
    return np.stack([np.bincount(each, minlength=64) for each in levels]).astype(np.float32) / levels.shape[1]


def b(pictures: "Floats") -> "Floats":
    """Return (n, 128): the spatial mean of a layer of random convolutions."""
    import os

    import numpy as np

    with open(os.environ["CALLS"], "a") as calls:
        calls.write(f"b {len(pictures)}\n")
    kernels = np.random.default_rng(0).standard_normal((192, 128), np.float32)
    places = pictures.reshape(-1, 14, 8, 14, 8, 3).swapaxes(2, 3).reshape(len(pictures), 196, 192)
    return np.maximum(places @ kernels, 0).mean(axis=1)


def c(pictures: "Floats") -> "Floats":
    """Return (n, 96): the mean colours of a grid of 8 x 4."""
    import os

    with open(os.environ["CALLS"], "a") as calls:
        calls.write(f"c {len(pictures)}\n")
    return pictures.reshape(-1, 8, 14, 4, 28, 3).mean(axis=(2, 4)).reshape(len(pictures), 96)


def lines(name: str) -> str:
    """Return the source of a network, the function ``vectors``."""
    return inspect.getsource(globals()[name]).replace(f"def {name}(", "def vectors(")


def changed(lines: str) -> str:
    """Return the source of network b with different kernels."""
    return lines.replace("default_rng(0)", "default_rng(1)")


def commented(lines: str) -> str:
    """Return the source of network b with an additional comment."""
    return lines.replace("    kernels", "    # Kernels without weights to load.\n    kernels")
