"""The verb `annotation`: write clips for annotators, and build a release in Spacewalk-18's format from their labels."""

import argparse
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING

from stepline import paths
from stepline.errors import ConfigError, MissingError

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers
    from stepline.config import Config
    from stepline.datasets.dataset import Dataset
    from stepline.datasets.schema import Split


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("annotation", help="write clips to label, and build a release from labels")
    actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True)

    action = actions.add_parser("clips", help="write the list of clips to label, from shots")
    action.add_argument("dataset", metavar="DATASET")
    action.add_argument(
        "--segment-s", type=_positive, default=3600.0, help="seconds of recording per sitting (default: %(default)g)"
    )
    action.set_defaults(run=_clips)

    action = actions.add_parser("build", help="build a release from annotators' labels and the steps")
    action.add_argument("dataset", metavar="DATASET")
    action.add_argument("--labels", type=Path, nargs="+", required=True, help="CSV: video, clip, annotator, label")
    action.add_argument(
        "--steps", type=Path, required=True, help="CSV: video, step, caption, animation_start_s, animation_end_s"
    )
    action.add_argument("--split", type=Path, help="CSV: video, split; default: the splits in the list of videos")
    action.add_argument("--clips", type=Path, help="default: the list that `clips` wrote")
    action.add_argument("--fps", type=_positive, help="frame rate of frame indices; default: the videos' frame rate")
    action.set_defaults(run=_build)

    action = actions.add_parser("labels", help="export a study's release as the files that `build` reads")
    action.add_argument("study", metavar="STUDY")
    action.add_argument("release", metavar="RELEASE")
    action.add_argument("out", metavar="OUT", type=Path, help="folder")
    action.set_defaults(run=_labels)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = nan
    if not 0 < value < inf:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number above 0")
    return value


def _handed_out(dataset: str) -> Path:
    return Path("datasets", dataset, "annotation", "clips.csv")


def _clips(parsed: argparse.Namespace) -> None:
    from stepline.config import load
    from stepline.datasets.annotation.clips import clips_of_shots, write_clips
    from stepline.datasets.configured import dataset

    name, path = parsed.dataset, _handed_out(parsed.dataset)
    videos = [video.id for video in dataset(load(parsed.configfile), name).videos()]
    clips = clips_of_shots(paths.shots(name), videos)
    if not clips:
        raise MissingError(f"{paths.shots(name)} contains no shots of {name}: run `snakemake` first")
    write_clips(path, clips, parsed.segment_s)
    print(f"{path}: {sum(map(len, clips.values()))} clips of {len(clips)} videos")
    if absent := [video for video in videos if video not in clips]:
        print(f"without shots: {', '.join(absent)}")


def _build(parsed: argparse.Namespace) -> None:
    from stepline.asr import transcript
    from stepline.config import load
    from stepline.datasets.annotation import build, steps, votes
    from stepline.datasets.annotation.clips import read_clips
    from stepline.datasets.configured import dataset
    from stepline.datasets.release import OWN
    from stepline.datasets.segments import known_ends_s
    from stepline.tables.agreement import Annotated, write_agreement

    config, name = load(parsed.configfile), parsed.dataset
    data = dataset(config, name)
    listed = parsed.clips or _handed_out(name)
    if not parsed.clips and not listed.exists():
        raise MissingError(f"{listed} is absent: run `stepline annotation clips {name}`")
    clips = read_clips(listed, known_ends_s(name))
    split = steps.read_split(parsed.split, clips) if parsed.split else _listed_split(data, set(clips))
    chosen = {video for part in split.values() for video in part}
    clips = {video: numbered for video, numbered in clips.items() if video in chosen}
    durations_s = {video: max(end_s for _, end_s in numbered.values()) for video, numbered in clips.items()}
    described = steps.read_steps(parsed.steps, durations_s)
    given = votes.read_votes(parsed.labels, clips, {video: len(each) - 1 for video, each in described.items()})
    fps = parsed.fps or _fps(config, data, chosen)

    said, recordings = {}, {}
    for video, numbered in clips.items():
        cast = given.get(video, {})
        sure = [[vote for vote in cast.get(clip, {}).values() if vote is not None] for clip in numbered]
        labels = votes.majority(sure)
        build.check_labels(video, labels, len(described[video]) - 1)
        sentences = transcript.read(paths.transcripts(name, config["asr"]["engine"]) / f"{video}.parquet")
        said[video] = [(sentence.text, sentence.start_s, sentence.end_s) for sentence in sentences]
        recordings[video] = Annotated(
            clips=numbered,
            votes=cast,
            labels=labels,
            segments=build.merged(build.covered(numbered.values(), labels)),
            animations_s=[step.animation_s for step in described[video] if step.animation_s],
        )
    folder = Path("datasets", name, OWN)
    build.write_release(
        folder,
        study=name,
        fps=fps,
        annotation={video: build.annotation_item(video, each.segments, fps) for video, each in recordings.items()},
        steps={video: steps.steps_item(described[video], said[video]) for video in recordings},
        split=split,
    )
    results = Path("results", name, "annotation")
    *_, whole = write_agreement(results, recordings, title=f"Agreement on {name}")
    print(f"{folder}: {len(recordings)} recordings, {whole.segments} segments of {whole.clips} labelled clips")
    print(
        f"{results}/agreement.md: {whole.annotations_per_clip:.2f} labels per clip, "
        f"annotator pairs agree on {whole.pairwise:.1%}, alpha {whole.alpha:.3f}"
    )
    if whole.in_animation:
        print(f"{whole.in_animation} labelled clips overlap an animation, which models are given as a step")


def _listed_split(data: "Dataset", clips: set[str]) -> "dict[Split, list[str]]":
    from stepline.datasets.schema import SPLITS

    found: dict[Split, list[str]] = {
        part: [video.id for video in data.videos() if video.split == part and video.id in clips] for part in SPLITS
    }
    if not any(found.values()):
        raise ConfigError(f"no video of {data.name} has a split: give --split a CSV file with the columns video,split")
    return found


def _fps(config: "Config", data: "Dataset", videos: set[str]) -> float:
    """Return the frame rate in the videos' headers; raise ConfigError if they do not agree on one."""
    from stepline.availability import read_availability

    shards = data.shards(config["shard_hours"])
    files = {paths.availability(data.name, shards[video]) for video in videos if video in shards}
    records = [record for file in sorted(files) if file.exists() for record in read_availability(file).values()]
    rates = {round(record.fps, 3) for record in records if record.video in videos and record.fps}
    if len(rates) != 1:
        known = ", ".join(f"{rate:g}" for rate in sorted(rates)) or "none"
        raise ConfigError(f"the videos do not share one frame rate ({known}): give --fps that of the frame indices")
    return rates.pop()


def _labels(parsed: argparse.Namespace) -> None:
    from stepline.datasets.annotation.export import write_csv
    from stepline.datasets.studies import study

    release = study(parsed.study, parsed.release).load(parsed.release)
    write_csv(release, parsed.out)
    print(f"{parsed.out}: {len(release.recordings)} recordings")
