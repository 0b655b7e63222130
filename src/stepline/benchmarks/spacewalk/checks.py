"""Checks of Spacewalk-18's entries and lines, in addition to the checks of all benchmarks."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from stepline.backbones.sentence import MODELS
from stepline.benchmark import Line, Table
from stepline.benchmarks.spacewalk.kinds import BLOCKS, TEXT_ENCODERS, SpacewalkEntry
from stepline.errors import ConfigError

if TYPE_CHECKING:
    from stepline.benchmarks.spacewalk.benchmark import Spacewalk

LONGEST_S = 86_400
"""The longest window of a line's ``contexts``."""


def check(plan: "Spacewalk") -> None:
    """Raise ConfigError if an entry, line or encoder is impossible; it names the key and the allowed values."""
    for entry in plan.entries.values():
        _check_entry(plan, entry)
    for table in plan.declared.tables:
        for line in table.lines:
            _check_line(plan, table, line)
    for name in plan.options["entries"]:
        if name in plan.entries and plan.entries[name].encoder not in ("", *TEXT_ENCODERS):
            _check_backbone(plan, plan.entries[name])
    for name in plan.options["video_encoders"]:
        _check_known(plan, "video_encoders", name)


def _require(plan: "Spacewalk", holds: bool, key: str, value: Any, allowed: str) -> None:
    if not holds:
        raise ConfigError(f"config: {plan.name}.{key}: {value!r} is not allowed; {allowed}")


def _check_entry(plan: "Spacewalk", entry: SpacewalkEntry) -> None:
    kind, encoder = entry.kind, entry.encoder

    def choose(key: str, allowed: Iterable[str]) -> None:
        names, value = list(allowed), getattr(entry, key)
        listed = ", ".join(each or "nothing" for each in names)
        _require(plan, value in names, f"entries.{entry.id}.{key}", value, f"choose from {listed}")

    choose("table", [table.name for table in plan.declared.tables if table.task in kind.tasks])
    choose("setting", plan.settings)
    choose("protocol", ("paper", "beyond"))
    if "video" not in kind.encoders or encoder in TEXT_ENCODERS:
        named = [each for each in kind.encoders if each not in ("text", "video")]
        choose("encoder", [*named, *(MODELS if "text" in kind.encoders else ())])
    _require(plan, bool(encoder) == (kind.encoders != ("",)), f"entries.{entry.id}.encoder", encoder, "name a backbone")
    if encoder in ("", "tfidf"):
        choose("modality", ("L",) if encoder else ("-", "L", "V", "V+L", "A", "V+A"))
    else:
        choose("modality", [each for each, blocks in BLOCKS[entry.task].items() if not _is_blind(encoder, blocks)])
    for key, part in zip([key for key, rule in kind.settings.items() if rule is str], entry.parts, strict=True):
        other = plan.entries[part]
        usable = other.task == entry.task and other.kind.can_be_part and bool(other.kind.texts or not kind.texts)
        allowed = f"name an entry of {entry.task} that scores windows without training"
        _require(plan, usable, f"entries.{entry.id}.settings.{key}", part, allowed)


def _is_blind(encoder: str, blocks: str) -> bool:
    return encoder in TEXT_ENCODERS and "V" in blocks


def _check_line(plan: "Spacewalk", table: Table, line: Line) -> None:
    entry, contexts = plan.entries[line.entry], line.contexts
    key, windowed = f"entries.{entry.id}", entry.kind.windowed
    _require(plan, table.task == entry.task, f"{key}.table", table.name, f"{entry.id} belongs to another task")
    words = ("windows",) if windowed else ("windows", "unlimited", "repeated")
    lengths = contexts == (None,) or (
        not isinstance(contexts, str)
        and all(each is not None and 0.001 <= each <= LONGEST_S for each in contexts)
        and 0 < len(contexts) == len({*contexts})
    )
    allowed = f"give {', '.join(words)} or distinct lengths in seconds, up to {LONGEST_S}"
    said = contexts if isinstance(contexts, str) else [*contexts]
    _require(plan, contexts in words or lengths, f"{key}.contexts", said, allowed)


def _check_backbone(plan: "Spacewalk", entry: SpacewalkEntry) -> None:
    key, encoder, kind = f"entries.{entry.id}", entry.encoder, entry.kind
    _check_known(plan, f"{key}.encoder", encoder)
    clips = plan.pipeline.features.describes_clips(encoder)
    wanted = f"name a backbone that describes {'every second' if clips else 'listed clips'}"
    _require(plan, kind.listed if clips else kind.grid, f"{key}.encoder", encoder, wanted)
    told = bool(entry.blocks.strip("V"))
    alone = f"{encoder} has no text tower: give V"
    _require(plan, not told or bool(plan.tower(encoder)), f"{key}.modality", entry.modality, alone)


def _check_known(plan: "Spacewalk", key: str, name: str) -> None:
    try:
        plan.pipeline.features.missing(name)
    except ConfigError as error:
        raise ConfigError(f"config: {plan.name}.{key}: {error}") from None
