"""What is wrong with a value, by its schema, in one line."""

import difflib
from collections.abc import Callable
from functools import cache
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

LONGEST = 500
"""Characters of either end of a line that a long value would make longer."""
_NUMBERS: dict[str, Callable[[Any, Any], bool]] = {
    "integer": lambda _, value: type(value) is int,
    "number": lambda _, value: type(value) in (int, float) and isfinite(value),
}


@cache
def _validator() -> Any:
    from jsonschema import Draft202012Validator  # most jobs check nothing
    from jsonschema.validators import extend

    types = Draft202012Validator.TYPE_CHECKER.redefine_many(_NUMBERS)
    return extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]


def wrong(value: Any, schema: dict[str, Any]) -> str:
    """Return the first error of ``value``: the key, the value and what is allowed; "" where it has none."""
    errors = _validator()(schema).iter_errors(value)
    first = min(
        errors, key=lambda e: (e.validator in ("oneOf", "required"), [str(p) for p in e.absolute_path]), default=None
    )
    line = _explain(first) if first else ""
    return line if len(line) < 2 * LONGEST else f"{line[:LONGEST]} ... {line[-LONGEST:]}"


def _explain(error: "ValidationError") -> str:
    key = _key(error)
    if error.validator == "additionalProperties":
        allowed = sorted(error.schema.get("properties", {}))  # type: ignore[union-attr]
        unknown = next(name for name in error.instance if name not in allowed)  # type: ignore[union-attr]
        close = difflib.get_close_matches(str(unknown), allowed, n=1)
        hint = f"did you mean '{close[0]}'? " if close else ""
        name = unknown if key == "the file" else f"{key}.{unknown}"
        return f"{name}: unknown key; {hint}allowed: {', '.join(allowed) or 'none'}"
    if error.validator == "required":
        absent = next(name for name in error.validator_value if name not in error.instance)  # type: ignore[union-attr,operator]
        return f"{absent if key == 'the file' else f'{key}.{absent}'}: it is required"
    if error.validator == "enum":
        allowed = [str(each) for each in error.validator_value if each not in ("", None)]  # type: ignore[union-attr]
        return f"{key}: {error.instance!r} is not allowed; choose from {', '.join(allowed) or 'nothing'}"
    if key.endswith(("llm.url", "deepgram.url")):
        return f"{key}: give http(s)://HOST[:PORT]/PATH, without a password, a query or a fragment"
    if key == "features.store" and error.validator == "pattern":
        return (
            f"{key}: give s3://BUCKET[/PREFIX], without keys, a query or a slash at the end; keys are AWS_* variables"
        )
    if error.validator == "not":
        return f"{key}: {error.instance!r} is taken; choose another name"
    if error.validator == "oneOf":
        return f"{key}: {error.instance!r} is not allowed; give exactly one of videos, fraction or hours"
    if error.validator == "type":
        wanted: Any = error.validator_value
        types: list[str] = wanted if isinstance(wanted, list) else [wanted]
        hint = "; put it in quotes" if "string" in types else ""
        return f"{key}: {error.instance!r} is not of type {' or '.join(types)}{hint}"
    return f"{key}: {error.message}"


def _key(error: "ValidationError") -> str:
    key = ""
    for part in error.absolute_path:
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else str(part)
    return key or "the file"
