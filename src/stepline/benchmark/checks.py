"""Consistency checks of a benchmark class: its kinds, metrics and options."""

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stepline.availability import check_video_id
from stepline.benchmark.source import module_file, module_of
from stepline.config.declarations import TABLES, declaration
from stepline.datasets.schema import SPLITS, Video
from stepline.errors import ConfigError, ReleaseError

if TYPE_CHECKING:
    from stepline.benchmark.declared import Declared


def check_class(plan: "Declared[Any]") -> None:
    """Raise ConfigError with the attribute and the allowed values if a value is unknown."""
    for attribute in ("kinds", "metrics", "sees", "prediction"):
        if not hasattr(plan, attribute):
            raise ConfigError(f"{type(plan).__name__}.{attribute} is missing: see the class `Declared`")
    _check_kinds(plan)
    for name, metric in plan.metrics.items():
        _choose(plan, f"metrics[{name!r}].options", metric.options, plan.options["metrics"])
    _choose(plan, "published", plan.published, plan.options["metrics"])
    _choose(plan, "paper_release", filter(None, [plan.paper_release]), declaration(plan.folder)["releases"] or ())
    _check_releases(plan)


def _choose(plan: "Declared[Any]", where: str, words: Iterable[str], known: Iterable[str]) -> None:
    names = list(known)
    for word in words:
        if word not in names:
            allowed = f"choose from {', '.join(names)}" if names else "there is none"
            raise ConfigError(f"{type(plan).__name__}.{where}: {word!r} is not allowed; {allowed}")


def _check_kinds(plan: "Declared[Any]") -> None:
    sees = [each.word for each in plan.sees]
    blocks = [key for key, block in plan.options.items() if isinstance(block, dict) and "seeds" in block]
    entries = (plan.declares["entries"], plan.options["entries"])
    used = {entry.get("kind") for listed in entries for entry in listed.values()}
    for name, kind in plan.kinds.items():
        rules = [kind.rule(key)[0] for key in kind.settings]
        shown = [word for rule in rules if isinstance(rule, Mapping) for words in rule.values() for word in words]
        if kind.method is not None:
            where = f"kinds[{name!r}].method"
            known = _classes(f"{type(plan).__name__}.{where}", kind.method, type(plan).__module__)
            _choose(plan, where, [kind.method], known)
        _choose(plan, f"kinds[{name!r}].sees", [*kind.sees, *shown], sees)
        _choose(plan, f"kinds[{name!r}].metrics", kind.metrics, plan.metrics)
        _choose(plan, f"kinds[{name!r}].splits", kind.splits if kind.method else (), plan.splits)
        if name in used:  # a subclass need not have the options of kinds that none of its entries has
            _choose(plan, f"kinds[{name!r}].options", filter(None, [kind.options]), blocks)


def _check_releases(plan: "Declared[Any]") -> None:
    if plan.released.name != plan.name:
        raise ConfigError(
            f"{type(plan).__name__}.released: its name is {plan.released.name!r}, and the configuration names the "
            f"benchmark {plan.name!r}: use one name"
        )
    declared = declaration(plan.folder).get("datasets", ())
    for name, dataset in plan.datasets.items():
        if name in plan.config["datasets"]:  # the user's own
            continue
        where = f"datasets[{name!r}]"
        known = [f"{plan.name}/{each}" for each in plan.released.known]
        _choose(plan, "datasets", [name], declared)
        _choose(plan, f"{where}.name", [dataset.name], [name])
        _choose(plan, f"{where}.listed_by", [dataset.listed_by], known)
    for name in declared:
        if name not in plan.datasets:
            raise ConfigError(
                f"{plan.folder / TABLES}: datasets: {type(plan).__name__}.datasets has no {name!r}, only "
                f"{', '.join(plan.datasets) or 'none'}: remove it, or override `datasets`"
            )


def check_videos(where: str, videos: Sequence[Video]) -> None:
    """Raise ConfigError if an id is not allowed or occurs twice, or if a split or a duration is not allowed."""
    listed = set[str]()
    for video in videos:
        if not (isinstance(video, Video) and isinstance(video.id, str)):
            raise ConfigError(f"{where}: {video!r} is not a Video whose id is text")
        try:
            check_video_id(video.id)
        except ReleaseError as error:
            raise ConfigError(f"{where}: {error}") from None
        if video.id in listed:
            raise ConfigError(f"{where}: {video.id!r} is listed twice: list each video once")
        if video.split not in (*SPLITS, None):
            known = ", ".join(SPLITS)
            raise ConfigError(f"{where}: {video.id!r} has the split {video.split!r}; choose from {known}")
        if not isinstance(video.duration_s, int | float | None):
            raise ConfigError(f"{where}: {video.id!r} has the duration {video.duration_s!r}; give a number of seconds")
        listed.add(video.id)


def _classes(where: str, method: str, declared: str) -> list[str]:
    """Return the ``MODULE:CLASS`` of each class in the module of a method. Nothing is imported."""
    if not re.fullmatch(r"(\w+(\.\w+)*)?:\w+", str(method)):
        raise ConfigError(f"{where}: {method!r} is not allowed; write MODULE:CLASS, such as methods.linear:Linear")
    module = method.partition(":")[0]
    file = module_file(module_of(method, declared), declared)
    if file is None:
        raise ConfigError(f"{where}: {method!r} is not allowed; the benchmark's package has no module {module}")
    try:
        tree = ast.parse(file.read_bytes(), file.name)
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{where}: {file} cannot be imported: {error}") from None
    return [f"{module}:{each.name}" for each in tree.body if isinstance(each, ast.ClassDef)]
