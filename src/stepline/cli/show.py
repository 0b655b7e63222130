"""The verb `show`: writes the timeline of a video."""

import argparse
from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepline.config import Config
    from stepline.report.timeline.track import Track

    Verbs = argparse._SubParsersAction[Any]


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = verbs.add_parser("show", help="write the timeline of a video: player, steps, predictions")
    verb.add_argument("dataset", help="a study or a data set")
    verb.add_argument("video", help="its id, as in results/DATASET/videos.csv")
    verb.add_argument(
        "--entry", action="append", default=[], help="a benchmark entry whose predictions are shown; repeatable"
    )
    verb.add_argument("--release", default="", help="release of the predictions; default: all configured ones")
    verb.add_argument("--context", default="", help="window length of the predictions, such as 180s; default: all")
    verb.add_argument("--text", default="", help="also show the similarity of each moment to this text")
    verb.add_argument("--subtitles", choices=("srt", "vtt"), help="write the transcript instead of the page")
    verb.set_defaults(run=_show)


def _show(parsed: argparse.Namespace) -> None:
    from stepline.config import load
    from stepline.errors import ConfigError, MissingError
    from stepline.io import write_text
    from stepline.plans import pipeline
    from stepline.report.summary import USED, summarise_shard, unread
    from stepline.report.timeline.data import sentences
    from stepline.report.timeline.subtitles import subtitles
    from stepline.report.timeline.write import page_of, write_timeline

    config = load(parsed.configfile)
    made, video = pipeline(config, parsed.dataset), parsed.video
    shards = made.videos.shards
    if video not in shards:
        near = get_close_matches(video, shards, cutoff=0.4) or sorted(shards)[:3]
        raise ConfigError(f"{made.name} has no video {video!r}; did you mean {' or '.join(near)}?")
    if parsed.subtitles:
        said, _ = sentences(made, video)
        if not said:
            raise MissingError(
                f"{made.name} has no transcript of {video}, or no speech was recognised in it: run `snakemake`"
            )
        file = page_of(made.name, video).with_suffix(f".{parsed.subtitles}")
        write_text(file, subtitles(said, parsed.subtitles))
        print(file)
        return
    row, tracks = summarise_shard(made, shards[video]).get(video), list(_tracks(config, parsed))
    if row is None or row["status"] not in USED:
        why = f"{row['status']}: {row['reason']}" if row else "not looked for yet: run `snakemake`"
        if not any(track.spans for track in tracks):
            raise MissingError(f"{video} of {made.name} is {why}")
        row = unread(video, why)
    print(write_timeline(made, row, tracks, parsed.text))


def _tracks(config: "Config", parsed: argparse.Namespace) -> "Iterator[Track]":
    """Yield the true steps of each benchmark of the data set, then the predictions of the chosen entries."""
    from stepline.errors import ConfigError
    from stepline.plans import plans_of
    from stepline.runs.in_time import predicted, truth

    plans = plans_of(config, parsed.dataset)
    for plan in plans:
        yield from truth(plan, parsed.dataset, parsed.video, parsed.release)
    for entry in parsed.entry:
        of = next((plan for plan in plans if entry in plan.entries), None)
        if of is None:
            known = [name for plan in plans for name in plan.shown]
            near = get_close_matches(entry, known, n=5, cutoff=0.3) or known[:5]
            raise ConfigError(
                f"{parsed.dataset} has no entry {entry!r}; "
                + (f"choose from {', '.join(near)}" if near else "it has no benchmark")
            )
        yield from predicted(of, parsed.dataset, parsed.video, entry, parsed.release, parsed.context)
