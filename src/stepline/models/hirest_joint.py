"""The joint model of HiREST (Zala et al., "Hierarchical Video-Moment Retrieval and Step-Captioning", CVPR 2023).

CLIP4Caption's encoder for frames, a query and speech; heads for the moment that answers the query and for the
boundaries of its steps; and CLIP4Caption's decoder for their captions (Sec. 4.2). If paper and release differ, this
follows the release; see ``JointConfig``. Random numbers come from torch's global generator.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepline.models.hirest_joint_captions import Decoder, Found, Written, until_end
from stepline.models.hirest_joint_config import JointConfig
from stepline.models.hirest_joint_frames import slot_frames
from stepline.models.hirest_joint_layers import EPS, Encoder
from stepline.models.hirest_joint_segments import Grown, between, grow, kept, masked


class Videos(NamedTuple):
    """B videos of at most T frames, one per second, with a query each.

    features: (B, T, D), of frames, padded with 0. query: (B, Q). speech: (B, T, A), the vector of the speech in each
    second, 0 in silence; None without ``audio``. lengths: (B,), the numbers of frames.
    """

    features: Tensor
    query: Tensor
    speech: Tensor | None
    lengths: Tensor


def together(videos: Sequence[Videos]) -> Videos:
    """Return the videos as one batch, padded to the longest."""
    longest = max(each.features.shape[1] for each in videos)

    def padded(rows: Iterable[Tensor]) -> Tensor:
        return torch.cat([functional.pad(each, (0, 0, 0, longest - each.shape[1])) for each in rows])

    speech = [each.speech for each in videos if each.speech is not None]
    return Videos(
        padded(each.features for each in videos),
        torch.cat([each.query for each in videos]),
        padded(speech) if speech else None,
        torch.cat([each.lengths for each in videos]),
    )


class Growth(NamedTuple):
    """One iteration of segmentation.

    video: (b,), the videos of this iteration. logits: their (b, T) logits. grown: their next steps. ends: (B, T), which
    frames of all videos are step ends so far.
    """

    video: Tensor
    logits: Tensor
    grown: Grown
    ends: Tensor


class Joint(nn.Module):
    """The network of a ``JointConfig``, with its losses and inference; frames are numbered from 0."""

    def __init__(self, config: JointConfig) -> None:
        super().__init__()
        self.config = config
        embed = config.embed
        self.frame, self.query = nn.Linear(config.feature_dim, embed), nn.Linear(config.text_dim, embed)
        self.norm = nn.LayerNorm(embed, eps=EPS)
        if config.audio:
            self.speech = nn.Sequential(nn.LayerNorm(config.asr_dim), nn.Linear(config.asr_dim, embed))
        self.time = nn.Sequential(nn.Linear(1, embed), nn.Tanh(), nn.Linear(embed, embed))
        self.inside, self.boundary = nn.Embedding(2, embed), nn.Embedding(2, embed)
        self.encoder, self.decoder = Encoder(config), Decoder(config)
        self.start, self.end, self.segment = (nn.Linear(config.hidden, 1) for _ in range(3))

    def moment_loss(self, videos: Videos, moments: Tensor) -> Tensor:
        """Return the loss for (B, 2) first and last frames of moments.

        It is the mean of two binary cross entropies, of the start and of the end. Each is a mean over all frames of the
        batch except padding, so that longer videos weigh more.
        """
        real = self.real(videos)
        losses = []
        for logits, target in zip(self.moment_logits(videos), moments.unbind(1), strict=True):
            here = between(target, target, logits.shape[1]).to(logits)
            costs = functional.binary_cross_entropy_with_logits(logits, here, reduction="none")
            losses.append((costs * real).sum() / real.sum())
        return (losses[0] + losses[1]) / 2

    def segment_loss(self, videos: Videos, inside: Tensor, ends: Tensor, target: Tensor) -> Tensor:
        """Return the mean cross entropy of (B,) target frames among those ``inside``; see ``segment_logits``."""
        return functional.cross_entropy(masked(self.segment_logits(videos, inside, ends), inside), target)

    def caption_loss(self, steps: Videos, captions: Written) -> Tensor:
        """Return the mean cross entropy of captions, including their padding; steps: see ``sampled``."""
        logits = self.decoder(self.encoded(steps), captions.read, captions.there)
        return functional.cross_entropy(logits.flatten(0, 1), captions.follows.flatten())

    def moment_logits(self, videos: Videos) -> tuple[Tensor, Tensor]:
        """Return the (B, T) logits that frames are the first and the last of the moment."""
        rows = self.encoded(videos)
        return self.start(rows)[..., 0], self.end(rows)[..., 0]

    def segment_logits(self, videos: Videos, inside: Tensor, ends: Tensor) -> Tensor:
        """Return the (B, T) logits that frames are boundaries.

        inside: (B, T), whether a frame can be a boundary: in training from the start of the next step to the end of the
        moment, in inference the frames of the moment that no step covers yet. ends: (B, T), whether it is a step end.
        """
        logits: Tensor = self.segment(self.encode(self.content(videos), self.real(videos), inside, ends))[..., 0]
        return logits

    @torch.inference_mode()
    def moments(self, videos: Videos) -> Tensor:
        """Return the (B, 2) most likely first and last frames, chosen independently: the last may precede the first."""
        padding = ~self.real(videos)
        found = [logits.masked_fill(padding, -torch.inf).argmax(dim=1) for logits in self.moment_logits(videos)]
        return torch.stack(found, dim=1)

    @torch.inference_mode()
    def segments(self, videos: Videos, moments: Tensor) -> list[list[int]]:
        """Return the boundaries of each video's steps, given the (B, 2) first and last frames of the moment.

        Two consecutive boundaries are a step; a single one is not. See ``hirest_joint_segments`` for special cases.
        """
        *_, last = self.growth(videos, moments)
        return kept(last.ends, moments, self.config.gap)

    @torch.inference_mode()
    def captions(self, videos: Videos, video: Tensor, steps: Tensor, *, beams: int = 3) -> list[list[int]]:
        """Return the word ids of the captions for (N, 2) first and last frames of steps in the (N,) videos.

        All captions are searched at once, see ``Decoder.search``. beams: 3 in the release's scripts.
        """
        found = self.searched(self.sampled(videos, video, steps), beams, self.config.words)
        return [until_end(ids) for ids in found.ids[:, 0].tolist()]

    def searched(self, steps: Videos, beams: int, words: int) -> Found:
        """Return all results of beam search, with captions of at most ``words`` words."""
        return self.decoder.search(self.encoded(steps), beams, words)

    def sampled(self, videos: Videos, video: Tensor, steps: Tensor) -> Videos:
        """Return the frames from which captions are generated, for (N, 2) steps (first, last frame) in (N,) videos."""
        frames = slot_frames(steps, self.config)
        speech = None if videos.speech is None else videos.speech[video[:, None], frames]
        features, lengths = videos.features[video[:, None], frames], torch.full_like(video, self.config.slots)
        return Videos(features, videos.query[video], speech, lengths)

    def growth(self, videos: Videos, moments: Tensor) -> Iterator[Growth]:
        """Yield at most ``iterations`` iterations of segmentation; a video without a next step is dropped."""
        content, real = self.content(videos), self.real(videos)
        start, end = moments.unbind(1)
        inside = between(start, end, content.shape[1])
        ends = between(start, start, content.shape[1])
        last = torch.full_like(videos.lengths, content.shape[1] - 1)
        if self.config.padding == "masked":
            last = videos.lengths - 1
        video = torch.arange(len(moments), device=moments.device)
        for _ in range(self.config.iterations):
            rows = self.encode(content[video], real[video], inside[video], ends[video])
            logits = self.segment(rows)[..., 0]
            grown = grow(logits, inside[video], last[video], self.config.threshold)
            taken = video[grown.taken]
            left, right = grown.left[grown.taken], grown.right[grown.taken]
            inside[taken] &= ~between(left, right, content.shape[1])
            ends[taken, left] = ends[taken, right] = True
            yield Growth(video, logits, grown, ends)
            video = taken
            if not len(video):
                break

    def encoded(self, videos: Videos) -> Tensor:
        """Return the (B, T, hidden) encoding with all frames marked as inside."""
        real = self.real(videos)
        return self.encode(self.content(videos), real, real)

    def encode(self, content: Tensor, real: Tensor, inside: Tensor, ends: Tensor | None = None) -> Tensor:
        """Return the (B, T, hidden) encoded frames; ends: for segmentation only."""
        rows: Tensor = self.encoder(self.fused(content, inside, ends), real)
        return rows

    def fused(self, content: Tensor, inside: Tensor, ends: Tensor | None = None) -> Tensor:
        """Return the (B, T, embed) frames plus embeddings of whether each is inside, and whether it is an end."""
        rows: Tensor = content + self.inside(inside.long())
        return rows if ends is None else rows + self.boundary(ends.long())

    def content(self, videos: Videos) -> Tensor:
        """Return the (B, T, embed) sum of frames and query, speech, and time in [-1, 1], 0 for padding."""
        query = functional.normalize(self.query(videos.query), dim=1)[:, None]
        frames = self.norm(self.frame(videos.features))
        rows: Tensor = frames * query if self.config.fusion == "product" else frames + query
        if self.config.audio:
            rows = rows + self.speech(videos.speech)
        time: Tensor = self.time(self.times(videos)[..., None])
        return rows + time

    def times(self, videos: Videos) -> Tensor:
        """Return the (B, T) times, from -1 at the first frame to 1 at the last."""
        frame = torch.arange(videos.features.shape[1], device=videos.features.device)
        times = 2 * frame / (videos.lengths[:, None] - 1).clamp(min=1) - 1
        return torch.where(self.real(videos), times, 0)

    def real(self, videos: Videos) -> Tensor:
        """Return the mask of frames, (B, T): False for padding."""
        return torch.arange(videos.features.shape[1], device=videos.features.device) < videos.lengths[:, None]
