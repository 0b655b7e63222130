"""A benchmark's ``tables.yaml``, with the entries that the configuration changes or adds, read and checked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import Any, NoReturn

from stepline.benchmark.entries import Entry, Kind, Line, Table
from stepline.config import Config
from stepline.config.declarations import declaration
from stepline.errors import ConfigError

SHOWN = {field.name for field in fields(Line)} - {"entry"}
"""What an entry may say of its own line, beside the name of its table."""


@dataclass(frozen=True)
class Declaration:
    """Entries by id, and tables in their order."""

    entries: Mapping[str, Entry]
    tables: Sequence[Table]


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Reads a declaration for one study.

    entry: the class of its entries. kinds, metrics, sees: the names that are known. options: the study's part of the
    configuration; key: where it stands there, such as ``pss``.
    """

    folder: Path
    entry: type[Entry]
    kinds: Mapping[str, Kind]
    metrics: Iterable[str]
    sees: Iterable[str]
    options: Config
    key: str

    def read(self) -> Declaration:
        """Return the declaration; raise ConfigError, one line, where it is wrong."""
        declared = declaration(self.folder)
        merged = _merged(declared["entries"], self.options["entries"])
        tables = {str(name): content for name, content in declared["tables"].items()}
        lines: dict[str, list[Line]] = {
            name: [
                self._line(f"tables.{name}.lines[{number}]", line, name, content)
                for number, line in enumerate(content.get("lines", ()))
            ]
            for name, content in tables.items()
        }
        entries = {}
        for name, content in merged.items():
            if "table" in content:
                table = str(content["table"])
                self._choose(f"entries.{name}.table", table, tables)
                shown = {key: value for key, value in content.items() if key in SHOWN}
                shown["entry"] = content.get("same_as", name)
                lines[table].append(self._line(f"entries.{name}", shown, table, tables[table]))
            if "same_as" in content:
                self._check_same(name, content, merged)
                continue
            shown_alone = (SHOWN | {"table"}) - {field.name for field in fields(self.entry)}
            own = {key: value for key, value in content.items() if key not in shown_alone}
            entries[name] = self._entry(name, own, merged)
        for listed in lines.values():
            for line in listed:
                if line.entry not in entries:
                    self._fail(f"entries.{line.entry}", f"a table names it, and it is not among {', '.join(entries)}")
        return Declaration(entries, [self._table(name, tables[name], lines[name]) for name in tables])

    def _table(self, name: str, content: Mapping[str, Any], lines: Sequence[Line]) -> Table:
        for metric in content["metrics"]:
            self._choose(f"tables.{name}.metrics", metric, self.metrics)
        short = name.removeprefix("table")
        return Table(
            name=short,
            file=content.get("target", f"table{short}"),
            title=content["title"],
            metrics=tuple(content["metrics"]),
            lines=tuple(lines),
            task=content.get("task", ""),
        )

    def _line(self, where: str, content: Mapping[str, Any], name: str, table: Mapping[str, Any]) -> Line:
        self._known(where, content, {*SHOWN, "entry"})
        for key in ("entry", "method"):
            if key not in content:
                self._fail(f"{where}.{key}", "it is required")
        content = {"releases": table.get("releases", ())} | dict(content)
        for release in content["releases"]:
            self._choose(f"{where}.releases", release, declaration(self.folder)["releases"])
        return Line(**{key: tuple(each) if isinstance(each, list) else each for key, each in content.items()})

    def _check_same(self, name: str, content: Mapping[str, Any], entries: Mapping[str, Any]) -> None:
        self._choose(
            f"entries.{name}.same_as", content["same_as"], [n for n, c in entries.items() if "same_as" not in c]
        )
        if fixed := sorted(content.keys() - SHOWN - {"table", "same_as"}):
            self._fail(f"entries.{name}.{fixed[0]}", f"not allowed beside same_as; change {content['same_as']}")

    def _entry(self, name: str, content: dict[str, Any], entries: Mapping[str, Any]) -> Entry:
        own = {field.name: field for field in fields(self.entry)}
        where = f"entries.{name}"
        self._known(where, content, own.keys() - {"id", "kind_name"} | SHOWN | {"table", "same_as"})
        required = {key for key, field in own.items() if field.default is MISSING and field.default_factory is MISSING}
        if absent := sorted(required - {"id", "kind_name"} - content.keys()):
            self._fail(f"{where}.{absent[0]}", "it is required")
        self._choose(f"{where}.kind", content["kind"], self.kinds)
        kind, seeds = self.kinds[content["kind"]], content.get("seeds", [0])
        if "seeds" in content and not kind.drawn:
            said = f"its seeds are `{kind.options}.seeds`" if kind.options else "it draws nothing"
            self._fail(f"{where}.seeds", f"{seeds!r} is not allowed; {said}")
        if not (isinstance(seeds, list) and seeds and all(type(each) is int and each >= 0 for each in seeds)):
            self._fail(f"{where}.seeds", f"{seeds!r} is not allowed; give a list of different numbers from 0")
        self._check_settings(where, content.get("settings", {}), kind, entries)
        if content.get("features"):
            self._choose(f"{where}.features", content["features"], self.options.get("features", ()))
        given = {key: tuple(each) if isinstance(each, list) else each for key, each in content.items()}
        made = self.entry(id=name, kind_name=content["kind"], **{"splits": kind.splits} | given | {"kind": kind})
        for word in made.sees:
            self._choose(f"{where}.inputs", word, self.sees)
        return replace(made, seeds=tuple(self.options[kind.options]["seeds"])) if kind.options else made

    def _check_settings(self, where: str, settings: Any, kind: Kind, entries: Mapping[str, Any]) -> None:
        if not isinstance(settings, dict):
            self._fail(f"{where}.settings", "give keys with values")
        self._known(f"{where}.settings", settings, kind.settings)
        for key, allowed in kind.settings.items():
            value, optional = settings.get(key), isinstance(allowed, tuple)
            if optional and value is None:
                continue
            rule = allowed[0] if optional else allowed
            if rule is int:
                if not (type(value) is int and value > 0):
                    self._fail(f"{where}.settings.{key}", f"{value!r} is not allowed; give a number from 1")
            else:
                self._choose(f"{where}.settings.{key}", value, entries if rule is str else rule)

    def _known(self, where: str, content: Mapping[str, Any], known: Iterable[str]) -> None:
        if unknown := sorted(map(str, content.keys() - {*known})):
            self._fail(f"{where}.{unknown[0]}", f"unknown key; allowed: {', '.join(sorted(known)) or 'none'}")

    def _choose(self, where: str, value: Any, known: Iterable[Any]) -> None:
        if value not in (names := list(known)):
            self._fail(where, f"{value!r} is not allowed; choose from {', '.join(map(str, names))}")

    def _fail(self, where: str, why: str) -> NoReturn:
        """Raise ConfigError that names the configuration where the entry stands there, else the file."""
        own = where.startswith("entries.") and where.split(".")[1] in self.options["entries"]
        raise ConfigError(
            f"config: {self.key}.{where}: {why}" if own else f"{self.folder / 'tables.yaml'}: {where}: {why}"
        )


def _merged(declared: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return declared entries with changes, whose keys replace the declared ones; ``settings`` merge by key."""
    merged = {name: dict(content) for name, content in declared.items()}
    for name, content in changes.items():
        before = merged.get(name, {})
        merged[name] = before | content
        if isinstance(content.get("settings"), dict):
            merged[name]["settings"] = before.get("settings", {}) | content["settings"]
    return merged
