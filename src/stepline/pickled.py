"""Pickles as data: nothing that a pickle names is imported or called, and nothing is allocated on its word."""

from collections.abc import Callable
from pickle import UnpicklingError
from pickletools import genops
from typing import IO, Any

LARGEST_KEY = 1000
"""The maximum number of values in a key of a dictionary. A small pickle may nest tuples that take years to hash."""


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
    dictionary. The result takes at most about 100 times the memory of the pickle, plus that of ``made``, if a read of
    ``file`` takes no more memory than is left in it, as that of a map or of BytesIO. Raises errors of any type if the
    pickle is damaged, has external buffers or registered extensions, or changes what it names.
    """
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}

    def marked() -> list[Any]:
        start = marks.pop()
        items = stack[start:]
        del stack[start:]
        return items

    def called(function: Any, arguments: Any) -> Any:
        if not isinstance(function, Stub):
            raise UnpicklingError("it calls what is no function")
        if function.name == ("collections", "OrderedDict"):
            pairs = arguments[0] if arguments else []
            held = {_checked(key): value for key, value in pairs}
            if pairs:
                pairs.clear()  # a pickle of a few bytes could otherwise copy them again and again
            return held
        return made(Stub(function.name, arguments))

    for opcode, argument, _ in genops(file):
        match opcode.name:
            case "PROTO" | "FRAME":
                pass
            case "STOP":
                return stack.pop()
            case "NONE":
                stack.append(None)
            case "NEWTRUE" | "NEWFALSE":
                stack.append(opcode.name == "NEWTRUE")
            case "INT" | "LONG" | "LONG1" | "BININT" | "BININT1" | "BININT2" | "FLOAT" | "BINFLOAT":
                stack.append(argument)
            case "STRING" | "BINSTRING" | "SHORT_BINSTRING" | "SHORT_BINBYTES" | "BINBYTES" | "BINBYTES8":
                stack.append(argument)
            case "UNICODE" | "SHORT_BINUNICODE" | "BINUNICODE" | "BINUNICODE8" | "BYTEARRAY8":
                stack.append(argument)
            case "PUT" | "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "MEMOIZE":
                memo[len(memo)] = stack[-1]
            case "GET" | "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "DUP":
                stack.append(stack[-1])
            case "MARK":
                marks.append(len(stack))
            case "POP" if marks and marks[-1] == len(stack):
                marks.pop()
            case "POP":
                stack.pop()
            case "POP_MARK":
                marked()
            case "EMPTY_TUPLE":
                stack.append(())
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                items = [stack.pop() for _ in range(int(opcode.name[-1]))]
                stack.append((*reversed(items),))
            case "TUPLE":
                stack.append((*marked(),))
            case "EMPTY_LIST":
                stack.append([])
            case "LIST":
                stack.append(marked())
            case "APPEND":
                item = stack.pop()
                _extend(stack[-1], [item])
            case "APPENDS":
                items = marked()
                _extend(stack[-1], items)
            case "EMPTY_DICT":
                stack.append({})
            case "DICT":
                items = marked()
                stack.append({})
                _update(stack[-1], items)
            case "SETITEM":
                item, key = stack.pop(), stack.pop()
                _update(stack[-1], [key, item])
            case "SETITEMS":
                items = marked()
                _update(stack[-1], items)
            case "EMPTY_SET":
                stack.append(Stub(("builtins", "set"), ()))
            case "ADDITEMS":
                marked()
            case "FROZENSET":
                marked()
                stack.append(Stub(("builtins", "frozenset"), ()))
            case "GLOBAL":
                module, _, name = argument.partition(" ")
                stack.append(Stub((module, name)))
            case "STACK_GLOBAL":
                name, module = stack.pop(), stack.pop()
                if not isinstance(name, str) or not isinstance(module, str):
                    raise UnpicklingError("a name is no text")
                stack.append(Stub((module, name)))
            case "REDUCE" | "NEWOBJ":
                arguments, function = stack.pop(), stack.pop()
                stack.append(called(function, arguments))
            case "NEWOBJ_EX":
                _, arguments, function = stack.pop(), stack.pop(), stack.pop()
                stack.append(called(function, arguments))
            case "OBJ":
                function, *arguments = marked()
                stack.append(called(function, arguments))
            case "INST":
                module, _, name = argument.partition(" ")
                stack.append(called(Stub((module, name)), marked()))
            case "BUILD":
                state, target = stack.pop(), stack[-1]
                if isinstance(target, Stub) and target.arguments is not None:
                    target.state = state
                elif not isinstance(target, dict):
                    raise UnpicklingError("it changes what is no object of its own")
            case "PERSID" | "BINPERSID" if stored:
                stack.append(stored(argument if opcode.name == "PERSID" else stack.pop()))
            case _:
                raise UnpicklingError(f"it has {opcode.name}")


def _checked(key: Any) -> Any:
    parts = [key]
    for part in parts:
        if isinstance(part, tuple):
            if len(parts) + len(part) > LARGEST_KEY:
                raise UnpicklingError("the key of a dictionary is too large")
            parts += part
    return key


def _extend(target: Any, items: list[Any]) -> None:
    if isinstance(target, list):
        target += items
    elif not isinstance(target, Stub):
        raise UnpicklingError("it appends to what is no list")


def _update(target: Any, items: list[Any]) -> None:
    if isinstance(target, dict):
        target.update({_checked(key): value for key, value in zip(items[::2], items[1::2], strict=True)})
    elif not isinstance(target, Stub):
        raise UnpicklingError("it sets items of what is no dictionary")
