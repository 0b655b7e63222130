"""The command line: it parses and calls. Its verbs, in the order of the pipeline, are the stages."""

import argparse
import errno
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from stepline import __version__, paths, progress
from stepline.cli import bank, parity, search, weights
from stepline.config import Config, load
from stepline.datasets.configured import dataset
from stepline.errors import ConfigError, DownloadError, SteplineError
from stepline.invocation import Invocation
from stepline.mirror import mirror_root
from stepline.plans import BENCHMARKS, benchmark, configured, has_tables, pipeline, plan, released, to_fetch
from stepline.stopping import Stopped, kill_children, stopped_by_sigterm

log = logging.getLogger("stepline")

OPTIONS: dict[str, dict[str, Any]] = {
    "release": {"required": True},
    "entry": {"required": True, "help": "as named in tables.yaml"},
    "context": {"default": "all", "help": "window length such as 180s; default: %(default)s"},
    "seed": {"type": int, "required": True},
    "table": {"default": "table2", "help": "default: %(default)s"},
}
"""Of the verbs of a study."""
FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk's quota is used up"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code: 0, or after one line that says what is wrong the error's, 2 mostly."""
    parsed = _parser().parse_args(arguments)
    with stopped_by_sigterm(), progress.recorded(parsed.log):
        return _run(parsed)


def _run(parsed: argparse.Namespace) -> int:
    try:
        _log_to(parsed.log)
        _prepare(parsed)
        parsed.run(parsed)
        sys.stdout.flush()
    except Stopped as stopped:
        kill_children()
        kept = str(stopped) or "what is finished is kept"
        return _fail(f"ended by SIGTERM: {kept}; the same command goes on from there", stopped.code)
    except KeyboardInterrupt:
        kill_children()
        return 128 + signal.SIGINT
    except BrokenPipeError:
        _let_output_go()
    except (SteplineError, ModuleNotFoundError, OSError) as error:
        return report(error, parsed.verb)
    return 0


def report(error: SteplineError | ModuleNotFoundError | OSError, verb: str) -> int:
    """Print the line that says what is wrong and return the exit code; raise the error where no user can cause it."""
    if isinstance(error, SteplineError):
        return _fail(str(error), error.code)
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        return _fail(f"the package {package} is not installed: pip install -c constraints.txt -e '.[all]'")
    if error.errno in FULL:
        _let_output_go()
        return _fail(f"{FULL[error.errno]} ({_place(error)}): free some space and run the same again")
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return _fail(f"{_place(error)}: {error.strerror}: this account cannot write or read it")
    if isinstance(error, FileNotFoundError) and error.filename:
        return _fail(
            f"{error.filename} is not there: `stepline {verb}` reads it; run `snakemake`, or the stage that makes it"
        )
    if error.filename:
        return _fail(f"{error.filename}: {error.strerror}")
    raise error


def _prepare(parsed: argparse.Namespace) -> None:
    if parsed.verb != "demo":
        mirror_root()
    if parsed.configfile:
        Invocation(configfiles=(os.path.abspath(parsed.configfile),)).keep()


def _let_output_go() -> None:
    """Send what waits for a standard output that takes nothing any more to nowhere."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _place(error: OSError) -> str:
    """Return which file an error is of, and the mount point of its disk; of one that says no file, where it may be."""
    if not error.filename:
        return f"standard output, {os.getcwd()} or {tempfile.gettempdir()}"
    disk = Path(os.fsdecode(error.filename)).absolute()
    while not disk.is_mount():
        disk = disk.parent
    return f"{os.fsdecode(error.filename)} on {disk}"


def _fail(message: str, code: int = 2) -> int:
    line = " ".join(f"error: {message}".split())
    print(line, file=sys.stderr)
    log.error("%s", line)
    return code


