"""The jobs that a target requires, determined backwards from the target like in Snakemake."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property

from stepline import devices
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.config import Config
from stepline.datasets.release import REBUILT
from stepline.errors import ConfigError
from stepline.helpers import Helpers, Plan
from stepline.invocation import current
from stepline.overview.rules import RULES, Words
from stepline.pipeline import Pipeline
from stepline.plans import benchmarks, configured


@dataclass(frozen=True, eq=False)
class Job:
    """A job of a rule. by: its wildcards. makes: its outputs. log: its log. after: the jobs that write its inputs."""

    rule: str
    by: Words
    makes: tuple[str, ...]
    log: str
    after: Sequence["Job"] = field(repr=False)

    @property
    def name(self) -> str:
        """The values of its wildcards, which identify it among the jobs of its rule."""
        return " ".join(vars(self.by).values())

    @property
    def data(self) -> str:
        """The data set or study that it works on."""
        return next(
            (value for key in ("dataset", "study", "own", "spacewalk") if (value := vars(self.by).get(key))), ""
        )


class Graph:
    """The jobs of a configuration that the targets require, each after its dependencies."""

    def __init__(self, config: Config, targets: Sequence[str] = ()) -> None:
        """targets: files, or names of studies and data sets; empty means the whole configuration.

        Raises ConfigError if no job writes a target or if the configuration is invalid.
        """
        known = benchmarks(config)
        asked = (target.removeprefix("results/").split("/")[0] for target in targets)
        names = dict.fromkeys([*configured(config), *(name for name in asked if name in known)])
        self.helpers = Helpers.of(config, names, cores=1)
        self.config, self.asked, self._known = config, bool(targets), known
        self._jobs: dict[str, Job | None] = {}
        self.targets = [path for target in targets or self._all for path in self._files(target)]
        for path in self.targets:
            if self._job(path) is None and not os.path.exists(path):
                raise ConfigError(f"no job writes {path}: {self._instead(path)}")

    @property
    def jobs(self) -> list[Job]:
        """All jobs, each once and after its dependencies."""
        return list(dict.fromkeys(job for job in self._jobs.values() if job))

    @property
    def gpu(self) -> bool:
        """Whether networks run on a GPU on this machine."""
        return devices.wanted(self.config["features"]["device"])

    @cached_property
    def _all(self) -> list[str]:
        return [name for name in configured(self.config) if self._made[name].targets]

    @property
    def _made(self) -> dict[str, Plan | Pipeline]:
        return {**self.helpers.pipelines, **self.helpers.plans}

    def _files(self, target: str) -> Iterator[str]:
        """Yield the files of a study or data set, or the file itself."""
        if target not in self._made:
            yield target.rstrip("/")
            return
        yield from (f"results/{target}/{file}" for file in self._made[target].targets or ["videos.csv"])

    def _instead(self, path: str) -> str:
        """Return what to name or run in place of a file that no job writes."""
        timeline = re.fullmatch(r"results/([^/]+)/videos/(.+)\.html", path)
        if timeline and timeline[1] in self.helpers.pipelines:
            return f"`{current().verb('show', *timeline.groups())}` writes the timeline of a video"
        for name in self._all:
            for file in self._files(name):
                self._job(file)
        known = [file for file, job in self._jobs.items() if job]
        if near := get_close_matches(path, known, n=3):
            return f"did you mean {' or '.join(near)}?"
        return f"name a file such as {' or '.join(next(self._files(name)) for name in self._all)}"

    def _job(self, path: str) -> Job | None:
        """Return the job that writes a file, None if there is none."""
        if path not in self._jobs:
            self._jobs[path] = None
            for rule, pattern in self._patterns:
                if found := pattern.fullmatch(path):
                    self._add(rule, Words(**found.groupdict()))
                    break
        return self._jobs[path]

    def _add(self, rule: str, by: Words) -> None:
        reads = dict.fromkeys(map(str, RULES[rule].reads(self.helpers, by)))
        after = dict.fromkeys(job for path in reads if (job := self._job(path)))
        words = vars(by)
        makes = tuple(path.format(**words) for path in RULES[rule].makes)
        job = Job(rule, by, makes, RULES[rule].log.format(**words), tuple(after))
        for path in makes:  # in execution order: earlier jobs have been added
            self._jobs.pop(path, None)
            self._jobs[path] = job

    @cached_property
    def _patterns(self) -> list[tuple[str, re.Pattern[str]]]:
        """The patterns of outputs; patterns without wildcards are first, because Snakemake prefers them."""
        plans, pipelines = self.helpers.plans, self.helpers.pipelines
        be: dict[str, Iterable[str]] = {
            "study": self._known,
            "dataset": {**self._known, **pipelines},
            "own": sorted(pipelines.keys() - plans.keys()),
            "spacewalk": Spacewalk.studies,
            "engine": [self.config["asr"]["engine"]],
            "table": [table for made in self._known.values() for table in made.all_tables()],
        }
        regexes = {
            **{name: "|".join(map(re.escape, dict.fromkeys(values))) or "(?!)" for name, values in be.items()},
            "release": f"(?!{REBUILT}/)[a-z0-9_-]+",
            "task": "[a-z0-9_-]+",
            "split": "[a-z]+",
            "shard": r"\d\d\d+",
            "entry": "[a-z0-9][a-z0-9.-]*",
            "context": r"all|[\d.]+s",
            "seed": r"\d+",
        }
        found = [(rule, path) for rule, made in RULES.items() for path in made.makes]
        found.sort(key=lambda each: "{" in each[1])
        return [(rule, _pattern(path, regexes)) for rule, path in found]


def _pattern(path: str, regexes: Mapping[str, str]) -> re.Pattern[str]:
    parts: Iterable[str] = re.split(r"\{(\w+)\}", path)
    return re.compile(
        "".join(
            f"(?P<{part}>{regexes.get(part, '[^/]+')})" if place % 2 else re.escape(part)
            for place, part in enumerate(parts)
        )
    )
