"""Validation against a schema, with one-line error messages."""

import difflib
import re
from collections.abc import Callable, Mapping
from functools import cache
from sys import float_info
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

LONGEST = 500
"""Number of characters kept at each end of an overlong message."""
FILE = "the file"
TAKEN = "is taken; choose another name"
WORDS = {
    "object": "keys with values",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
BOUNDS = {
    "minimum": "of at least",
    "exclusiveMinimum": "above",
    "maximum": "of at most",
    "exclusiveMaximum": "below",
    "multipleOf": "that is a multiple of",
}
_NUMBERS: dict[str, Callable[[Any, Any], bool]] = {
    "integer": lambda _, value: type(value) is int,
    "number": lambda _, value: type(value) in (int, float) and abs(value) <= float_info.max,
}


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator  # most jobs check nothing
    from jsonschema.validators import extend

    types = Draft202012Validator.TYPE_CHECKER.redefine_many(_NUMBERS)
    return extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]


def first_error(value: Any, schema: Mapping[str, Any]) -> "ValidationError | None":
    """Return the first error of ``value``, or None if it is valid. Numbers must be finite, and true is not 1."""
    return min(_validator()(schema).iter_errors(value), key=_order, default=None)


def wrong(value: Any, schema: dict[str, Any]) -> str:
    """Return the first error of ``value``: the key, the value and what to write; "" if ``value`` is valid.

    In the schema, ``allowed`` describes the values that a ``pattern`` or a ``not`` accepts. ``removed`` maps the keys
    or values of earlier versions to what to write instead. ``examples`` contains an example to show if one built from
    the schema would not help. The value of a ``writeOnly`` key is never shown.
    """
    line = _explain(first) if (first := first_error(value, schema)) else ""
    return line if len(line) < 2 * LONGEST else f"{line[:LONGEST]} ... {line[-LONGEST:]}"


def _order(error: "ValidationError") -> tuple[bool, bool, list[str]]:
    """Return the sort key: empty sections first, because missing indentation also makes their keys unknown."""
    empty = error.validator == "type" and error.instance is None
    return not empty, error.validator in ("oneOf", "required"), [str(part) for part in error.absolute_path]


def _explain(error: "ValidationError") -> str:
    key, schema, value, limit = _key(error), _schema(error), error.instance, error.validator_value
    name = str(error.absolute_path[-1]) if key and not key.endswith("]") else ""
    below = f"{key}." if key else ""
    shown = "" if schema.get("writeOnly") else f"{_shown(value)} is not allowed; "
    match error.validator:
        case "additionalProperties":
            allowed = sorted(schema.get("properties", {}))
            unknown = next(name for name in value if name not in allowed)  # type: ignore[union-attr]
            close = difflib.get_close_matches(str(unknown), allowed, n=1)
            hint = f"did you mean '{close[0]}'? " if close else ""
            gone = schema.get("removed", {}).get(unknown)
            why = f"it was removed; {gone}" if gone else f"unknown key; {hint}allowed: {', '.join(allowed) or 'none'}"
            return f"{below}{unknown}: {why}"
        case "required":
            absent = next(name for name in limit if name not in value)  # type: ignore[union-attr,operator]
            child = schema.get("properties", {}).get(absent, {})
            such = f", such as {_flow({absent: child['examples'][0]})}" if "examples" in child else ""
            return f"{below}{absent}: it is required{such}"
        case "enum":
            allowed = [str(each) for each in limit if each not in ("", None)]  # type: ignore[union-attr]
            gone = schema.get("removed", {}).get(str(value))
            choice = f"choose from {', '.join(allowed) or 'nothing'}"
            said = f"{_shown(value)} was removed; {gone}" if gone else f"{shown}{choice}"
        case "oneOf":
            said = f"{shown}give exactly one of videos, fraction or hours"
        case "uniqueItems":
            said = f"{_shown(value)} contains a value twice; keep one"
        case "pattern" | "not" if "propertyNames" in error.absolute_schema_path:
            odd = error.validator == "pattern"
            said = f"{_shown(value)} {f'is not a valid name; {_name(str(value), schema)}' if odd else TAKEN}"
        case "pattern" | "not":
            said = f"{shown}{schema.get('allowed') or f'write a value that matches the regular expression {limit}'}"
        case "type" if value is None:
            indent = ", and indent its keys" if "object" in _types(schema) else ""
            said = f"it has no value; write {_wanted(schema, name, value)}{indent}"
        case _:
            said = f"{shown}write {_wanted(schema, name, value)}"
    return f"{key or FILE}: {said}"


