"""The plan of OEPP: which jobs there are, what each reads, and what decides its result.

The workflow asks and runs; nothing is computed here, and nothing heavy is imported.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stepline import benchmark, paths
from stepline.backbones.registry import spec_of, towers
from stepline.backbones.sentence import MODELS, model_files
from stepline.backbones.weights import locate
from stepline.benchmarks.oepp.entries import Entry
from stepline.config import validate
from stepline.datasets import oepp
from stepline.datasets.release import REBUILT
from stepline.datasets.subset import select
from stepline.errors import ConfigError, ReleaseError, StoreError
from stepline.footage import Footage, is_backbone
from stepline.io import canonical_json, sha256_file

SCORING = 1
"""Revision of the scoring code: raise it with a change that gives other numbers."""
OPENEVENT = "openevent"
RELEASED_TEXT: dict[str, oepp.Features] = {"videoclip": "videoclip", "mil-nce": "s3d"}
"""Whose released text vectors stand for the text of each of the configuration's features."""
ALIKE = {
    "videoclip": ("videoclip-oepp", "videoclip-oepp-as-released", "videoclip-released"),
    "mil-nce": ("s3d-oepp", "s3d-oepp-as-released", "s3d-p3iv"),
}
"""Features whose numbers may be compared with the paper's: presets of its recipe, and its own files by these names."""
PAPER_MODEL = "gpt-4o"
"""The paper's model, which the service also names with a date."""

Job = benchmark.Job[Entry]


