"""The verbs `bank` and `verify`: exchange features and subtitles with other tools, and check stored features."""

import argparse
from collections.abc import Container
from math import isnan
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from stepline.errors import ConfigError, MissingError, StoreError

if TYPE_CHECKING:
    from stepline.features.bank import Bank
    from stepline.features.compare import Timed
    from stepline.features.export.job import Annotated
    from stepline.features.importing import Folder
    from stepline.features.store import Clips

    Verbs = argparse._SubParsersAction[Any]


def add(verbs: "Verbs") -> None:
    """Add the verbs."""
    verb = verbs.add_parser("bank", help="compare, import and export features, export subtitles")
    actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True)

    action = actions.add_parser("compare", help="compare features by time: cosine similarity and time lag")
    for name in ("first", "second"):
        action.add_argument(
            name, metavar=name.upper(), help="features/<backbone>/<spec>, or a folder of your own features"
        )
    action.add_argument("--dataset", help="default: the only data set of the bank")
    action.add_argument("--hop-s", type=float, help="seconds between rows of your own features")
    _naming(action)
    action.set_defaults(run=_compare)

    action = actions.add_parser("pool", help="create a bank with one row per shot or segment of a bank")
    action.add_argument("bank", metavar="BANK", help="a backbone, or features/<backbone>/<spec>")
    action.add_argument("dataset", metavar="DATASET")
    spans = action.add_mutually_exclusive_group(required=True)
    spans.add_argument("--by", choices=("shot",), help="what a row stands for")
    spans.add_argument("--segments", metavar="FILE", type=Path, help="CSV file with the columns video, start_s, end_s")
    action.set_defaults(run=_pool)

    action = actions.add_parser("import", help="create a bank from .npy, .pt or HDF5 files")
    action.add_argument("folder", metavar="FOLDER", type=Path, help="folder with one file per video, or one HDF5 file")
    action.add_argument("--name", required=True, help="name of the backbone under features/")
    action.add_argument("--dataset", required=True)
    action.add_argument("--hop-s", type=float, required=True, help="seconds between rows")
    _naming(action)
    action.set_defaults(run=_import)

    action = actions.add_parser("export", help="write a bank as files for other tools")
    action.add_argument("bank", metavar="BANK", help="features/<backbone>/<spec>")
    action.add_argument("dataset", metavar="DATASET")
    action.add_argument("out", metavar="OUT", type=Path, help="output folder")
    action.add_argument(
        "--form",
        choices=("npy", "dict", "hdf5", "pt", "actionformer", "pdvc"),
        required=True,
    )
    action.add_argument("--prefix", help="text before the video id in file names (default for pdvc: v_)")
    action.add_argument("--suffix", default="", help="text after the video id in file names, such as .mp4")
    action.set_defaults(run=_export)

    action = actions.add_parser("index", help="build the index with which `search` searches millions of rows")
    action.add_argument("backbone", metavar="BACKBONE", help="a backbone of the data set")
    action.add_argument("dataset", metavar="DATASET")
    action.set_defaults(run=_index)

    action = actions.add_parser("subtitles", help="write transcripts as SRT or WebVTT, one file per video")
    action.add_argument("dataset", metavar="DATASET")
    action.add_argument("out", metavar="OUT", type=Path, help="output folder")
    action.add_argument("--form", choices=("srt", "vtt"), required=True)
    action.set_defaults(run=_subtitles)

    verb = verbs.add_parser("verify", help="find and remove damaged features; the next run replaces them")
    verb.add_argument("folders", metavar="SPEC_FOLDER", type=Path, nargs="*", help="default: all features/*/*")
    verb.set_defaults(run=_verify)


def _naming(action: argparse.ArgumentParser) -> None:
    action.add_argument("--prefix", default="", help="regular expression for text before the ids in file names")
    action.add_argument("--suffix", default="", help=r"regular expression for text after the ids, such as '\.mp4'")
    action.add_argument(
        "--key", default="frames_features", help="key of features in dictionaries (default: %(default)s)"
    )


def _store(parsed: argparse.Namespace) -> str | None:
    """Return the configuration's ``features.store``, or None (local stores) if there is no configuration."""
    from stepline.config import is_there, load

    at: str | None = load(parsed.configfile)["features"]["store"] if is_there(parsed.configfile) else None
    return at


def _folder(parsed: argparse.Namespace, path: Path, videos: Container[str] | None = None) -> "Folder":
    from stepline.features.importing import Folder

    return Folder(path, prefix=parsed.prefix, suffix=parsed.suffix, key=parsed.key, videos=videos)


