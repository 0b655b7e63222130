"""The joint model of HiREST against the network, the examples and the decoding of github.com/j-min/HiREST."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stepline.models.hirest_joint import Joint, Videos, together
from stepline.models.hirest_joint_captions import until_end, written
from stepline.models.hirest_joint_frames import boundaries, frame_of, intervals, slot_frames, speech_rows
from stepline.models.hirest_joint_release import network_of
from stepline.models.hirest_joint_segments import between, kept
from stepline.models.hirest_joint_words import Words
from tests.parity import Array, Golden, Output, recipe, same_input, weight, weights

INPUTS = ("recipe_json",)
TOLERANCE = 1e-4
"""The largest allowed relative error of floats; a relative change of 1e-6 in the weights causes an error of 3e-5."""
LOGGED = 8
"""The iterations of segmentation whose logits are in the golden file."""
RUNS = {"batch": None, "batch_thr0.2": 0.2, "batch_thr0.8": 0.8}
"""Run of segmentation -> threshold; None means the manifest's threshold."""
BEAMS = (1, 3, 5)
TIME = re.compile(r"(\d+):(\d+):(\d+),(\d+) --> (\d+):(\d+):(\d+),(\d+)")
VALUE = re.compile(r"value\('([^']*)', \([^)]*\), 'scaled', ([\d.]+)\)")


def outputs(manifest: Any, golden: Golden, folder: Path) -> Iterator[Output]:
    """Yield the outputs of all videos together and of each video alone, and the outputs that are in the recipe."""
    filled = weights(manifest["keys"], manifest["digest_sha256"], manifest["after_rule_add"])
    args = manifest["args"]
    network = network_of(
        {name: torch.from_numpy(array) for name, array in filled.items()},
        folder / "manifest.json",
        slots=args["max_frames"],
        words=args["max_words"],
        threshold=args["moment_segmentation_difference_threshold"],
        iterations=args["moment_segmentation_max_iterations"],
    )
    made = recipe(golden)
    made |= {run: each["boundaries"] for run, each in made["segmentation"].items()}
    case = _Case(network, made)
    lengths = sorted({int(name.split("/")[1]) for name in golden if name.startswith("time/")})
    with torch.inference_mode():
        for name, ours in case.outputs(lengths):
            yield Output(name, np.asarray(ours), golden[name], TOLERANCE)
    for name, ours in case.besides():
        yield Output(f"recipe_json/{name}", _array(ours), _array(made[name]), TOLERANCE)


def _array(value: Any) -> Array:
    """Return a float as an array, and any other value as the bytes of its JSON."""
    if isinstance(value, float):
        return np.asarray(value)
    return np.frombuffer(json.dumps(value, sort_keys=True).encode(), np.uint8)


