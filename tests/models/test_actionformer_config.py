"""What a configuration of ActionFormer refuses, without torch."""

import subprocess
import sys
from typing import Any

import pytest

from stepline.errors import ConfigError
from stepline.models.actionformer_config import ActionFormerConfig, Decoding, legal_windows


def config(**fields: Any) -> ActionFormerConfig:
    return ActionFormerConfig(**{"feature_dim": 1024, "classes": 5, **fields})


def test_it_needs_neither_torch_nor_numpy() -> None:
    code = "import sys, stepline.models.actionformer_config; assert not {'torch', 'numpy'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("length", "levels", "windows"),
    [(512, 6, (3, 5, 9, 17)), (2304, 6, (3, 5, 7, 9, 13, 19, 25, 37, 73)), (64, 4, (3, 5, 9)), (32, 6, ())],
)
def test_legal_windows_divide_every_level(length: int, levels: int, windows: tuple[int, ...]) -> None:
    assert legal_windows(length, levels) == windows
    stride = 2 ** (levels - 1)
    assert windows == tuple(w for w in range(3, length + 2, 2) if length % (stride * (w // 2) * 2) == 0)


@pytest.mark.parametrize("window", [19, 7, 8, (9, 9, 9, 9, 9, 7)])
def test_a_window_that_does_not_fit_is_refused_with_those_that_do(window: Any) -> None:
    with pytest.raises(ConfigError, match=r"does not divide max_length 512: use 3, 5, 9, 17 or -1, for all rows$"):
        config(window=window)


def test_windows_that_fit_are_taken() -> None:
    assert [config(window=window).windows[0] for window in (3, 5, 9, 17, -1, 1)] == [3, 5, 9, 17, -1, 1]
    assert config(window=(7, 7, 7, 7, 7, -1), max_length=192).windows[-1] == -1


@pytest.mark.parametrize(
    "fields",
    [
        {"classes": None},
        {"text_dim": 768},
        {"embed": 510},
        {"pyramid_dim": 256},
        {"ranges": ((0, 4),)},
        {"window": (9, 9)},
        {"max_length": 500},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_does_not_fit_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        config(**fields)


@pytest.mark.parametrize(
    ("window", "lengths"), [(9, {1: 512, 512: 512, 513: 768, 768: 768, 769: 1024}), (-1, {40: 512, 513: 544})]
)
def test_videos_are_padded_as_released(window: int, lengths: dict[int, int]) -> None:
    assert {length: config(window=window).padded(length) for length in lengths} == lengths


def test_defaults_are_those_that_the_documents_state() -> None:
    made, decoding = config(), Decoding()
    assert (made.max_length, made.window, made.centre_radius, made.init_norm) == (512, 9, 1.5, 100)
    assert (made.crop, made.inside, made.droppath, made.candidates) == (0.9, 0.5, 0.1, "all")
    assert (decoding.nms, decoding.per_step, decoding.sigma, decoding.most) == ("soft", True, 0.5, 200)
    assert (decoding.least_score, decoding.min_score, decoding.voting) == (0.001, 0.001, 0.7)
    assert (decoding.most_points, decoding.least_rows, made.prior) == (2000, 0.05, 0.01)
    assert (made.arch, made.head_layers, made.heads, made.kernel, made.head_kernel) == ((2, 2, 5), 3, 4, 3, 3)
    assert made.ranges == ((0, 4), (4, 8), (8, 16), (16, 32), (32, 64), (64, 10000))
