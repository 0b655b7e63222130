"""The stages that process a data set's videos."""

import argparse
import os
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

from stepline import paths
from stepline.config import Config, load
from stepline.errors import ConfigError
from stepline.pipeline.speech import options_of
from stepline.plans import pipeline

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the stages."""
    for name, call, text in (
        ("media", _media, "Probe a shard's videos and write their audio and content scores in one pass."),
        ("shots", _shots, "Detect shots from content scores."),
        ("transcribe", _transcribe, "Transcribe the audio of a shard's videos."),
        ("extract", _extract, "Compute features of a shard's videos."),
        ("thumbnails", _thumbnails, "Write thumbnails of shots."),
        ("drop", _drop, "Delete a shard's videos after all their results are computed."),
    ):
        verb = verbs.add_parser(name, description=text)
        verb.add_argument("dataset", help="a study or a data set")
        verb.add_argument("--shard", required=True)
        if name == "extract":
            verb.add_argument("--backbone", required=True)
        verb.set_defaults(run=call)
    verb = verbs.add_parser(
        "summary", description="Write the results of the stages for each video as CSV and Markdown."
    )
    verb.add_argument("dataset", help="a study or a data set")
    verb.set_defaults(run=_summary)


def _media(parsed: argparse.Namespace) -> None:
    from stepline.media.prepare import prepare
    from stepline.media.process import Limits
    from stepline.report.with_media import media_of
    from stepline.turns import one_video

    config, name, shard = _shard(parsed)
    prepare(
        paths.availability(name, shard),
        media_of(config, name, pipeline(config, name).demand.stages),
        paths.manifest(paths.media(name), shard),
        limits=Limits(**config["media"]["limits"]),
        turn=partial(one_video, paths.features_lock(name, shard)) if _one_host() else nullcontext,
    )


def _one_host() -> bool:
    """Return whether all jobs of a shard run on one host, so that one job may do the work of another in its pass."""
    return os.environ.get("STEPLINE_ONE_HOST") == "1"


def _shots(parsed: argparse.Namespace) -> None:
    from stepline.shots import Detection, detect

    config, name, shard = _shard(parsed)
    media, folder = paths.media(name), paths.shots(name)
    detect(paths.manifest(media, shard), media, folder, paths.manifest(folder, shard), Detection(**config["shots"]))


def _transcribe(parsed: argparse.Namespace) -> None:
    from stepline.asr.transcribe import transcribe

    config, name, shard = _shard(parsed)
    engine = config["asr"]["engine"]
    media, folder = paths.media(name), paths.transcripts(name, engine)
    manifest = paths.manifest(folder, shard)
    transcribe(
        paths.manifest(media, shard),
        media,
        folder,
        manifest,
        engine=engine,
        on=config["features"],
        **options_of(config, name),
    )


def _extract(parsed: argparse.Namespace) -> None:
    from stepline.features.extract import extract
    from stepline.features.work import works
    from stepline.media.process import Limits
    from stepline.report.with_media import media_of

    config, name, shard = _shard(parsed)
    made = pipeline(config, name)
    backbone = made.features.backbone_of(parsed.backbone)
    todo = works(made, backbone, shard)
    with_media = _one_host() and made.demand.media and not os.path.isabs(made.features.environment(backbone))
    manifest = paths.features_manifest(name, shard, todo[0].spec)
    extract(
        paths.availability(name, shard),
        todo,
        manifest,
        lock=paths.features_lock(name, shard),
        limits=Limits(**config["media"]["limits"]),
        damaged=config["media"]["damaged"],
        options=config["features"],
        media=media_of(config, name, made.demand.stages) if with_media else None,
    )


def _thumbnails(parsed: argparse.Namespace) -> None:
    from stepline.report.thumbnails import write_thumbnails

    _, name, shard = _shard(parsed)
    folder = paths.thumbnails(name)
    write_thumbnails(paths.availability(name, shard), paths.shots(name), folder, paths.manifest(folder, shard))


def _drop(parsed: argparse.Namespace) -> None:
    from stepline.fetch import drop_videos

    config, name, shard = _shard(parsed)
    drop_videos(pipeline(config, name), shard)


def _shard(parsed: argparse.Namespace) -> tuple[Config, str, str]:
    config = load(parsed.configfile)
    name = pipeline(config, parsed.dataset).name
    if not parsed.shard.isdecimal():
        raise ConfigError(f"shard {parsed.shard!r} is not a number such as 000")
    return config, name, parsed.shard


def _summary(parsed: argparse.Namespace) -> None:
    from stepline.report.summary import write_summary

    write_summary(pipeline(load(parsed.configfile), parsed.dataset))
