"""Reads and checks a benchmark's ``tables.yaml`` with the entries that the configuration changes or adds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from stepline.benchmark.entries import Entry, Kind, Line, Table
from stepline.config.check import wrong
from stepline.config.declarations import TABLES, files_of
from stepline.config.schema import Schema
from stepline.errors import ConfigError

if TYPE_CHECKING:
    from stepline.benchmark.declared import Declared

SHOWN = get_type_hints(Line).keys() - {"entry"}
"""The fields of a line that an entry may set, in addition to the name of its table."""
NAMES = {"table", "same_as", "target"}
"""Further keys of an entry. target: the file of its line; by default that of its table."""
NAMED = ("table", "method", "modality", "setting", "same_as")
"""The fields that distinguish the line of an entry from others."""
OTHERWISE = {"id", "kind", "kind_name", "name", "file", "lines"}
"""Fields of entries and tables that have another form in YAML."""
TYPES = {str: "string", int: "integer", float: "number", NoneType: "null", Mapping: "object"}

Pair = tuple[str, float | None, str, float | None]


@dataclass(frozen=True)
class Declaration:
    """Entries by id, tables in order, and the pairs to compare.

    before: the entries that the configuration changes, as declared in ``tables.yaml``. A pair is an entry and a window
    length in seconds (None for unlimited), followed by the entry and window length it is compared with. A line that the
    configuration adds, moves or renames has the protocol ``beyond`` the paper's.
    """

    entries: Mapping[str, Entry]
    before: Mapping[str, Entry]
    tables: Sequence[Table]
    pairs: Sequence[Pair]


def read(benchmark: "Declared[Any]") -> Declaration:
    """Return the declaration; raise ConfigError if it is invalid."""
    declared, changes = benchmark.declares, benchmark.options["entries"]
    tables = {str(name): content for name, content in declared["tables"].items()}
    entries, before = _merged(declared["entries"], changes), _merged(declared["entries"], {})
    schema, pairs = _schema(benchmark, declared, tables, entries), declared.get("pairs", [])
    own = {name: content for name, content in entries.items() if name not in changes}
    changed = {name: content for name, content in entries.items() if name in changes}
    _check(benchmark, f"config: {benchmark.name}.", {"entries": changed}, schema)
    _check(benchmark, f"{benchmark.folder / TABLES}: ", {"entries": own, "tables": tables, "pairs": pairs}, schema)
    files = {name: content.get("target", f"table{name.removeprefix('table')}") for name, content in tables.items()}
    lines = {
        (name, files[name]): [_line(line, content) for line in content.get("lines", ())]
        for name, content in tables.items()
    }
    for name, content in entries.items():
        if "table" in content:
            table = content["table"]
            shown = {key: value for key, value in content.items() if key in SHOWN}
            if any(content.get(key) != before.get(name, {}).get(key) for key in NAMED):
                shown["protocol"] = "beyond"
            line = _line(shown | {"entry": content.get("same_as", name)}, tables[table])
            lines.setdefault((table, content.get("target", files[table])), []).append(line)
    made = [
        Table(
            name=name.removeprefix("table"),
            file=file,
            title=tables[name]["title"],
            metrics=tuple(tables[name]["metrics"]),
            lines=tuple(listed),
            task=tables[name].get("task", ""),
        )
        for (name, file), listed in lines.items()
    ]
    return Declaration(
        {name: _entry(benchmark, name, entries[name]) for name in _whole(entries)},
        {name: _entry(benchmark, name, before[name]) for name in _whole(before) if name in changes},
        made,
        [tuple(pair) for pair in pairs],
    )


def _check(benchmark: "Declared[Any]", where: str, content: Mapping[str, Any], schema: Schema) -> None:
    if error := wrong(content, schema):
        raise ConfigError(f"{where}{error}")
    words = [each.word for each in benchmark.sees]
    for name, entry in content["entries"].items():
        if "same_as" in entry:
            if fixed := sorted(entry.keys() - SHOWN - NAMES):
                why = f"not allowed beside same_as; change {entry['same_as']}"
                raise ConfigError(f"{where}entries.{name}.{fixed[0]}: {why}")
            continue
        if "table" not in entry and (named := sorted(entry.keys() & SHOWN)):
            why = "not allowed without table: it names a line"
            raise ConfigError(f"{where}entries.{name}.{named[0]}: {why}")
        kind = benchmark.kinds[entry["kind"]]
        if "seeds" in entry and not kind.drawn:
            why = f"its seeds are `{kind.options}.seeds`" if kind.options else "it draws nothing"
            raise ConfigError(f"{where}entries.{name}.seeds: {entry['seeds']!r} is not allowed; {why}")
        if odd := [word for word in _entry(benchmark, name, entry).sees if word not in words]:
            known = ", ".join(words)
            raise ConfigError(f"{where}entries.{name}.inputs: {odd[0]!r} is not allowed; choose from {known}")


def _schema(
    benchmark: "Declared[Any]", declared: Mapping[str, Any], tables: Mapping[str, Any], entries: Mapping[str, Any]
) -> Schema:
    """Return the schemas of the parts of the declaration."""
    line, table, whole = _fields(Line), _fields(Table), _one_of(_whole(entries))
    line["properties"] |= {"entry": whole, "releases": _list(_one_of(declared["releases"] or ()))}
    table["properties"] |= {
        "lines": _list(line),
        "metrics": _list(_one_of(benchmark.metrics)),
        "releases": line["properties"]["releases"],
        "target": {"type": "string"},
    }
    shown = {key: form for key, form in line["properties"].items() if key in SHOWN}
    shown |= {"table": _one_of(tables), "same_as": whole, "target": _one_of(files_of(declared))}
    forms = {name: _form(benchmark, kind, shown, whole) for name, kind in benchmark.kinds.items()}
    unknown = {"properties": {"kind": _one_of(benchmark.kinds)}, "required": ["kind"]}
    listed = {}
    for name, content in entries.items():
        form = {"properties": shown} if "same_as" in content else forms.get(str(content.get("kind")), unknown)
        needed = ["table"] if name not in declared["entries"] else []
        needed += ["method"] if "table" in content else []
        listed[name] = form | {"required": [*form.get("required", ()), *needed]}
    made = {name for name, kind in benchmark.kinds.items() if kind.method}
    predicted = _one_of(name for name, content in entries.items() if str(content.get("kind")) in made)
    return {
        "properties": {
            "entries": {"properties": listed},
            "tables": {"additionalProperties": table},
            "pairs": {"items": {"prefixItems": [predicted, {}, predicted, {}]}},
        }
    }


def _form(benchmark: "Declared[Any]", kind: Kind, shown: Schema, whole: Schema) -> Schema:
    """Return the schema of an entry of a kind. shown: the schema of its line. whole: that of another entry's id."""
    form, settings = _fields(benchmark.entry), dict[str, Schema]()
    for key in kind.settings:
        rule, optional = kind.rule(key)
        if rule is int:
            settings[key] = {"type": ["integer", "null"] if optional else "integer", "minimum": 1}
        else:
            settings[key] = _one_of([*(whole["enum"] if rule is str else rule), *([None] if optional else [])])
    form["properties"] |= shown | {
        "kind": _one_of(benchmark.kinds),
        "features": _one_of(["", *benchmark.options.get("features", ())]),
        "seeds": _list({"type": "integer", "minimum": 0}) | {"minItems": 1, "uniqueItems": True},
        "splits": _list(_one_of(benchmark.splits)) | {"minItems": 1, "uniqueItems": True},
        "settings": {
            "type": "object",
            "additionalProperties": False,
            "properties": settings,
            "required": [key for key in settings if not kind.rule(key)[1]],
        },
    }
    form["required"] += ["kind"]
    return form