class _Case:
    """The videos of a golden file, and a network's outputs for them."""

    def __init__(self, network: Joint, made: Any) -> None:
        self.network, self.made, self.words = network, made, Words()
        about = made["videos"]
        self.names = sorted(about, key=lambda name: about[name]["prompt_row"])
        self.queries = {
            file.removesuffix(".mp4"): (query, each)
            for query, videos in made["annotations"].items()
            for file, each in videos.items()
        }
        self.frames = {name: round(self.queries[name][1]["v_duration"]) for name in self.names}
        self.rows = {name: speech_rows(_spans(made["srt"][name]), self.frames[name]) for name in self.names}
        self.bounds, self.moments, self.steps, self.intervals = {}, {}, [], []
        for name in self.names:
            n, annotated = self.frames[name], self.queries[name][1]
            spans_s = [step["absolute_bounds"] for step in annotated["steps"]]
            self.bounds[name] = boundaries(spans_s, n)
            self.moments[name] = [frame_of(time_s, n) for time_s in annotated["bounds"]]
            self.intervals += [(name, each) for each in intervals(self.bounds[name], self.moments[name][1])]
            for (start_s, end_s), step in zip(spans_s, annotated["steps"], strict=True):
                self.steps.append((name, frame_of(start_s, n), frame_of(end_s, n), step["heading"]))
        self.examples = [self.intervals[number] for number in made["ms_train_picked"]]
        picked = [self.steps[number] for number in made["sc_picked"]]
        self.captioned = torch.tensor([self.names.index(name) for name, *_ in picked])
        self.spans = torch.tensor([[start, end] for _, start, end, _ in picked])
        self.captions = written([self.words.encode(text) for *_, text in picked], network.config.words)
        self.alone = {name: self._video(name) for name in self.names}
        self.together = together([*self.alone.values()])
        self.found: dict[str, list[list[int]]] = {}
        self.predicted: dict[str, list[int]] = {}
        self.said: dict[str, list[str]] = {}

    def outputs(self, lengths: list[int]) -> Iterator[tuple[str, Any]]:
        """Yield all arrays under their names in the golden file. lengths: the video lengths with times."""
        yield from self._inputs(lengths)
        for run, names in {"batch": self.names, **{f"alone/{name}": [name] for name in self.names}}.items():
            videos = self.together if run == "batch" else self.alone[names[0]]
            yield from _under(f"mr/{run}", self._moment(videos, names))
            yield from _under(f"ms_train/{run}", self._interval(names))
            for each, threshold in RUNS.items() if run == "batch" else [(run, None)]:
                yield from _under(f"ms_inf/{each}", self._growth(f"ms_inf/{each}", videos, names, threshold))
        yield from _under("sc", self._caption())

    def besides(self) -> Iterator[tuple[str, Any]]:
        """Yield the outputs that are in the recipe, under their names there; call it after ``outputs``."""
        steps = self.network.sampled(self.together, self.captioned, self.spans)
        for task, loss in (
            ("mr", self.network.moment_loss(self.together, self._targets(self.names))),
            ("ms", self.network.segment_loss(*self._learned(self.names))),
            ("sc", self.network.caption_loss(steps, self.captions)),
        ):
            gradients = torch.autograd.grad(loss, [*self.network.parameters()], allow_unused=True)
            norms = torch.stack([each.double().norm() for each in gradients if each is not None])
            yield f"{task}_grad_norm_total", float(norms.norm())
        moments: dict[str, Any] = {}
        segments = {}
        found_in_all = self.network.segments(self.together, self._targets(self.names))
        for name, found in zip(self.names, found_in_all, strict=True):
            file, duration = f"{name}.mp4", {"video_duration": self.frames[name]}
            moments.setdefault(self.queries[name][0], {})[file] = {"bounds": self.predicted[name], **duration}
            pairs = [[*pair] for pair in pairwise(found)]
            segments[file] = {"bounds": pairs, "pred_bounds": found, "target_bounds": self.bounds[name], **duration}
        yield "mr_prediction_file", moments
        yield "ms_prediction_file", segments
        yield from self.found.items()
        examples = [
            {
                "all_bound_frames": self.bounds[name],
                "mask_first_last": [each.start, each.last],
                "moment_bound_frames": self.moments[name],
                "prev_boundaries": sorted({*each.previous}),
                "target": each.target,
                "video": name,
            }
            for name, each in self.intervals
        ]
        yield "ms_train_examples", examples
        inside = [
            {"video": name, "first_frame": start, "frames_inside": end - start + 1, "text": text}
            for name, start, end, text in self.steps
        ]
        yield "sc_examples", inside
        yield from self.said.items()

    def _video(self, name: str) -> Videos:
        """Return a single video, generated by the recipe."""
        about, n = self.made["videos"][name], self.frames[name]
        named = f"hirest_joint/{self.made['set']}/{name}"
        (_, block), (_, noise) = VALUE.findall(self.made["recipe"]["vis"])
        ((_, said),) = VALUE.findall(self.made["recipe"]["asr"])
        ((query, scale),) = VALUE.findall(self.made["text_features"][about["prompt_row"]])
        blocks = weight(f"{named}/vis_block", (about["n_blocks"], 1024), "scaled", float(block))
        features = blocks[np.arange(n) * about["n_blocks"] // n]
        features = features + weight(f"{named}/vis_noise", (n, 1024), "scaled", float(noise))
        speech = weight(f"{named}/asr", tuple(about["asr_shape"]), "scaled", float(said))
        same_input(named, features, about["vis_sha256"])
        same_input(named, speech, about["asr_sha256"])
        rows = self.rows[name]
        warped = np.where(rows[:, None] < 0, np.float32(0), speech[rows])
        text = weight(query, (1024,), "scaled", float(scale))
        vision, asked, heard = (torch.from_numpy(array)[None] for array in (features, text, warped))
        return Videos(vision, asked, heard, torch.tensor([n]))

    def _inputs(self, lengths: list[int]) -> Iterator[tuple[str, Any]]:
        """Yield the arrays that are derived from the annotations and the speech."""
        network, videos = self.network, self.together
        real = network.real(videos)
        for name in self.names:
            yield f"asr/{name}/row_of_second", self.rows[name]
        speech = self.alone[self.names[0]].speech
        assert speech is not None
        yield "asr/pad_rule_check_first4", speech[0, :, :4]
        for n in lengths:
            times = network.times(Videos(torch.zeros(1, n, 1), torch.zeros(1, 1), None, torch.tensor([n])))[0]
            embedded = network.time(times[:, None])
            yield from _under(f"time/{n}", _parts(embed=embedded, scalar=times))
        start, end = self._targets(self.names).unbind(1)
        yield from _under("mr/in", {"vis_mask": real, "moment_mask": real}.items())
        yield "mr/in/moment_retrieval_start_target", start
        yield "mr/in/moment_retrieval_end_target", end
        yield "ms_inf/in/moment_bound_frames", self._targets(self.names)
        learned, inside, ends, target = self._learned(self.names)
        yield "ms_train/in/vis_mask", network.real(learned)
        yield "ms_train/in/moment_mask", inside
        yield "ms_train/in/prev_boundary_mask", ends
        yield "ms_train/in/moment_segmentation_target", target
        longest = max(self.frames[self.names[video]] for video in self.captioned.tolist())
        yield "sc/in/moment_mask", between(self.spans[:, 0], self.spans[:, 1], longest)
        yield "sc/in/input_ids", self.captions.read
        yield "sc/in/decoder_mask", self.captions.there
        yield "sc/in/output_ids", self.captions.follows
        yield "sc/slot_frame", slot_frames(self.spans, network.config)

    def _targets(self, names: list[str]) -> Tensor:
        return torch.tensor([self.moments[name] for name in names])

    def _learned(self, names: list[str]) -> tuple[Videos, Tensor, Tensor, Tensor]:
        """Return the selected training examples of segmentation for some videos: see ``Joint.segment_loss``."""
        picked = [(name, each) for name, each in self.examples if name in names]
        videos = together([self.alone[name] for name, _ in picked])
        frames = videos.features.shape[1]
        start, last, target = torch.tensor([[each.start, each.last, each.target] for _, each in picked]).unbind(1)
        ends = torch.zeros(len(picked), frames, dtype=torch.bool)
        for row, (_, each) in zip(ends, picked, strict=True):
            row[[*each.previous]] = True
        return videos, between(start, last, frames), ends, target

    def _moment(self, videos: Videos, names: list[str]) -> Iterator[tuple[str, Any]]:
        network = self.network
        real, content = network.real(videos), network.content(videos)
        yield from _parts(fused=network.fused(content, real), encoder=network.encode(content, real, real))
        start, end = network.moment_logits(videos)
        yield from {"start_logits": start, "end_logits": end}.items()
        yield "loss", network.moment_loss(videos, self._targets(names))
        found = network.moments(videos)
        if len(names) == len(self.names):
            self.predicted = dict(zip(names, found.tolist(), strict=True))
        yield "pred_frames", found

    def _interval(self, names: list[str]) -> Iterator[tuple[str, Any]]:
        network = self.network
        videos, inside, ends, target = self._learned(names)
        real, content = network.real(videos), network.content(videos)
        fused, encoded = network.fused(content, inside, ends), network.encode(content, real, inside, ends)
        yield from _parts(fused=fused, encoder=encoded)
        yield "logits", network.segment_logits(videos, inside, ends)
        yield "loss", network.segment_loss(videos, inside, ends, target)

    def _growth(self, run: str, videos: Videos, names: list[str], threshold: float | None) -> Iterator[tuple[str, Any]]:
        network, config = self.network, self.network.config
        network.config = replace(config, threshold=config.threshold if threshold is None else threshold)
        moments = self._targets(names)
        logits = torch.zeros(videos.features.shape[:2])
        spans = torch.zeros(len(names), 5, dtype=torch.int64)
        logged, all_spans = [], []
        steps = network.growth(videos, moments)
        for iteration in range(config.iterations):
            step = next(steps, None)
            if step is not None:
                logits[step.video] = step.logits
                spans[step.video] = torch.stack((step.video, *step.grown), dim=1)
                ends = step.ends
            logged.append(logits.clone())
            all_spans += [[iteration, *span] for span in spans.tolist()]
        self.found[run] = kept(ends, moments, config.gap)
        network.config = config
        yield "iteration_logits", torch.stack(logged[:LOGGED])
        yield "spans", all_spans

    def _caption(self) -> Iterator[tuple[str, Any]]:
        network, words = self.network, self.made["recipe"]["beam_max_words"]
        steps = network.sampled(self.together, self.captioned, self.spans)
        real, content = network.real(steps), network.content(steps)
        encoded = network.encoded(steps)
        yield from _parts(fused=network.fused(content, real), encoder=encoded)
        logits = network.decoder(encoded, self.captions.read, self.captions.there)
        yield "target_logprob", logits.log_softmax(dim=2).gather(2, self.captions.follows[..., None])[..., 0]
        yield "logsumexp", logits.logsumexp(dim=2)
        yield from zip(("top3_logit", "top3_id"), logits.topk(3), strict=True)
        yield "loss", network.caption_loss(steps, self.captions)
        for beams in BEAMS:
            found = network.searched(steps, beams, words)
            yield from _under(f"beam{beams}", found._asdict().items())
            said = [self.words.decode(until_end(ids)) for ids in found.ids[:, 0].tolist()]
            self.said[f"sc_beam{beams}_text"] = said


def _under(folder: str, found: Any) -> Iterator[tuple[str, Any]]:
    yield from ((f"{folder}/{name}", value) for name, value in found)


def _parts(scalar: Tensor | None = None, **rows: Tensor) -> Iterator[tuple[str, Any]]:
    """Yield the parts of (..., E) rows that the golden file stores."""
    for name, each in rows.items():
        yield f"{name}_first32", each[..., :32]
        yield f"{name}_norm", each.norm(dim=-1)
        if name == "fused":
            yield f"{name}_mean", each.mean(dim=-1)
        if name == "encoder":
            proj = weight("hirest_joint/proj8", (each.shape[-1], 8), "scaled", each.shape[-1] ** -0.5)
            yield f"{name}_proj8", each @ torch.from_numpy(proj)
    if scalar is not None:
        yield "scalar", scalar


def _spans(srt: str) -> list[tuple[float, float]]:
    """Return the starts and ends of subtitles, in seconds, in file order."""
    spans = []
    for found in TIME.finditer(srt):
        hours, minutes, seconds, thousandths = np.array(found.groups(), int).reshape(2, 4).T
        start_s, end_s = (3600 * hours + 60 * minutes + seconds + thousandths / 1000).tolist()
        spans.append((start_s, end_s))
    return spans
