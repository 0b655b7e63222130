"""A benchmark's ``tables.yaml``, with the entries that the configuration changes or adds, read and checked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, NoReturn, get_type_hints

from stepline.benchmark.entries import Entry, Kind, Line, Table
from stepline.benchmark.shapes import fits, said
from stepline.config import Config
from stepline.config.declarations import TABLES, declaration, files_of
from stepline.errors import ConfigError

LINE = get_type_hints(Line)
SHOWN = LINE.keys() - {"entry"}
"""What an entry may say of its own line, beside the name of its table."""
TABLE: dict[str, Any] = {
    "title": str,
    "metrics": tuple[str, ...],
    "lines": tuple[Mapping[str, Any], ...],
    "releases": tuple[str, ...],
    "target": str,
    "task": str,
}
"""The fields of a table."""
NAMES: dict[str, Any] = {"table": str | int, "same_as": str, "target": str}
"""What an entry has besides its own fields and those of its line: target is the file of the line, by default its
table's."""

Pair = tuple[str, float | None, str, float | None]


@dataclass(frozen=True)
class Declaration:
    """Entries by id, tables in their order, and the pairs whose difference is asked for.

    A pair is an entry and a window length in seconds, None for unlimited, then those of what it is compared with.
    """

    entries: Mapping[str, Entry]
    tables: Sequence[Table]
    pairs: Sequence[Pair]


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Reads a declaration for one study.

    entry: the class of its entries. kinds, metrics, sees, splits: the names that are known. options: the study's part
    of the configuration; key: where it stands there, such as ``pss``.
    """

    folder: Path
    entry: type[Entry]
    kinds: Mapping[str, Kind]
    metrics: Iterable[str]
    sees: Iterable[str]
    splits: Iterable[str]
    options: Config
    key: str

    def read(self) -> Declaration:
        """Return the declaration; raise ConfigError, one line, where it is wrong."""
        declared, file = declaration(self.folder), self.folder / TABLES
        tables = {str(name): content for name, content in declared["tables"].items()}
        for name, content in tables.items():
            self._check_fields(f"{file}: tables.{name}", content, TABLE, {"title", "metrics"})
        files = {name: _file(name, content) for name, content in tables.items()}
        merged = _merged(declared["entries"], self.options["entries"])
        lines = {
            (name, files[name]): [
                self._line(f"{file}: tables.{name}.lines[{number}]", line, content, merged)
                for number, line in enumerate(content.get("lines", ()))
            ]
            for name, content in tables.items()
        }
        entries = {}
        for name, content in merged.items():
            changed = name in self.options["entries"]
            where = f"config: {self.key}.entries.{name}" if changed else f"{file}: entries.{name}"
            if "same_as" in content:
                self._check_same(where, content, merged)
            if "table" in content:
                self._choose(f"{where}.table", table := str(content["table"]), tables)
                target = content.get("target", files[table])
                self._choose(f"{where}.target", target, files_of(declared))
                line = self._line(where, _shown(name, content, merged), tables[table], merged)
                lines.setdefault((table, target), []).append(line)
            elif name not in declared["entries"]:
                self._fail(f"{where}.table", "it is required: no table names the entry")
            if "same_as" not in content:
                entries[name] = self._entry(where, name, content, merged)
        pairs = [tuple(pair) for pair in declared.get("pairs", ())]
        self._check_pairs(file, pairs, entries)
        made = [self._table(file, *of, tables[of[0]], listed) for of, listed in lines.items()]
        return Declaration(entries, made, pairs)

    def _table(self, file: Path, name: str, target: str, content: Mapping[str, Any], lines: Sequence[Line]) -> Table:
        for metric in content["metrics"]:
            self._choose(f"{file}: tables.{name}.metrics", metric, self.metrics)
        return Table(
            name=name.removeprefix("table"),
            file=target,
            title=content["title"],
            metrics=tuple(content["metrics"]),
            lines=tuple(lines),
            task=content.get("task", ""),
        )

    def _line(
        self, where: str, content: Mapping[str, Any], table: Mapping[str, Any], entries: Mapping[str, Any]
    ) -> Line:
        self._check_fields(where, content, LINE, {"entry", "method"})
        self._choose(f"{where}.entry", content["entry"], _whole(entries))
        content = {"releases": table.get("releases", ())} | dict(content)
        for release in content["releases"]:
            self._choose(f"{where}.releases", release, declaration(self.folder)["releases"])
        return Line(**{key: _value(each) for key, each in content.items()})

    def _check_same(self, where: str, content: Mapping[str, Any], entries: Mapping[str, Any]) -> None:
        self._choose(f"{where}.same_as", content["same_as"], _whole(entries))
        if fixed := sorted(content.keys() - SHOWN - NAMES.keys()):
            self._fail(f"{where}.{fixed[0]}", f"not allowed beside same_as; change {content['same_as']}")

    def _entry(self, where: str, name: str, content: Mapping[str, Any], entries: Mapping[str, Any]) -> Entry:
        own = get_type_hints(self.entry) | {"kind": str}
        own = {key: hint for key, hint in own.items() if key not in ("id", "kind_name")}
        required = {each.name for each in fields(self.entry) if each.default is each.default_factory is MISSING}
        self._check_fields(where, content, {key: LINE[key] for key in SHOWN} | NAMES | own, required & own.keys())
        self._choose(f"{where}.kind", content["kind"], self.kinds)
        kind = self.kinds[content["kind"]]
        if "seeds" in content:
            self._check_seeds(f"{where}.seeds", content["seeds"], kind)
        if content.get("features"):
            self._choose(f"{where}.features", content["features"], self.options.get("features", {}))
        for split in content.get("splits", ()):
            self._choose(f"{where}.splits", split, self.splits)
        self._check_settings(f"{where}.settings", content.get("settings", {}), kind, entries)
        values = {key: _value(each) for key, each in content.items() if key in own}
        made = self.entry(**{"splits": kind.splits} | values | {"id": name, "kind": kind, "kind_name": content["kind"]})
        for word in made.sees:
            self._choose(f"{where}.inputs", word, self.sees)
        return replace(made, seeds=tuple(self.options[kind.options]["seeds"])) if kind.options else made

    def _check_pairs(self, file: Path, pairs: Sequence[Pair], entries: Mapping[str, Entry]) -> None:
        predicted = [name for name, entry in entries.items() if entry.kind.method]
        for number, pair in enumerate(pairs):
            for name in pair[::2]:
                self._choose(f"{file}: pairs[{number}]", name, predicted)

    def _check_seeds(self, where: str, seeds: Sequence[Any], kind: Kind) -> None:
        if not kind.drawn:
            why = f"its seeds are `{kind.options}.seeds`" if kind.options else "it draws nothing"
            self._fail(where, f"{seeds!r} is not allowed; {why}")
        if min(seeds, default=-1) < 0 or len({*seeds}) < len(seeds):
            self._fail(where, f"{seeds!r} is not allowed; give a list of different numbers from 0")

    def _check_settings(self, where: str, settings: Mapping[str, Any], kind: Kind, entries: Mapping[str, Any]) -> None:
        self._known(where, settings, kind.settings)
        for key in kind.settings:
            rule, optional = kind.rule(key)
            value = settings.get(key)
            if optional and value is None:
                continue
            if rule is int:
                if not (type(value) is int and value > 0):
                    self._fail(f"{where}.{key}", f"{value!r} is not allowed; give a number from 1")
            else:
                self._choose(f"{where}.{key}", value, _whole(entries) if rule is str else rule)

    def _check_fields(self, where: str, content: Any, hints: Mapping[str, Any], required: Iterable[str]) -> None:
        if not isinstance(content, dict):
            self._fail(where, f"{content!r} is not allowed; give {said(Mapping)}")
        self._known(where, content, hints)
        for key in sorted({*required} - content.keys()):
            self._fail(f"{where}.{key}", "it is required")
        for key, value in content.items():
            if not fits(value, hints[key]):
                self._fail(f"{where}.{key}", f"{value!r} is not allowed; give {said(hints[key])}")

    def _known(self, where: str, content: Mapping[str, Any], known: Iterable[str]) -> None:
        if unknown := sorted(map(str, content.keys() - {*known})):
            self._fail(f"{where}.{unknown[0]}", f"unknown key; allowed: {', '.join(sorted(known)) or 'none'}")

    def _choose(self, where: str, value: Any, known: Iterable[Any]) -> None:
        if value not in (names := list(known)):
            self._fail(where, f"{value!r} is not allowed; choose from {', '.join(map(str, names)) or 'nothing'}")

    def _fail(self, where: str, why: str) -> NoReturn:
        raise ConfigError(f"{where}: {why}")


def _shown(name: str, content: Mapping[str, Any], entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of an entry; what it does not say of itself, beside windows, is that of the one that it is the
    same as."""
    like = entries[content["same_as"]] if "same_as" in content else {}
    shown = {key: value for key, value in like.items() if key in SHOWN - {"contexts"}} | dict(content)
    return {key: value for key, value in shown.items() if key in SHOWN} | {"entry": content.get("same_as", name)}


def _file(name: str, table: Mapping[str, Any]) -> str:
    target: str = table.get("target", f"table{name.removeprefix('table')}")
    return target


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _whole(entries: Mapping[str, Any]) -> list[str]:
    """Return the ids of entries that are computed, and not the same as another."""
    return [name for name, content in entries.items() if "same_as" not in content]


def _merged(declared: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return declared entries with changes, whose keys replace the declared ones.

    ``settings`` merge by key, unless the kind is another one.
    """
    merged = {name: dict(content) for name, content in declared.items()}
    for name, content in changes.items():
        before = merged.get(name, {})
        merged[name] = before | content
        if isinstance(content.get("settings"), dict) and content.get("kind") in (None, before.get("kind")):
            merged[name]["settings"] = before.get("settings", {}) | content["settings"]
    return merged
