"""Pickles as data: nothing that a pickle names is imported or called, and nothing is allocated on its word."""

from collections.abc import Callable, Iterable
from pickle import UnpicklingError
from pickletools import genops, opcodes, stackslice
from typing import IO, Any

LARGEST_KEY = 1000
"""The maximum number of values in a key of a dictionary. A small pickle may nest tuples that take years to hash."""
MOST_OPCODES = 5_000_000
"""The maximum length of a pickle. That of a large network has 200,000; each takes up to 200 bytes of memory."""
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_SET = "builtins", "set"
_VALUES = {
    *("INT", "LONG", "LONG1", "BININT", "BININT1", "BININT2", "FLOAT", "BINFLOAT", "STRING", "BINSTRING"),
    *("SHORT_BINSTRING", "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8", "UNICODE", "SHORT_BINUNICODE"),
    *("BINUNICODE", "BINUNICODE8"),
}
_CHANGES = {"APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD"}
_TAKEN = {
    each.name: None if stackslice in each.stack_before else len(each.stack_before) - (each.name in _CHANGES)
    for each in opcodes
}
"""How many objects each opcode takes from the stack, without the one that it changes; None for all above the mark."""


class Stub:
    """A class or function that a pickle names, or what a call of it would return, without its items.

    name: its module, and its name there. arguments: of the call, or None. state: what the pickle sets.
    """

    __slots__ = ("arguments", "name", "state")

    def __init__(self, name: tuple[str, str], arguments: Any = None) -> None:
        self.name, self.arguments, self.state = name, arguments, None


def parse(
    file: IO[bytes], made: Callable[[Stub], Any] = lambda stub: stub, stored: Callable[[Any], Any] | None = None
) -> Any:
    """Return the object of the pickle that starts at the position of ``file``: containers, numbers, texts and stubs.

    made: returns the value of a stub of a call. stored: returns the value of a persistent id. An OrderedDict is a
    dictionary; sets are stubs. file: one that returns what is left of it if more is read, as a map does. The result
    takes the bytes of its values, and at most 200 for each opcode, besides what ``made`` and ``stored`` return. Raises
    errors of any type if the pickle is damaged, is too long, contains what pickles of arrays and networks do not, or
    changes what is no object of its own.
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    for number, (opcode, argument, _) in enumerate(genops(file)):
        if number > MOST_OPCODES:
            raise UnpicklingError("it has too many objects")
        name = opcode.name
        if name in _VALUES:
            stack.append(argument)
            continue
        if name == "POP" and marks and marks[-1] == len(stack):
            marks.pop()
            continue
        count = _TAKEN[name]
        start = marks.pop() if count is None else len(stack) - count
        taken = stack[start:]
        del stack[start:]
        match name:
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "MEMOIZE":
                memo[len(memo)] = taken[0]
                stack += taken
            case "GET" | "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "MARK":
                marks.append(len(stack))
            case "PROTO" | "FRAME" | "POP" | "POP_MARK":
                pass
            case "STOP":
                return taken[0]
            case "NONE" | "NEWTRUE" | "NEWFALSE":
                stack.append(_CONSTANTS[name])
            case "DUP":
                stack += taken * 2
            case "EMPTY_TUPLE" | "TUPLE" | "TUPLE1" | "TUPLE2" | "TUPLE3":
                stack.append(tuple(taken))
            case "EMPTY_LIST" | "LIST":
                stack.append(taken)
            case "EMPTY_DICT" | "DICT":
                stack.append(_dictionary(zip(taken[::2], taken[1::2], strict=True)))
            case "EMPTY_SET" | "FROZENSET":
                stack.append(Stub(_SET, ()))
            case "APPEND" | "APPENDS" if isinstance(stack[-1], list):
                stack[-1].extend(taken)
            case "SETITEM" | "SETITEMS" if isinstance(stack[-1], dict):
                stack[-1].update(_dictionary(zip(taken[::2], taken[1::2], strict=True)))
            case "BUILD" if isinstance(stack[-1], Stub) and stack[-1].arguments is not None:
                stack[-1].state = taken[0]
            case "APPEND" | "APPENDS" | "SETITEM" | "SETITEMS" | "ADDITEMS" if isinstance(stack[-1], Stub):
                pass
            case "BUILD" if isinstance(stack[-1], dict):
                pass
            case "GLOBAL":
                module, _, attribute = argument.partition(" ")
                stack.append(Stub((module, attribute)))
            case "STACK_GLOBAL" if all(isinstance(each, str) for each in taken):
                stack.append(Stub((taken[0], taken[1])))
            case "REDUCE" | "NEWOBJ" | "NEWOBJ_EX":
                stack.append(_called(taken[0], taken[1], made))
            case "OBJ":
                stack.append(_called(taken[0], taken[1:], made))
            case "INST":
                module, _, attribute = argument.partition(" ")
                stack.append(_called(Stub((module, attribute)), taken, made))
            case "PERSID" | "BINPERSID" if stored:
                stack.append(stored(argument if name == "PERSID" else taken[0]))
            case _:
                raise UnpicklingError(f"its opcode {name} is not allowed there")


def _dictionary(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    held = {}
    for key, value in pairs:
        parts = [key]
        for part in parts:
            if isinstance(part, tuple):
                if len(parts) + len(part) > LARGEST_KEY:
                    raise UnpicklingError("the key of a dictionary is too large")
                parts += part
        held[key] = value
    return held


def _called(function: Any, arguments: Any, made: Callable[[Stub], Any]) -> Any:
    if not isinstance(function, Stub):
        raise UnpicklingError("it calls what is no function")
    if function.name != ("collections", "OrderedDict"):
        return made(Stub(function.name, arguments))
    pairs = arguments[0] if arguments else []
    held = _dictionary(pairs)
    if pairs:
        pairs.clear()  # otherwise a few bytes could copy them again and again
    return held
