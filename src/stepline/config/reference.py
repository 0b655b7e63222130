"""The configuration reference: every key with its allowed values, its default and its description."""

import json
import re
from dataclasses import dataclass
from typing import Any

from stepline.config.declarations import folders
from stepline.config.schema import Schema, schema_of

HEAD = """\
# Configuration

<!-- Generated from the schema. After a change of the schema: python -m stepline.config > config/README.md -->

The configuration is one YAML file. It contains one key per benchmark to compute and, under `datasets`, one key per
folder of videos. All options have defaults, so `{}` is enough:

```yaml
pss: {}                              # all tables of PSS
hirest:
  tables: [table3, table4]           # two tables of HiREST
datasets:
  mine: {videos: path/to/videos}     # your own videos
```

In a checkout the file is `config.yaml`, or the file given with `--configfile`. If you deployed the workflow with
snakedeploy, write `config/config.yaml`. If you use it as a [module](../docs/module.md), use your own file.
`--config 'pss={tables: [table3]}'` changes values for one run. An unknown key or an invalid value is an error; the
message names the key and the allowed values.

Below, nested keys are written with dots, relative to their section: `limits.memory_mb` of `media` is
`media: {limits: {memory_mb: 4000}}`. `<name>` is a name of your choice.
"""
BOUNDS = {
    "minimum": "≥ ",
    "exclusiveMinimum": "> ",
    "maximum": "≤ ",
    "exclusiveMaximum": "< ",
    "multipleOf": "a multiple of ",
}


@dataclass(frozen=True)
class Row:
    """A key relative to its section, with its allowed values, default and description as Markdown."""

    key: str
    value: str
    default: str
    description: str

    def __str__(self) -> str:
        return f"| `{self.key}` | {self.value} | {self.default} | {self.description} |"


def page() -> str:
    """Return the Markdown page of all keys: general keys, keys that all benchmarks share, and keys of one benchmark."""
    parts = schema_of(folders({}))["properties"]
    studies = {name: part for name, part in parts.items() if "tables" in part.get("properties", {})}
    common = set.intersection(*(set(_rows(part)) for part in studies.values()))
    common = {row for row in common if {each.key for each in common} >= set(_above(row.key))}

    single = [row for name, part in parts.items() if not _below(part) for row in _rows(part, name)]
    text = [HEAD, _section("General", "", single)]
    for name, part in parts.items():
        if _below(part) and name not in studies:
            own, *rows = _rows(part)
            text.append(_section(f"`{name}`", own.description, rows))
    first = next(iter(studies.values()))
    text.append(_section("Every benchmark", "", [row for row in _rows(first) if row in common]))
    for name, part in studies.items():
        own, *rows = _rows(part)
        like = next(other for other, known in studies.items() if _below(known).keys() == _below(part).keys())
        about = own.description if like == name else f"{own.description} As `{like}`, except for:"
        said = common if like == name else {*_rows(studies[like])}
        text.append(_section(f"`{name}`", about, [row for row in rows if row not in said]))
    return "\n".join(text)


def _section(title: str, about: str, rows: list[Row]) -> str:
    head = ["| key | value | default | |", "|---|---|---|---|"]
    return "\n".join([f"## {title}", "", *([about, ""] if about else []), *head, *map(str, rows), ""])


def _rows(part: Schema, key: str = "", *, required: bool = False) -> list[Row]:
    """Return the row of a key and the rows of all keys below it."""
    needed = part.get("required", [])
    below = [
        row for name, child in _below(part).items() for row in _rows(child, _joined(key, name), required=name in needed)
    ]
    description = part.get("description", "")
    value = "" if below and not _nullable(part) else _value(part)
    default = "required" if required else _default(part)
    return [Row(key, value, default, re.sub(r"docs/([\w-]+\.md)", r"[\1](../docs/\1)", description.strip())), *below]


def _below(part: Schema) -> dict[str, Schema]:
    other = part.get("additionalProperties")
    return {**part.get("properties", {}), **({"<name>": other} if isinstance(other, dict) else {})}


def _joined(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _above(key: str) -> list[str]:
    names = key.split(".")
    return [".".join(names[:at]) for at in range(1, len(names))]


def _nullable(part: Schema) -> bool:
    return "null" in part["type"] if isinstance(part.get("type"), list) else False


def _value(part: Schema) -> str:
    """Return the allowed values."""
    if "enum" in part:
        return ", ".join(f"`{each}`" for each in part["enum"])
    if part["type"] == "boolean":
        return "`true`, `false`"
    if part["type"] == "array":
        items, some = part["items"], "minItems" in part
        if "enum" in items:
            return f"{'one or more' if some else 'any'} of {_value(items)}"
        return f"{'one or more' if some else 'list of'} {items['type']}s{_range(items)}"
    types = part["type"] if isinstance(part["type"], list) else [part["type"]]
    return " or ".join(each for each in types if each != "null") + _range(part) + (" or `null`" * _nullable(part))


def _range(part: Schema) -> str:
    if "minimum" in part and "maximum" in part:
        return f" from {part['minimum']} to {part['maximum']}"
    found = [f"{sign}{part[name]}" for name, sign in BOUNDS.items() if name in part]
    return f" {', '.join(found)}" if found else ""


def _default(part: Schema) -> str:
    """Return the default: "all" for a list of all allowed values, "" for an object or a key without a default."""
    default = part.get("default", {})
    if default == {}:
        return ""
    if isinstance(default, list) and default == part["items"].get("enum") and len(default) > 1:
        return "all"
    return f"`{_flow(default)}`"


def _flow(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return value if isinstance(value, str) and value else json.dumps(value)
