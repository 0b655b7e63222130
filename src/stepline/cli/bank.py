"""The verbs `bank` and `verify`: exchange features and subtitles with other tools, and check stored features."""

import argparse
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
        choices=("npy", "dict", "hdf5", "pt", "webdataset", "lance", "actionformer", "pdvc"),
        required=True,
    )
    action.add_argument("--prefix", help="text before the video id in file names (default for pdvc: v_)")
    action.add_argument("--suffix", default="", help="text after the video id in file names, such as .mp4")
    action.set_defaults(run=_export)

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


def _folder(parsed: argparse.Namespace, path: Path) -> "Folder":
    from stepline.features.importing import Folder

    return Folder(path, prefix=parsed.prefix, suffix=parsed.suffix, key=parsed.key)


def _import(parsed: argparse.Namespace) -> None:
    from stepline.features.importing import import_folder

    folder = _folder(parsed, parsed.folder)
    made = import_folder(folder, parsed.name, parsed.dataset, parsed.hop_s, store_at=_store(parsed))
    print(f"{made}: {len(folder)} videos of {parsed.dataset}, {folder.skipped} file names do not match")


def _export(parsed: argparse.Namespace) -> None:
    from stepline.features.bank import open_bank
    from stepline.features.export import ANNOTATED, TIMED, export
    from stepline.media.timeline import described

    bank = open_bank(parsed.bank, parsed.dataset, root=_store(parsed) or ".")
    if parsed.form in TIMED:
        for video, damaged in sorted(bank.damaged.items()):
            print(f"{video} is damaged, only its readable rows are exported: {described(damaged.gaps)}")
    else:
        bank = _undamaged(bank)
    annotations = _annotations(parsed) if parsed.form in ANNOTATED else {}
    export(bank, parsed.out, parsed.form, prefix=parsed.prefix, suffix=parsed.suffix, annotations=annotations)
    labelled = sum(bool(annotations[video].segments) for video in bank if video in annotations)
    print(f"{parsed.out}: {len(bank)} videos" + (f", {labelled} with segments" if parsed.form in ANNOTATED else ""))


def _annotations(parsed: argparse.Namespace) -> "dict[str, Annotated]":
    from stepline.config import load
    from stepline.datasets.configured import dataset
    from stepline.plans import plans_of
    from stepline.runs.annotations import annotations

    config = load(parsed.configfile)
    return annotations(dataset(config, parsed.dataset), plans_of(config, parsed.dataset))


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
    from stepline.features.bank import open_bank, spec_folders
    from stepline.features.compare import Timed
    from stepline.features.importing import check_hop

    path = Path(source)
    if spec_folders(source) or not path.exists():
        bank = _undamaged(open_bank(source, parsed.dataset, root=_store(parsed) or "."))
        bank.check_whole()
        return Timed(name=source, rows=bank, hop_s=bank.hop_s)
    if parsed.hop_s is None:
        raise ConfigError(f"{source} does not contain the times of its rows: set --hop-s to the seconds between rows")
    check_hop(parsed.hop_s)
    return Timed(name=source, rows=_folder(parsed, path), hop_s=parsed.hop_s)
