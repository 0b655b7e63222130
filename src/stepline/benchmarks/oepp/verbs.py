"""The verb `oepp`: OpenEvent rebuilt from COIN and CrossTask, its first stage, its lists, and published features."""

import argparse
from dataclasses import astuple, fields
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.datasets.openevent import THRESHOLD
from stepline.errors import ConfigError

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers
    from stepline.datasets.crosstask import CrossTask

RESULTS = Path("results/oepp")


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("oepp", help="rebuild and list OpenEvent, and import its published features")
    actions = verb.add_subparsers(dest="action", metavar="ACTION", required=True)

    action = actions.add_parser("rebuild", help="rebuild the released files from the annotation of their sources")
    action.add_argument("--seed", type=int, help="the seed of a new split; default: the released split")
    action.set_defaults(run=_rebuild)

    action = actions.add_parser("list", help="list the events by cluster, and the actions that OpenEvent renames")
    action.set_defaults(run=_list)

    action = actions.add_parser("import", help="import a bank from the files of OEPP's or P3IV's authors")
    action.add_argument(
        "folder", metavar="FOLDER", type=Path, help="the folder, with one .npy file per video under its original name"
    )
    action.add_argument("--name", required=True, help="the name of the bank, such as videoclip-released or s3d-p3iv")
    action.set_defaults(run=_import)

    action = actions.add_parser("cluster", help="cluster candidate events by text, the stage before manual review")
    action.add_argument("--encoder", required=True, help="the sentence encoder, such as minilm")
    action.add_argument("--threshold", type=float, default=THRESHOLD, help="the minimum cosine; default: %(default)g")
    action.set_defaults(run=_cluster)


def _rebuild(parsed: argparse.Namespace) -> None:
    from stepline.datasets import coin, oepp, openevent
    from stepline.tables import write_lines

    if parsed.seed is not None and not 0 <= parsed.seed < 2**32:
        raise ConfigError(f"--seed {parsed.seed}: must be from 0 to {2**32 - 1}")
    released = oepp.records("split1")
    events, crosstask = oepp.events("split1"), _crosstask()
    annotated = coin.videos(
        *(oepp.RELEASES.release_file("coin", name) for name in ("coin_train_70.json", "coin_test_30.json"))
    )
    sources = openevent.source_steps(annotated, crosstask)
    parts = openevent.rebuild(released, events, sources, seed=parsed.seed)
    lines = openevent.compare(released, events, sources)
    absent = "" if crosstask else "CrossTask's release is missing: run `stepline fetch oepp/crosstask`"
    made, wanted = sum(line.rebuilt for line in lines), sum(line.in_release for line in lines)
    without = f"rebuilt without {wanted - made} of {wanted} videos" if made < wanted else ""
    oepp.write_rebuilt(parts, seed=parsed.seed, without="; ".join(filter(None, [without, absent])))

    path = RESULTS / "rebuilt.csv"
    names = [field.name for field in fields(openevent.Rebuilt)]
    rows = []
    for line in lines:
        reason = absent if line.source == "CrossTask" else ""
        known = {"event", "source", "in_release", "renamed"} if reason else {*names}
        rows.append([*(str(v) if n in known else "" for n, v in zip(names, astuple(line), strict=True)), reason])
    write_lines(path, [*names, "reason"], rows)
    same = sum(line.same_segments for line in lines)
    print(f"{path}: {made} of {wanted} videos rebuilt, {same} with the released segments{absent and f'; {absent}'}")


def _list(_: argparse.Namespace) -> None:
    from stepline.benchmarks.oepp.listings import write_listings

    write_listings()


def _import(parsed: argparse.Namespace) -> None:
    from stepline.datasets import oepp
    from stepline.features.importing import Folder, import_folder

    videos = [video for part in oepp.PARTS for video in oepp.load("split1", part)]
    folder = Folder(parsed.folder, ids={name: video.id for video in videos for name in oepp.file_names(video)})
    bank = import_folder(folder, parsed.name, "openevent", 1.0)
    print(f"{bank}: {len(folder)} of {len(videos)} videos; {folder.skipped} files with other names left out")


def _cluster(parsed: argparse.Namespace) -> None:
    import numpy as np

    from stepline.backbones.registry import text_encoder, towers
    from stepline.backbones.sentence import MODELS
    from stepline.config import load
    from stepline.datasets import coin, oepp, openevent
    from stepline.progress import progress
    from stepline.tables import write_lines

    if parsed.encoder not in (known := [*MODELS, *towers()]):
        raise ConfigError(f"encoder {parsed.encoder!r} is not known; choose from {', '.join(known)}")
    if not -1 <= parsed.threshold <= 1:
        raise ConfigError(f"--threshold {parsed.threshold}: must be a cosine, from -1 to 1")
    crosstask = _crosstask()
    candidates = openevent.candidate_events(
        coin.taxonomy(oepp.RELEASES.release_file("coin", "taxonomy.xlsx")), crosstask.tasks if crosstask else {}
    )
    released = {event.event: event for event in oepp.clusters("split1")}
    texts = [openevent.sentence(event.name, event.actions) for event in candidates]
    encoder = text_encoder(parsed.encoder, load(parsed.configfile))
    vectors = np.stack(
        [encoder.encode(encoder.tokens(text)) for text in progress(texts, what=parsed.encoder, unit="texts")]
    )
    found = openevent.cluster(vectors, parsed.threshold)
    cluster_of = {place: str(number) for number, members in enumerate(found) for place in members}

    path = RESULTS / f"clusters-{parsed.encoder}.csv"
    rows = []
    for place, (event, text) in enumerate(zip(candidates, texts, strict=True)):
        there = released.get(event.name)
        theirs = [str(there.cluster), there.part] if there else ["", ""]
        rows.append([event.name, event.source, cluster_of.get(place, ""), *theirs, text])
    write_lines(path, ("event", "source", "cluster", "openevent_cluster", "part", "sentence"), rows)
    kept = sum(event.name in released and place in cluster_of for place, event in enumerate(candidates))
    print(
        f"{path}: {len(candidates)} candidate events, {len(found)} clusters of {len(cluster_of)}, "
        f"among them {kept} of OpenEvent's {len(released)}"
    )


def _crosstask() -> "CrossTask | None":
    """Return CrossTask's release, or None if it is not fetched."""
    from stepline.datasets import crosstask, oepp

    if not oepp.is_here("crosstask"):
        return None
    return crosstask.load(oepp.RELEASES.release_file("crosstask", "crosstask_release.zip"))
