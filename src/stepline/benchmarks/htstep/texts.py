"""Texts of steps and speech, their encoders, and the missing weights and packages of encoders."""

import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stepline.backbones.registry import FAMILIES, files_of, own_file, text_tower, towers, with_weights
from stepline.backbones.sentence import MODELS, SentenceEncoder, model_files, sentence_spec
from stepline.backbones.weights import locate
from stepline.benchmark import Entry
from stepline.datasets.htstep import Step
from stepline.errors import ConfigError, MissingError
from stepline.needs import Need, absent
from stepline.spec import Spec, TextSpec

if TYPE_CHECKING:
    from stepline.benchmarks.htstep.benchmark import Htstep
    from stepline.features.text import TextEncoder, TextStore

PACKAGES = tuple(Need("package", name) for name in ("torch", "transformers"))
"""The packages of a sentence encoder."""
MOST_SENTENCES = 28
"""The maximum number of sentences per step (App. B)."""


def encoder_of(entry: Entry) -> str:
    """Return the key in ``texts`` of an entry's text encoder; "" if it has none."""
    if entry.kind_name == "text":
        return "mpnet" if entry.settings["by"] == "mpnet" else ""
    return str(entry.settings.get("text", ""))


def check(benchmark: "Htstep") -> None:
    """Raise ConfigError if a name in ``texts`` is not an encoder."""
    for key, name in benchmark.options["texts"].items():
        try:
            known = name in MODELS or text_tower(name, benchmark.config) is not None
        except MissingError:
            continue
        except ConfigError:
            known = False
        if not known:
            listed = ", ".join([*MODELS, *towers()])
            raise ConfigError(
                f"config: htstep.texts.{key}: {name!r} is not a text encoder; name one of {listed}, or a network "
                "with a text tower"
            )


def missing(benchmark: "Htstep", entry: Entry) -> list[Need]:
    """Return the missing weights and packages of an entry's text encoder."""
    if not (key := encoder_of(entry)):
        return []
    name = benchmark.options["texts"][key]
    if name in MODELS:
        return [*absent(*PACKAGES), *([] if model_files(name) else [Need("weights", name)])]
    try:
        tower = text_tower(name, benchmark.config)
    except MissingError:
        return list(absent(Need("package", "open_clip")))
    assert tower is not None, "see check"
    return [Need("weights", each) for each in tower.weights if not locate(each)]


def spec(benchmark: "Htstep", key: str) -> Spec:
    """Return the spec of the encoder of a key of ``texts``."""
    name = benchmark.options["texts"][key]
    if name in MODELS:
        return sentence_spec(name)
    tower = text_tower(name, benchmark.config)
    assert tower is not None, "see check"
    return with_weights(tower)


def encoder(benchmark: "Htstep", key: str) -> "TextEncoder":
    """Return the loaded encoder of a key of ``texts``."""
    name, made_by = benchmark.options["texts"][key], spec(benchmark, key)
    if not isinstance(made_by, TextSpec):
        return SentenceEncoder(name)
    files = files_of(made_by.weights, own_file(name, benchmark.config))
    loaded: TextEncoder = import_module(FAMILIES[made_by.architecture]).load_text(made_by, files)
    return loaded


def stored(encoder: "TextEncoder", what: str, texts: Iterable[str]) -> "TextStore":
    """Return the store of ``what``, with the vectors of these texts added; each text is encoded once."""
    from stepline.features.text import kept

    return kept("htstep", what, texts, encoder)


def whole(step: Step, made_of: str) -> str:
    """Return the text of a step: the selected parts of "Activity: Headline. Paragraph" (App. B).

    made_of: a key of ``INPUTS``. If only the paragraph is selected and a step has none, its headline is used. Speech
    has no activity.
    """
    parts = made_of.split("_")
    said = [step.headline] if "headline" in parts or not step.paragraph else []
    said += [step.paragraph] if "paragraph" in parts and step.paragraph else []
    body = " ".join(each if each.endswith((".", "!", "?")) else f"{each}." for each in said[:-1])
    text = " ".join(filter(None, [body, said[-1]]))
    return f"{step.activity}: {text}" if "activity" in parts and step.activity else text


def sentences(step: Step, made_of: str) -> list[str]:
    """Return at most 28 sentences of a step, its headline first (App. B). Each sentence is a row in MT+BCE."""
    parts = made_of.split("_")
    said = [step.headline] if "headline" in parts or not step.paragraph else []
    if "paragraph" in parts:
        said += [each for each in re.split(r"(?<=[.;!?])\s+", step.paragraph.strip()) if each]
    prefix = f"{step.activity}: " if "activity" in parts and step.activity else ""
    return [prefix + each for each in said[:MOST_SENTENCES]]


def words(text: str) -> list[str]:
    """Return the words of a text in lower case; the text itself if it has none."""
    return re.findall(r"[\w']+", text.lower()) or [text]


def record(benchmark: "Htstep", entry: Entry) -> Mapping[str, Any]:
    """Return the spec of an entry's text encoder as a record; {} if it has none."""
    key = encoder_of(entry)
    return spec(benchmark, key).record() if key else {}