def _log_to(path: Path | None) -> None:
    logging.raiseExceptions = False  # a log on a full disk says nothing
    log.propagate = False
    log.setLevel(logging.INFO)
    log.handlers = [logging.NullHandler()]
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(path, mode="w", encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.handlers = [handler]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stepline",
        description="From raw procedural video to the tables of five papers. The verbs are the stages, in their order; "
        "`snakemake` calls them in the right order and only where something changed.",
    )
    parser.add_argument("--version", action="version", version=f"stepline {__version__}")
    parser.add_argument("--log", type=Path, help="write warnings and errors to this file too")
    parser.add_argument("--configfile", type=Path, help="default: what STEPLINE_CONFIG names, else config.yaml")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    verb = verbs.add_parser("demo", help="build the embedded study: videos, release files and what is true of them")
    verb.add_argument("--mirror", type=Path, required=True, help="folder that STEPLINE_MIRROR will name")
    verb.add_argument("--truth", type=Path, required=True, help="JSON file for shots, words and labels")
    verb.set_defaults(run=_demo)

    verb = verbs.add_parser("fetch", help="bring releases, videos and weights: the mirror first, then the network")
    verb.add_argument(
        "what",
        nargs="?",
        help="NAME (of a study or dataset), NAME/RELEASE, NAME/videos, NAME/videos/SHARD or weights/NAME; "
        "default: all that is configured",
    )
    verb.set_defaults(run=_fetch)

    for name, call, text in (
        ("media", _media, "probe, content scores and audio of a shard's videos, each decoded once"),
        ("shots", _shots, "shots from content scores"),
        ("transcribe", _transcribe, "sentences from audio"),
        ("extract", _extract, "features from frames, into a shard's store"),
        ("thumbnails", _thumbnails, "small pictures of shots"),
        ("drop", _drop, "delete a shard's videos, of which all is computed"),
    ):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("dataset", help="a study, or a dataset of your own")
        verb.add_argument("--shard", required=True)
        if name == "extract":
            verb.add_argument("--backbone", required=True)
        verb.set_defaults(run=call)

    for name, takes, text in (
        ("fit", ("release", "entry", "context", "seed"), "a head, trained on cached features with one seed"),
        ("predict", ("release", "entry", "context"), "predictions of an entry"),
        ("score", ("release", "entry", "context"), "metrics from predictions alone"),
        ("table", ("table",), "scores and the paper's numbers, as CSV and Markdown"),
        ("picture", ("table",), "a table as a figure (SVG)"),
        ("pairs", (), "differences between methods, video by video"),
        ("examples", (), "a page of examples: of methods, or of the paper by hand"),
        ("results", (), "the sha256 of all results, as `sha256sum --check` reads it"),
    ):
        verb = verbs.add_parser(name, help=text)
        verb.add_argument("study")
        for option in takes:
            verb.add_argument(f"--{option}", **OPTIONS[option])
        verb.set_defaults(run=_of_study, takes=takes)

    verb = verbs.add_parser("explain", help="what stands behind one line of a table")
    verb.add_argument("table", type=Path, help="results/STUDY/TABLE.csv")
    verb.add_argument("entry", help="as in the column entry")
    verb.add_argument("context", help="window length such as 180s, or all")
    verb.add_argument("release", help="as in the column release")
    verb.set_defaults(run=_explain)

    verb = verbs.add_parser("accept", help="note that source, as it is now, gives the predictions or scores at hand")
    verb.add_argument("study")
    verb.add_argument("what", help="a kind of the benchmark, or scores")
    verb.set_defaults(run=_accept)

    verb = verbs.add_parser("summary", help="what the stages made of each video, as CSV and Markdown")
    verb.add_argument("dataset", help="a study, or a dataset of your own")
    verb.set_defaults(run=_summary)

    verb = verbs.add_parser("report", help="one HTML page to look at")
    verb.add_argument("dataset", help="a study, or a dataset of your own")
    verb.set_defaults(run=_report)
    for more in (search, bank, parity, weights):
        more.add(verbs)
    for each in BENCHMARKS:
        each.add_verbs(verbs)
    return parser


def _demo(parsed: argparse.Namespace) -> None:
    from stepline.demo.build import build

    build(parsed.mirror, parsed.truth)