def _entry(benchmark: "Declared[Any]", name: str, content: Mapping[str, Any]) -> Entry:
    kind = benchmark.kinds[content["kind"]]
    given = {each.name for each in fields(benchmark.entry)} & content.keys()
    values = {"splits": kind.splits} | {key: _value(content[key]) for key in given}
    made: Entry = benchmark.entry(**values | {"id": name, "kind": kind, "kind_name": content["kind"]})
    return replace(made, seeds=tuple(benchmark.options[kind.options]["seeds"])) if kind.options else made


def _line(content: Mapping[str, Any], table: Mapping[str, Any]) -> Line:
    whole = {"releases": table.get("releases", ()), **content}
    return Line(**{key: _value(value) for key, value in whole.items()})


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _whole(entries: Mapping[str, Any]) -> list[str]:
    """Return the ids of entries that are computed, without those that refer to another by ``same_as``."""
    return [name for name, content in entries.items() if "same_as" not in content]


def _merged(declared: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return declared entries with changes, whose keys replace the declared ones.

    ``settings`` are merged by key, unless the kind changes. With ``same_as``, fields of the line that are not given,
    except windows, are those of the other entry.
    """
    merged = {name: dict(content) for name, content in declared.items()}
    for name, content in changes.items():
        before = merged.get(name, {})
        merged[name] = before | content
        if isinstance(content.get("settings"), dict) and content.get("kind") in (None, before.get("kind")):
            merged[name]["settings"] = before.get("settings", {}) | content["settings"]
    for name, content in merged.items():
        like = merged.get(str(content.get("same_as")), {})
        own = content if "same_as" in content else {"settings": {}} | content
        merged[name] = {key: value for key, value in like.items() if key in SHOWN - {"contexts"}} | own
        if "table" in content:
            merged[name]["table"] = str(content["table"])
    return merged


def _fields(of: type[Any]) -> Schema:
    """Return the schema of the fields of a dataclass in YAML."""
    hints, said = get_type_hints(of), [each for each in fields(of) if each.name not in OTHERWISE]
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {each.name: _type(hints[each.name]) for each in said},
        "required": [each.name for each in said if each.default is each.default_factory is MISSING],
    }


def _type(hint: Any) -> Schema:
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        parts = [_type(each) for each in inner]
        return {key: value for part in parts for key, value in part.items()} | {
            "type": [part["type"] for part in parts]
        }
    return _list(_type(inner[0])) if origin is tuple else {"type": TYPES[origin]}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _one_of(values: Iterable[Any]) -> Schema:
    return {"enum": list(values)}
