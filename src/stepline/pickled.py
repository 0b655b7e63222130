"""Pickles as data: nothing that a pickle names is imported or called, and nothing is allocated on its word."""

from collections.abc import Callable, Iterable, Sequence
from pickle import UnpicklingError
from pickletools import genops, opcodes, stackslice
from typing import Any

LARGEST_KEY = 1000
"""The maximum number of values in a key of a dictionary. A small pickle may nest tuples that take years to hash."""
MOST_OPCODES = 5_000_000
"""The maximum length of a pickle. That of a large network has 200,000; each takes up to 200 bytes of memory."""


class Stub:
    """A class or function that a pickle names, or what a call of it would return, without its items.

    name: its module, and its name there. arguments: of the call, or None. state: what the pickle sets.
    """

    __slots__ = ("arguments", "name", "state")

    def __init__(self, name: tuple[str, str], arguments: Any = None) -> None:
        self.name, self.arguments, self.state = name, arguments, None


def parse(
    file: Any, made: Callable[[Stub], Any] = lambda stub: stub, stored: Callable[[Any], Any] | None = None
) -> Any:
    """Return the object of the pickle that starts at the position of ``file``: containers, numbers, texts and stubs.

    made: returns the value of a stub of a call. stored: returns the value of a persistent id. An OrderedDict is a
    dictionary; sets are stubs. file: an ``mmap`` or ``BytesIO``, of which no more than is there can be read. The result
    takes the bytes of its values, and at most 200 for each opcode, besides what ``made`` and ``stored`` return. Raises
    errors of any type if the pickle is damaged, is too long, contains what pickles of arrays and networks do not, or
    changes what is no object of its own.
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    argument: Any
    for number, (opcode, argument, _) in enumerate(genops(file)):
        if number > MOST_OPCODES:
            raise UnpicklingError("it has too many objects")
        name = opcode.name
        if name == "POP" and marks and marks[-1] == len(stack):
            name = "POP_MARK"
        taken_count = _TAKEN[name]
        start = marks.pop() if taken_count is None else len(stack) - taken_count
        taken = stack[start:]
        del stack[start:]
        if name == "STOP":
            break
        if name == "MARK":
            marks.append(len(stack))
        elif name in _CHANGES:
            _CHANGES[name](stack[-1], taken)
        elif name in _CALLS:
            stack.append(_called(*_CALLS[name](argument, taken), made))
        elif stored and name in ("PERSID", "BINPERSID"):
            stack.append(stored(argument if name == "PERSID" else taken[0]))
        elif name in _PUSHES:
            stack += _PUSHES[name](argument, taken, memo)
        else:
            raise UnpicklingError(f"it has the opcode {name}")
    return taken[0]


def _extend(target: Any, taken: list[Any]) -> None:
    if isinstance(target, list):
        target += taken
    elif not isinstance(target, Stub):
        raise UnpicklingError("it appends to what is no list")


def _update(target: Any, taken: list[Any]) -> None:
    if isinstance(target, dict):
        target.update(_dictionary(zip(taken[::2], taken[1::2], strict=True)))
    elif not isinstance(target, Stub):
        raise UnpicklingError("it sets items of what is no dictionary")


def _build(target: Any, taken: list[Any]) -> None:
    if isinstance(target, Stub) and target.arguments is not None:
        target.state = taken[0]
    elif not isinstance(target, dict):
        raise UnpicklingError("it sets attributes of what is no object of its own")


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


def _named(module: Any, name: Any) -> Stub:
    if not isinstance(module, str) or not isinstance(name, str):
        raise UnpicklingError("a name is no text")
    return Stub((module, name))


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


def _memoized(argument: Any, taken: list[Any], memo: dict[int, Any]) -> list[Any]:
    memo[len(memo) if argument is None else argument] = taken[0]
    return taken


_VALUES = """INT LONG LONG1 BININT BININT1 BININT2 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING SHORT_BINBYTES
BINBYTES BINBYTES8 BYTEARRAY8 UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8"""
_CHANGES: dict[str, Callable[[Any, list[Any]], None]] = {
    **dict.fromkeys(("APPEND", "APPENDS"), _extend),
    **dict.fromkeys(("SETITEM", "SETITEMS"), _update),
    "BUILD": _build,
}
_CALLS: dict[str, Callable[[Any, list[Any]], tuple[Any, Any]]] = {
    **dict.fromkeys(("REDUCE", "NEWOBJ", "NEWOBJ_EX"), lambda _, taken: (taken[0], taken[1])),
    "OBJ": lambda _, taken: (taken[0], taken[1:]),
    "INST": lambda names, taken: (_named(*names.split(" ", 1)), taken),
}
_PUSHES: dict[str, Callable[[Any, list[Any], dict[int, Any]], Sequence[Any]]] = {
    **dict.fromkeys(_VALUES.split(), lambda value, *_: (value,)),
    **dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"), _memoized),
    **dict.fromkeys(("GET", "BINGET", "LONG_BINGET"), lambda number, _, memo: (memo[number],)),
    **dict.fromkeys(("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"), lambda _, taken, __: (tuple(taken),)),
    **dict.fromkeys(("EMPTY_LIST", "LIST"), lambda _, taken, __: (taken,)),
    **dict.fromkeys(
        ("EMPTY_DICT", "DICT"), lambda _, taken, __: (_dictionary(zip(taken[::2], taken[1::2], strict=True)),)
    ),
    **dict.fromkeys(("EMPTY_SET", "FROZENSET"), lambda *_: (Stub(("builtins", "set"), ()),)),
    **dict.fromkeys(("PROTO", "FRAME", "POP", "POP_MARK", "ADDITEMS"), lambda *_: ()),
    "NONE": lambda *_: (None,),
    "NEWTRUE": lambda *_: (True,),
    "NEWFALSE": lambda *_: (False,),
    "DUP": lambda _, taken, __: taken * 2,
    "GLOBAL": lambda names, *_: (_named(*names.split(" ", 1)),),
    "STACK_GLOBAL": lambda _, taken, __: (_named(*taken),),
}
"""What opcodes push, from their argument, what they take from the stack, and the memo."""
_TAKEN = {
    each.name: None if stackslice in each.stack_before else len(each.stack_before) - (each.name in _CHANGES)
    for each in opcodes
} | dict.fromkeys(("PUT", "BINPUT", "LONG_BINPUT"), 1)
"""How many objects opcodes take from the stack, without one that they change; None for all above the last mark."""