def _fetch(parsed: argparse.Namespace) -> None:
    from stepline import fetch

    first, _, rest = (parsed.what or "").partition("/")
    asked, _, shard = rest.partition("/")
    if first == "weights":
        fetch.fetch_weights(rest)
    elif asked not in ("", "videos"):
        packaged = any(first in each.studies for each in BENCHMARKS)  # these releases need no configuration
        named = parsed.configfile or os.environ.get("STEPLINE_CONFIG") or Path("config.yaml").exists()
        found = released(first, rest, load(parsed.configfile) if named and not packaged else {})
        print(f"{parsed.what}: {fetch.release_line(found, rest)}")
    elif not asked:
        config = load(parsed.configfile)
        _fetch_each(fetch.items(*to_fetch(config, [first] if first else configured(config))))
    else:
        made = pipeline(load(parsed.configfile), first)
        if shard and shard not in (known := made.videos.all_shards):
            raise ConfigError(f"{first} has no shard {shard!r}; choose from {', '.join(known)}")
        came = fetch.summary(fetch.fetch_videos(made, shard)) if shard else fetch.videos_line(made)
        print(f"{parsed.what}: {came}")


def _fetch_each(items: dict[str, Callable[[], str]]) -> None:
    failed = []
    for name, bring in items.items():
        try:
            print(f"{name}: {bring()}", flush=True)
        except SteplineError as error:
            failed.append(name)
            _fail(f"{name}: {error}")
    if failed:
        raise DownloadError(f"{len(failed)} of {len(items)} could not be fetched: {', '.join(failed)}")


def _media(parsed: argparse.Namespace) -> None:
    from stepline.media.prepare import prepare
    from stepline.media.process import Limits
    from stepline.report.with_media import media_of
    from stepline.turns import one_video

    config, name, shard = _shard(parsed)
    prepare(
        paths.availability(name, shard),
        media_of(config, name),
        paths.manifest(paths.media(name), shard),
        limits=Limits(**config["media"]["limits"]),
        turn=partial(one_video, paths.features_lock(name, shard)) if _one_host() else nullcontext,
    )


def _one_host() -> bool:
    """Return whether jobs of a shard share a host, so that one may do in its pass what another would."""
    return os.environ.get("STEPLINE_ONE_HOST") == "1"


def _shots(parsed: argparse.Namespace) -> None:
    from stepline.shots import Detection, detect

    config, name, shard = _shard(parsed)
    media, folder = paths.media(name), paths.shots(name)
    detect(paths.manifest(media, shard), media, folder, paths.manifest(folder, shard), Detection(**config["shots"]))


def _transcribe(parsed: argparse.Namespace) -> None:
    from stepline.asr.transcribe import transcribe

    config, name, shard = _shard(parsed)
    asr, engine = config["asr"], config["asr"]["engine"]
    media, folder = paths.media(name), paths.transcripts(name, engine)
    manifest = paths.manifest(folder, shard)
    transcribe(
        paths.manifest(media, shard),
        media,
        folder,
        manifest,
        engine=engine,
        on=config["features"],
        **asr.get(engine, {}),
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
        media=media_of(config, name) if with_media else None,
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
    name = dataset(config, parsed.dataset).name
    if not parsed.shard.isdecimal():
        raise ConfigError(f"shard {parsed.shard!r} is not a number such as 000")
    return config, name, parsed.shard


def _of_study(parsed: argparse.Namespace) -> None:
    from stepline.runs.verbs import Verbs

    verb = getattr(Verbs(plan(load(parsed.configfile), parsed.study)), parsed.verb)
    verb(*(getattr(parsed, each) for each in parsed.takes))


def _explain(parsed: argparse.Namespace) -> None:
    from stepline.runs.explain import explain

    print(explain(parsed.table, parsed.entry, parsed.context, parsed.release))


def _accept(parsed: argparse.Namespace) -> None:
    from stepline.runs.accept import accept

    found = accept(benchmark(load(parsed.configfile), parsed.study), parsed.study, parsed.what)
    print(f"{parsed.study}: {found} files of {parsed.what!r} accepted")


def _summary(parsed: argparse.Namespace) -> None:
    from stepline.report.summary import write_summary

    write_summary(pipeline(load(parsed.configfile), parsed.dataset))


def _report(parsed: argparse.Namespace) -> None:
    from stepline.report.page import write_page
    from stepline.runs.report import write_report

    config = load(parsed.configfile)
    if has_tables(config, parsed.dataset):
        write_report(plan(config, parsed.dataset), Path("results", parsed.dataset, "report.html"))
    else:
        write_page(pipeline(config, parsed.dataset), Path("results", parsed.dataset, "report.html"))
