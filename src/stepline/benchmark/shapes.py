"""Whether a value of YAML has the type of a dataclass's field."""

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}
PLURALS = {int: "whole numbers", float: "numbers"}


def fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of a type: scalars, tuples (lists in YAML), mappings, unions of these."""
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in inner)
    if origin is tuple:
        return isinstance(value, list) and all(fits(each, inner[0]) for each in value)
    if origin is Mapping:
        return isinstance(value, dict)
    return type(value) is hint or (hint is float and type(value) is int)


def said(hint: Any, *, many: bool = False) -> str:
    """Return in words what a type asks for."""
    origin, inner = get_origin(hint) or hint, get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(said(each, many=many) for each in inner)
    if origin is tuple:
        return f"a list of {said(inner[0], many=True)}"
    if origin is Mapping:
        return "keys with values"
    return PLURALS[hint] if many and hint in PLURALS else NAMES[hint]
