"""The verb `fetch`: releases, videos and weights."""

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from stepline.cli.failure import fail
from stepline.config import is_there, load
from stepline.errors import ConfigError, DownloadError, SteplineError
from stepline.plans import configured, pipeline, released, to_fetch

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("fetch", help="fetch releases, videos and weights from the mirror or the network")
    verb.add_argument(
        "what",
        nargs="?",
        help="NAME (a study or data set), NAME/RELEASE, NAME/videos, NAME/videos/SHARD or weights/NAME; "
        "default: everything in the configuration",
    )
    verb.set_defaults(run=_fetch)


def _fetch(parsed: argparse.Namespace) -> None:
    from stepline import fetch

    first, _, rest = (parsed.what or "").partition("/")
    asked, _, shard = rest.partition("/")
    if first == "weights":
        fetch.fetch_weights(rest)
    elif asked not in ("", "videos"):
        found = released(first, rest, load(parsed.configfile) if is_there(parsed.configfile) else {})
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
            fail(f"{name}: {error}")
    if failed:
        raise DownloadError(f"{len(failed)} of {len(items)} could not be fetched: {', '.join(failed)}")