def _listed(parsed: argparse.Namespace) -> dict[str, float] | None:
    """Return the listed lengths of the videos of the user's data set, 0 if unknown; None if it is not configured."""
    from stepline.config import is_there, load
    from stepline.datasets.configured import dataset

    config = load(parsed.configfile) if is_there(parsed.configfile) else {"datasets": {}}
    if parsed.dataset not in config["datasets"]:
        return None
    return {video.id: video.duration_s or 0.0 for video in dataset(config, parsed.dataset).videos()}


def _import(parsed: argparse.Namespace) -> None:
    from stepline.datasets.segments import known_ends_s
    from stepline.features.importing import import_folder

    listed = _listed(parsed)
    folder = _folder(parsed, parsed.folder, listed)
    ends_s = {} if listed is None else listed | known_ends_s(parsed.dataset)
    made = import_folder(folder, parsed.name, parsed.dataset, parsed.hop_s, store_at=_store(parsed), ends_s=ends_s)
    print(f"{made}: {len(folder)} videos of {parsed.dataset}, {folder.skipped} file names do not match")
    if folder.unknown:
        print(f"left out: {folder.strangers}")


def _pool(parsed: argparse.Namespace) -> None:
    from dataclasses import asdict, replace

    from stepline.config import load
    from stepline.datasets.segments import read_segments
    from stepline.features.opening import open_bank
    from stepline.features.pool import PooledSpec, ends_s, of_shots, pool
    from stepline.io import sha256_file
    from stepline.shots import Detection

    at = _store(parsed)
    bank = open_bank(parsed.bank, parsed.dataset, root=at or ".")
    spec = PooledSpec.of(bank, parsed.by or "segment")
    spans: dict[str, Clips]
    if parsed.segments:
        if not parsed.segments.is_file():
            raise ConfigError(f"--segments: {parsed.segments} is not a file: name a CSV file")
        ends = ends_s(bank, parsed.dataset)
        listed = read_segments(parsed.dataset, str(parsed.segments), bank.videos, ends_s=ends)
        spans = {video: [(each.start_s, each.end_s) for each in segments] for video, segments in listed.items()}
        spec = replace(spec, spans={"segments_sha256": sha256_file(parsed.segments)})
    else:
        detection = Detection(**load(parsed.configfile)["shots"])
        spans, spec = of_shots(bank, parsed.dataset, detection), replace(spec, spans=asdict(detection))
    pooled = pool(bank, spec, parsed.dataset, spans, at)
    for video, reason in pooled.left.items():
        print(f"{video} has no row: {reason}")
    print(f"{pooled.folder}: {pooled.kept + pooled.computed} videos, {pooled.computed} of them computed now")


def _export(parsed: argparse.Namespace) -> None:
    from stepline.features.export import ANNOTATED, TIMED, export
    from stepline.features.opening import open_bank
    from stepline.media.timeline import described

    bank = open_bank(parsed.bank, parsed.dataset, root=_store(parsed) or ".")
    if parsed.form in TIMED:
        for video, damaged in sorted(bank.damaged.items()):
            print(f"{video} is damaged, only its readable rows are exported: {described(damaged.gaps)}")
    else:
        bank = _undamaged(bank)
    annotations = _annotations(parsed, bank) if parsed.form in ANNOTATED else {}
    export(bank, parsed.out, parsed.form, prefix=parsed.prefix, suffix=parsed.suffix, annotations=annotations)
    labelled = sum(bool(annotations[video].segments) for video in bank if video in annotations)
    print(f"{parsed.out}: {len(bank)} videos" + (f", {labelled} with segments" if parsed.form in ANNOTATED else ""))


def _annotations(parsed: argparse.Namespace, bank: "Bank") -> "dict[str, Annotated]":
    from stepline.config import load
    from stepline.datasets.configured import dataset
    from stepline.features.pool import ends_s
    from stepline.plans import plans_of
    from stepline.runs.annotations import annotations

    config = load(parsed.configfile)
    return annotations(dataset(config, parsed.dataset), plans_of(config, parsed.dataset), ends_s(bank, parsed.dataset))


def _index(parsed: argparse.Namespace) -> None:
    from stepline.config import load
    from stepline.plans import pipeline
    from stepline.search.index import LEAST_RECALL
    from stepline.search.indexing import build

    index = build(pipeline(load(parsed.configfile), parsed.dataset), parsed.backbone)
    print(f"{index.folder}: {index.record['rows']:,} rows")
    for kind, recall in index.recalls.items():
        unused = "" if recall.at_10 >= LEAST_RECALL else f": not used for {kind}, as it is below {LEAST_RECALL}"
        print(f"recall@10 {recall.at_10:.3f}, recall@100 {recall.at_100:.3f} with {recall.queries}{unused}")


