"""Encoders of queries, speech and captions, and their missing weights and packages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stepline.backbones.registry import FAMILIES, files_of, own_file, text_tower, towers, with_weights
from stepline.backbones.sentence import PACKAGED, SentenceEncoder, sentence_spec
from stepline.backbones.weights import locate
from stepline.benchmark import Entry
from stepline.config import Config
from stepline.errors import ConfigError, MissingError
from stepline.needs import Need, absent
from stepline.spec import TextSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stepline.benchmarks.hirest.benchmark import Hirest
    from stepline.features.text import TextEncoder, TextStore

SENTENCES = "minilm"
"""The encoder of speech (Sec. 4.2)."""
PACKAGES = tuple(Need("package", name) for name in (PACKAGED[SENTENCES], "torch", "transformers"))
"""The packages of the speech encoder."""


def check(named: Mapping[str, str], where: str, config: Config) -> None:
    """Raise ConfigError if the features ``named`` at the key ``where`` have no text tower."""
    name = named["text"] or named["video"]
    try:
        known = text_tower(name, config) is not None
    except MissingError:
        return
    except ConfigError:
        known = False
    if not known:
        raise ConfigError(f"{where}.text: {name!r} has no text tower; name one of {', '.join(towers())}, or a network")


def tower(benchmark: "Hirest", features: str) -> TextSpec:
    """Return the text tower of a key of ``features``, without looking up its weights."""
    named = benchmark.options["features"][features]
    found = text_tower(named["text"] or named["video"], benchmark.config)
    assert found is not None, "see check"
    return found


def missing_tower(benchmark: "Hirest", features: str) -> list[Need]:
    """Return the missing weights of the text tower of a key of ``features``.

    If the package that defines the tower is absent, the needs of the network itself include that package.
    """
    try:
        return [Need("weights", each) for each in tower(benchmark, features).weights if not locate(each)]
    except MissingError:
        return []


def missing(benchmark: "Hirest", entry: Entry) -> list[Need]:
    """Return the missing weights and packages of an entry's text encoders."""
    found = missing_tower(benchmark, entry.features) if entry.features else []
    return [*found, *(absent(*PACKAGES) if _embeds(benchmark, entry) else ())]


def records(benchmark: "Hirest", entry: Entry) -> dict[str, Any]:
    """Return the specs of an entry's text encoders, by name."""
    raw = entry.kind_name.startswith("joint")
    found = [_query_spec(benchmark, entry.features, raw)] if entry.features else []
    return {
        spec.name: spec.record()
        for spec in [*found, *([sentence_spec(SENTENCES)] if _embeds(benchmark, entry) else [])]
    }


def _embeds(benchmark: "Hirest", entry: Entry) -> bool:
    """Return whether the entry embeds speech."""
    return bool(benchmark.transcripts(entry)) and entry.settings.get("by") != "tfidf"


def query_encoder(benchmark: "Hirest", features: str, *, raw: bool = False) -> "TextEncoder":
    """Return the loaded text tower of a key of ``features``. raw: its vectors are not normalised."""
    spec, name = _query_spec(benchmark, features, raw), benchmark.options["features"][features]
    own = own_file(name["text"] or name["video"], benchmark.config)
    loaded: TextEncoder = import_module(FAMILIES[spec.architecture]).load_text(spec, files_of(spec.weights, own))
    return loaded


def _query_spec(benchmark: "Hirest", features: str, raw: bool) -> TextSpec:
    spec = with_weights(tower(benchmark, features))
    return replace(spec, normalise=False) if raw else spec


def sentence_encoder() -> "TextEncoder":
    """Return the loaded speech encoder."""
    return SentenceEncoder(SENTENCES)


def encoded(encoder: "TextEncoder", what: str, texts: Sequence[str]) -> "NDArray[np.float32]":
    """Return the (N, D) vectors of texts from the store of ``what``; each text is encoded once."""
    return stored(encoder, what, texts)(texts)


def stored(encoder: "TextEncoder", what: str, texts: Iterable[str]) -> "TextStore":
    """Return the store of ``what``, with the vectors of these texts added."""
    from stepline.features.text import kept

    return kept("hirest", what, texts, encoder)
