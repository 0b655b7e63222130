"""The verb `status`: lists done, running, failed and waiting jobs, and the status of each video."""

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stepline.cli.lines import columns, duration
from stepline.config import load
from stepline.progress import rules_of, stage_of

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers
    from stepline.overview.forecast import Forecast
    from stepline.overview.graph import Job
    from stepline.overview.state import Became, State, Word

NAMED = 5
"""Maximum number of videos that are named per reason without ``--all``."""


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("status", help="show which jobs are done, running or failed")
    verb.add_argument(
        "targets", nargs="*", metavar="TARGET", help="a file, a study or a data set; default: the whole configuration"
    )
    verb.add_argument("--all", action="store_true", help="list every job and every video")
    verb.add_argument("--json", action="store_true", help="print JSON with every job and every video")
    verb.set_defaults(run=_status)


def _status(parsed: argparse.Namespace) -> None:
    from stepline.overview.forecast import Forecast
    from stepline.overview.graph import Graph
    from stepline.overview.records import to_do
    from stepline.overview.state import states, videos

    graph = Graph(load(parsed.configfile), parsed.targets)
    left = to_do(graph)
    found, forecast = states(graph, left), Forecast(graph, left)
    became = {name: videos(pipeline) for name, pipeline in forecast.pipelines.items()}
    if parsed.json:
        print(json.dumps(_content(found, forecast, became), indent=2))
        return
    parts = [_stages(found, forecast), *(_videos(*each, parsed.all) for each in became.items())]
    parts += [_named(found, word) for word in ("running", "failed", *(("waiting", "done") if parsed.all else ()))]
    print("\n\n".join(filter(None, parts)))


def _stages(found: "Mapping[Job, State]", forecast: "Forecast") -> str:
    from stepline.overview.rules import RULES
    from stepline.overview.state import WORDS

    rows = []
    for stage, rules in rules_of(RULES).items():
        counts = Counter(state.word for job, state in found.items() if job.rule in rules)
        if counts:
            left = _left(rules[0], forecast, counts)
            rows.append((stage, counts.total(), *(counts[word] or "" for word in WORDS), left))
    return columns([("stage", "jobs", *WORDS, "time left"), *rows], right=range(1, 7))


def _left(rule: str, forecast: "Forecast", counts: "Counter[Word]") -> str:
    if counts["done"] == counts.total():
        return ""
    hours = forecast.stage_hours(rule)
    if hours:
        return duration(hours)
    read = any(forecast.left_s[job] for job in forecast.jobs if job.rule == rule)  # in the time of another stage
    return "unknown" if hours is None else "" if read else "seconds"


def _videos(name: str, became: "Mapping[str, Became]", everything: bool) -> str:
    counts = Counter(each.status for each in became.values())
    said = ", ".join(f"{n} {status}" for status, n in counts.most_common())
    groups: dict[tuple[str, str], list[str]] = {}
    for video, each in became.items():
        if each.reason or everything:
            groups.setdefault((each.status, each.reason), []).append(video)
    rows = [
        (f"  {len(videos)}", status, _names(videos, everything=everything), reason)
        for (status, reason), videos in sorted(groups.items(), key=lambda each: (-len(each[1]), each[0]))
    ]
    return f"{name}: {len(became)} videos: {said}" + ("\n" + columns(rows) if rows else "")


def _names(videos: Sequence[str], *, everything: bool) -> str:
    shown = videos if everything else videos[:NAMED]
    more = len(videos) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _named(found: "Mapping[Job, State]", word: str) -> str:
    rows = [
        (f"  {stage_of(job.rule)}", job.name, state.reason or "", job.log if word == "failed" else "")
        for job, state in found.items()
        if state.word == word
    ]
    return f"{word}:\n{columns(rows)}" if rows else ""


def _content(
    found: "Mapping[Job, State]", forecast: "Forecast", became: "Mapping[str, Mapping[str, Became]]"
) -> dict[str, Any]:
    return {
        "jobs": [
            {
                "stage": stage_of(job.rule),
                "rule": job.rule,
                **vars(job.by),
                "state": state.word,
                "reason": state.reason,
                "log": job.log,
            }
            for job, state in found.items()
        ],
        "hours_left": {rule: forecast.stage_hours(rule) for rule in dict.fromkeys(job.rule for job in found)},
        "videos": {
            name: {video: {"status": each.status, "reason": each.reason} for video, each in of.items()}
            for name, of in became.items()
        },
    }