def _subtitles(parsed: argparse.Namespace) -> None:
    from stepline.asr.subtitles import subtitles
    from stepline.config import load
    from stepline.io import write_text
    from stepline.plans import pipeline
    from stepline.search.transcripts import Transcripts

    transcripts = Transcripts(pipeline(load(parsed.configfile), parsed.dataset))
    if not transcripts.videos:
        raise MissingError(f"{parsed.dataset} has no transcripts: {transcripts.bring}")
    for video in sorted(transcripts.videos):
        write_text(parsed.out / f"{video}.{parsed.form}", subtitles(transcripts(video), parsed.form))
    print(f"{parsed.out}: {len(transcripts.videos)} videos, {transcripts.source} transcripts")


def _undamaged(bank: "Bank") -> "Bank":
    """Return the bank without damaged videos, because the times of their rows cannot be derived from the rows alone."""
    from stepline.media.timeline import described

    for video, damaged in sorted(bank.damaged.items()):
        print(f"{video} is damaged and omitted: {described(damaged.gaps)}")
    return bank.without(bank.damaged)


def _verify(parsed: argparse.Namespace) -> None:
    from stepline.features.verify import verify

    stores = damaged = 0
    for folder in parsed.folders or sorted(path.parent for path in Path("features").glob("*/*/spec.json")):
        for checked in verify(folder, _store(parsed)):
            stores += 1
            damaged += checked.damaged != []
            if checked.damaged is None:
                print(f"{checked.location} is missing or damaged", flush=True)
            for video in checked.damaged or ():
                print(f"{checked.location}: {video} is damaged", flush=True)
    if damaged:
        raise StoreError(
            f"{damaged} of {stores} stores are damaged: run `snakemake` again, which recomputes only lost features; "
            "import imported features again"
        )
    print(f"{stores} stores are intact")


def _compare(parsed: argparse.Namespace) -> None:
    from stepline.features.bank import Bank
    from stepline.features.compare import Comparison, compare

    banks = [_timed(parsed, source) for source in (parsed.first, parsed.second)]
    if parsed.hop_s is not None and all(isinstance(bank.rows, Bank) for bank in banks):
        raise ConfigError(f"{parsed.first} and {parsed.second} both contain the times of their rows: remove --hop-s")
    made: list[Comparison] = []
    for each in compare(*banks):
        if not made:
            print(f"{'video':32}{'rows':>8}{'cosine':>9}{'least':>9}{'at s':>9}{'lag s':>8}{'there':>9}")
        made.append(each)
        numbers = f"{each.n_rows:8}{each.mean:9.5f}{each.least:9.5f}{each.least_s:9.1f}"
        print(f"{each.video:32}{numbers}{each.lag_s:8.2f}{each.mean_at_lag:9.5f}", flush=True)
    known = [each for each in made if not isnan(each.mean)]
    late = [each for each in made if not isnan(each.lag_s)]
    if not known:
        raise StoreError(f"{parsed.first} and {parsed.second} have no time in common")
    worst = min(known, key=lambda each: each.least)
    print(
        f"{len(made)} videos: mean cosine {fmean(each.mean for each in known):.5f}, least {worst.least:.5f} "
        f"({worst.video} at {worst.least_s:.1f} s)"
    )
    if late:
        print(
            f"best lag {median(each.lag_s for each in late):+.2f} s (median; above 0 the second is late), "
            f"mean cosine there {fmean(each.mean_at_lag for each in late):.5f}"
        )


def _timed(parsed: argparse.Namespace, source: str) -> "Timed":
    """Open a bank, or a folder of a user's features, which has no ``spec.json``."""
    from stepline.features.compare import Timed
    from stepline.features.importing import check_hop
    from stepline.features.opening import open_bank, spec_folders

    path = Path(source)
    if spec_folders(source) or not path.exists():
        bank = _undamaged(open_bank(source, parsed.dataset, root=_store(parsed) or "."))
        if not bank.clips:
            bank.check_whole()
        return Timed(name=source, rows=bank, hop_s=bank.hop_s, clips=bank.clips)
    if parsed.hop_s is None:
        raise ConfigError(f"{source} does not contain the times of its rows: set --hop-s to the seconds between rows")
    check_hop(parsed.hop_s)
    return Timed(name=source, rows=_folder(parsed, path), hop_s=parsed.hop_s)