@dataclass(frozen=True)
class Plan(benchmark.Benchmark[Entry]):
    """What there is to do for OEPP under one configuration."""

    package = "stepline.benchmarks.oepp"
    entry = Entry
    released = oepp.RELEASES
    footage_sets = oepp.DATASETS

    def check(self) -> None:
        """Raise ConfigError where features or sizes are impossible."""
        for key, named in self.study_config["features"].items():
            self.videos.check(named["video"], f"config: oepp.features.{key}.video")
            text = named["text"]
            if "/" in text:
                self._check_vectors(f"config: oepp.features.{key}.text", Path(text).expanduser())
            elif text not in ("released", *towers(), *MODELS):
                known = ", ".join(("released", *towers(), *MODELS))
                raise ConfigError(
                    f"config: oepp.features.{key}.text: {text!r} is not one of {known}, nor a path with /"
                )
        pdpp = self.study_config["pdpp"]
        if pdpp["sampling_steps"] > pdpp["diffusion_steps"]:
            raise ConfigError(
                f"config: oepp.pdpp.sampling_steps: {pdpp['sampling_steps']} is not allowed; at most diffusion_steps, "
                f"{pdpp['diffusion_steps']}"
            )

    @staticmethod
    def _check_vectors(where: str, file: Path) -> None:
        if not file.is_file():
            raise ConfigError(f"{where}: '{file}' is not there; give a JSON file")
        try:
            vectors = oepp.read_vectors(file)
        except (ReleaseError, StoreError):
            raise ConfigError(
                f"{where}: '{file}' is not allowed; give vectors of one length as JSON, {{action: [[number, ...]]}}"
            ) from None
        if oepp.is_here("split1"):
            absent = {*oepp.pool("split1", "base"), *oepp.pool("split1", "novel")} - vectors.keys()
            if absent:
                raise ConfigError(f"{where}: '{file}' has no vector of the action {min(absent)!r}; add it")

    @property
    def targets(self) -> tuple[str, ...]:
        """What is made where no target is named."""
        return (*super().targets, "table9.csv", "table10.csv")

    @property
    def releases(self) -> list[str]:
        """The releases to fetch."""
        return ["split1"]

    @property
    def videos(self) -> Footage:
        """The pipeline of OpenEvent's videos."""
        return self.footage[OPENEVENT]

    def features(self, entry: Entry) -> Sequence[str]:
        """Return the name of the backbone or imported bank that the entry's observations are."""
        return [self.study_config["features"][entry.features]["video"]] if entry.features else []

    def lacking(self, entry: Entry, release: str) -> tuple[str, ...]:
        """Return what the entry lacks on a release before any job of it can run; videos are listed by `split1`."""
        listed = entry.made.decoded or self._computed(entry)
        absent = ["release:oepp/split1"] if listed and not oepp.has_release("split1") else []
        absent += [str(need) for name in self.features(entry) for need in self.videos.missing(name)]
        absent += self._text_lacks(entry)
        absent += self._service_lacks(entry, release) if entry.made.decoded else ()
        return tuple(dict.fromkeys(absent))

    def text(self, entry: Entry) -> str:
        """Return what stands for the vectors of actions; "" where they are not read."""
        return str(self.study_config["features"][entry.features]["text"]) if entry.features else ""

    @property
    def other_model(self) -> str:
        """The vision-language model that is asked where it is not the paper's; else ""."""
        model: str = self.study_config["llm"]["model"] or ""
        return "" if re.fullmatch(rf"{PAPER_MODEL}(-\d{{4}}-\d\d-\d\d)?", model) else model

    def _text_lacks(self, entry: Entry) -> list[str]:
        name = self.text(entry)
        if name in MODELS:
            return [] if model_files(name) else [f"weights:{name}"]
        return [f"weights:{each}" for each in (towers()[name].weights if name in towers() else ()) if not locate(each)]

    def _service_lacks(self, entry: Entry, release: str) -> tuple[str, ...]:
        service = self.study_config["llm"]
        if service["model"] is None:
            return ("config:oepp.llm.model=NAME",)
        made = paths.predictions("oepp", release, entry.id, paths.context_label(None)).exists()
        paid = urlsplit(service["url"]).hostname == "api.openai.com"
        return ("key:OPENAI_API_KEY",) if paid and not made and not os.environ.get("OPENAI_API_KEY") else ()

    def jobs(self, target: str) -> Iterator[Job]:
        """Yield the jobs of all entries of a table that can be computed; statistics need none."""
        return (job for job in super().jobs(target) if job.entry.made.module)

    def record(self, job: Job) -> dict[str, Any]:
        """Return all that decides the predictions of a job: its spec."""
        entry, mine = job.entry, self.study_config
        cut = {"padding": entry.horizon is not None, "rows": bool(entry.features)}
        record: dict[str, Any] = {
            "study": "oepp",
            "release": job.release,
            "kind": entry.kind,
            "revision": entry.made.revision,
            "settings": dict(entry.settings),
            "seeds": list(entry.seeds),
            "subset": mine["subset"],
            "windows": {key: mine["windows"][key] for key, read in cut.items() if read},
            "features": [self.videos.record(name) for name in self.features(entry)],
            "text": self._text_record(entry),
        }
        if entry.trained:
            record |= {entry.made.options: mine[entry.made.options], "loss": mine["loss"]}
        if entry.kind == "matching":
            record["matching"] = mine["matching"]
        if entry.kind == "vlm":
            record["llm"] = {key: value for key, value in mine["llm"].items() if key != "concurrency"}
        if job.release == REBUILT:
            record["split_seed"] = mine["split_seed"]
        return record

    def _text_record(self, entry: Entry) -> Any:
        name = self.text(entry)
        if name == "released":
            return f"released {RELEASED_TEXT[entry.features]}"
        if "/" in name:
            return sha256_file(Path(name).expanduser())
        return spec_of(name, self.config).record() if name else ""

    def options(self, entry: Entry, release: str) -> dict[str, Any]:
        """Return the named options that matter to the entry's numbers, besides those of a metric.

        Those of training are left out where they are the published ones.
        """
        options: dict[str, Any] = {"padding": self.study_config["windows"]["padding"]} if entry.horizon else {}
        if release == REBUILT and self.study_config["split_seed"] is not None:
            options["split_seed"] = self.study_config["split_seed"]
        if entry.kind == "vlm":
            return options | {"model": self.study_config["llm"]["model"]}
        if not entry.features:
            return options
        options |= {
            "features": self.features(entry)[0],
            "text": self.text(entry),
            "rows": self.study_config["windows"]["rows"],
        }
        if entry.kind == "matching":
            options["similarity"] = self.study_config["matching"]["similarity"]
        return options | {key: mine for key, (mine, _) in self.changed(entry).items()}

    def changed(self, entry: Entry) -> dict[str, tuple[Any, Any]]:
        """Return the options of an entry's training that are not the published ones: each with both values."""
        mine, published = self.study_config, validate({"oepp": {}})["oepp"]
        blocks = ("loss", entry.made.options) if entry.trained else ()
        pairs = {key: (mine[block][key], published[block][key]) for block in blocks for key in mine[block]}
        return {key: pair for key, pair in sorted(pairs.items()) if pair[0] != pair[1] and key != "seeds"}

    def published(self, entry: Entry) -> dict[str, Any]:
        """Return the paper's value of each of the entry's options, as far as it is known."""
        options: dict[str, Any] = {"padding": "repeat_first", "rows": "released", "miou": "sample"}
        if entry.features:
            mine, alike = self.features(entry)[0], ALIKE[entry.features]
            options |= {"features": mine if mine in alike else alike[0], "text": "released"}
        if entry.kind == "vlm":
            options["model"] = self.study_config["llm"]["model"] if not self.other_model else PAPER_MODEL
        return options | {key: published for key, (_, published) in self.changed(entry).items()}

    def score_params(self) -> str:
        """Return what scores must be made again for, besides new predictions, as text."""
        return canonical_json({"metrics": self.study_config["metrics"], "revision": SCORING})

    def material(self, job: Job) -> list[Path]:
        """Return what fitting and predicting read."""
        inputs = [self.release_manifest(job.release)]
        inputs += [path for name in self.features(job.entry) for path in self.videos.inputs(name)]
        if job.entry.made.decoded:
            inputs += self.videos.pipeline.videos.availability
        return inputs

    def table_inputs(self, target: str) -> list[Path]:
        """Return the scores that a table collects or the releases that it counts, and the records of deleted videos."""
        counted = [release for name, release in self.pairs(target) if not self.entries[name].made.module]
        jobs = list(self.jobs(target))
        read = any(job.entry.made.decoded or self._computed(job.entry) for job in jobs)
        releases = map(self.release_manifest, dict.fromkeys(counted))
        return [*self.scores(target), *releases, *(self.videos.pipeline.videos.dropped if read else [])]

    def _computed(self, entry: Entry) -> bool:
        return any(is_backbone(name, self.config) for name in self.features(entry))

    @property
    def rebuild_options(self) -> str:
        """What stands behind the verb that makes ``rebuilt``."""
        seed = self.study_config["split_seed"]
        return "" if seed is None else f" --seed {seed}"

    @property
    def choices(self) -> Sequence[Any]:
        """What a table says besides its numbers: a change of it writes tables again."""
        keys = ("releases", "split_seed", "subset", "features", "windows", "llm")
        return [self.study_config[key] for key in keys]

    def how_to_fill(self, item: str) -> str:
        """Return a command that brings what ``needs`` names; published features come by their own names."""
        kind, _, what = item.partition(":")
        if kind == "features":
            return f"stepline oepp import FOLDER --name {what.partition('/')[0]}"
        return super().how_to_fill(item)

    def chosen(self) -> frozenset[str]:
        """Return the videos that the configured subset holds."""
        return frozenset(select(oepp.DATASETS[OPENEVENT].videos(), self.study_config["subset"]))