def _schema(error: "ValidationError") -> dict[str, Any]:
    return error.schema if isinstance(error.schema, dict) else {}


def _key(error: "ValidationError") -> str:
    key = ""
    for part in error.absolute_path:
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
    return key


def _shown(value: Any) -> str:
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)


def _name(value: str, schema: dict[str, Any]) -> str:
    """Return which names are allowed, with a valid name similar to ``value``."""
    like = re.sub("[^a-z0-9_-]+", "-", value.lower()).strip("-_")
    such = f", such as {like}" if re.search(schema["pattern"], like) else ""
    return f"{schema.get('allowed') or 'write a name that matches the regular expression ' + schema['pattern']}{such}"


def _wanted(schema: dict[str, Any], name: str, value: Any) -> str:
    """Return a description of the allowed values, with an example of a list or mapping. name: the key, "" in a list."""
    kinds = _types(schema)
    both = "minimum" in schema and "maximum" in schema
    bounds = " and ".join(f"{text} {schema[key]}" for key, text in BOUNDS.items() if key in schema)
    bounds = f"from {schema['minimum']} to {schema['maximum']}" if both else bounds
    words = [f"{WORDS[kind]}{bounds and ' '}{bounds}" if kind in _NUMBERS else WORDS[kind] for kind in kinds]
    if "array" in kinds and (sizes := [schema.get(end) for end in ("minItems", "maxItems")]) != [None, None]:
        least, most = sizes
        size = f"{least}" if least == most else f"at least {least}" if most is None else f"at most {most}"
        words[kinds.index("array")] += f" of {size} value{'s' if size[-2:] not in ('1', ' 1') else ''}"
    text = " or ".join(words).replace(" or null", ", or null")
    if "string" in kinds and isinstance(value, (int, float)):
        return f"{text}: put it in quotes"
    if {"array", "object"}.isdisjoint(kinds) and "examples" not in schema:
        return text
    item = schema.get("items", {})
    fits = "array" in kinds and value is not None and not wrong(value, item)
    example = [value] if fits else _example(schema)
    return f"{text}, such as {_flow({name: example} if name else example)}"


def _types(schema: dict[str, Any]) -> list[str]:
    found = schema.get("type", "number")
    return found if isinstance(found, list) else [found]


def _example(schema: dict[str, Any]) -> Any:
    """Return a value that the schema allows."""
    if "examples" in schema:
        return schema["examples"][0]
    if schema.get("default") or "enum" in schema:
        return schema.get("default") or schema["enum"][0]
    match _types(schema)[0]:
        case "array":
            return [_example(schema.get("items", {"type": "string"}))] * schema.get("minItems", 1)
        case "object":
            below, other = schema.get("properties", {}), schema.get("additionalProperties")
            names = schema.get("required", [*below][:1])
            found = {name: _example(below.get(name, {"type": "string"})) for name in names}
            return found or ({"NAME": _example(other)} if isinstance(other, dict) else {})
        case "string":
            return "TEXT"
        case "boolean":
            return True
    return schema.get("minimum", 1)


def _flow(value: Any) -> str:
    """Return a value as YAML on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**9)
    text = text.removesuffix("...\n").strip()
    return text[1:-1] if isinstance(value, dict) and len(value) == 1 else text
