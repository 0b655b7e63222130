"""MT+BCE, the multimodal transformer of HT-Step (Afouras et al., 2023), which predicts when each step is shown.

The paper uses the code of TAN with the sizes of VINA (Mavroudi et al., 2023), which was not released. This is TAN's
joint encoder only: projected rows and sentences with positions, then the transformer. TAN's branch with a separate
video encoder does not affect the outputs of the joint encoder, which are all that the paper scores, so it is omitted.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from stepline.models.blobs import BlobConfig, blobs
from stepline.models.grounding import GroundedSegments, GroundedVideo, Rows, gather
from stepline.models.step_grounding_config import StepGroundingConfig
from stepline.models.tan import TEMPERATURE, JointEncoder, interpolated


class Articles(NamedTuple):
    """B videos with the sentences of their articles, padded.

    features: (B, T, D). there: (B, T), False for padding. start: (B,), the position of the first row of each video.
    texts: (B, N, E). step: (B, N), the index of a sentence's step in the article, -1 for padding.
    """

    features: Tensor
    there: Tensor
    start: Tensor
    texts: Tensor
    step: Tensor

    @property
    def counted(self) -> Tensor:
        """Return the (B, T, K) mask of pairs of second and step that are not padding."""
        steps = torch.arange(int(self.step.max()) + 1, device=self.step.device)
        return self.there[..., None] & (steps <= self.step.amax(dim=1, keepdim=True))[:, None]


class StepGrounding(JointEncoder):
    """The network. The position of a sentence is the index of its step in the article."""

    config: StepGroundingConfig

    def forward(self, articles: Articles) -> Tensor:
        """Return the (B, T, K) logits that each second shows each step: cosines of their outputs divided by 0.07.

        The output of a step with several sentences is the maximum of theirs. If there are more rows than positions, the
        positions are interpolated. Raises ValueError if an article has more steps than positions.
        """
        n, steps = articles.features.shape[1], int(articles.step.max()) + 1
        if steps > self.config.positions:
            raise ValueError(f"an article of {steps} steps has more than the {self.config.positions} positions")
        if n > self.config.positions:
            placed = interpolated(self.temporal_pos_embed, n)
        else:
            place = articles.start[:, None] + torch.arange(n, device=articles.start.device)
            placed = self.temporal_pos_embed[place.clamp(max=self.config.positions - 1)]
        ordered = self.text_temporal_pos_embed[articles.step.clamp(min=0)]
        padding = ~articles.there, articles.step < 0
        padded = any(bool(each.any()) for each in padding)
        video, texts = self.joint(
            self.video_rows(articles.features, placed),
            self.text_rows(articles.texts) + self.ln_position_init(ordered),
            *(padding if padded else (None, None)),
        )
        of_steps = functional.normalize(_of_steps(texts[-1], articles.step, steps), dim=2)
        return functional.normalize(video[-1], dim=2) @ of_steps.transpose(1, 2) / TEMPERATURE

    def loss(self, articles: Articles, shown: Tensor) -> Tensor:
        """Return the binary cross-entropy for (B, T, K) labels, averaged over the ``counted`` pairs.

        A step without segments is false in all seconds.
        """
        every = functional.binary_cross_entropy_with_logits(self(articles), shown.float(), reduction="none")
        counted = articles.counted
        return (every * counted).sum() / counted.sum()


def _of_steps(texts: Tensor, step: Tensor, steps: int) -> Tensor:
    """Return the (B, steps, C) maxima over each step's rows of (B, N, C); zeros for a step without rows."""
    place = step.where(step >= 0, steps)[..., None].expand_as(texts)
    pooled = texts.new_zeros(len(texts), steps + 1, texts.shape[2])
    return pooled.scatter_reduce(1, place, texts, "amax", include_self=False)[:, :steps]


class Sentences:
    """The sentences of all steps in one table, with a row of zeros after them."""

    def __init__(self, sentences: Sequence[Rows], device: torch.device | str = "cpu") -> None:
        """Store the (n, E) vectors of each step's n sentences; raise ValueError if a step has none."""
        self.counts = np.array([len(each) for each in sentences])
        if not self.counts.all():
            raise ValueError(f"step {int(self.counts.argmin())} has no sentence")
        self._first = self.counts.cumsum() - self.counts
        table = np.concatenate([*sentences, np.zeros_like(sentences[0][:1])]).astype(np.float32)
        self.table = torch.from_numpy(table).to(device)

    def beside(self, videos: Sequence[Rows], candidates: Sequence[NDArray[np.int64]], start: Tensor) -> Articles:
        """Return the rows of videos with the sentences of their articles; start: see ``Articles``."""
        device = self.table.device
        n = max(int(self.counts[each].sum()) for each in candidates)
        rows, step = np.full((len(videos), n), len(self.table) - 1), np.full((len(videos), n), -1)
        for number, each in enumerate(candidates):
            counts = self.counts[each]
            of = np.repeat(np.arange(len(each)), counts)
            step[number, : len(of)] = of
            rows[number, : len(of)] = (self._first[each] - counts.cumsum() + counts)[of] + np.arange(len(of))
        features, there = gather(videos, max(map(len, videos)))
        texts = self.table[torch.from_numpy(rows).to(device)]
        return Articles(
            features.to(device), there.to(device), start.to(device), texts, torch.from_numpy(step).to(device)
        )


@torch.inference_mode()
def per_second(model: StepGrounding, video: GroundedVideo, sentences: Sequence[Rows]) -> NDArray[np.float64]:
    """Return the (T, K) confidences in [0, 1] that each second shows each step of the video's article.

    sentences: of all steps, by step index, as in ``fit_step_grounding``.
    """
    table = Sentences([sentences[step] for step in video.candidates], model.video_pre_proj.weight.device)
    every = np.arange(len(video.candidates))
    logits = model(table.beside([video.rows], [every], torch.zeros(1, dtype=torch.int64)))[0]
    confidences: NDArray[np.float64] = logits.double().sigmoid().cpu().numpy()
    return confidences


def ground(
    model: StepGrounding, video: GroundedVideo, sentences: Sequence[Rows], config: BlobConfig | None = None
) -> GroundedSegments:
    """Return the segments that ``blobs`` finds in the confidences of ``per_second``, clipped to the video."""
    found = blobs(per_second(model, video, sentences), config)
    inside = found.start_s < video.duration_s
    end_s = np.minimum(found.end_s, video.duration_s)[inside]
    return GroundedSegments(found.start_s[inside], end_s, video.candidates[found.step[inside]], found.score[inside])
