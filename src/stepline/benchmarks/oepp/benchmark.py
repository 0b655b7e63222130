"""The OEPP benchmark under one configuration."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stepline import paths, service
from stepline.benchmark import TRAIN, VAL, Benchmark, Entry, Job, Line, Option, Sees, Table, Values
from stepline.benchmarks.oepp.features import check_text, feature_options, missing_text, text_record
from stepline.benchmarks.oepp.kinds import KINDS, Plan
from stepline.benchmarks.oepp.metrics import METRICS, SPLITS, counted
from stepline.datasets import oepp
from stepline.datasets.release import REBUILT
from stepline.errors import ConfigError
from stepline.needs import Need, in_order

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from stepline.benchmark.declared import SubParsers
    from stepline.benchmarks.oepp.inputs import OeppInputs
    from stepline.report import Picture
    from stepline.tables import Row

BY_HORIZON = ("3", "6")
"""The tables whose lines differ by the horizon."""
PAPER_MODEL = "gpt-4o"
"""The paper's model in Table 7. The service also has names of it that end in a date."""


class Oepp(Benchmark[Entry]):
    """OEPP under one configuration. The splits of entries and predictions are those of the paper, such as ``base``."""

    about = "open-event procedure planning"
    folder = Path(__file__).parent
    studies = ("oepp",)
    released = oepp.RELEASES
    releases: ClassVar = ["split1"]
    """The releases to fetch; the other release is rebuilt."""
    datasets = oepp.DATASETS
    kinds = KINDS
    splits = tuple(SPLITS)
    prediction = Plan
    metrics = METRICS
    sees = (
        Sees("observations", "the start and end observations"),
        TRAIN,
        VAL,
        Sees("train_annotation", "the training annotation", split="train"),
        Sees("action_pool", "the action pool"),
    )
    published: ClassVar = {"miou": "sample"}
    paper_release = "split1"
    how_to_read = (
        "Filled markers are ours, with the 95 % interval by bootstrap over the videos; hollow ones are the paper's. A "
        "bound that the paper prints (<0.01) has no marker. Random is an exact expectation: nothing is drawn."
    )
    how_to_read_examples = (
        "The top row shows the true actions, the rows below show plans of the lowest seed; ✓ marks a correct step."
    )
    examples_title = "Plans"
    also_made = ("table9.csv", "table10.csv")

    @property
    def rebuild_options(self) -> str:
        """The command-line options for rebuilding the release ``rebuilt``."""
        seed = self.options["split_seed"]
        return "" if seed is None else f" --seed {seed}"

    @classmethod
    def add_verbs(cls, verbs: "SubParsers") -> None:
        """Add the verb `oepp`."""
        from stepline.benchmarks.oepp.verbs import add

        add(verbs)

    def check_features(self) -> None:
        """Raise ConfigError if a name in ``features`` provides no features of videos or no vectors of actions."""
        for key, named in self.options["features"].items():
            self.footage["openevent"].check(named["video"], f"config: oepp.features.{key}.video")
            check_text(named["text"], f"config: oepp.features.{key}.text")

    def check(self) -> None:
        """Raise ConfigError if PDPP's options are impossible."""
        pdpp = self.options["pdpp"]
        if pdpp["sampling_steps"] > pdpp["diffusion_steps"]:
            raise ConfigError(
                f"config: oepp.pdpp.sampling_steps: {pdpp['sampling_steps']} is not allowed; at most diffusion_steps, "
                f"{pdpp['diffusion_steps']}"
            )

    def features(self, entry: Entry) -> Sequence[str]:
        """Return the name of the backbone or imported bank with the entry's observations."""
        return [self.options["features"][entry.features]["video"]] if entry.features else []

    def missing_besides(self, entry: Entry, release: str) -> Sequence[Need]:
        """Return the missing weights of the action encoder, or the missing model and key of a service."""
        if not entry.kind.decoded:
            return missing_text(entry, self.options)
        made = paths.predictions(self.name, release, entry.id, paths.context_label(None))
        return service.missing(self.name, self.options["llm"], [made])

    @property
    def other_model(self) -> str:
        """The configured vision-language model if it is not the paper's, otherwise ""."""
        model: str = self.options["llm"]["model"] or ""
        return "" if re.fullmatch(rf"{PAPER_MODEL}(-\d{{4}}-\d\d-\d\d)?", model) else model

    def named(self, line: Line) -> Sequence[Line]:
        """Return a line; with a vision-language model other than the paper's, also the line under its name."""
        other = self.entries[line.entry].kind.decoded and self.other_model
        return (replace(line, method=other), line) if other else (line,)

    def missing_line(self, line: Line, release: str) -> tuple[Need, ...]:
        """Return everything that a line lacks. With another model, the line of the paper lacks the paper's model."""
        of_paper = line.method not in {each.method for each in self.named(line)[:1]}
        papers = [Need("config", "oepp.llm.model", PAPER_MODEL)] if of_paper else []
        return in_order([*super().missing_line(line, release), *papers])

    def decides(self, job: Job) -> Mapping[str, Any]:
        """Return the options of windows, vectors of actions, the loss, the service and the split, if they apply."""
        entry, options = job.entry, self.options
        read = {"padding": entry.settings.get("horizon"), "rows": entry.features}
        blocks = {
            "loss": entry.trained,
            "matching": entry.kind_name == "matching",
            "split_seed": job.release == REBUILT,
        }
        return {
            "windows": {key: options["windows"][key] for key in read if read[key]},
            "text": text_record(entry, options, self.config),
            **{key: options[key] for key in blocks if blocks[key]},
            **({"llm": service.record(options["llm"])} if entry.kind.decoded else {}),
        }

    def shown_options(self, entry: Entry, release: str) -> Mapping[str, Option]:
        """Return the options of windows, the loss, features, texts and the model."""
        options, shown = self.options, feature_options(entry, self.options)
        if entry.settings.get("horizon"):
            shown["padding"] = Option(options["windows"]["padding"], "repeat_first")
        if release == REBUILT and options["split_seed"] is not None:
            shown["split_seed"] = Option(options["split_seed"], None, said=False)
        if entry.kind.decoded:
            model, asked = options["llm"]["model"], self.changed("llm")
            shown |= {key: option for key, option in asked.items() if key != "concurrency"}
            shown["model"] = Option(model, PAPER_MODEL if self.other_model else model)
        if entry.kind_name == "matching":
            published = self.defaults["matching"]["similarity"]
            shown["similarity"] = Option(options["matching"]["similarity"], published, said=False)
        return shown | (self.changed("loss") if entry.trained else {})

    def blind(self, entry: Entry, metric: str) -> str:
        """Return Random with the same horizon, or "" for counts of the release."""
        horizon = entry.settings.get("horizon")
        random = (each for each in self.entries.values() if each.kind_name == "random")
        alike = (each.id for each in random if each.settings.get("horizon") == horizon)
        return next(alike, "") if entry.kind.method else ""

    def counted(self, entry: Entry, release: str) -> Mapping[str, float]:
        """Return the counts of a part of the release, or of all of it (Tables 1, 8)."""
        return counted(release, entry.settings["part"])

    def note(self, table: Table, line: Line, release: str, metric: str) -> str:
        """Return a note on the videos that are missing in ``rebuilt``."""
        return oepp.without() if release == REBUILT else ""

    def split(self, entry: Entry, metric: str) -> str:
        """Return the part of the split that a metric is computed on."""
        return SPLITS.get(metric.partition("_")[0], "all")

    def how_to_fill(self, need: Need) -> str:
        """Return the command that meets a need. Published features are imported under their own names."""
        if need.kind == "features":
            return f"stepline oepp import FOLDER --name {need.what.partition('/')[0]}"
        return super().how_to_fill(need)

    def inputs(self, job: Job) -> "OeppInputs":
        """Return the inputs of a job."""
        from stepline.benchmarks.oepp.inputs import OeppInputs

        return OeppInputs(self, job)

    def values(self, inputs: "OeppInputs", made: Sequence[Plan]) -> Mapping[str, Values]:
        """Return the values of each window."""
        from stepline.benchmarks.oepp.score import values

        return values(inputs, made)

    def figures(self, rows: "Sequence[Row]") -> "Mapping[str, Figure]":
        """Return figures of the success rate on base and novel, or of the accuracy for Table 6."""
        from stepline.report.figure_plans import horizons
        from stepline.report.figure_scores import scores

        table, measured = rows[0].table, {row.metric for row in rows}
        draw, name = horizons if table in BY_HORIZON else scores, "acc" if table == "6" else "sr"
        return {metric: draw(rows, metric) for metric in (f"base_{name}", f"novel_{name}") if metric in measured}

    def examples(self) -> "Sequence[Picture]":
        """Return plans of some windows."""
        from stepline.benchmarks.oepp.examples import pictures

        return list(pictures(self))
