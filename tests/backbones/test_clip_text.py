"""CLIP's text tower without its padding."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from stepline.backbones import clip_text
from stepline.backbones.presets.eva_clip import TOWERS


@pytest.mark.parametrize("normalise", [True, False])
def test_a_query_without_padding_has_the_embedding_of_the_padded_text(normalise: bool) -> None:
    torch.manual_seed(0)
    network = clip_text.tower(clip_text.Config(dimension=8, width=64, heads=2, layers=2, quick_gelu=False))
    for parameter in network.eval().requires_grad_(False).parameters():
        parameter.normal_(std=0.1)
    encoder = clip_text.CausalTextEncoder(replace(TOWERS[0], normalise=normalise), network)
    seen = []
    network.transformer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].shape[1]))
    texts = {"": 2, "make a memory jar": 6, "jar " * 75: 77, "jar " * 100: 77}
    for text in texts:
        expected = encoder.encode(encoder.tokens(text))
        np.testing.assert_allclose(encoder.query(text), expected, rtol=0, atol=1e-6 * float(np.abs(expected).max()))
    assert seen[1::2] == list(texts.values())
    assert len({encoder.query(text).tobytes() for text in texts}) == 3
